package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/corpus"
)

// FuzzBTV parses any text as a .btv file: the result is vectors that JSON can represent, or an
// error that names a line.
func FuzzBTV(f *testing.F) {
	seed(f, btvSeeds(f))
	f.Fuzz(func(t *testing.T, text []byte) {
		vectors, err := conformance.Parse("x.btv", text)
		if err != nil {
			var e *conformance.ParseError
			if !errors.As(err, &e) || e.Row < 1 || e.Row > bytes.Count(text, []byte("\n"))+1 || e.Msg == "" {
				t.Fatalf("%q: an error without a line: %#v", text, err)
			}
			return
		}
		var set conformance.Set
		if set.Add(vectors...) != nil {
			return // the same ID twice
		}
		var out bytes.Buffer
		if err := set.WriteJSON(&out); err != nil || !json.Valid(out.Bytes()) {
			t.Fatalf("%q as JSON: %v in %s", text, err, out.Bytes())
		}
	})
}

// btvSeeds returns the heads and the first records of the vector files.
func btvSeeds(t testing.TB) [][]byte {
	var seeds [][]byte
	for _, text := range vectorFiles(t) {
		records := strings.Split(string(text), "\n\n")
		for i := 1; i < len(records) && i < 400; i += 1 + len(records)/8 {
			seeds = append(seeds, []byte(records[0]+"\n\n"+records[i]+"\n"))
		}
	}
	return seeds
}

// FuzzBTP reads any line as a request of BTP/1: it is written again and read as the same one, or an error has words.
func FuzzBTP(f *testing.F) {
	seed(f, btpSeeds())
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, line := range strings.Split(string(in), "\n") {
			id, r, known, err := conformance.ParseRequest(line)
			switch {
			case err != nil && err.Error() == "":
				t.Fatalf("%q: an error without words", line)
			case err != nil || !known:
				continue
			}
			written := r.Line(id)
			if _, again, _, err := conformance.ParseRequest(written); err != nil || again.Line(id) != written {
				t.Fatalf("%q was written as %q, then as %q: %v", line, written, again.Line(id), err)
			}
		}
	})
}

func btpSeeds() [][]byte {
	seeds := [][]byte{
		[]byte("hello btp=1\nquit\n"),
		[]byte("encode 9 machine=wrap64 search=lws size=7520 pcs=406651,406852\n"),
		[]byte("encode 9 machine=exact32 size=0 pcs=-\n"),
		[]byte("end 3 ffff00100004 word=64\nsalvage 4 205d0199442e\n"),
		[]byte("mline 1 7e6d23494630426d555175674e436b67436e6b686441597051613677414156 reading=strict\n"),
		[]byte("mline 1 4946 reading=lenient word=32\nbline 2 7e6223\n"),
		[]byte("format 1 size=5 pcs=1\nformat 2 blob=00100004\n"),
		[]byte("pline 1 7e7023414141414a5a57\nvline 2 7e7623\n"),
		[]byte("pencode 3 max=120 flags=1 dump=1 seq=0 unit=3 0:142/@7;live=1;blocks=8+1 2:af2f64e9/1;def\n"),
		[]byte("vencode 4 flags=0 seq=1 t=2 thread=3 next=4 alloc;n=4;t=2;thread=3;path=af2f64e9;size=1 free;n=4;t=3;thread=3\n"),
		[]byte("name 5 1:142/@8\noffsets 6 shift=1 code=10+10,40+10 10,41\naddresses 7 shift=1 code=10+10 7,8,@9\n"),
		[]byte("decode\n"), []byte("sing 4\n"), []byte("hello btp=2\n"),
	}
	for _, b := range corpus.Blobs() {
		r := conformance.Request{Op: "decode", Data: b.Blob, Word: 64}
		seeds = append(seeds, []byte(strings.Replace(r.Describe(), " ", " 7 ", 1)+"\n"))
	}
	return seeds
}

// FuzzAnswer parses any line as the answer of a testee: the result is an answer with what its
// outcome needs, or an error.
func FuzzAnswer(f *testing.F) {
	seed(f, answerSeeds())
	f.Fuzz(func(t *testing.T, in []byte) {
		line := string(in)
		if h, err := conformance.ParseHello(line); err == nil {
			if len(h.Ops) == 0 {
				t.Fatalf("%q: no operations", line)
			}
		} else if err.Error() == "" {
			t.Fatalf("%q: an error without words", line)
		}
		for _, op := range []conformance.Op{"decode", "encode", "format", "salvage"} {
			a, err := conformance.ParseAnswer(line, op, "7")
			switch {
			case err != nil && err.Error() == "":
				t.Fatalf("%q: an error without words", line)
			case err != nil:
				continue
			case a.Outcome != conformance.OK && a.Outcome != conformance.Reject && a.Outcome != conformance.Skip:
				t.Fatalf("%q to %s is a %s", line, op, a.Outcome)
			case a.Outcome == conformance.Reject && a.Reason == "":
				t.Fatalf("%q: a rejection without a reason", line)
			}
		}
	})
}

func answerSeeds() [][]byte {
	var seeds [][]byte
	for _, line := range []string{
		"hello btp=1 name=a version=2 ops=decode,encode machines=wrap64,zero32", "hello btp=1 ops=salvage",
		"ok 7 size=1 pcs=a,b", "ok 7 size=18446744073709551615 pcs=-", "ok 8 size=1 pcs=-", "ok 7  size=1 pcs=-",
		"blob 7 00100004", "blob 7 0", "text 7 -", "text 7 7e6d23", "part 7 depth=4 pcs=1", "part 7 depth=40 pcs=-",
		"reject 7 back bit=6 because of this", "reject 7 anything", "reject 7 back bit=-1", "reject 7", "skip 7 unsupported", "skip 7",
	} {
		seeds = append(seeds, []byte(line))
	}
	return seeds
}

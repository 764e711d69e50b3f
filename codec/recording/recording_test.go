package recording_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// entry is an entry with values of a path of code offsets.
func entry(live, bytes uint64, offsets ...uint64) callpath.Entry {
	e := callpath.Entry{Live: live, Bytes: bytes}
	for _, x := range offsets {
		e.Frames = append(e.Frames, callpath.Frame{Value: x})
	}
	return e
}

// pathLine returns a ~p# line with its line end.
func pathLine(t testing.TB, seq uint16, dump uint8, entries ...callpath.Entry) string {
	t.Helper()
	text, err := callpath.AppendLine(nil, callpath.Head{Seq: seq, Dump: dump}, entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// dumpText returns a dump as its number, its live blocks by path, and what is special about it.
func dumpText(d *recording.Dump) string {
	text := "headless"
	if d.Begin != nil {
		text = fmt.Sprint(d.Begin.Number)
	}
	paths, names, own := d.Paths()
	for s := range paths.All() {
		p := names.Path(s.ID, nil)
		text += fmt.Sprintf(" %d", s.Live)
		if p.Base == callpath.Named {
			text += fmt.Sprintf("@%08x", p.Outer)
		}
		for _, f := range p.Frames {
			text += fmt.Sprintf("/%x", f.Value)
		}
		if own--; own < 0 {
			text += "(base)"
		}
	}
	if d.Foreign > 0 {
		text += fmt.Sprintf(" foreign=%d", d.Foreign)
	}
	if m := d.Missing(); m.Any() {
		text += fmt.Sprintf(" missing=%d,%v,%v", m.Lines, m.Blocks, m.Bytes)
	}
	if !d.Complete() {
		text += " incomplete"
	}
	if d.NoBase {
		text += " nobase"
	}
	if d.Headless != nil {
		text += "; " + dumpText(d.Headless)
	}
	return text
}

func TestDumps(t *testing.T) {
	line := func(seq uint16, dump uint8, e ...callpath.Entry) string { return pathLine(t, seq, dump, e...) }
	one, two := entry(1, 8, 1), entry(2, 20, 1, 2)
	for _, c := range []struct {
		name, log string
		want      []string
	}{
		{"nothing", "text\n", nil},
		{"begin and end", "~h#begin 1 n=0\n~h#end 1\n", []string{"1"}},
		{"an end of another number", "~h#begin 1\n~h#end 2\n~h#end 1\n", []string{"1 incomplete"}},
		{"begin closes", "~h#begin 1\n~h#begin 2\n~h#end 2\n", []string{"1 incomplete", "2"}},
		{"boot closes", "~h#begin 1\n~h#boot\n~h#end 1\n", []string{"1 incomplete"}},
		{"the log ends", "~h#begin 1\n", []string{"1 incomplete"}},
		{"a header that is rejected closes nothing", "~h#begin 1\n~h#end x\n~h#end 1\n", []string{"1"}},
		{"values outside", line(0, 0, one) + "~h#begin 1\n" + line(1, 1, one) + "~h#end 1 n=1\n" + line(2, 1, one), []string{"1 1/1"}},
		{"records count", "~h#begin 1 k=paths\n~b#size: 5, 0x1\n~m#AAA=\n" + line(0, 1, one) + "~h#end 1 n=4 b=14\n", []string{"1 1/1 missing=0,1,1 incomplete"}},
		{"more than announced", "~h#begin 1\n" + line(0, 1, two) + "~h#end 1 n=1 b=20\n", []string{"1 2/1/2 missing=0,-1,0 incomplete"}},
		{"a line is missing", "~h#begin 1 l=0\n" + line(0, 1, one) + "~h#end 1 l=2\n", []string{"1 1/1 missing=1,-,- incomplete"}},
		{"lines that count down", "~h#begin 1 l=5\n" + line(5, 1, one) + "~h#end 1 l=2\n", []string{"1 1/1"}},
		{"a line of another dump", "~h#begin 1\n" + line(0, 1, one) + line(1, 2, two) + line(2, 1, one) + "~h#end 1\n", []string{"1 2/1 foreign=1"}},
		{"the begin of the next is lost", "~h#begin 63\n" + line(0, 63, one) + line(1, 0, two) + line(2, 0, one) + "~h#end 64\n",
			[]string{"63 1/1 foreign=2 incomplete; headless 2/1/2 1/1 incomplete"}},
		{"a definition of another dump", "~h#begin 1\n" + line(0, 2, callpath.Entry{Path: one.Path, Definition: true}) + "~h#end 1\n", []string{"1"}},
		{"a difference", "~h#begin 1\n" + line(0, 1, one, two) + "~h#end 1\n~h#begin 2 k=diff base=1\n" + line(1, 2, entry(5, 5, 1)) + "~h#end 2\n",
			[]string{"1 1/1 2/1/2", "2 5/1 2/1/2(base)"}},
		{"a difference from nothing", "~h#begin 2 k=diff base=1\n" + line(0, 2, one) + "~h#end 2\n", []string{"2 1/1 incomplete nobase"}},
		{"a difference over a boot", "~h#begin 1\n" + line(0, 1, one) + "~h#end 1\n~h#boot\n~h#begin 2 k=diff base=1\n~h#end 2\n", []string{"1 1/1", "2 incomplete nobase"}},
		{"a difference from an incomplete dump", "~h#begin 1\n" + line(0, 1, one) + "~h#begin 2 k=diff base=1\n~h#end 2\n", []string{"1 1/1 incomplete", "2 1/1(base) incomplete nobase"}},
		{"a difference from its own number", "~h#begin 1\n" + line(0, 1, one) + "~h#end 1\n~h#begin 1 k=diff base=1\n" + line(1, 1, two) + "~h#end 1\n", []string{"1 1/1", "1 2/1/2 1/1(base)"}},
		{"a name told later", "~h#begin 1\n" + line(0, 1, callpath.Entry{Path: callpath.Path{Base: callpath.Named, Outer: two.Name()}, Live: 3, Bytes: 4}) + "~h#end 1\n" +
			line(1, 1, callpath.Entry{Path: two.Path, Definition: true}), []string{"1 3/1/2"}},
	} {
		var got []string
		for _, d := range recording.Dumps(recording.Items([]byte(c.log))) {
			got = append(got, dumpText(d))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// A chain of differences takes time and memory in proportion to its length.
func TestChainOfDifferences(t *testing.T) {
	const n = 20_000
	var log bytes.Buffer
	for i := range n {
		fmt.Fprintf(&log, "~h#begin %d k=diff base=%d\n%s~h#end %d\n", i, max(i-1, 0), pathLine(t, uint16(i%4096), uint8(i%64), entry(uint64(i), 1, uint64(i%7+1))), i)
	}
	dumps := recording.Dumps(recording.Items(log.Bytes()))
	for _, d := range dumps {
		d.Settle()
	}
	if last, _, own := dumps[n-1].Paths(); len(dumps) != n || last.Len() != 7 || own != 1 {
		t.Errorf("%d dumps, the last of %d paths, %d its own", len(dumps), last.Len(), own)
	}
}

func TestBoots(t *testing.T) {
	blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x1234567890}, Size: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wide := string(codec.AppendLine(nil, blob)) + "\n"
	one := callpath.Path{Frames: []callpath.Frame{{Value: 1}}}
	names := "build=aa code=0+100"
	log := wide + "~h#boot w=32 " + names + "\n" + wide + pathLine(t, 0, 0, callpath.Entry{Path: one, Definition: true}) +
		"~h#boot " + names + "\n" + wide + "~h#boot build=aa\n" + "~h#boot build=aa\n"
	var l recording.Log
	var got []string
	for it := range recording.Items([]byte(log)) {
		p := l.Add(it)
		switch {
		case it.Counts():
			got = append(got, fmt.Sprintf("%d:%s", p.Boot.Number, it.Reason()))
		case it.Kind == recording.KindHeader:
			id := p.Boot.Names.Add(&callpath.Path{Base: callpath.Named, Outer: one.Name()})
			got = append(got, fmt.Sprintf("boot %d, %d frames", p.Boot.Number, len(p.Boot.Names.Path(id, nil).Frames)))
		}
	}
	want := []string{"0:", "boot 1, 0 frames", "1:count", "boot 2, 1 frames", "2:", "boot 3, 0 frames", "boot 4, 0 frames"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A Reader returns the same items however the data comes, and each byte once.
func TestReader(t *testing.T) {
	log := "[1] ~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV x\r\n~~~h#begin 1 u=1 \n~m#CF0AQQA6AE8gABAAAAAP\n~b#size: 5, 0x10 0x\n\n" +
		pathLine(t, 0, 1, entry(1, 8, 1)) + "~e#CDUEAOgBPIAAQACgQAAP~m#AAA= ~v#A\n~h#End\n~h#end 1 n=2\x1b[0m\nIF0BmUQugNCkgCnkhdAYpQa6wAAV\nskip ~m#AAA=\n~m"
	describe := func(it *recording.Item) string {
		return fmt.Sprintf("%v %v %q %v", it.Kind, it.Place, it.Text, it.Err)
	}
	var first []string
	for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader,
		"end at once": iotest.DataErrReader} {
		r := recording.Reader{}
		r.Reset(wrap(strings.NewReader(log)), "log")
		var got []string
		text, n := "", 0
		for {
			it, err := r.Next()
			if err != nil {
				if err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			if log[it.Offset:it.Offset+int64(len(it.Text))] != string(it.Text) || it.Line != int64(1+strings.Count(log[:it.Offset], "\n")) {
				t.Errorf("%s: %q is not at %v", name, it.Text, it.Place)
			}
			if it.Kind == recording.KindText {
				text += string(it.Text)
				continue
			}
			n++
			got = append(got, text, describe(it))
			text = ""
		}
		if got = append(got, text); first == nil {
			first = got
		}
		if !slices.Equal(got, first) || n != 11 {
			t.Errorf("read by %s: %d records, want 11:\n%q\nand\n%q", name, n, got, first)
		}
	}
}

func ExampleDumps() {
	const log = `~h#boot prog=fw w=32 code=8000000+60000 shift=1
~h#begin 1 t=81250000 k=paths l=5
~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA
~h#end 1 n=4 b=608 l=6
`
	for _, d := range recording.Dumps(recording.Items([]byte(log))) {
		paths, names, _ := d.Settle()
		for s := range paths.All() {
			fmt.Println(s.Live, "blocks,", s.Bytes, "bytes,", len(names.Path(s.ID, nil).Frames), "frames")
		}
		fmt.Println("complete:", d.Complete())
	}
	// Output:
	// 3 blocks, 96 bytes, 3 frames
	// 1 blocks, 512 bytes, 4 frames
	// complete: true
}

// A blob of six bytes, the shortest that base64 ends without padding, is read where other text is glued to it; but not if
// it ends in bits that no encoder writes there.
func TestShortestGluedBlob(t *testing.T) {
	blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{PCs: []uint64{1}, Size: 1}, nil)
	if err != nil || len(blob) != 6 {
		t.Fatalf("%x, %v", blob, err)
	}
	for _, padding := range []byte{0, 1} {
		blob[3] = blob[3]&^1 | padding
		text := string(codec.AppendLine(nil, blob)) + "lost\n"
		for it := range recording.Items([]byte(text)) {
			if whole := it.Kind == recording.KindBlob && it.Err == nil; it.Kind != recording.KindText && whole != (padding == 0) {
				t.Errorf("padding %d: %v, %v", padding, it.Kind, it.Err)
			}
		}
	}
}

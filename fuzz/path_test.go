package fuzz

import (
	"bytes"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/fuzz"
	"github.com/lwsbt/lwsbt/gen/gentest"
)

// FuzzPathLine reads any line as a ~p# and as a ~v# line, both unchanged and with valid digits
// and a correct CRC, as testee.py does. Accepted lines are written again.
func FuzzPathLine(f *testing.F) {
	seed(f, pathSeeds(f))
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > 4000 {
			return // testee.py is slow
		}
		for _, data := range [][]byte{line, withCRC(callpath.LeadIn, line), withCRC(callpath.LeadInEvents, line)} {
			checkPaths(t, data)
			checkEvents(t, data)
		}
	})
}

// FuzzNames adds the paths of any lines to a Names: resolved paths have at most 1,024
// frames and the name of the original path, also if they are resolved again.
func FuzzNames(f *testing.F) {
	logs := [][]byte{[]byte("~p#AAAACAAAAAAA\n~p#AAAADAAAAAABAAA")}
	for log := range slices.Chunk(madeUp(f, 60, "pline"), 4) {
		logs = append(logs, bytes.Join(log, []byte("\n")))
	}
	seed(f, logs)
	f.Fuzz(func(t *testing.T, log []byte) {
		var names callpath.Names
		var line callpath.Line
		var ids []callpath.ID
		for row := range bytes.Lines(log) {
			row = bytes.TrimSuffix(row, []byte("\n"))
			if bytes.HasPrefix(row, []byte(callpath.LeadIn)) && len(row) > 6 {
				row = callpath.AppendCRC(bytes.Clone(row[:len(row)-3]))
			}
			if line.Parse(row) != nil {
				continue
			}
			for e := (callpath.Entry{}); line.Next(&e); {
				ids = append(ids, names.Add(&e.Path))
				if got := names.Name(ids[len(ids)-1]); got != e.Path.Name() {
					t.Fatalf("%q: name %#x, want %#x", row, got, e.Path.Name())
				}
			}
		}
		for _, id := range ids {
			p := names.Path(id, nil)
			again := names.Resolve(names.Add(&p))
			if len(p.Frames) > callpath.MaxDepth || names.Name(again) != names.Name(id) {
				t.Fatalf("%q: path %d is %d frames deep, name %#x, want %#x", log, id, len(p.Frames), names.Name(again), names.Name(id))
			}
		}
	})
}

// madeUp returns what btconform fuzz asks for operations.
func madeUp(t testing.TB, n int, ops ...conformance.Op) (list [][]byte) {
	codec, err := conformance.Codec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g, err := fuzz.NewGenerator(newSource(nil), codec.Hello(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		r, ok := g.Next()
		if !ok {
			t.Fatal("no request")
		}
		list = append(list, bytes.Clone(r.Data))
	}
	return list
}

// pathSeeds returns lines of Part III: valid lines, truncated lines, and those of the vectors, of which many have one fault.
func pathSeeds(t testing.TB) [][]byte {
	lines := [][]byte{[]byte("~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA"), []byte("~p#ABGACpT2LvCEgDC4FhykDCgQ61F")}
	lines = append(lines, madeUp(t, 200, "pline", "vline")...)
	for n := range len(lines[3]) {
		lines = append(lines, lines[3][:n])
	}
	return append(lines, vectorTexts(t, "pline", "vline")...)
}

// checkPaths reads a ~p# line and writes it again.
func checkPaths(t *testing.T, line []byte) {
	compareOperation(t, conformance.Request{Op: "pline", Data: line})
	var l, again callpath.Line
	if err := l.Parse(line); err != nil {
		if l.Len != 0 || l.Next(new(callpath.Entry)) {
			t.Fatalf("%q: an entry beside %v", line, err)
		}
		return
	}
	entries := gentest.Entries(&l)
	head := l.Head
	head.Flags &= callpath.Blocks | callpath.Ever | callpath.Peak
	text, err := callpath.AppendLine(nil, head, entries)
	if err != nil || again.Parse(text) != nil || gentest.Show(gentest.Entries(&again)) != gentest.Show(entries) {
		t.Fatalf("%s\nis written %q, %v", gentest.Show(entries), text, err)
	}
	compareOperation(t, conformance.Request{Op: "pline", Data: text})
}

// TestVectorLinesAlike compares both codecs on the lines of all vectors, and on these lines
// written again.
func TestVectorLinesAlike(t *testing.T) {
	texts := vectorTexts(t, "pline", "vline")
	for _, text := range texts {
		checkPaths(t, text)
		checkEvents(t, text)
	}
	if n := len(texts); n < 100 {
		t.Errorf("%d vectors of lines, want at least 100", n)
	}
}

// checkEvents reads a ~v# line and writes it again.
func checkEvents(t *testing.T, line []byte) {
	compareOperation(t, conformance.Request{Op: "vline", Data: line})
	var l callpath.Events
	if l.Parse(line) != nil {
		return
	}
	w := callpath.EventsWriter{Flags: l.Flags & callpath.Blocks, Unit: l.Unit, Lines: uint64(l.Seq), Next: l.EventsHead.Next}
	var text []byte
	events := l.List
	for _, e := range events {
		var err error
		if text, err = w.Append(text, e); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
	}
	n := 0
	for line := range bytes.Lines(w.Flush(text)) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		var again callpath.Events
		if err := again.Parse(line); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for _, e := range again.List {
			if n < len(events) {
				e.Index = events[n].Index // a line may name a path twice, and the writer does not
			}
			if n == len(events) || e != events[n] {
				t.Fatalf("%q: event %d is %+v, want one of %+v", line, n, e, events)
			}
			n++
		}
		compareOperation(t, conformance.Request{Op: "vline", Data: line})
	}
	if n != len(events) {
		t.Fatalf("%d events of %d are read again", n, len(events))
	}
}

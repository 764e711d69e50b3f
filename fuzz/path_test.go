package fuzz

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/gen/gentest"
	"github.com/lwsbt/lwsbt/internal/naive"
)

// FuzzPathLine reads any line as a ~p# and as a ~v# line, both unchanged and with valid digits
// and a correct CRC, and compares the result with the naive reader. Accepted lines are
// written again.
func FuzzPathLine(f *testing.F) {
	seed(f, pathSeeds())
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > 4000 {
			return // the naive reader is slow
		}
		pathsAsNaive(t, line)
		eventsAsNaive(t, line)
		const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		body := bytes.Clone(line[min(3, len(line)):])
		for i, c := range body {
			if !bytes.Contains([]byte(digits), []byte{c}) {
				body[i] = digits[c&63]
			}
		}
		pathsAsNaive(t, callpath.AppendCRC(append([]byte(callpath.LeadIn), body...)))
		eventsAsNaive(t, callpath.AppendCRC(append([]byte(callpath.LeadInEvents), body...)))
	})
}

// FuzzNames adds the paths of any lines to a Names: resolved paths have at most 1,024
// frames and the name of the original path, also if they are resolved again.
func FuzzNames(f *testing.F) {
	var logs [][]byte
	for s := range uint64(20) {
		var log []byte
		for i := range s % 5 {
			log = append(append(log, gen.PathLine(100*s+i)...), '\n')
		}
		logs = append(logs, log, []byte("~p#AAAACAAAAAAA\n~p#AAAADAAAAAABAAA"))
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

// pathSeeds returns lines of Part III: valid lines, lines with one fault, and truncated lines.
func pathSeeds() [][]byte {
	lines := [][]byte{[]byte("~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA"), []byte("~p#ABGACpT2LvCEgDC4FhykDCgQ61F")}
	for s := range uint64(100) {
		lines = append(lines, gen.PathLine(s), gen.EventLine(s))
	}
	for n := range len(lines[3]) {
		lines = append(lines, lines[3][:n])
	}
	for s := range uint64(10) {
		for _, fault := range gen.PathFaults(s) {
			lines = append(lines, fault.Line)
		}
	}
	return lines
}

// pathsAsNaive checks that a ~p# line is read as the naive reader reads it.
func pathsAsNaive(t *testing.T, line []byte) {
	var l callpath.Line
	err := l.Parse(line)
	want, reason := naive.ReadPaths(string(line))
	var e *codec.Error
	if err == nil && reason != "" || err != nil && (!errors.As(err, &e) || string(e.Reason) != reason) {
		t.Fatalf("%q: %v, the naive reader returns %q", line, err, reason)
	}
	if err != nil {
		if l.Len != 0 || l.Next(new(callpath.Entry)) {
			t.Fatalf("%q: an entry beside %v", line, err)
		}
		return
	}
	if l.Head != (callpath.Head{Flags: callpath.Flags(want.Flags), Dump: uint8(want.Dump), Seq: uint16(want.Sequence), Unit: uint8(want.Unit)}) {
		t.Fatalf("%q: %+v, the naive reader returns %+v", line, l.Head, want)
	}
	others := naiveEntries(want)
	if got := gentest.Entries(&l); gentest.Show(got) != gentest.Show(others) {
		t.Fatalf("%q:\n%s\nthe naive reader:\n%s", line, gentest.Show(got), gentest.Show(others))
	}
	writeAgain(t, l.Head, others)
}

// naiveEntries returns the entries that the naive reader read.
func naiveEntries(l naive.PathLine) (entries []callpath.Entry) {
	for _, e := range l.Entries {
		o := callpath.Entry{Path: callpath.Path{Base: callpath.Base(min(e.Base, 2)), Outer: e.Name}, Definition: e.Definition,
			Live: e.Live, Bytes: e.Bytes, Allocs: e.Allocs, AllocBytes: e.Ever, Peak: e.Peak}
		for _, f := range e.Frames {
			o.Frames = append(o.Frames, callpath.Frame{Value: f.X, Escaped: f.Escaped})
		}
		for _, b := range e.Blocks {
			o.Blocks = append(o.Blocks, callpath.Block{Address: b.Address, Size: b.Size})
			if o.Bytes += b.Size; o.Bytes < b.Size {
				o.Bytes = 1<<64 - 1
			}
		}
		entries = append(entries, o)
	}
	return entries
}

// writeAgain checks that both readers read a line that is written again as it was.
func writeAgain(t *testing.T, head callpath.Head, entries []callpath.Entry) {
	head.Flags &= callpath.Blocks | callpath.Ever | callpath.Peak
	line, err := callpath.AppendLine(nil, head, entries)
	var l callpath.Line
	if err != nil || l.Parse(line) != nil || gentest.Show(gentest.Entries(&l)) != gentest.Show(entries) {
		t.Fatalf("%s\nis written %q, %v", gentest.Show(entries), line, err)
	}
	if again, reason := naive.ReadPaths(string(line)); reason != "" || gentest.Show(naiveEntries(again)) != gentest.Show(entries) {
		t.Fatalf("%s\nis written %q; the naive reader: %q\n%s", gentest.Show(entries), line, reason, gentest.Show(naiveEntries(again)))
	}
}

// TestVectorLinesAsNaive compares both readers on the lines of all vectors, and on these lines
// written again.
func TestVectorLinesAsNaive(t *testing.T) {
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, v := range set.Vectors {
		if v.Text != nil && (v.Has(conformance.OpPline) || v.Has(conformance.OpVline)) {
			n++
			pathsAsNaive(t, []byte(*v.Text))
			eventsAsNaive(t, []byte(*v.Text))
		}
	}
	if n < 100 {
		t.Errorf("%d vectors of lines, want at least 100", n)
	}
}

// eventsAsNaive checks that a ~v# line is read as the naive reader reads it.
func eventsAsNaive(t *testing.T, line []byte) {
	var l callpath.Events
	err := l.Parse(line)
	want, reason := naive.ReadEvents(string(line))
	var e *codec.Error
	if err == nil && reason != "" || err != nil && (!errors.As(err, &e) || string(e.Reason) != reason) {
		t.Fatalf("%q: %v, the naive reader returns %q", line, err, reason)
	}
	if err != nil {
		return
	}
	head := callpath.EventsHead{Flags: callpath.Flags(want.Flags), Seq: uint32(want.Sequence), Unit: uint8(want.Unit), Time: want.Time, Thread: want.Thread, Next: want.Next}
	if l.EventsHead != head || l.Len != len(want.Events) {
		t.Fatalf("%q: %+v with %d events, the naive reader returns %+v", line, l.EventsHead, l.Len, want)
	}
	kinds := map[string]callpath.EventKind{"allocated": callpath.Allocated, "freed": callpath.Freed, "moved": callpath.Moved, "unknown": callpath.FreedUnknown, "lost": callpath.Lost}
	for i := 0; ; i++ {
		var got callpath.Event
		if !l.Next(&got) {
			break
		}
		n := want.Events[i]
		o := callpath.Event{Kind: kinds[n.Kind], Time: n.Time, Thread: n.Thread, Path: n.Path, Number: n.Number, Old: n.Old, Size: n.Size, Address: n.Address, Count: n.Lost}
		if n.Kind == "freed" {
			o.Number, o.Old = 0, n.Number
		}
		if got != o {
			t.Fatalf("%q: event %d is %+v, the naive reader returns %+v", line, i, got, o)
		}
	}
	eventsAgain(t, &l)
}

// eventsAgain checks that both readers read events that are written again as they were.
func eventsAgain(t *testing.T, l *callpath.Events) {
	w := callpath.EventsWriter{Flags: l.Flags & callpath.Blocks, Unit: l.Unit, Lines: uint64(l.Seq), Next: l.EventsHead.Next}
	var text []byte
	var events []callpath.Event
	l.Rewind()
	for e := (callpath.Event{}); l.Next(&e); {
		events = append(events, e)
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
		for e := (callpath.Event{}); again.Next(&e); n++ {
			if n == len(events) || e != events[n] {
				t.Fatalf("%q: event %d is %+v, want one of %+v", line, n, e, events)
			}
		}
		if got, reason := naive.ReadEvents(string(line)); reason != "" || len(got.Events) != again.Len {
			t.Fatalf("%q: the naive reader: %q, %d events, want %d", line, reason, len(got.Events), again.Len)
		}
	}
	if n != len(events) {
		t.Fatalf("%d events of %d are read again", n, len(events))
	}
}

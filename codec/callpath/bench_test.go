package callpath_test

import (
	"bytes"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/corpus"
)

// gitDump returns a dump of real stacks, and its ~p# lines.
func gitDump(t testing.TB) (heap, [][]byte) {
	h := captured(t, "git00")
	return h, bytes.Split(bytes.TrimSuffix(h.text(t, callpath.Writer{}), []byte("\n")), []byte("\n"))
}

// eventLine returns a line of 1,000 events by the paths of a dump, half of them frees.
func eventLine(t testing.TB, h heap) (callpath.EventsWriter, []callpath.Event, []byte) {
	var events []callpath.Event
	for i := range 500 {
		e := &h.entries[i*7%len(h.entries)]
		events = append(events, callpath.Event{Kind: callpath.Allocated, Time: uint64(3 * i), Path: e.Name(), Size: e.Bytes / e.Live},
			callpath.Event{Kind: callpath.Freed, Time: uint64(3*i + 1), Old: uint64(i / 2)})
	}
	var w callpath.EventsWriter
	var text []byte
	for _, e := range events {
		var err error
		if text, err = w.Append(text, e); err != nil {
			t.Fatal(err)
		}
	}
	text = w.Flush(text)
	return w, events, text[:len(text)-1]
}

// Reading and writing lines, and resolving known names, do not allocate once their
// memory has grown.
func TestNoAllocations(t *testing.T) {
	h, lines := gitDump(t)
	var l callpath.Line
	var e callpath.Entry
	var w callpath.Writer
	var out []byte
	var names callpath.Names
	ew, events, eventText := eventLine(t, h)
	var el callpath.Events
	ranges := callpath.Ranges{}
	ranges.Add(codec.Range{Start: 0x1000, Length: 0x1000}, "")
	for name, f := range map[string]func(){
		"Line": func() {
			for _, line := range lines {
				if err := l.Parse(line); err != nil {
					t.Fatal(err)
				}
				for l.Next(&e) {
					names.Resolve(names.Add(&e.Path))
				}
			}
		},
		"Writer": func() {
			out = out[:0]
			for i := range h.entries {
				out, _ = w.Append(out, &h.entries[i])
			}
			out = w.Flush(out)
		},
		"Events": func() {
			if err := el.Parse(eventText); err != nil {
				t.Fatal(err)
			}
		},
		"EventsWriter": func() {
			out = out[:0]
			for _, e := range events {
				out, _ = ew.Append(out, e)
			}
			out = ew.Flush(out)
		},
		"Ranges": func() { ranges.Frame(0x1234) },
	} {
		f()
		if n := testing.AllocsPerRun(5, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkRead compares reading a dump as ~p# lines with reading it as ~m# lines: ns/alloc
// is the time per allocation of the program.
func BenchmarkRead(b *testing.B) {
	h, lines := gitDump(b)
	per := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(h.allocations), "ns/alloc")
	}
	b.Run("paths", func(b *testing.B) {
		var l callpath.Line
		var e callpath.Entry
		b.ReportAllocs()
		for b.Loop() {
			for _, line := range lines {
				if err := l.Parse(line); err != nil {
					b.Fatal(err)
				}
				for l.Next(&e) {
				}
			}
		}
		per(b)
	})
	b.Run("records", func(b *testing.B) {
		var s codec.Stack
		var blob []byte
		records := bytes.Fields(corpus.Capture("git00"))[:h.allocations]
		b.ReportAllocs()
		for b.Loop() {
			for _, line := range records {
				var err error
				if blob, err = (codec.Decoder{}).ParseLine(blob[:0], line); err == nil {
					err = codec.Decoder{}.Decode(&s, nil, blob)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		per(b)
	})
}

func BenchmarkWriter(b *testing.B) {
	h, _ := gitDump(b)
	var out []byte
	b.ReportAllocs()
	for _, whole := range []uint64{0, 8} {
		w := callpath.Writer{Whole: whole}
		b.Run(map[uint64]string{0: "whole", 8: "named"}[whole], func(b *testing.B) {
			for b.Loop() {
				out = out[:0]
				for i := range h.entries {
					out, _ = w.Append(out, &h.entries[i])
				}
				out = w.Flush(out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(h.entries)), "ns/path")
		})
	}
}

// BenchmarkEvents reads and writes a line of 1,000 events.
func BenchmarkEvents(b *testing.B) {
	h, _ := gitDump(b)
	_, events, text := eventLine(b, h)
	per := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
	}
	b.Run("read", func(b *testing.B) {
		var l callpath.Events
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Parse(text); err != nil {
				b.Fatal(err)
			}
		}
		per(b)
	})
	b.Run("write", func(b *testing.B) {
		var w callpath.EventsWriter
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			w.Next, out = 0, out[:0]
			for _, e := range events {
				out, _ = w.Append(out, e)
			}
			out = w.Flush(out)
		}
		b.ReportMetric(float64(len(out))/float64(len(events)), "chars/event")
		per(b)
	})
}

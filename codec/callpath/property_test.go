package callpath_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/gen/gentest"
)

// anyValue draws a number of which every width is equally likely.
func anyValue(t *rapid.T, bits int) uint64 { return gentest.Value(64).Draw(t, "value") >> (64 - bits) }

// anyLine draws a head with all flags that a writer may write, and entries with shared, escaped and named frames.
func anyLine(t *rapid.T) (h callpath.Head, entries []callpath.Entry) {
	h = callpath.Head{Flags: callpath.Flags(rapid.IntRange(0, 7).Draw(t, "flags")), Dump: uint8(rapid.IntRange(0, 63).Draw(t, "dump")), Seq: uint16(rapid.IntRange(0, 4095).Draw(t, "seq"))}
	if h.Flags&callpath.Blocks != 0 {
		h.Unit = uint8(rapid.IntRange(0, callpath.MaxUnit).Draw(t, "unit"))
	}
	entries = make([]callpath.Entry, rapid.IntRange(0, 5).Draw(t, "entries"))
	for i := range entries {
		e := &entries[i]
		if i > 0 && rapid.Bool().Draw(t, "like the one before") {
			e.Path = entries[i-1].Clone()
			e.Frames = e.Frames[:rapid.IntRange(0, len(e.Frames)).Draw(t, "kept")]
		} else if e.Base = callpath.Base(rapid.IntRange(0, 2).Draw(t, "base")); e.Base == callpath.Named {
			e.Outer = rapid.Uint32().Draw(t, "outer")
		}
		for range rapid.IntRange(0, 5).Draw(t, "frames") {
			f := callpath.Frame{Escaped: rapid.IntRange(0, 9).Draw(t, "escaped") == 0}
			if f.Value = anyValue(t, 64); !f.Escaped {
				f.Value %= callpath.MaxOffset
			}
			e.Frames = append(e.Frames, f)
		}
		if e.Definition = rapid.IntRange(0, 9).Draw(t, "definition") == 0; e.Definition {
			continue
		}
		e.Live, e.Bytes = min(anyValue(t, 64), math.MaxUint64-1), anyValue(t, 64)
		if h.Flags&callpath.Blocks != 0 {
			e.Live, e.Bytes = 0, 0
			for range rapid.IntRange(0, 3).Draw(t, "blocks") {
				b := callpath.Block{Address: anyValue(t, 64-int(h.Unit)) << h.Unit, Size: anyValue(t, 62)}
				e.Blocks, e.Live, e.Bytes = append(e.Blocks, b), e.Live+1, e.Bytes+b.Size
			}
		}
		if h.Flags&callpath.Ever != 0 {
			e.Allocs, e.AllocBytes = anyValue(t, 64), anyValue(t, 64)
		}
		if h.Flags&callpath.Peak != 0 {
			e.Peak = anyValue(t, 64)
		}
	}
	return h, entries
}

// anyEvents draws a line of events.
func anyEvents(t *rapid.T) []byte {
	w := callpath.EventsWriter{Flags: callpath.Flags(rapid.IntRange(0, 1).Draw(t, "flags")), Lines: anyValue(t, 64), Next: anyValue(t, 20)}
	if w.Flags != 0 {
		w.Unit = uint8(rapid.IntRange(0, callpath.MaxUnit).Draw(t, "unit"))
	}
	e := callpath.Event{Time: anyValue(t, 50)}
	var line []byte
	for range rapid.IntRange(1, 8).Draw(t, "events") {
		if e.Kind = callpath.EventKind(rapid.IntRange(0, 4).Draw(t, "kind")); w.Next == 0 && (e.Kind == callpath.Freed || e.Kind == callpath.Moved) {
			e.Kind = callpath.Allocated
		}
		e.Time, e.Thread, e.Path = e.Time+anyValue(t, 10), uint64(rapid.IntRange(0, 3).Draw(t, "thread")), uint32(rapid.IntRange(0, 3).Draw(t, "path"))
		e.Size, e.Count, e.Address = anyValue(t, 64), anyValue(t, 64), anyValue(t, 64-int(w.Unit))<<w.Unit
		if w.Next > 0 {
			e.Old = w.Next - 1 - anyValue(t, 64)%w.Next
		}
		var err error
		if line, err = w.Append(line, e); err != nil {
			t.Fatal(err)
		}
	}
	line = w.Flush(line)
	return line[:len(line)-1]
}

// Written entries are read back unchanged.
func TestLineRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head, entries := anyLine(t)
		line, err := callpath.AppendLine([]byte("x"), head, entries)
		if err != nil || line[0] != 'x' {
			t.Fatal(err)
		}
		line = line[1:]
		var l callpath.Line
		if err := l.Parse(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := gentest.Entries(&l); l.Head != head || l.Len != len(entries) || gentest.Show(got) != gentest.Show(entries) {
			t.Fatalf("%s: %+v\n%s, want %+v\n%s", line, l.Head, gentest.Show(got), head, gentest.Show(entries))
		}
	})
}

type fataler interface{ Fatalf(string, ...any) }

// sum holds the values of a path in a dump.
type sum struct{ live, bytes, allocs, allocBytes, peak uint64 }

// dump adds up lines by path, and returns the sums by the known frames of the path, and all
// blocks.
func dump(t fataler, text []byte, limit int) (sums map[string]sum, blocks []callpath.Block) {
	var names callpath.Names
	var line callpath.Line
	byID := map[callpath.ID]sum{}
	for row := range bytes.Lines(text) {
		row = bytes.TrimSuffix(row, []byte("\n"))
		if len(row) > limit {
			t.Fatalf("%d characters, limit %d: %s", len(row), limit, row)
		}
		if err := line.Parse(row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		for e := (callpath.Entry{}); line.Next(&e); {
			id := names.Add(&e.Path)
			if e.Definition {
				continue
			}
			s := byID[id]
			byID[id] = sum{s.live + e.Live, s.bytes + e.Bytes, s.allocs + e.Allocs, s.allocBytes + e.AllocBytes, s.peak + e.Peak}
			blocks = append(blocks, e.Blocks...)
		}
	}
	sums = map[string]sum{}
	for id, a := range byID {
		key := fmt.Sprint(names.Path(id, nil))
		b := sums[key]
		sums[key] = sum{a.live + b.live, a.bytes + b.bytes, a.allocs + b.allocs, a.allocBytes + b.allocBytes, a.peak + b.peak}
	}
	return sums, blocks
}

// The lines of a Writer add up to its input, for every limit, with cut paths, divided
// entries, and outer parts by name.
func TestWriterAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := callpath.Writer{
			Flags: callpath.Flags(rapid.IntRange(0, 7).Draw(t, "flags")),
			Unit:  uint8(rapid.IntRange(0, callpath.MaxUnit).Draw(t, "unit")),
			Limit: rapid.IntRange(callpath.MinLimit, 250).Draw(t, "limit"),
			Whole: rapid.Uint64Range(0, 4).Draw(t, "whole"),
			Lines: rapid.Uint64Range(0, 10000).Draw(t, "lines"),
		}
		want := map[string]sum{}
		var wantBlocks []callpath.Block
		var text []byte
		last := callpath.Path{}
		for range rapid.IntRange(0, 20).Draw(t, "entries") {
			e := drawEntry(t, &last, &w)
			var err error
			if text, err = w.Append(text, &e); err != nil {
				t.Fatal(err)
			}
			if !e.Definition {
				key := fmt.Sprint(e.Path)
				s := want[key]
				want[key] = sum{s.live + e.Live, s.bytes + e.Bytes, s.allocs + e.Allocs, s.allocBytes + e.AllocBytes, s.peak + e.Peak}
				wantBlocks = append(wantBlocks, e.Blocks...)
			}
		}
		text = w.Flush(text)
		got, blocks := dump(t, text, w.Limit)
		if fmt.Sprint(got) != fmt.Sprint(want) || !slices.Equal(blocks, wantBlocks) {
			t.Fatalf("%.2000s holds\n%v\n%v, want\n%v\n%v", text, got, blocks, want, wantBlocks)
		}
		var first callpath.Line
		if line, _, ok := bytes.Cut(text, []byte("\n")); ok {
			if err := first.Parse(line); err != nil || uint64(first.Seq) != (w.Lines-uint64(bytes.Count(text, []byte("\n"))))%4096 {
				t.Fatalf("first line %d, %v; %d lines since", first.Seq, err, w.Lines)
			}
		}
	})
}

// drawEntry draws an entry whose path shares frames with last, with up to 300 frames
// and 100 blocks.
func drawEntry(t *rapid.T, last *callpath.Path, w *callpath.Writer) callpath.Entry {
	p := last.Clone()
	p.Frames = p.Frames[:rapid.IntRange(0, len(p.Frames)).Draw(t, "keep")]
	if rapid.IntRange(0, 4).Draw(t, "new") == 0 {
		p = callpath.Path{Base: callpath.Base(rapid.IntRange(0, 1).Draw(t, "base"))}
	}
	more := rapid.SampledFrom([]int{0, 1, 3, 10, 300}).Draw(t, "more")
	// Exclude paths with equal names: an offset of 0 does not change the name of an empty
	// path, and a whole path has the name of the cut path whose first offset differs in bit 0.
	start := rapid.Uint64Range(2, callpath.MaxOffset-1).Draw(t, "start")
	for i := range more {
		f := callpath.Frame{Value: max(2, (start+uint64(i*i*37))%callpath.MaxOffset&^1)}
		if i%7 == 5 {
			f = callpath.Frame{Value: start << i % 64, Escaped: true}
		}
		p.Frames = append(p.Frames, f)
	}
	*last = p.Clone()
	e := callpath.Entry{Path: p, Definition: rapid.IntRange(0, 9).Draw(t, "definition") == 0}
	if e.Definition {
		return e
	}
	small := rapid.Uint64Range(0, 1<<40)
	if w.Flags&callpath.Blocks != 0 {
		for i := range rapid.SampledFrom([]int{0, 1, 2, 100}).Draw(t, "blocks") {
			b := callpath.Block{Address: (start*uint64(i+1) + 0xffffffffffff0000) << w.Unit, Size: uint64(i)}
			e.Blocks = append(e.Blocks, b)
			e.Bytes += b.Size
		}
		e.Live = uint64(len(e.Blocks))
	} else {
		e.Live, e.Bytes = small.Draw(t, "live"), small.Draw(t, "bytes")
	}
	if w.Flags&callpath.Ever != 0 {
		e.Allocs, e.AllocBytes = small.Draw(t, "allocs"), small.Draw(t, "allocated")
	}
	if w.Flags&callpath.Peak != 0 {
		e.Peak = small.Draw(t, "peak")
	}
	return e
}

// A path has the same frames, whichever of its parts are given by name, and whether a name
// is defined before or after its use.
func TestNamesResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := callpath.Path{Base: callpath.Base(rapid.IntRange(0, 1).Draw(t, "base"))}
		for range rapid.IntRange(1, 12).Draw(t, "depth") {
			whole.Frames = append(whole.Frames, callpath.Frame{Value: rapid.Uint64Range(2, 50).Draw(t, "offset"), Escaped: rapid.Bool().Draw(t, "escaped")})
		}
		// A chain: the first part has its frames; each other part begins with the name of
		// the part before it.
		var parts []callpath.Path
		cut := 0
		for cut < len(whole.Frames) || cut == 0 {
			next := rapid.IntRange(cut+1, len(whole.Frames)).Draw(t, "cut")
			part := callpath.Path{Base: whole.Base, Frames: whole.Frames[:next]}
			if cut > 0 {
				outer := callpath.Path{Base: whole.Base, Frames: whole.Frames[:cut]}
				part = callpath.Path{Base: callpath.Named, Outer: outer.Name(), Frames: whole.Frames[cut:next]}
			}
			parts = append(parts, part)
			cut = next
		}
		if got, want := parts[len(parts)-1].Name(), whole.Name(); got != want {
			t.Fatalf("name %#x, want %#x", got, want)
		}
		byName := callpath.Path{Base: callpath.Named, Outer: whole.Name()}
		parts = append(parts, byName, callpath.Path{Base: callpath.Cut, Frames: whole.Frames[:1]})
		var names callpath.Names
		ids := make([]callpath.ID, len(parts))
		for _, i := range rapid.Permutation(indices(len(parts))).Draw(t, "order") {
			ids[i] = names.Add(&parts[i])
			if rapid.Bool().Draw(t, "resolve") {
				names.Resolve(ids[i])
			}
		}
		direct := names.Resolve(names.Add(&whole))
		for _, i := range []int{len(parts) - 2, len(parts) - 3} {
			if got := names.Path(ids[i], nil); fmt.Sprint(got) != fmt.Sprint(whole) {
				t.Fatalf("%v is %v, want %v", parts[i], got, whole)
			}
			if names.Resolve(ids[i]) != direct {
				t.Fatalf("%v and the whole path have different IDs", parts[i])
			}
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Events are read back as they were written.
func TestEventsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := anyEvents(t)
		var l callpath.Events
		if err := l.Parse(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		w := callpath.EventsWriter{Flags: l.Flags, Unit: l.Unit, Lines: uint64(l.Seq), Next: l.EventsHead.Next}
		var again []byte
		for _, e := range l.List {
			var err error
			if again, err = w.Append(again, e); err != nil {
				t.Fatal(err)
			}
		}
		if again = w.Flush(again); string(again) != string(line)+"\n" || w.Next != l.After {
			t.Fatalf("%s is written again as %s", line, again)
		}
	})
}

// Ranges map each address that has a code offset there and back.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 4).Draw(t, "shift")
		r := callpath.Ranges{Shift: uint8(shift)}
		var told []codec.Range
		for range rapid.IntRange(0, 5).Draw(t, "ranges") {
			x := codec.Range{Start: rapid.Uint64Range(0, 2000).Draw(t, "start"), Length: rapid.Uint64Range(1, 300).Draw(t, "length")}
			if rapid.IntRange(0, 5).Draw(t, "end") == 0 {
				x.Start = -x.Length
			}
			if slices.Contains(told, x) {
				continue
			}
			r.Add(x, "")
			told = append(told, x)
		}
		for range 50 {
			address := rapid.Uint64Range(0, 2400).Draw(t, "address") - 50
			f := r.Frame(address)
			if want := frameOf(address, told, shift); f != want {
				t.Fatalf("%#x of %+v is %+v, want %+v", address, told, f, want)
			}
			if back, _, ok := r.Address(f); back != address || !ok {
				t.Fatalf("%#x is %+v, which is %#x, %v", address, f, back, ok)
			}
		}
		if _, _, ok := r.Address(callpath.Frame{Value: r.Units()}); ok {
			t.Fatal("an address behind all code")
		}
	})
}

// frameOf looks an address up by the rule of SPEC.md: the last range that contains it counts.
func frameOf(address uint64, ranges []codec.Range, shift int) callpath.Frame {
	escaped := callpath.Frame{Value: address, Escaped: true}
	for i, r := range slices.Backward(ranges) {
		u := (address - r.Start) >> shift
		if address < r.Start || u >= r.Length>>shift {
			continue
		}
		if (address-r.Start)%(1<<shift) != 0 {
			return escaped
		}
		for _, before := range ranges[:i] {
			u += before.Length >> shift
		}
		return callpath.Frame{Value: u}
	}
	return escaped
}

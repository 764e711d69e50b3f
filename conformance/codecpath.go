package conformance

import (
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/naive"
)

// codecPaths answers the operations of Part III, using package callpath.
func codecPaths(r *Request) (a Answer, err error) {
	switch r.Op {
	case OpPline:
		a.Words, err = codecPline(r.Data)
	case OpVline:
		a.Words, err = codecVline(r.Data)
	case OpDumps:
		a.Words, err = codecDumps(r.Data)
	case OpPencode:
		a.Data, err = codecPencode(r.Words)
	case OpVencode:
		a.Data, err = codecVencode(r.Words)
	case OpName:
		base, name, frames, _ := parsePath(r.Words)
		p := toPath(base, name, frames)
		a.Words = fmt.Sprintf("%08x", p.Name())
	case OpOffsets:
		c, _ := parseCode(r.Words, true)
		ranges := toRanges(c)
		words := make([]string, len(c.List))
		for i, f := range c.List {
			words[i] = frameText(fromFrame(ranges.Frame(f.X)))
		}
		a.Words = strings.Join(words, ",")
	case OpAddresses:
		c, _ := parseCode(r.Words, false)
		ranges := toRanges(c)
		words := make([]string, len(c.List))
		for i, f := range c.List {
			words[i] = "?"
			if address, _, ok := ranges.Address(toFrame(f)); ok {
				words[i] = fmt.Sprintf("%x", address)
			}
		}
		a.Words = strings.Join(words, ",")
	}
	return a, err
}

func toRanges(c codeWords) *callpath.Ranges {
	ranges := &callpath.Ranges{Shift: uint8(c.Shift)}
	for i, r := range c.Ranges {
		ranges.Add(codec.Range{Start: r.Start, Length: r.Length}, fmt.Sprint(i))
	}
	return ranges
}

func toFrame(f naive.CallFrame) callpath.Frame { return callpath.Frame{Value: f.X, Escaped: f.Escaped} }

func fromFrame(f callpath.Frame) naive.CallFrame {
	return naive.CallFrame{X: f.Value, Escaped: f.Escaped}
}

func toPath(base int, name uint32, frames []naive.CallFrame) callpath.Path {
	p := callpath.Path{Base: []callpath.Base{callpath.Whole, callpath.Cut, callpath.Named, callpath.Named}[base], Outer: name}
	for _, f := range frames {
		p.Frames = append(p.Frames, toFrame(f))
	}
	return p
}

// codecPline returns the words of a ~p# line.
func codecPline(text []byte) (string, error) {
	var l callpath.Line
	if err := l.Parse(text); err != nil {
		return "", err
	}
	out := naive.PathLine{Flags: int(l.Flags), Dump: int(l.Dump), Sequence: int(l.Seq), Unit: uint64(l.Unit)}
	for e := (callpath.Entry{}); l.Next(&e); {
		n := naive.PathEntry{Base: int(e.Base), Name: e.Outer, Definition: e.Definition, Live: e.Live, Bytes: e.Bytes,
			Allocs: e.Allocs, Ever: e.AllocBytes, Peak: e.Peak}
		for _, f := range e.Frames {
			n.Frames = append(n.Frames, fromFrame(f))
		}
		for _, b := range e.Blocks {
			n.Blocks = append(n.Blocks, naive.CallBlock{Address: b.Address, Size: b.Size})
		}
		out.Entries = append(out.Entries, n)
	}
	return pathLineWords(out), nil
}

var codecKinds = map[callpath.EventKind]string{callpath.Allocated: "allocated", callpath.Freed: "freed", callpath.Moved: "moved",
	callpath.FreedUnknown: "unknown", callpath.Lost: "lost"}

// codecVline returns the words of a ~v# line.
func codecVline(text []byte) (string, error) {
	var l callpath.Events
	if err := l.Parse(text); err != nil {
		return "", err
	}
	out := naive.EventLine{Flags: int(l.Flags), Sequence: int(l.Seq), Unit: uint64(l.Unit), Time: l.Time, Thread: l.Thread,
		Next: l.EventsHead.Next}
	for e := (callpath.Event{}); l.Next(&e); {
		n := naive.PathEvent{Kind: codecKinds[e.Kind], Time: e.Time, Thread: e.Thread, Number: e.Number, Old: e.Old,
			Path: e.Path, Size: e.Size, Address: e.Address, Lost: e.Count}
		if e.Kind == callpath.Freed {
			n.Number = e.Old
		}
		out.Events = append(out.Events, n)
	}
	return eventLineWords(out), nil
}

// codecPencode writes entries as ~p# lines.
func codecPencode(words string) ([]byte, error) {
	longest, rest, _ := maxOf(words)
	l, _ := parsePathLine(rest)
	if l.Unit > callpath.MaxUnit { // Writer panics on such a unit
		return callpath.AppendLine(nil, callpath.Head{Flags: callpath.Flags(l.Flags), Unit: uint8(l.Unit)}, nil)
	}
	w := callpath.Writer{Flags: callpath.Flags(l.Flags), Unit: uint8(l.Unit), Limit: longest, Dump: uint32(l.Dump), Lines: uint64(l.Sequence)}
	var text []byte
	for _, n := range l.Entries {
		e := callpath.Entry{Path: toPath(n.Base, n.Name, n.Frames), Definition: n.Definition, Live: n.Live, Bytes: n.Bytes,
			Allocs: n.Allocs, AllocBytes: n.Ever, Peak: n.Peak}
		for _, b := range n.Blocks {
			e.Blocks = append(e.Blocks, callpath.Block{Address: b.Address, Size: b.Size})
		}
		var err error
		if text, err = w.Append(text, &e); err != nil {
			return nil, err
		}
	}
	return []byte(strings.TrimSuffix(string(w.Flush(text)), "\n")), nil
}

// codecVencode writes events as a ~v# line.
func codecVencode(words string) ([]byte, error) {
	l, _ := parseEventLine(words)
	w := callpath.EventsWriter{Flags: callpath.Flags(l.Flags), Unit: uint8(l.Unit), Lines: uint64(l.Sequence), Next: l.Next}
	var text []byte
	for _, n := range l.Events {
		e := callpath.Event{Time: n.Time, Thread: n.Thread, Path: n.Path, Old: n.Old, Size: n.Size, Address: n.Address, Count: n.Lost}
		for kind, name := range codecKinds {
			if name == n.Kind {
				e.Kind = kind
			}
		}
		if n.Kind == "freed" {
			e.Old = n.Number
		}
		var err error
		if text, err = w.Append(text, e); err != nil {
			return nil, err
		}
	}
	return []byte(strings.TrimSuffix(string(w.Flush(text)), "\n")), nil
}

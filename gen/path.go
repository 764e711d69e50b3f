package gen

import (
	"math"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// PathEntries returns a head and entries for a ~p# line of a synthetic program. Heads have all
// flags that a writer may write; entries have shared, escaped and named frames, definitions,
// and values of any width.
func PathEntries(seed uint64) (callpath.Head, []callpath.Entry) {
	p := pathMaker{newRNG(seed, "paths")}
	h := callpath.Head{
		Flags: callpath.Flags(p.below(8)), Dump: uint8(p.below(64)), Seq: uint16(p.below(4096)),
	}
	if h.Flags&callpath.Blocks != 0 {
		h.Unit = uint8(p.below(callpath.MaxUnit + 1))
	}
	entries := make([]callpath.Entry, p.below(6))
	for i := range entries {
		if i > 0 {
			entries[i].Path = entries[i-1].Clone()
		}
		p.path(&entries[i].Path)
		if entries[i].Definition = p.chance(10); !entries[i].Definition {
			p.values(&entries[i], h)
		}
	}
	return h, entries
}

type pathMaker struct{ *rng }

// path changes a path into another path, which often shares outer frames with it.
func (p pathMaker) path(path *callpath.Path) {
	switch {
	case p.chance(30):
		*path = callpath.Path{Base: callpath.Base(p.below(3))}
		if path.Base == callpath.Named {
			path.Outer = uint32(p.uint64())
		}
	case len(path.Frames) > 0:
		path.Frames = path.Frames[:p.below(len(path.Frames)+1)]
	}
	for range p.below(6) {
		path.Frames = append(path.Frames, p.frame(path.Frames))
	}
}

// frame returns a frame, which is often near the last frame in before.
func (p pathMaker) frame(before []callpath.Frame) callpath.Frame {
	if p.chance(10) {
		return callpath.Frame{Value: p.width(1 + p.below(64)), Escaped: true}
	}
	near := int64(0)
	if n := len(before); n > 0 && !before[n-1].Escaped {
		near = int64(before[n-1].Value)
	}
	d := int64(p.width(1 + p.below(27)))
	if p.chance(50) {
		d = -d
	}
	return callpath.Frame{Value: uint64(min(max(near+d, 0), callpath.MaxOffset-1))}
}

func (p pathMaker) values(e *callpath.Entry, h callpath.Head) {
	any := func() uint64 { return p.width(1 + p.below(64)) }
	if h.Flags&callpath.Blocks != 0 {
		for range p.below(4) {
			b := callpath.Block{Address: p.width(1+p.below(64-int(h.Unit))) << h.Unit, Size: any() >> 2}
			e.Blocks = append(e.Blocks, b)
			e.Bytes += b.Size
		}
		e.Live = uint64(len(e.Blocks))
	} else {
		e.Live, e.Bytes = min(any(), math.MaxUint64-1), any()
	}
	if h.Flags&callpath.Ever != 0 {
		e.Allocs, e.AllocBytes = any(), any()
	}
	if h.Flags&callpath.Peak != 0 {
		e.Peak = any()
	}
}

// PathLine returns a valid ~p# line.
func PathLine(seed uint64) []byte {
	h, entries := PathEntries(seed)
	line, err := callpath.AppendLine(nil, h, entries)
	if err != nil {
		panic("gen: " + err.Error())
	}
	return line
}

// EventLine returns a valid ~v# line.
func EventLine(seed uint64) []byte {
	p := pathMaker{newRNG(seed, "events")}
	w := callpath.EventsWriter{Flags: callpath.Flags(p.below(2)), Lines: p.uint64(), Next: uint64(p.spread(1 << 20))}
	if w.Flags != 0 {
		w.Unit = uint8(p.below(callpath.MaxUnit + 1))
	}
	e := callpath.Event{Time: p.width(1 + p.below(50)), Thread: uint64(p.spread(100000))}
	var names [3]uint32
	for i := range names {
		names[i] = uint32(p.uint64())
	}
	var line []byte
	for range 1 + p.below(8) {
		e.Kind = callpath.EventKind(p.below(5))
		if w.Next == 0 && (e.Kind == callpath.Freed || e.Kind == callpath.Moved) {
			e.Kind = callpath.Allocated
		}
		if p.chance(50) {
			e.Time += uint64(p.spread(1000))
		}
		if p.chance(10) {
			e.Thread = uint64(p.spread(100000))
		}
		e.Path, e.Size, e.Count = names[p.below(len(names))], p.width(1+p.below(64)), p.width(1+p.below(64))
		e.Address = p.width(1+p.below(64-int(w.Unit))) << w.Unit
		if w.Next > 0 {
			e.Old = w.Next - 1 - uint64(p.spread(int(min(w.Next, 1<<20))))
		}
		var err error
		if line, err = w.Append(line, e); err != nil {
			panic("gen: " + err.Error())
		}
	}
	line = w.Flush(line)
	return line[:len(line)-1]
}

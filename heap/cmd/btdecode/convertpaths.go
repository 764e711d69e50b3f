package main

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// record adds a ~m# or ~b# record to the entries: one for each call path and size, so that the
// sizes can be read back.
func (c *converter) record(it *heaplog.Item) {
	if c.begin == nil {
		c.open(it.Boot, &codec.Header{Verb: codec.VerbBegin, HasNumber: true})
		c.bare = true
	}
	a := &it.Allocs[0]
	e := callpath.Entry{Live: 1, Bytes: a.Bytes}
	if it.Cut != nil || len(a.Stack) == codec.MaxDepth-1 { // lws captures no more
		e.Base = callpath.Cut
	}
	if it.Cut != nil && !it.Cut.Sized {
		e.Bytes = 0
	}
	address, placed := uint64(0), false
	if it.User != nil {
		address, placed = it.User.Get(codec.TagAddress)
		for _, tag := range []codec.Tag{codec.TagTime, codec.TagThread, codec.TagSequence} {
			if _, ok := it.User.Get(tag); ok {
				c.counts.fields++
			}
		}
	}
	key := []byte{byte(e.Base)} // of entries with the same path and, unless it has addresses, the same size
	if placed {
		e.Blocks = []callpath.Block{{Address: address, Size: a.Bytes}}
		key = append(key, 1)
	} else {
		key = binary.AppendUvarint(append(key, 0), a.Bytes)
	}
	for _, addr := range slices.Backward(a.Stack) {
		if addr.State == symbol.Lost {
			c.counts.lost++
		}
		pc := pcOf(addr)
		if c.ranges.Shift == 1 && pc&1 != 0 {
			c.counts.thumb++
			pc &^= 1
		}
		e.Frames = append(e.Frames, c.ranges.Frame(pc))
		key = binary.AppendUvarint(key, pc)
	}
	c.value.Add(profile.Value{Bytes: e.Bytes, Count: 1})
	if i, ok := c.index[string(key)]; ok {
		o := &c.entries[i]
		o.Live, o.Bytes, o.Blocks = o.Live+1, o.Bytes+e.Bytes, append(o.Blocks, e.Blocks...)
		return
	}
	c.index[string(key)] = len(c.entries)
	c.entries = append(c.entries, e)
}

// end writes the open dump, if any; h is its ~h#end line, nil if it has none.
func (c *converter) end(h *codec.Header) {
	begin := c.begin
	if begin == nil {
		if h != nil {
			c.header(h)
		}
		return
	}
	c.begin = nil
	if c.code != nil {
		c.endPaths(begin, h)
	} else {
		c.endRecords(h)
	}
}

// endPaths writes a dump as call paths. It omits the end mark if the dump has a begin mark
// but no end mark.
func (c *converter) endPaths(begin, end *codec.Header) {
	head := without(begin, "u")
	head.Keys = append(head.Keys, codec.HeaderKey{Key: "k", Value: toPaths})
	add(head, "l", c.lines)
	c.header(head)
	slices.SortFunc(c.entries, func(a, b callpath.Entry) int { return callpath.Compare(&a.Path, &b.Path) })
	for _, placed := range []bool{false, true} {
		w := callpath.Writer{Dump: begin.Number, Lines: c.lines}
		if placed {
			w.Flags, w.Unit = callpath.Blocks, c.unit()
		}
		for i := range c.entries {
			if e := &c.entries[i]; placed == (e.Blocks != nil) && c.err == nil {
				c.buf, c.err = w.Append(c.buf[:0], e)
				c.write(c.buf)
			}
		}
		c.write(w.Flush(nil))
		c.lines = w.Lines
	}
	if end == nil {
		if !c.bare {
			return
		}
		end = &codec.Header{Verb: codec.VerbEnd, Number: begin.Number, HasNumber: true}
	}
	tail := without(end, "l")
	if _, ok := end.Get("n"); !ok {
		add(tail, "n", c.value.Count)
		add(tail, "b", c.value.Bytes)
	}
	add(tail, "l", c.lines)
	c.header(tail)
}

// unit returns the unit of all addresses of blocks.
func (c *converter) unit() uint8 {
	set := uint64(1 << callpath.MaxUnit)
	for i := range c.entries {
		for _, b := range c.entries[i].Blocks {
			set |= b.Address
		}
	}
	return uint8(bits.TrailingZeros64(set))
}

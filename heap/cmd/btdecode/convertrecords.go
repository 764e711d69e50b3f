package main

import (
	"math"

	"github.com/lwsbt/lwsbt/codec"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// openRecords writes the begin mark of a dump of ~m# records. It skips dumps that ~m# records
// cannot hold.
func (c *converter) openRecords(h *codec.Header) {
	if kind, _ := h.Get("k"); kind == "diff" {
		c.skip = true
		c.counts.diffs++
		return
	}
	if _, sampled := h.Get("sample"); sampled {
		c.skip = true
		c.counts.sampled++
		return
	}
	head := without(h, "k", "l", "base", "n", "b")
	add(head, "u", 1)
	c.header(head)
}

// endRecords writes the end mark of a dump of ~m# records.
func (c *converter) endRecords(end *codec.Header) {
	if c.skip || end == nil {
		return
	}
	tail := without(end, "l", "cut", "n", "b")
	add(tail, "n", c.value.Count)
	add(tail, "b", c.value.Bytes)
	c.header(tail)
}

// alloc writes the blocks of a call path as records.
func (c *converter) alloc(a *heaplog.Alloc) {
	if !a.Ever.IsZero() || a.Peak > 0 {
		c.counts.totals++
	}
	if a.Definition || a.Count == 0 {
		return
	}
	s := codec.Stack{}
	for _, addr := range a.Stack {
		if _, unplaced := heaplog.CodeOffset(addr); unplaced {
			c.counts.unplaced++
		}
		s.PCs = append(s.PCs, addr.PC)
	}
	if a.NoOuter {
		c.counts.outer++
	}
	if len(s.PCs) > codec.MaxDepth-1 {
		c.counts.deep++
		s.PCs = s.PCs[:codec.MaxDepth-1]
	}
	if a.Blocks == nil && a.Count > 1 {
		c.counts.means += int64(min(a.Count, math.MaxInt64))
	}
	for i := uint64(0); i < a.Count && c.err == nil; i++ {
		u := codec.User{}
		if a.Blocks != nil {
			s.Size = a.Blocks[i].Size
			u.Set(codec.TagAddress, a.Blocks[i].Address)
		} else if s.Size = a.Bytes / a.Count; i < a.Bytes%a.Count {
			s.Size++
		}
		c.value.Add(profile.Value{Bytes: s.Size, Count: 1})
		c.blob = c.blob[:0]
		if c.begin != nil {
			c.blob, c.err = codec.Encoder{Machine: c.machine, Search: c.search}.AppendBlob(c.blob, &s, &u)
		} else {
			c.blob, c.err = codec.Encoder{Machine: c.machine, Search: c.search}.AppendBlob(c.blob, &s, nil)
		}
		c.buf = append(codec.AppendLine(c.buf[:0], c.blob), '\n')
		c.write(c.buf)
	}
}

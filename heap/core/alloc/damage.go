package alloc

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/heap/core"
)

// Damage is a part of the allocator's structures that was overwritten.
type Damage struct {
	Addr   uint64     // of the header, link or canary
	Part   core.Parts // DamagedNode: a header; DamagedEnd: bytes behind the block Before; DamagedFreed: a link in a free block, or in a variable
	What   string     // what was found, and what was expected
	Before int        // index of the block before the header if the same bytes are before and behind its end, else -1
	Block  int        // index of the block of the header or link; -1 if a variable has it
	Lost   uint64     // bytes from the header to the next intact one
}

// doubt adds damage that needs no search for the next header. The blocks are those that it makes doubtful.
func (h *Heap) doubt(d Damage, blocks ...int) {
	h.Damage = append(h.Damage, d)
	for _, i := range blocks {
		h.Blocks[i].doubt()
	}
}

// block returns the index of the block that holds an address, -1 if there is none. The blocks must be sorted.
func (h *Heap) block(addr uint64) int {
	i := sort.Search(len(h.Blocks), func(i int) bool { return h.Blocks[i].end() > addr })
	if i < len(h.Blocks) && addr >= h.Blocks[i].start() {
		return i
	}
	return -1
}

// freed adds damage of a link at an address, which was found to be v.
func (h *Heap) freed(at, v uint64, what string) {
	text := fmt.Sprintf("%s is %#x", what, v)
	h.Damage = append(h.Damage, Damage{Addr: at, Part: core.DamagedFreed, What: text, Before: -1, Block: -1})
}

// finish completes the damage of a heap: links get their blocks, and blocks are named as overrun only if the bytes
// show it.
func (f *finder) finish(h *Heap) {
	h.sort()
	for i := range h.Damage {
		d := &h.Damage[i]
		if d.Part == core.DamagedFreed && d.Block < 0 {
			if d.Block = h.block(d.Addr); d.Block >= 0 {
				h.Blocks[d.Block].doubt()
				d.Before = d.Block - 1
			}
			if text := f.text(d.Addr); text != "" {
				d.What += fmt.Sprintf("; the text %q is there", text)
			}
		}
		if d.Part != core.DamagedEnd && d.Before >= 0 && !f.runsOver(h.Blocks[d.Before].end(), d.Addr) {
			d.Before = -1
		}
	}
	slices.SortStableFunc(h.Damage, func(a, b Damage) int { return cmp.Compare(a.Addr, b.Addr) })
	h.Damage = slices.CompactFunc(h.Damage, func(a, b Damage) bool {
		return a.Part == b.Part && (a.Addr == b.Addr || a.Part == core.DamagedFreed && a.Block == b.Block && a.Block >= 0)
	})
}

// text returns the text at an address, of 4 to 32 bytes, "" if there is none.
func (f *finder) text(addr uint64) string {
	var b [32]byte
	n := 0
	for f.m.Read(b[n:n+1], addr+uint64(n)) == 1 && b[n] >= ' ' && b[n] <= '~' {
		if n++; n == len(b) {
			break
		}
	}
	if n < 4 {
		return ""
	}
	return string(b[:n])
}

// runsOver reports whether the bytes before the end of a block go on behind it, up to an address at least: text with
// its end, or the same byte again and again.
func (f *finder) runsOver(end, at uint64) bool {
	n := max(at+1, end+1) - end
	before, ok := f.m.Bytes(end-4, 4)
	behind, there := f.m.Bytes(end, n)
	if !ok || !there || n > 64 {
		return false
	}
	text := func(c byte) bool { return c >= ' ' && c <= '~' || c == '\n' || c == '\t' }
	same := func(c byte) bool { return c == before[3] }
	switch {
	case !slices.ContainsFunc(before, func(c byte) bool { return !text(c) }):
		for i, c := range behind {
			if !text(c) && (c != 0 || i < len(behind)-1) {
				return false
			}
		}
		return true
	case before[3] == 0: // memory is often 0
		return false
	}
	return !slices.ContainsFunc(append(slices.Clone(before), behind...), func(c byte) bool { return !same(c) })
}

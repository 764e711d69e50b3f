package alloc

import "github.com/lwsbt/lwsbt/heap/core"

// Core returns the used blocks of heaps as a heap of package core.
func Core(m *core.Image, heaps []*Heap) *core.Heap {
	var arenas []core.Arena
	for _, h := range heaps {
		arenas = append(arenas, h.arena())
	}
	return m.NewHeap(arenas)
}

// arena returns the heap as an arena of package core.
func (h *Heap) arena() core.Arena {
	a := core.Arena{Name: h.Name, Addr: h.Addr, Ranges: h.Ranges, Blocks: h.usedBlocks, Slack: h.slack, Least: h.least}
	index := make([]int32, len(h.Blocks)) // of the arena's block at or before a block
	for i := range h.Blocks {
		b := &h.Blocks[i]
		switch {
		case b.State == Used:
			a.Count++
		case b.State == Free && b.Size > 0:
			a.Free = append(a.Free, core.Map{Start: b.Addr, End: b.Addr + b.Size, Write: true})
		}
		if b.State != Used && b.Trust != Intact {
			a.Doubtful = append(a.Doubtful, core.Map{Start: b.start(), End: b.end(), Write: true})
		}
		index[i] = int32(a.Count) - 1
	}
	for _, d := range h.Damage {
		x := core.ArenaDamage{At: d.Addr, Part: d.Part, What: d.What, Suspect: -1}
		if d.Block >= 0 {
			x.Addr = h.Blocks[d.Block].Addr
		}
		if d.Before >= 0 && h.Blocks[d.Before].State == Used {
			x.Suspect = int(index[d.Before])
		}
		a.Damage = append(a.Damage, x)
	}
	return a
}

// usedBlocks yields the used blocks.
func (h *Heap) usedBlocks(yield func(core.ArenaBlock) bool) {
	for i := range h.Blocks {
		b := &h.Blocks[i]
		if b.State == Used && !yield(core.ArenaBlock{Addr: b.Addr, Size: b.Size - uint64(b.Unused), Header: b.header(), Link: h.link(b), Damaged: b.Trust == Damaged, Doubtful: b.Trust == Doubtful, Stack: h.Stacks[b.Addr]}) {
			return
		}
	}
}

// link returns the address in a block that links to a free chunk behind it would hold, 0 if there is none.
func (h *Heap) link(b *Block) uint64 {
	if h.overlap == 0 || b.Size < 2*h.overlap {
		return 0
	}
	return b.Addr + b.Size - h.overlap
}

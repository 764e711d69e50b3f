//go:build linux

package record

import (
	"math/bits"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// sizeBits is the width of a block's size in a record.
const sizeBits = 48

// block is a live allocation.
type block struct {
	addr   uint64
	size   uint64 // below 1<<sizeBits
	path   pathID
	number uint64 // of the allocation since the boot, below 1<<48
}

// liveTable holds the live blocks by address: open addressing, linear probing, and
// deletion by moving later entries back, so that it has no tombstones.
type liveTable struct {
	slots []liveSlot // a power of two of them
	shift uint       // 64 − log2(len(slots))
	n     int
}

// liveSlot is a block in 24 bytes. addr 0 is an empty slot.
type liveSlot struct {
	addr uint64
	word uint64 // size << 16 | number >> 32
	low  uint32 // of number
	path pathID
}

const firstSlots = 1 << 10

// find returns the index of the slot of an address or, if there is no block at the address,
// of an empty slot for it. Addresses are multiples of 8 or 16, and their low bits differ least.
func (t *liveTable) find(addr uint64) int {
	i := t.home(addr)
	for t.slots[i].addr != addr && t.slots[i].addr != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

func (t *liveTable) home(addr uint64) int { return int(addr >> 3 * 0x9e3779b97f4a7c15 >> t.shift) }

func (s *liveSlot) block() block {
	return block{s.addr, s.word >> 16, s.path, s.word&(1<<16-1)<<32 | uint64(s.low)}
}

// put adds a block. If there is already a block at its address, put replaces that block and
// returns it.
func (t *liveTable) put(b block) (old block, replaced bool) {
	if t.n >= len(t.slots)/4*3 {
		t.grow()
	}
	s := &t.slots[t.find(b.addr)]
	if s.addr != 0 {
		old, replaced = s.block(), true
	} else {
		t.n++
	}
	*s = liveSlot{b.addr, b.size<<16 | b.number>>32, uint32(b.number), b.path}
	return old, replaced
}

// take removes the block at an address and returns it.
func (t *liveTable) take(addr uint64) (b block, ok bool) {
	if t.n == 0 || addr == 0 {
		return block{}, false
	}
	i := t.find(addr)
	if t.slots[i].addr == 0 {
		return block{}, false
	}
	b = t.slots[i].block()
	t.n--
	// Move back each later entry of the run whose home is not between the hole and it.
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].addr != 0; j = (j + 1) & mask {
		if h := t.home(t.slots[j].addr); (j-h)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = liveSlot{}
	return b, true
}

func (t *liveTable) grow() {
	old := t.slots
	t.slots = make([]liveSlot, max(firstSlots, 2*len(old)))
	t.shift = uint(64 - bits.TrailingZeros(uint(len(t.slots))))
	for _, s := range old {
		if s.addr != 0 {
			t.slots[t.find(s.addr)] = s
		}
	}
}

// all yields the blocks in no particular order.
func (t *liveTable) all(yield func(block) bool) {
	for i := range t.slots {
		if t.slots[i].addr != 0 && !yield(t.slots[i].block()) {
			return
		}
	}
}

// paths calls each for the path of each block, which it may change.
func (t *liveTable) paths(each func(*pathID)) {
	for i := range t.slots {
		if t.slots[i].addr != 0 {
			each(&t.slots[i].path)
		}
	}
}

// unit returns the power of two, up to 12, of which all addresses are multiples.
func (t *liveTable) unit() uint8 {
	all := uint64(1) << callpath.MaxUnit
	for i := range t.slots {
		all |= t.slots[i].addr
	}
	return uint8(bits.TrailingZeros64(all))
}

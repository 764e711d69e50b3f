package replay

import "iter"

// key is the address of a block, or its number.
type key struct {
	at       uint64
	numbered bool
}

// block is a block that is live, or was freed of late.
type block struct {
	size  uint64 // in bytes
	path  uint32 // index in Replay.paths
	state state
}

type state uint8

const (
	unknown state = iota
	live
	freed
)

// blocks holds the live blocks, and remembers which were freed of late. Numbers count up, so most
// events concern one of the latest: these are in a window, which is faster than a map.
type blocks struct {
	older     map[uint64]block // live, with a number before the window
	placed    map[uint64]block // live, by address
	addresses map[uint64]state // addresses that were freed and not allocated again
	first     uint64           // the number of window[0]
	window    []block          // by number
}

const (
	// maxFreed is the maximum number of freed addresses remembered.
	maxFreed = 1 << 20
	// maxWindow is the maximum number of the latest numbers in the window. Half of them are
	// remembered when it moves on.
	maxWindow = 1 << 17
	// maxGap is the maximum number of numbers that are skipped in the window; after more, it
	// begins anew.
	maxGap = 64
)

// recent returns the block of a number in the window, else nil.
func (b *blocks) recent(k key) *block {
	if i := k.at - b.first; k.numbered && i < uint64(len(b.window)) {
		return &b.window[i]
	}
	return nil
}

// get returns a block. If none is live, its state shows whether one was freed there of late.
func (b *blocks) get(k key) block {
	switch w := b.recent(k); {
	case w != nil:
		return *w
	case k.numbered && k.at >= b.first:
		return block{}
	}
	if k.numbered {
		return b.older[k.at]
	}
	if found, ok := b.placed[k.at]; ok {
		return found
	}
	return block{state: b.addresses[k.at]}
}

// put sets a live block.
func (b *blocks) put(k key, v block) {
	if b.older == nil {
		b.older, b.placed, b.addresses = map[uint64]block{}, map[uint64]block{}, map[uint64]state{}
	}
	v.state = live
	if !k.numbered {
		delete(b.addresses, k.at)
		b.placed[k.at] = v
		return
	}
	b.reach(k.at)
	if w := b.recent(k); w != nil {
		*w = v
	} else {
		b.older[k.at] = v
	}
}

// reach extends the window to a number, if that is after it.
func (b *blocks) reach(number uint64) {
	if number < b.first || number-b.first < uint64(len(b.window)) {
		return
	}
	gap := number - b.first - uint64(len(b.window))
	for len(b.window) > 0 && (gap > maxGap || number-b.first >= maxWindow) {
		n := min(len(b.window), maxWindow/2)
		for i, w := range b.window[:n] {
			if w.state == live {
				b.older[b.first+uint64(i)] = w
			}
		}
		b.window = b.window[:copy(b.window, b.window[n:])]
		b.first += uint64(n)
	}
	if b.window == nil {
		b.window = make([]block, 0, maxWindow)
	}
	if len(b.window) == 0 {
		b.first = number
	}
	for number-b.first >= uint64(len(b.window)) {
		b.window = append(b.window, block{})
	}
}

// free ends a live block.
func (b *blocks) free(k key) {
	if w := b.recent(k); w != nil {
		w.state = freed
		return
	}
	if k.numbered {
		delete(b.older, k.at)
		return
	}
	delete(b.placed, k.at)
	if len(b.addresses) >= maxFreed {
		clear(b.addresses)
	}
	b.addresses[k.at] = freed
}

// clear forgets all blocks.
func (b *blocks) clear() {
	clear(b.older)
	clear(b.placed)
	clear(b.addresses)
	b.window, b.first = b.window[:0], 0
}

// all yields the live blocks, in no order.
func (b *blocks) all() iter.Seq2[key, block] {
	return func(yield func(key, block) bool) {
		for at, v := range b.older {
			if !yield(key{at, true}, v) {
				return
			}
		}
		for at, v := range b.placed {
			if !yield(key{at, false}, v) {
				return
			}
		}
		for i, v := range b.window {
			if v.state == live && !yield(key{b.first + uint64(i), true}, v) {
				return
			}
		}
	}
}

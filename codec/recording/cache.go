package recording

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

const (
	// maxCachedLine is the length in bytes of the longest line, from the lead-in on, that
	// is cached.
	maxCachedLine = 512
	// minSlots is the initial size of the cache in records, maxSlots the largest.
	minSlots, maxSlots = 1 << 10, 1 << 15
	// maxHits bounds how long the cache keeps a record that no longer occurs.
	maxHits = 3
	// Of cacheWindow lines in a row, 1 of cacheWorth must have occurred before. Otherwise the next cachePause
	// lines are not looked for, which would take longer than to decode them.
	cacheWindow, cacheWorth, cachePause = 1 << 10, 8, 1 << 13
)

// decoded is a decoded record.
type decoded struct {
	line    []byte // the rest of its line, from the lead-in on
	length  int    // of the record's text, in bytes
	lenient bool
	blob    []byte
	stack   codec.Stack
	memo    any
}

// slot is that of a line. A line that has occurred only once has no record.
type slot struct {
	hash uint32
	hits uint8 // up to maxHits, minus the number of other lines that needed the slot
	*decoded
}

// cache maps the rest of a line, from the lead-in on, to its decoded record: dumps repeat
// the same lines.
type cache struct {
	slots []slot // by the hash of the line
	seed  maphash.Seed
	lines int // that were not found since slots was allocated

	window, met, pause int // lines in this window, and of these met before; lines that are not looked for
}

// pauses reports whether not to look for the next line.
func (c *cache) pauses() bool {
	if c.pause > 0 {
		c.pause--
		return true
	}
	if c.window++; c.window > cacheWindow {
		if c.met < cacheWindow/cacheWorth {
			c.pause = cachePause
		}
		c.window, c.met = 0, 0
	}
	return false
}

// get returns the record of a line, nil if it is not in the cache. at is then the slot for the
// record, nil if it is not to be put there. A line may be in one of two slots.
func (c *cache) get(line []byte) (d *decoded, at *slot) {
	switch n := len(c.slots); {
	case n == 0:
		c.seed = maphash.MakeSeed()
		c.slots = make([]slot, minSlots)
	case c.lines > n && n < maxSlots:
		c.slots, c.lines = append(c.slots, make([]slot, maxSlots-n)...), 0
	}
	sum := maphash.Bytes(c.seed, line)
	i, h := sum&uint64(len(c.slots)-1), uint32(sum>>32)
	at = &c.slots[i]
	if other := &c.slots[i^1]; at.hash != h && (other.hash == h || other.hits < at.hits) {
		at = other
	}
	if at.hash == h {
		c.met++
	}
	switch {
	case at.hash != h:
		c.lines++
		if at.hits > 0 {
			at.hits--
			return nil, nil
		}
		at.hash, at.decoded = h, nil
		return nil, nil
	case at.decoded == nil:
		return nil, at
	case !bytes.Equal(at.line, line):
		return nil, nil
	}
	at.hits = min(at.hits+1, maxHits)
	return at.decoded, nil
}

// put stores a record of n bytes in the slot of its line.
func (s *slot) put(line []byte, it *Item, n int) {
	s.decoded = &decoded{
		line: bytes.Clone(line), length: n, lenient: it.Lenient, blob: bytes.Clone(it.Blob),
		stack: codec.Stack{PCs: slices.Clone(it.Stack.PCs), Size: it.Stack.Size, Marks: it.Stack.Marks},
	}
	it.Memo = &s.memo
}

// forget empties the cache.
func (c *cache) forget() { c.slots, c.lines = nil, 0 }

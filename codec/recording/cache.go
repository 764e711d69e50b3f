package recording

import (
	"bytes"
	"hash/maphash"

	"github.com/lwsbt/lwsbt/codec"
)

const (
	// maxCachedLine is the length in bytes of the longest line, from the lead-in on, that
	// is cached.
	maxCachedLine = 512
	// minSlots is the initial size of the cache in records, maxSlots the largest.
	minSlots, maxSlots = 1 << 10, 1 << 15
	// The cache is judged after each cacheWindow lookups. If fewer than 1 in cacheWorth
	// hit, the cache pauses for minPause records, then for twice as many, up to maxPause.
	cacheWindow = 1 << 13
	cacheWorth  = 8
	minPause    = 4 * cacheWindow
	maxPause    = 1 << 20
	// maxHits bounds how long the cache keeps a record that no longer occurs.
	maxHits = 3
)

// decoded is a decoded record.
type decoded struct {
	line    []byte // the rest of its line, from the lead-in on
	length  int    // of the record's text, in bytes
	hits    uint8  // up to maxHits, minus the number of other records that needed the slot
	lenient bool
	blob    []byte
	stack   codec.Stack
	memo    any
}

// cache maps the rest of a line, from the lead-in on, to its decoded record: dumps repeat
// the same lines.
type cache struct {
	slots []*decoded // by the hash of the line
	seed  maphash.Seed
	puts  int // since slots was allocated
	asked int // lookups in this window
	hits  int // of asked
	pause int // remaining records for which the cache is not used
	next  int // length of the next pause
}

// worth reports whether the cache should be used for the next record.
func (c *cache) worth() bool {
	if c.pause > 0 {
		c.pause--
		return false
	}
	if c.asked++; c.asked > cacheWindow {
		if c.next = max(c.next, minPause); c.hits < cacheWindow/cacheWorth {
			c.pause, c.next = c.next, min(2*c.next, maxPause)
		} else {
			c.next = minPause
		}
		c.asked, c.hits = 1, 0
	}
	return true
}

// get returns the record of a line, nil if it is not in the cache, and the slot for the
// line. A line may be in one of two slots.
func (c *cache) get(line []byte) (d *decoded, slot **decoded) {
	switch n := len(c.slots); {
	case n == 0:
		c.seed = maphash.MakeSeed()
		c.slots = make([]*decoded, minSlots)
	case c.puts > n && n < maxSlots:
		c.slots, c.puts = append(c.slots, make([]*decoded, maxSlots-n)...), 0
	}
	i := maphash.Bytes(c.seed, line) & uint64(len(c.slots)-1)
	for _, i := range [...]uint64{i, i ^ 1} {
		d = c.slots[i]
		if d != nil && bytes.Equal(d.line, line) {
			d.hits = min(d.hits+1, maxHits)
			c.hits++
			return d, nil
		}
		if slot == nil || d == nil || *slot != nil && d.hits < (*slot).hits {
			slot = &c.slots[i]
		}
	}
	return nil, slot
}

// put stores a record of n bytes in a slot, unless the record there is used more often.
func (c *cache) put(slot **decoded, line []byte, it *Item, n int) {
	c.puts++
	d := *slot
	switch {
	case d == nil:
		d = &decoded{}
		*slot = d
	case d.hits > 0:
		d.hits--
		return
	}
	d.line, d.length, d.lenient = append(d.line[:0], line...), n, it.Lenient
	d.blob = append(d.blob[:0], it.Blob...)
	d.stack.PCs = append(d.stack.PCs[:0], it.Stack.PCs...)
	d.stack.Size, d.stack.Marks = it.Stack.Size, it.Stack.Marks
	d.memo = nil
	it.Memo = &d.memo
}

// forget empties the cache.
func (c *cache) forget() { c.slots, c.puts = nil, 0 }

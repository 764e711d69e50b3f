package heaplog

import (
	"bytes"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/profile"
)

const (
	// maxCachedLine is the longest end of a line that is cached, in bytes.
	maxCachedLine = 512
	// maxCached is how many records are cached: between that and twice as many.
	maxCached = 1 << 14
	// cacheWindow is after how many records the cache is judged: with fewer than 1 hit in
	// cacheWorth, it pauses for minPause records, then twice as many, up to maxPause.
	cacheWindow = 1 << 13
	cacheWorth  = 8
	minPause    = 4 * cacheWindow
	maxPause    = 1 << 20
)

// decoded is a record that was decoded, and its call path.
type decoded struct {
	length  int // of the record's text, in bytes
	lenient bool
	blob    []byte
	stack   codec.Stack

	generation int // of the process for which the following is true; 0: none
	allocs     [1]Alloc
	states     [3]int64 // addresses by state
	ambiguous  int64    // of the lost ones
	path       profile.Path
	hasPath    bool
}

// cache finds records by the rest of their line, from the lead-in on: dumps repeat the same
// lines again and again. When recent is full, it becomes older, and what was older goes.
type cache struct {
	recent, older map[string]*decoded
	asked         int // in this window
	hits          int // of asked
	pause         int // records that are not to be looked for
	nextPause     int
}

// worth reports whether to look for the next record.
func (c *cache) worth() bool {
	if c.pause > 0 {
		c.pause--
		return false
	}
	if c.asked++; c.asked > cacheWindow {
		if c.nextPause = max(c.nextPause, minPause); c.hits < cacheWindow/cacheWorth {
			c.pause, c.nextPause = c.nextPause, min(2*c.nextPause, maxPause)
		} else {
			c.nextPause = minPause
		}
		c.asked, c.hits = 1, 0
	}
	return true
}

// get returns the record with a line, nil if it is not in the cache.
func (c *cache) get(line []byte) *decoded {
	d := c.recent[string(line)]
	if d == nil {
		if d = c.older[string(line)]; d == nil {
			return nil
		}
		c.keep(string(line), d)
	}
	c.hits++
	return d
}

// put keeps a record of n bytes.
func (c *cache) put(line []byte, it *Item, n int) *decoded {
	d := &decoded{length: n, lenient: it.Lenient, blob: bytes.Clone(it.Blob), stack: *it.Stack}
	d.stack.PCs = slices.Clone(it.Stack.PCs)
	c.keep(string(line), d)
	return d
}

// forget empties the cache.
func (c *cache) forget() { c.recent, c.older = nil, nil }

func (c *cache) keep(line string, d *decoded) {
	if c.recent == nil || len(c.recent) >= maxCached {
		c.older, c.recent = c.recent, map[string]*decoded{}
	}
	c.recent[line] = d
}

package heapmap

import "github.com/lwsbt/lwsbt/heap/profile"

// The JSON of these types is described in heap/docs/btheap.schema.json. All sizes are in bytes.
type (
	// Moment holds the sums of the heap at one moment.
	Moment struct {
		Number    int        `json:"number"` // from 1
		Boot      int        `json:"boot"`
		Time      *float64   `json:"time,omitempty"` // seconds since the boot, nil if not known
		Blocks    *Space     `json:"blocks"`         // nil if the blocks have no addresses
		Allocator *Allocator `json:"allocator"`      // nil if the allocator reported nothing
	}
	// Space is the memory that the blocks of a dump use and leave free.
	Space struct {
		Size          uint64  `json:"size"` // of the ranges of the heap
		Used          uint64  `json:"used"`
		Count         int     `json:"count"` // of blocks
		Free          uint64  `json:"free"`  // in all holes
		Holes         int     `json:"holes"`
		Largest       uint64  `json:"largest"` // size of the largest hole
		Fragmentation float64 `json:"fragmentation"`
		Outside       int     `json:"outside"` // blocks outside of the ranges
		Overlap       int     `json:"overlap"` // blocks that begin inside another block
	}
	// Allocator is the report of the allocator.
	Allocator struct {
		profile.Heap
		Fragmentation *float64 `json:"fragmentation"` // nil if not known
	}
	// Layout describes the blocks and holes at one moment.
	Layout struct {
		Ranges    []Range     `json:"ranges"`
		LeastHole uint64      `json:"least_hole"` // smaller gaps are not holes
		Listed    bool        `json:"listed"`     // the holes are the free blocks that the log lists
		Lost      int         `json:"lost"`       // blocks of the dump before where this one lacks some
		Sizes     []SizeClass `json:"sizes"`
		Pins      []Pin       `json:"pins"` // by Kept, the largest first
		Left      int         `json:"left"` // number of call paths that Pins omits
	}
	// Range is a range of addresses of the heap, in cells of equal size.
	Range struct {
		Start  uint64 `json:"start"`
		Length uint64 `json:"length"`
		Cells  []int  `json:"-"` // how much of each cell is used, 0 to 100 %
	}
	// SizeClass counts the holes and blocks of Min to Max bytes.
	SizeClass struct {
		Min        uint64 `json:"min"`
		Max        uint64 `json:"max"`
		Holes      int    `json:"holes"`
		HoleBytes  uint64 `json:"hole_bytes"`
		Blocks     int    `json:"blocks"`
		BlockBytes uint64 `json:"block_bytes"`
	}
	// Pin is a call path whose blocks keep holes apart.
	Pin struct {
		Path    profile.Path   `json:"-"`
		Kept    uint64         `json:"kept"`    // sum of the smaller hole at each group: the bytes that would join a larger hole
		Count   int            `json:"count"`   // of blocks
		Bytes   uint64         `json:"bytes"`   // of the blocks
		Address uint64         `json:"address"` // of the block between the largest holes
		Stack   []profile.Site `json:"stack"`   // innermost first
	}
)

// Fragmentation returns the fraction of the free memory that is not in the largest free
// block, 0 to 1.
func Fragmentation(free, largest uint64) float64 {
	if free == 0 {
		return 0
	}
	return 1 - float64(largest)/float64(free)
}

// NewAllocator returns the report of the allocator on the heap with the least free memory, or nil
// if there is none.
func NewAllocator(d *profile.DumpInfo) *Allocator {
	var least *profile.Heap
	for i := range d.Heaps {
		if h := &d.Heaps[i]; h.Free.Known && (least == nil || h.Free.Bytes < least.Free.Bytes) {
			least = h
		}
	}
	if least == nil {
		return nil
	}
	return OfHeap(*least)
}

// OfHeap returns the report on a heap.
func OfHeap(h profile.Heap) *Allocator {
	a := &Allocator{Heap: h}
	if f, known := h.Fragmentation(); known {
		a.Fragmentation = &f
	}
	return a
}

// NewMoment returns the sums of a dump and of its map, which may be nil.
func NewMoment(d *profile.Dump, m *Map) Moment {
	out := Moment{Number: d.Index + 1, Boot: d.Boot, Allocator: NewAllocator(&d.DumpInfo)}
	if d.Timed {
		t := d.Time.Seconds()
		out.Time = &t
	}
	if m != nil {
		space := m.Space
		out.Blocks = &space
	}
	return out
}

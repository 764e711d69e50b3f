package report

import (
	"fmt"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
)

// Map holds the positions of blocks and holes in the heap at one or more moments.
type Map struct {
	About   string // where the ranges of the heap come from
	Open    int    // index of the moment to show first
	Moments []MapMoment
}

// MapMoment is the heap at one moment, as the page shows it.
type MapMoment struct {
	Name string `json:"name"`
	Moment
	Layout
}

// The JSON of these types is described in docs/btheap.schema.json. All sizes are in bytes.
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
		Fragmentation float64 `json:"fragmentation"`
	}
	// Layout describes the blocks and holes at one moment.
	Layout struct {
		Ranges    []Range     `json:"ranges"`
		LeastHole uint64      `json:"least_hole"` // smaller gaps are not holes
		Sizes     []SizeClass `json:"sizes"`
		Pins      []Pin       `json:"pins"` // by Kept, the largest first
		Left      int         `json:"left"` // number of call paths that Pins omits
	}
	// Range is a range of addresses of the heap, in cells of equal size.
	Range struct {
		Start  uint64  `json:"start"`
		Length uint64  `json:"length"`
		Cells  []uint8 `json:"-"` // how much of each cell is used, 0 to 100 %
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
		Kept    uint64         `json:"kept"`    // bytes of the holes that would join larger ones
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

// NewAllocator returns the report of the allocator, or nil if there is none.
func NewAllocator(h profile.Heap) *Allocator {
	if !h.Known {
		return nil
	}
	return &Allocator{h, Fragmentation(h.Free, h.Largest)}
}

// heapMap is a Map for the script. Its addresses are hexadecimal text, because the script's
// numbers hold 53 bits, and its stacks are numbers of sites.
type heapMap struct {
	About   string      `json:"about"`
	Open    int         `json:"open"`
	Moments []mapMoment `json:"moments"`
}

type mapMoment struct {
	MapMoment
	Name   string     `json:"name"`
	Ranges []mapRange `json:"ranges"`
	Pins   []mapPin   `json:"pins"`
}

type mapRange struct {
	Start  string `json:"start"`
	Length uint64 `json:"length"`
	Cells  []int  `json:"cells"`
}

type mapPin struct {
	Pin
	Stack   []int  `json:"stack"`
	Node    int    `json:"node"` // 0 if the call path is not on the page
	Address string `json:"address"`
}

// addMap adds the map, if there is one.
func (d *data) addMap(m *Map) {
	if m == nil || len(m.Moments) == 0 {
		return
	}
	d.Map = &heapMap{About: printable.Text(m.About), Open: m.Open}
	some := evenly(m.Moments)
	if n := len(m.Moments); n > len(some) {
		d.Map.Open = m.Open * (len(some) - 1) / (n - 1)
	}
	for _, x := range some {
		out := mapMoment{MapMoment: x, Name: printable.Text(x.Name), Ranges: []mapRange{}, Pins: []mapPin{}}
		if x.Sizes == nil {
			out.Sizes = []SizeClass{} // not null
		}
		for _, r := range x.Ranges {
			cells := make([]int, len(r.Cells)) // a []uint8 would be written as base64
			for i, c := range r.Cells {
				cells[i] = int(c)
			}
			out.Ranges = append(out.Ranges, mapRange{fmt.Sprintf("%#x", r.Start), r.Length, cells})
		}
		for _, p := range x.Pins {
			stack := d.stack(p.Stack)
			out.Pins = append(out.Pins, mapPin{p, stack, d.find(stack), fmt.Sprintf("%#x", p.Address)})
		}
		d.Map.Moments = append(d.Map.Moments, out)
	}
}

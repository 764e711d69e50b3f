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

// MapMoment is the heap at one moment. All sizes are in bytes.
type MapMoment struct {
	Name    string
	Seconds float64 // since the boot, if Timed
	Timed   bool
	Boot    int

	Known         bool // the blocks have addresses; else only Allocator is known
	Size, Used    uint64
	Blocks, Holes int
	Free, Largest uint64 // of all holes, and of the largest
	LeastHole     uint64 // smaller gaps are not holes
	Outside       int    // blocks outside of the ranges
	Overlap       int    // blocks that begin inside another block
	Ranges        []MapRange
	Sizes         []MapSizes
	Pins          []MapPin // by Kept, the largest first
	MorePins      int      // number of call paths that Pins omits

	Allocator profile.Heap // report of the allocator
}

// MapRange is a range of addresses of the heap, in cells of equal size.
type MapRange struct {
	Start, Length uint64
	Cells         []uint8 // how much of each cell is used, 0 to 100 %
}

// MapSizes counts the holes and blocks of Min to Max bytes.
type MapSizes struct {
	Min, Max   uint64
	Holes      int
	HoleBytes  uint64
	Blocks     int
	BlockBytes uint64
}

// MapPin is a call path whose blocks keep holes apart.
type MapPin struct {
	Stack   []profile.Site // innermost first
	Kept    uint64         // bytes of the holes that the blocks keep apart
	Blocks  int
	Bytes   uint64 // of the blocks
	Address uint64 // of the block between the largest holes
}

// heapMap is a Map for the script. Addresses are in hexadecimal, as they may have 64 bits.
type heapMap struct {
	About   string      `json:"about"`
	Open    int         `json:"open"`
	Moments []mapMoment `json:"moments"`
}

type mapMoment struct {
	Name    string      `json:"name"`
	Time    *float64    `json:"time"`
	Boot    int         `json:"boot"`
	Known   bool        `json:"known"`
	Size    uint64      `json:"size"`
	Used    uint64      `json:"used"`
	Blocks  int         `json:"blocks"`
	Holes   int         `json:"holes"`
	Free    uint64      `json:"free"`
	Largest uint64      `json:"largest"`
	Least   uint64      `json:"least"`
	Outside int         `json:"outside"`
	Overlap int         `json:"overlap"`
	Ranges  []mapRange  `json:"ranges"`
	Sizes   [][6]uint64 `json:"sizes"` // as the fields of MapSizes
	Pins    []mapPin    `json:"pins"`
	More    int         `json:"more"`
	Said    *[4]uint64  `json:"said"` // size, free, largest, min
}

type mapRange struct {
	Start  string `json:"start"`
	Length uint64 `json:"length"`
	Cells  []int  `json:"cells"`
}

type mapPin struct {
	Stack   []int  `json:"stack"`
	Node    int    `json:"node"` // 0 if the call path is not on the page
	Kept    uint64 `json:"kept"`
	Blocks  int    `json:"blocks"`
	Bytes   uint64 `json:"bytes"`
	Address string `json:"address"`
}

// addMap adds the map, if there is one.
func (d *data) addMap(m *Map) {
	if m == nil || len(m.Moments) == 0 {
		return
	}
	d.Map = &heapMap{About: printable.Text(m.About), Open: m.Open}
	for i := range m.Moments {
		d.Map.Moments = append(d.Map.Moments, d.mapMoment(&m.Moments[i]))
	}
}

func (d *data) mapMoment(x *MapMoment) mapMoment {
	out := mapMoment{Name: printable.Text(x.Name), Boot: x.Boot, Known: x.Known, Size: x.Size, Used: x.Used, Blocks: x.Blocks, Holes: x.Holes, Free: x.Free,
		Largest: x.Largest, Least: x.LeastHole, Outside: x.Outside, Overlap: x.Overlap, More: x.MorePins,
		Ranges: []mapRange{}, Sizes: [][6]uint64{}, Pins: []mapPin{}}
	if x.Timed {
		out.Time = &x.Seconds
	}
	if h := x.Allocator; h.Known {
		out.Said = &[4]uint64{h.Size, h.Free, h.Largest, h.Min}
	}
	for _, r := range x.Ranges {
		cells := make([]int, len(r.Cells)) // a []uint8 would be written as base64
		for i, c := range r.Cells {
			cells[i] = int(c)
		}
		out.Ranges = append(out.Ranges, mapRange{fmt.Sprintf("%#x", r.Start), r.Length, cells})
	}
	for _, s := range x.Sizes {
		out.Sizes = append(out.Sizes, [6]uint64{s.Min, s.Max, uint64(s.Holes), s.HoleBytes, uint64(s.Blocks), s.BlockBytes})
	}
	for _, p := range x.Pins {
		stack := d.stack(p.Stack)
		out.Pins = append(out.Pins, mapPin{stack, d.find(stack), p.Kept, p.Blocks, p.Bytes, fmt.Sprintf("%#x", p.Address)})
	}
	return out
}

package report

import (
	"fmt"

	"github.com/lwsbt/lwsbt/heap/internal/heapmap"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Map holds the positions of blocks and holes in the heap at one or more moments.
type Map struct {
	About   string      `json:"about"` // where the ranges of the heap come from
	Open    int         `json:"open"`  // index of the moment to show first
	Moments []MapMoment `json:"-"`
}

// MapMoment is the heap at one moment, as the page shows it.
type MapMoment struct {
	Name string `json:"name"`
	heapmap.Moment
	heapmap.Layout
}

// heapMap is a Map for the script. Its addresses are hexadecimal text, because the script's
// numbers hold 53 bits, and its stacks are numbers of sites.
type heapMap struct {
	Map
	Moments []mapMoment `json:"moments"`
}

type mapMoment struct {
	MapMoment
	Name   string     `json:"name"`
	Ranges []mapRange `json:"ranges"`
	Pins   []mapPin   `json:"pins"`
}

type mapRange struct {
	heapmap.Range
	Start string `json:"start"`
	Cells []int  `json:"cells"`
}

type mapPin struct {
	heapmap.Pin
	Stack   []int  `json:"stack"`
	Node    int    `json:"node"` // 0 if the call path is not on the page
	Address string `json:"address"`
}

// addMap adds the map, if there is one.
func (d *data) addMap(m *Map) {
	if m == nil || len(m.Moments) == 0 {
		return
	}
	d.Map = &heapMap{Map: Map{About: printable.Text(m.About), Open: m.Open}}
	some := evenly(m.Moments)
	if n := len(m.Moments); n > len(some) {
		d.Map.Open = m.Open * (len(some) - 1) / (n - 1)
	}
	for _, x := range some {
		out := mapMoment{MapMoment: x, Name: printable.Text(x.Name), Ranges: []mapRange{}, Pins: []mapPin{}}
		if x.Sizes == nil {
			out.Sizes = []heapmap.SizeClass{} // not null
		}
		for _, r := range x.Ranges {
			out.Ranges = append(out.Ranges, mapRange{r, fmt.Sprintf("%#x", r.Start), r.Cells})
		}
		for _, p := range x.Pins {
			stack := d.stack(p.Stack)
			out.Pins = append(out.Pins, mapPin{p, stack, d.find(stack), fmt.Sprintf("%#x", p.Address)})
		}
		d.Map.Moments = append(d.Map.Moments, out)
	}
}

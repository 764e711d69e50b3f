package main

import (
	"math"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// sparkline draws points as bars, scaled from the least to the largest, and as dots those that
// shown, if it is not nil, leaves out. If there are more than width points, it leaves out some at
// even distances, but keeps the first and the last.
func sparkline(points []profile.Value, shown func(i int) bool, w profile.Weight, width int) string {
	var heights []float64 // NaN for a dot
	low, high := math.Inf(1), math.Inf(-1)
	n := min(len(points), width)
	for i := range n {
		k := int(math.Round(float64(i*(len(points)-1)) / float64(max(1, n-1))))
		h := math.NaN()
		if shown == nil || shown(k) {
			h = float64(w.Of(points[k]))
			low, high = min(low, h), max(high, h)
		}
		heights = append(heights, h)
	}
	bars, out := []rune("▁▂▃▄▅▆▇█"), []rune{}
	for _, h := range heights {
		switch {
		case math.IsNaN(h):
			out = append(out, '·')
		case high > low:
			out = append(out, bars[int((h-low)/(high-low)*float64(len(bars)-1))])
		default:
			out = append(out, bars[0])
		}
	}
	return string(out)
}

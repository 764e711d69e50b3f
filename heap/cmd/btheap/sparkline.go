package main

import (
	"math"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// sparkline draws points by leaktext.Bars, and as dots those that shown, if it is not nil, leaves out.
func sparkline(points []profile.Value, shown func(i int) bool, w profile.Weight, width int) string {
	return marked(points, shown, w, -1, width)
}

// marked is sparkline with the mark of a begin.
func marked(points []profile.Value, shown func(i int) bool, w profile.Weight, begin, width int) string {
	heights := make([]float64, len(points))
	for i := range points {
		if heights[i] = math.NaN(); shown == nil || shown(i) {
			heights[i] = float64(w.Of(points[i]))
		}
	}
	return leaktext.Bars(heights, begin, width)
}

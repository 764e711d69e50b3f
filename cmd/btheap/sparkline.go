package main

import (
	"math"

	"github.com/lwsbt/lwsbt/profile"
)

// sparkline draws points as bars, scaled from the least to the largest, and nil points as
// dots. If there are more than width points, it leaves out some at even distances, but
// keeps the first and the last.
func sparkline(points []*profile.Value, w profile.Weight, width int) string {
	if len(points) > width && width > 1 {
		some := make([]*profile.Value, width)
		for i := range some {
			some[i] = points[int(math.Round(float64(i)*float64(len(points)-1)/float64(width-1)))]
		}
		points = some
	}
	low, high := uint64(math.MaxUint64), uint64(0)
	for _, p := range points {
		if p != nil {
			low, high = min(low, w.Of(*p)), max(high, w.Of(*p))
		}
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, len(points))
	for i, p := range points {
		level := 0
		switch {
		case p == nil:
			out[i] = '·'
			continue
		case high > low:
			level = int(float64(w.Of(*p)-low) / float64(high-low) * float64(len(bars)-1))
		}
		out[i] = bars[level]
	}
	return string(out)
}

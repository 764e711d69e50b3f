package main

import (
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
)

func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		points []int // -1 is no point
		width  int
		want   string
	}{
		{[]int{10, 20, 30, 40}, 8, "▁▃▅█"},
		{[]int{10, 30, 20, 40}, 8, "▁▅▃█"},
		{[]int{5, 5}, 8, "▁▁"},
		{[]int{7, 3, 2}, 8, "█▂▁"},
		{[]int{0, 0, 6, 0}, 8, "▁▁█▁"},
		{[]int{1, -1, 8}, 8, "▁·█"},
		{[]int{1, 2, 3, 4, 5, 6, 7, 8}, 3, "▁▅█"},
		{nil, 8, ""},
	} {
		var points []profile.Value
		for _, p := range c.points {
			points = append(points, profile.Value{Bytes: uint64(max(0, p)), Count: 1})
		}
		shown := func(i int) bool { return c.points[i] >= 0 }
		if got := sparkline(points, shown, profile.Bytes, c.width); got != c.want {
			t.Errorf("%v: %s, want %s", c.points, got, c.want)
		}
	}
}

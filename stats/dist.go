package stats

import "math/bits"

// Dist is how a number of bytes is distributed over allocations.
type Dist struct {
	Mean float64 `json:"mean"`
	P50  int     `json:"p50"`
	P90  int     `json:"p90"`
	P99  int     `json:"p99"`
	Max  int     `json:"max"`
}

// counts holds at n how often n was counted.
type counts []uint64

func (c *counts) add(n int, times uint64) {
	for n >= len(*c) {
		*c = append(*c, 0)
	}
	(*c)[n] += times
}

// total is the sum of what was counted, times the sum over all of it.
func (c counts) total() (sum, times uint64) {
	for n, t := range c {
		sum += uint64(n) * t
		times += t
	}
	return sum, times
}

// dist ranks by the nearest rank: p90 is the smallest n that at least 90 of 100 do
// not exceed.
func (c counts) dist() Dist {
	sum, times := c.total()
	if times == 0 {
		return Dist{}
	}
	d := Dist{Mean: float64(sum) / float64(times)}
	var seen uint64
	for n, t := range c {
		if t == 0 {
			continue
		}
		before := seen
		seen += t
		for _, rank := range []struct {
			percent uint64
			to      *int
		}{{50, &d.P50}, {90, &d.P90}, {99, &d.P99}} {
			at := (times*rank.percent + 99) / 100
			if before < at && at <= seen {
				*rank.to = n
			}
		}
		d.Max = n
	}
	return d
}

// satAdd adds, and stays at the most there is: sizes of damaged records can be
// anything.
func satAdd(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

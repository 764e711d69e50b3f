package stats

import "math/bits"

// Dist is the distribution of a number of bytes per allocation.
type Dist struct {
	Mean float64 `json:"mean"`
	P50  int     `json:"p50"`
	P90  int     `json:"p90"`
	P99  int     `json:"p99"`
	Max  int     `json:"max"`
}

// counts is a histogram: counts[n] is the number of times that n was counted.
type counts []uint64

func (c *counts) add(n int, times uint64) {
	for n >= len(*c) {
		*c = append(*c, 0)
	}
	(*c)[n] += times
}

// total returns the sum of all values counted, and their number.
func (c counts) total() (sum, times uint64) {
	for n, t := range c {
		sum += uint64(n) * t
		times += t
	}
	return sum, times
}

// dist returns the distribution. Percentiles are by nearest rank: p90 is the smallest n such
// that at least 90 % of the values are n or less.
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

// satAdd returns a + b, saturated at 2^64-1: sizes in damaged records can have any value.
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

package stats

import "math/bits"

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

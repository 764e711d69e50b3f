package leak

import "math"

// Deadline is the time until a heap is full, in the unit of the rates.
type Deadline struct {
	// In is the time at Rate. It is between From and To in nine of ten cases, if what leaks goes on. To is
	// +Inf if the rate may be 0.
	In   float64
	From float64
	To   float64
	// Rate, in the allocator's bytes per unit of time, is between Low and High.
	Rate float64
	Low  float64
	High float64
}

// Exhausted returns when a heap is full: the earlier of the deadlines by its own trend, if it leaks, and by
// the sum of all call paths that leak. free is in bytes. perByte is how many bytes the allocator takes for a
// byte of a call path, 1 or more: headers and alignment. ok is false if nothing leaks.
func Exhausted(free, perByte float64, heap Judgement, paths []Judgement) (d Deadline, ok bool) {
	rate, low, high := Sum(paths)
	if d, ok = deadline(free, rate*perByte, low*perByte, high*perByte); heap.Verdict != Leak {
		return d, ok
	}
	if own, leaks := deadline(free, heap.Rate, heap.Low, heap.High); leaks && (!ok || own.In < d.In) {
		return own, true
	}
	return d, ok
}

// Sum returns the sum of the rates of what leaks, and its 90 % interval. What is not sure to leak lowers low
// by what would be missing: its rate times the probability that it does not leak.
func Sum(list []Judgement) (rate, low, high float64) {
	var below, above float64
	for i := range list {
		if j := &list[i]; j.Verdict == Leak {
			rate += j.Rate
			below = math.Hypot(below, j.Rate-j.Low)
			above = math.Hypot(above, j.High-j.Rate)
			low -= (1 - j.Probability) * j.Rate
		}
	}
	return rate, rate + low - below, rate + above
}

func deadline(free, rate, low, high float64) (Deadline, bool) {
	if rate <= 0 {
		return Deadline{In: math.Inf(1), From: math.Inf(1), To: math.Inf(1)}, false
	}
	d := Deadline{In: free / rate, From: free / high, To: math.Inf(1), Rate: rate, Low: low, High: high}
	if low > 0 {
		d.To = free / low
	}
	return d, true
}

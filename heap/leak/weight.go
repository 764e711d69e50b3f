package leak

import "math"

// weigh returns the logarithm of the likelihood ratio of a leak to none.
func weigh(e *evidence) float64 {
	sum := 0.0
	for i, x := range e.terms() {
		sum += weights[i] * x
	}
	return sum
}

// terms returns the terms of the logistic model.
func (e *evidence) terms() [28]float64 {
	concave := math.Max(0, 0.5-e.Late)
	z := math.Max(0, e.Z)
	below := math.Min(2, e.Below)
	steep := math.Min(3, e.Steep)
	certain := math.Min(1, z/15)
	var late, bend, curve float64 // of several boots: a cache fills at the same uptime, each start-up bends
	if e.Boots >= 2 {
		late = math.Max(0, 0.88-e.Share)
		bend = math.Max(0, math.Abs(e.Late-0.5)-0.06) * math.Log(math.Min(8, e.Boots))
		curve = math.Max(0, math.Min(6, math.Abs(e.Curve))-1.2)
	}
	return [...]float64{1,
		math.Log1p(z),
		math.Min(z, 4),
		math.Log(math.Min(1, e.Bend) + 0.02),
		math.Max(0, 0.8-e.Share),
		concave,
		math.Min(0.15, concave),
		math.Max(0, math.Min(6, e.Curve)),
		math.Max(0, e.Late-0.5),
		steep,
		steep * certain,
		math.Min(0.15, concave) * certain,
		math.Max(0, math.Min(0.06, concave-0.05)),
		math.Max(0, 1-e.Share) * certain,
		math.Max(0, 1-math.Max(0, e.Last)),
		math.Max(0, e.Last-1),
		math.Log(math.Min(5, e.Fall) + 0.05),
		below,
		math.Min(0.2, below),
		math.Max(0, below-0.7),
		steep * math.Min(0.15, concave),
		math.Log(math.Max(1, e.Boots)),
		late,
		bend,
		math.Max(0, 1-e.Bend/0.03) * math.Max(0, 10*e.Share-9), // a straight line from the begin on
		curve,
		math.Log(math.Max(1, e.Points)),
		math.Log1p(math.Min(20, e.Jumps)),
	}
}

var weights = [...]float64{-1.24, 1.81, 0.353, -0.498, -3.26, 0.218, -5.48, -0.659, -2, 0.616, -1.58, -7.22, -2.71, -5.84, -3.04, -0.682, -0.237, -1.75, 0.71, -2.4, -2.57, 0.42, 0.474, -1.33, 0.593, -0.312, -0.708, -0.216}

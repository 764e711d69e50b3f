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

// late returns the part of weigh that comes from the time without growth before the window.
func (e *evidence) late() (sum float64) {
	list := e.terms()
	for i := idleTerm; i < idleTerm+idleTerms; i++ {
		sum += weights[i] * list[i]
	}
	return sum
}

// The terms of evidence.Idle.
const (
	idleTerm  = 4
	idleTerms = 4
)

// terms returns the terms of the logistic model.
func (e *evidence) terms() [36]float64 {
	concave := math.Max(0, 0.5-e.Late)
	z := math.Max(0, e.Z)
	below := math.Min(2, e.Below)
	steep := math.Min(3, e.Steep)
	certain := math.Min(1, z/15)
	tail := math.Max(-8, math.Min(2, e.Tail))
	random := math.Log(math.Min(30, math.Max(0.003, e.Random)))
	var bend, curve, again float64 // of several boots: a cache fills at the same uptime, each start-up bends
	if e.Boots >= 2 {
		bend = math.Max(0, math.Abs(e.Late-0.5)-0.06) * math.Log(math.Min(8, e.Boots))
		curve = math.Max(0, math.Min(6, math.Abs(e.Curve))-1.2)
		again = math.Min(0.3, e.Idle)
	}
	return [...]float64{1,
		math.Log1p(z),
		math.Min(z, 4),
		math.Log(math.Min(1, e.Bend) + 0.02),
		e.Idle,
		math.Max(0, e.Idle-0.1),
		again,
		e.Idle * certain,
		concave,
		math.Min(0.15, concave),
		math.Max(0, math.Min(6, e.Curve)),
		math.Max(0, e.Late-0.5),
		steep,
		steep * certain,
		math.Min(0.15, concave) * certain,
		math.Max(0, math.Min(0.06, concave-0.05)),
		math.Max(0, 1-math.Max(0, e.Last)),
		math.Max(0, e.Last-1),
		math.Log(math.Min(5, e.Fall) + 0.05),
		below,
		math.Min(0.2, below),
		math.Max(0, below-0.7),
		steep * math.Min(0.15, concave),
		math.Log(math.Max(1, e.Boots)),
		bend,
		math.Max(0, 1-e.Bend/0.03) * math.Max(0, 10*e.Share-9), // a straight line from the begin on
		curve,
		math.Log(math.Max(1, e.Points)),
		math.Log1p(math.Min(20, e.Jumps)),
		random,
		math.Max(0, random-math.Log(0.1)),
		math.Max(0, random-math.Log(0.7)),
		math.Max(0, random-math.Log(2)),
		tail,
		math.Max(0, tail+1),
		math.Max(0, tail+3),
	}
}

var weights = [...]float64{-5.09, 1.4, 0.47, -0.758, -0.156, -2.56, -4.93, -4.85, -0.547, -8.41, -0.66, -2.24, 0.121, -2, -9.84, -3.95, -1.54, -0.683, -0.356, -0.659, -0.148, -3.54, -0.339, 0.465, -1.24, 0.808, -0.145, -0.491, -0.206, -0.146, 1.61, -2.68, 1.38, 0.655, -0.893, 0.266}

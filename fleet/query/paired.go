package query

import (
	"math"
	"slices"
)

// paired are the tests of the devices that ran both builds, by the least p-value that each can have: whether a sum of
// changes is random if each of them has a random sign.
type paired []float64

// add adds the test of a path, by the bytes of the devices before and after. It returns its two-sided p-value. A factor that
// the median device has counts up to a tenth as a change of the load.
func (t *paired) add(pairs [][2]float64) float64 {
	var factors, changes []float64
	for _, v := range pairs {
		if v[0] > 0 && v[1] > 0 {
			factors = append(factors, v[1]/v[0])
		}
	}
	load := 1.0
	if len(factors) > 0 {
		load = max(0.9, min(1.1, quantile(factors, 0.5)))
	}
	for _, v := range pairs {
		if c := v[1] - load*v[0]; c != 0 {
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return 1
	}
	*t = append(*t, 2*math.Exp2(-float64(len(changes))))
	return min(1, 2*randomSigns(changes))
}

// any returns a limit of the probability that any of the tests has a p-value of at most p.
func (t paired) any(p float64) (sum float64) {
	if p >= 1 {
		return 1
	}
	for _, least := range t {
		if least <= p*(1+1e-9) {
			sum += p
		}
	}
	return sum
}

// largest is the number of devices with the largest changes that count alike: what fewer devices do is no evidence,
// however large it is.
const largest = 10

// randomSigns returns Chernoff's bound of the probability that numbers with random signs have at least the sum of
// these, or at most, if that is negative: the least value of the product of cosh(tx)/exp(tx) for t > 0.
func randomSigns(list []float64) float64 {
	sizes := make([]float64, len(list))
	for i, x := range list {
		sizes[i] = math.Abs(x)
	}
	slices.Sort(sizes)
	limit := sizes[max(0, len(sizes)-largest)]
	var sum, squares float64
	for i, x := range list {
		x = max(-1, min(1, x/limit))
		sizes[i], sum, squares = math.Abs(x), sum+x, squares+x*x
	}
	if sum = math.Abs(sum); sum <= 2*math.Sqrt(squares) {
		return 1
	}
	t := sum / squares
	for range 20 { // Newton's method, from below
		slope, curvature := -sum, 0.0
		for _, x := range sizes {
			h := math.Tanh(t * x)
			slope, curvature = slope+x*h, curvature+x*x*(1-h*h)
		}
		if -slope < 1e-6*sum {
			break
		}
		t = min(t-slope/curvature, 40)
	}
	log := -t * sum
	for _, x := range sizes {
		log += t*x + math.Log1p(math.Exp(-2*t*x)) - math.Ln2
	}
	return min(1, math.Exp(log))
}

package worldtest

import "math"

func (d *draw) uniform(low, high float64) float64 { return low + (high-low)*d.Float64() }

func (d *draw) logUniform(low, high float64) float64 {
	return low * math.Exp(d.Float64()*math.Log(high/low))
}

// poisson returns a Poisson number: exact up to a mean of 50, then its normal approximation.
func (d *draw) poisson(mean float64) float64 {
	if mean > 50 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*d.NormFloat64()))
	}
	n, left := 0.0, mean
	for left -= d.ExpFloat64(); left > 0; left -= d.ExpFloat64() {
		n++
	}
	return n
}

// binomial returns how many of n records are kept.
func (d *draw) binomial(n int, kept float64) float64 {
	switch {
	case kept == 1:
		return float64(n)
	case n > 200:
		return math.Round(float64(n)*kept + math.Sqrt(float64(n)*kept*(1-kept))*d.NormFloat64())
	}
	got := 0.0
	for range n {
		if d.Float64() < kept {
			got++
		}
	}
	return got
}

// add adds a function of the hours since the boot to a part.
func (d *draw) add(part [][]float64, f func(t float64) float64) {
	for b := range part {
		for i, t := range d.boots[b].Hours {
			part[b][i] += f(t)
		}
	}
}

// hold adds memory that is held at t hours after each boot, or on the log's clock (wall).
func (d *draw) hold(f func(t float64) float64) { d.add(d.held, f) }

func (d *draw) holdWall(f func(wall float64) float64) {
	for b := range d.held {
		for i, t := range d.boots[b].Hours {
			d.held[b][i] += f(d.boots[b].Start + t)
		}
	}
}

// fill adds memory that is held by something that fills, and may still do so at the end.
func (d *draw) fill(f func(t float64) float64) {
	d.hold(f)
	d.add(d.fills, f)
}

// fillsHeld says of all that is held so far that it fills.
func (d *draw) fillsHeld() {
	for b := range d.held {
		copy(d.fills[b], d.held[b])
	}
}

// walk adds memory that a process in steps holds: next gets the hours since the last report,
// and is started anew by each boot with a negative number.
func (d *draw) walk(part [][]float64, next func(hours float64) float64) {
	for b := range part {
		before := math.NaN()
		for i, t := range d.boots[b].Hours {
			gone := t - before
			if i == 0 {
				gone = -1
			}
			part[b][i] += next(gone)
			before = t
		}
	}
}

// leak loses memory at a rate, in bytes per hour, from the begin of each boot on.
func (d *draw) leak(rate float64) {
	d.add(d.lost, func(t float64) float64 { return rate * t })
	d.Leak, d.Rate = true, d.Rate+rate
}

// steady is the leak of most worlds: it loses d.scale bytes in the last boot.
func (d *draw) steady() { d.leak(d.scale / d.last) }

// leakWall loses what f says to be lost until an hour of the log's clock: it is zero again
// after a boot.
func (d *draw) leakWall(f func(wall float64) float64) {
	for b := range d.lost {
		for i, t := range d.boots[b].Hours {
			d.lost[b][i] += f(d.boots[b].Start+t) - f(d.boots[b].Start)
		}
	}
}

// events loses size bytes at each of many moments, a mean number of hours apart: regular
// within jitter (0 to 1), or in random order (2).
func (d *draw) events(size, apart, jitter float64) {
	next := 0.0
	total := 0.0
	gap := func() float64 {
		if jitter == 2 {
			return apart * d.ExpFloat64()
		}
		return apart * d.uniform(1-jitter, 1+jitter)
	}
	d.walk(d.lost, func(hours float64) float64 {
		if hours < 0 {
			total, next = 0, gap()*d.Float64()
			return 0
		}
		for next -= hours; next <= 0; next += gap() {
			total += size
		}
		return total
	})
	d.Leak, d.Rate = true, d.Rate+size/apart
}

const startups = 5

// startup adds what a boot takes until it runs: exponentially, at one step, at several, with a
// peak that falls back, or between the first report and the second.
func (d *draw) startup(kind int, size, hours float64) {
	at := hours * d.uniform(0.2, 1)
	f := func(t float64) float64 { return size * (1 - math.Exp(-t/at)) }
	switch kind {
	case 1:
		f = func(t float64) float64 { return size * past(t, at) }
	case 2:
		f = func(t float64) float64 {
			return size * (0.5*past(t, at*0.3) + 0.3*past(t, at*0.6) + 0.2*past(t, at))
		}
	case 3:
		f = func(t float64) float64 { return size * (past(t, at*0.1) - 0.7*past(t, at)) }
	case 4:
		second := d.boots[0].Hours[1] / 2
		f = func(t float64) float64 { return size * past(t, second) }
	}
	d.hold(f)
}

// past is 1 from an hour on, and 0 before.
func past(t, hour float64) float64 {
	if t >= hour {
		return 1
	}
	return 0
}

const noiseKinds = 6

// noises adds noise with about the given deviation: normal, a request or more in flight
// (half-normal), rare large ones, numbers of connections, correlated, or none.
func (d *draw) noises(kind int, size float64) {
	x, rho := 0.0, d.uniform(0.3, 0.9)
	d.walk(d.noise, func(hours float64) float64 {
		z := d.NormFloat64()
		switch kind {
		case 0:
			return size * z
		case 1:
			return size * math.Abs(z)
		case 2:
			return size*0.3*math.Abs(z) + 10*size*past(0.02, d.Float64())
		case 3:
			return size * d.poisson(1)
		case 4:
			x = rho*x + math.Sqrt(1-rho*rho)*z
			return size * x
		}
		return 0
	})
}

// ar1 holds a stationary first-order process with a correlation time in hours.
func (d *draw) ar1(size, hours float64) {
	x := 0.0
	d.walk(d.held, func(gone float64) float64 {
		if gone < 0 {
			x = d.NormFloat64()
		} else {
			rho := math.Exp(-gone / hours)
			x = rho*x + math.Sqrt(1-rho*rho)*d.NormFloat64()
		}
		return size * (x + 4)
	})
}

// entries holds size bytes for each of the entries that arrive at random, a mean number of
// hours apart, and expire after a life; never more than most at once (0: no bound).
func (d *draw) entries(size, apart, life float64, most int) {
	var ends []float64
	now, next := 0.0, 0.0
	d.walk(d.held, func(gone float64) float64 {
		if gone < 0 {
			ends, now, next = ends[:0], 0, apart*d.ExpFloat64()
			return 0
		}
		now += gone
		for ; next <= now; next += apart * d.ExpFloat64() {
			ends = append(ends, next+life)
			if most > 0 && len(ends) > most {
				ends = ends[1:]
			}
		}
		for len(ends) > 0 && ends[0] <= now {
			ends = ends[1:]
		}
		return size * float64(len(ends))
	})
}

// teeth holds garbage that grows from 0 to size in a number of hours, more or less, and is
// collected. grow, if it is not nil, is the share of the size at which collection n occurs.
func (d *draw) teeth(size, hours float64, grow func(n int) float64) {
	held, top, n := 0.0, size, 0
	next := func() float64 {
		n++
		if grow == nil {
			return size * d.uniform(0.85, 1.15)
		}
		return size * d.uniform(0.85, 1.15) * grow(n)
	}
	d.walk(d.held, func(gone float64) float64 {
		if gone < 0 {
			n, top = 0, next()
			held = top * d.Float64()
			return held
		}
		for held += size * gone / hours; held >= top; {
			held -= top
			top = next()
		}
		return held
	})
}

// day is the share of a usual day's load at an hour of the log's clock: 0 to 1.
func day(wall, period float64) float64 { return 0.5 - 0.5*math.Cos(2*math.Pi*wall/period) }

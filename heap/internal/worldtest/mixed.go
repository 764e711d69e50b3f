package worldtest

import "math"

// mixed are worlds of several processes at once, and those in which a log is hardly longer than
// the rhythm in it.
var mixed = []World{
	{Name: "soup", Doc: "two to four processes without a leak at once, as in any real device", make: soup},
	{Name: "leak-soup", Doc: "the same, and a leak", make: func(d *draw) { both(d, soup) }},
	{Name: "daily-short", Doc: "one day to two and a half of a daily load", boots: 1, clock: days(1.1, 2.5), make: func(d *draw) { cycle(d, 24, 1) }},
	{Name: "leak-daily-short", Doc: "the same, and a leak", boots: 1, clock: days(1.5, 3), make: func(d *draw) { cycle(d, 24, 0.5); d.steady() }},
	{Name: "leak-purge", Doc: "a nightly purge frees most of what was lost by day, and a rest remains", days: 6, boots: 1, make: func(d *draw) {
		d.purges(d.scale*24/d.last*d.uniform(1.5, 10), 24)
		d.steady()
	}},
	{Name: "walk-unit", Doc: "a random walk between two limits: the number of clients that are connected", make: func(d *draw) {
		limit := d.scale * d.logUniform(0.3, 3)
		x, speed := 0.0, limit/math.Sqrt(d.last)*d.logUniform(0.2, 2)
		d.walk(d.held, func(gone float64) float64 {
			if gone < 0 {
				x = limit * d.Float64()
				return x
			}
			x = math.Abs(x + speed*math.Sqrt(gone)*d.NormFloat64())
			x = limit - math.Abs(limit-math.Mod(x, 2*limit))
			return x
		})
		d.Open = true
	}},
	{Name: "backlog", Doc: "messages wait in memory while the network is away, and are sent when it is back", make: backlog},
	{Name: "leak-backlog", Doc: "the same, and a leak", make: func(d *draw) { both(d, backlog) }},
	{Name: "sessions", Doc: "sessions of a day's users expire after 24 hours: the first day fills", days: 1.4, boots: 1, make: func(d *draw) {
		d.entries(d.scale/60, 24.0/60, 24, 0)
	}},
	{Name: "leak-exhausts", Doc: "each boot ends when the heap is full", clock: equal, make: func(d *draw) { d.steady() }},
	{Name: "leak-minimum", Doc: "the lowest value since the boot, and a leak", heap: true, make: func(d *draw) { both(d, minimum) }},
	{Name: "reports-on-events", Doc: "reports are made by what takes memory: each sees its own request", clock: irregular, make: func(d *draw) {
		d.walk(d.held, func(gone float64) float64 { return d.scale * d.logUniform(0.05, 2) })
	}},
}

// minimum holds the most that noise ever took.
func minimum(d *draw) {
	d.quiet = true
	most, usual := 0.0, d.scale*d.logUniform(0.05, 1)
	d.walk(d.held, func(hours float64) float64 {
		if hours < 0 {
			most = 0
		}
		most = math.Max(most, usual*math.Abs(d.NormFloat64()))
		return most
	})
}

// soup adds two to four of the processes that do not leak and have no time of their own.
func soup(d *draw) {
	parts := []func(d *draw){
		levels, step, requests, walk, dns, pool, backlog,
		func(d *draw) { cache(d, d.uniform(0.1, 0.6)) },
		func(d *draw) { slow(d, d.logUniform(0.05, 0.2)) },
		func(d *draw) { d.teeth(d.scale*d.logUniform(0.1, 2), d.last/d.uniform(5, 60), nil) },
	}
	for range 2 + d.IntN(3) {
		parts[d.IntN(len(parts))](d)
	}
}

// backlog holds what waits: it grows while the network is away, and is gone soon after.
func backlog(d *draw) {
	x, away := 0.0, false
	apart, speed := d.last/d.uniform(4, 15), d.scale*d.logUniform(1, 10)/d.last
	d.walk(d.held, func(gone float64) float64 {
		switch {
		case gone < 0:
			x, away = 0, false
		case away:
			x += speed * gone
			away = d.Float64() > 3*gone/apart
		default:
			x *= math.Exp(-20 * gone / apart)
			away = d.Float64() < gone/apart
		}
		return x
	})
	d.Open = d.Open || away
}

// purges holds what grows for a number of hours, and is freed.
func (d *draw) purges(size, hours float64) {
	phase := d.Float64()
	d.holdWall(func(wall float64) float64 {
		_, of := math.Modf(wall/hours + phase)
		return size * of
	})
}

// days makes a log of one boot that lasts some days.
func days(low, high float64) func(d *draw) {
	return func(d *draw) {
		n := len(d.boots[0].Hours)
		d.split(n, 1, d.uniform(low, high)*24/float64(n))
	}
}

// equal makes up to six boots of the same length.
func equal(d *draw) {
	n, interval := 0, d.boots[0].Hours[1]-d.boots[0].Hours[0]
	for _, b := range d.boots {
		n += len(b.Hours)
	}
	boots := min(2+d.IntN(5), n/6)
	d.boots = nil
	for b := range boots {
		of := n/boots + count(b < n%boots)
		boot := Boot{Start: float64(b) * interval * float64(n/boots+2), Hours: make([]float64, of)}
		for i := range boot.Hours {
			boot.Hours[i] = 3.0/3600 + interval*float64(i)
		}
		d.boots = append(d.boots, boot)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Load returns a log of call paths of which three of four hold memory for each customer, while
// customers are added in one of several ways, or connect again one by one after each boot. If leak is not 0, the first path leaks, too: in the
// last boot it loses leak times what it holds at first.
func Load(seed uint64, dumps, paths int, leak float64) Log {
	w := World{Name: "load"}
	d := newDraw(w, seed, dumps)
	log := Log{World: w.Name, Seed: seed, Boots: d.boots, Kept: 1}
	shape, from, anew := d.IntN(4), d.uniform(0, 0.4), d.Float64() < 0.5
	load := func(at float64) float64 { // 1 and more
		x := at / d.total
		if anew {
			x = at / d.last
		}
		switch shape {
		case 0:
			return 1 + 2*x
		case 1:
			return 1 + 3*math.Max(0, x-from)
		case 2:
			return 1 + math.Floor(8*x)/4
		}
		return 1 + 1.5*x + 0.5*day(at, 24)
	}
	for k := range paths {
		p := &draw{Rand: d.Rand, boots: d.boots, last: d.last, total: d.total}
		p.reset()
		s := Series{World: w.Name, Block: []float64{16, 24, 64, 100, 256}[d.IntN(5)], Values: p.blank()}
		blocks, flat := d.logUniform(10, 500), k > 0 && d.Float64() < 0.25
		p.scale = s.Block * blocks
		if k == 0 && leak > 0 {
			p.leak(leak * p.scale / p.last)
		}
		if !flat {
			grow := func(at float64) float64 { return p.scale * (load(at) - 1) }
			if anew {
				p.hold(grow)
			} else {
				p.holdWall(grow)
			}
			p.Open = k > 0 || leak == 0
		}
		for b, values := range s.Values {
			for i := range values {
				mean := blocks + (p.held[b][i]+p.lost[b][i])/s.Block
				values[i] = s.Block * math.Max(0, math.Round(mean+0.2*math.Sqrt(blocks)*d.NormFloat64()))
			}
		}
		s.Truth, s.parts = p.Truth, p.parts
		log.Series = append(log.Series, s)
	}
	return log
}

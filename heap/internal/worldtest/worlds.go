// Package worldtest makes logs of heaps whose truth is decided before the first value is written:
// which series loses memory for good, how fast at the end, since when, and what no log of that
// length could tell. Tests hold judgements of growth to it. It knows nothing of any judgement.
//
// A series is a sum of parts: memory that is lost, memory that is held (by a start-up, a cache,
// a request, a day's load), and noise. [World.Make] writes the free memory of one heap,
// [World.Paths] the bytes held by several call paths. Everything follows from the seed.
package worldtest

import (
	"math"
	"math/rand/v2"
)

// Truth is what is true of a series, by construction.
type Truth struct {
	Leak   bool    // memory is being lost for good at the end of the log
	Rate   float64 // bytes per hour lost then, over whole periods of the process; per report in a log without times
	Since  float64 // hours from the log's begin to the begin of the last leak
	Ended  bool    // there was a leak, and it no longer loses anything
	Until  float64 // if Ended: hours from the log's begin
	Former float64 // if Ended: bytes per hour while it leaked

	// Open is set where memory that is held still grows at the end of the log, so that no leak
	// can be told from what will stop by itself: "cannot tell" is right, and so is a leak that
	// is not called sure. Blind is set where, in addition, the values are those of a straight
	// leak: no answer but "none" with a bound below the growth is wrong.
	Open, Blind bool

	Left float64 // free bytes at the end of the log, without noise; 0 for a call path
	Low  float64 // the same at the worst moment of the last quarter
}

// Hours returns the hours from the end of the log until the heap is exhausted, at the worst
// moment of the heap's rhythm and at its usual level. Both are infinite without a leak.
func (t Truth) Hours() (low, high float64) {
	if !t.Leak {
		return math.Inf(1), math.Inf(1)
	}
	return math.Max(0, t.Low) / t.Rate, math.Max(0, t.Left) / t.Rate
}

// Boot is one run of a device. Hours has the time of each report since Start, as the device
// gives it; it is nil in a log without times. Start is in hours since the log's begin.
type Boot struct {
	Start float64
	Hours []float64
}

// Series is one measured value: Values[b][i] is that of report i of boot b, in bytes.
type Series struct {
	World  string
	Falls  bool    // free memory, which a leak makes smaller; otherwise memory held
	Block  float64 // bytes of each block of a call path; 0 for a heap
	Values [][]float64
	Truth  Truth

	parts parts
}

// Log is a log: the boots, and the series that share their reports.
type Log struct {
	World   string
	Seed    uint64
	Boots   []Boot
	Series  []Series
	Kept    float64 // share of the records that were not lost: 1 but for lossy call paths
	Untimed bool    // the log has no times: Rate is per report
}

// World is one kind of process.
type World struct {
	Name   string
	Doc    string  // what happens, with the public report or the reason
	heap   bool    // for heaps only
	days   float64 // the least that a log lasts
	boots  int     // 0: any number; 1: one
	clock  func(d *draw)
	make   func(d *draw)
	damage func(d *draw, log *Log)
}

// HeapOnly reports whether the world is one of free memory: of its reports (their times, boots,
// damage to their lines), or of what only a heap says of itself.
func (w World) HeapOnly() bool { return w.heap || w.clock != nil || w.damage != nil }

// parts are the sums of which the values of a series consist, by boot and report.
type parts struct{ lost, held, noise, fills [][]float64 }

// draw is a log in the making.
type draw struct {
	*rand.Rand
	boots []Boot  // true times
	last  float64 // hours of the last boot
	total float64 // hours from the log's begin to its last report
	scale float64 // bytes: what a leak loses in the last boot
	quiet bool    // no noise but what the world adds
	ready bool    // no start-up but what the world adds
	step  float64 // values are multiples of it
	parts
	Truth
}

// newDraw starts the log of a world. Name and seed together are the seed.
func newDraw(w World, seed uint64, reports int) *draw {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, hash(w.Name))), step: 1}
	d.schedule(w, reports)
	return d
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// Make returns a log of one heap's free memory with about the given number of reports, 12 at
// least.
func (w World) Make(seed uint64, reports int) Log {
	d := newDraw(w, seed, reports)
	d.scale = d.logUniform(1000, 100_000)
	d.process(w)
	free := d.most() * d.uniform(1.1, 3)
	log := Log{World: w.Name, Seed: seed, Boots: d.boots, Kept: 1}
	s := Series{World: w.Name, Falls: true, Values: d.blank()}
	for b, values := range s.Values {
		for i := range values {
			v := free - d.lost[b][i] - d.held[b][i] - d.noise[b][i]
			values[i] = math.Max(0, math.Floor(v/d.step)*d.step)
		}
	}
	d.settle(free)
	s.Truth, s.parts = d.Truth, d.parts
	log.Series = []Series{s}
	if w.damage != nil {
		w.damage(d, &log)
	}
	return log
}

// Paths returns a log with dumps of call paths: the first of this world, the others of worlds
// without a leak.
func (w World) Paths(seed uint64, dumps, others int) Log {
	d := newDraw(w, seed, dumps)
	log := Log{World: w.Name, Seed: seed, Boots: d.boots, Kept: 1}
	if d.Float64() < 0.15 {
		log.Kept = d.uniform(0.7, 0.98)
	}
	quiet := Quiet()
	for i := range 1 + others {
		of := w
		if i > 0 {
			of = quiet[d.IntN(len(quiet))]
		}
		log.Series = append(log.Series, d.path(of, log.Kept))
	}
	return log
}

// path returns one call path of a log, on the log's times.
func (d *draw) path(w World, kept float64) Series {
	p := &draw{Rand: d.Rand, boots: d.boots, last: d.last, total: d.total}
	p.reset()
	s := Series{World: w.Name, Block: []float64{16, 24, 31, 64, 100, 256, 1024}[d.IntN(7)], Values: p.blank()}
	p.scale = s.Block * d.logUniform(6, 400)
	p.process(w)
	base := math.Floor(d.logUniform(1, 60)) - 1
	for b, values := range s.Values {
		for i := range values {
			blocks := base + math.Floor((p.lost[b][i]+p.held[b][i]+math.Abs(p.noise[b][i]))/s.Block+0.5)
			values[i] = s.Block * d.binomial(int(math.Max(0, blocks)), kept)
		}
	}
	p.settle(0)
	s.Truth, s.parts = p.Truth, p.parts
	return s
}

// process adds the parts of a world, with a start-up and noise of some kind.
func (d *draw) process(w World) {
	w.make(d)
	if !d.ready && d.Float64() < 0.6 {
		d.startup(d.IntN(startups), d.scale*d.logUniform(0.3, 20), math.Min(3, d.last/20))
	}
	if !d.quiet {
		d.noises(d.IntN(noiseKinds), d.scale*d.logUniform(0.003, 0.3))
	}
}

// most returns the most memory that is lost and held at any time.
func (d *draw) most() float64 {
	most := d.scale
	for b := range d.held {
		for i := range d.held[b] {
			most = math.Max(most, d.held[b][i]+d.lost[b][i])
		}
	}
	return most
}

// settle decides what follows from the parts: what is left of free bytes, and whether something
// that fills still did so at the end.
func (d *draw) settle(free float64) {
	b := len(d.boots) - 1
	n := len(d.held[b])
	if free > 0 {
		d.Left = free - d.lost[b][n-1] - d.held[b][n-1]
		d.Low = d.Left
		for i := n * 3 / 4; i < n; i++ {
			d.Low = math.Min(d.Low, free-d.lost[b][n-1]-d.held[b][i])
		}
	}
	if f := d.fills[b]; f[n-1]-f[n*3/4] > 0.05*(f[n-1]-f[0]) {
		d.Open = true
	}
}

package leak

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The logs of this file are simulated, so that it is known what leaks: of each, 30 to 300 call paths.

// setting holds the parameters of a kind of logs.
type setting struct {
	dumps int // of all boots
	boots int
	lossy bool    // each log loses 1 to 5 % of its lines
	lost  float64 // if it is not 0: it loses this part

	world  string // of worldLeak, or ""
	rhythm bool   // the load of all paths that do not leak follows the day
}

// simulated is a log: the value of each call path in each dump, and the path that leaks.
type simulated struct {
	boot  []int      // by dump, from 1
	at    []float64  // by dump: hours since the boot
	kept  []float64  // by dump: fraction of the blocks that the log has
	seen  [][]amount // by path and dump, without lost blocks
	all   []amount   // by dump: all live blocks
	leak  int        // index of the path that leaks, -1 if none
	kind  string     // of the leak
	rate  float64    // of the leak at the end of the log, bytes per hour
	net   float64    // of a leak that is drained: the rate over a boot, net of the drains
	since float64    // hours from the beginning of the log to that of the leak
	until float64    // hours to its end, 0 if it does not end
}

// amount is the live memory of a call path.
type amount struct{ count, bytes float64 }

// source is a call path: its number of blocks over the time of a boot, and their size.
type source struct {
	level  float64 // typical number of blocks
	size   float64 // bytes per block
	buffer bool    // one block of varying size
	shape  func(rng *rand.Rand, u []float64) []float64
}

// dumpTimes spreads the dumps over the boots, at intervals that differ by a tenth.
func (w *simulated) dumpTimes(rng *rand.Rand, s setting, hours float64) {
	for boot := range s.boots {
		n := s.dumps*(boot+1)/s.boots - s.dumps*boot/s.boots
		step := hours / float64(s.boots) / float64(n)
		for i := range n {
			w.boot = append(w.boot, boot+1)
			w.at = append(w.at, step*(float64(i)+1+uniform(rng, -0.1, 0.1)))
		}
	}
}

// boots yields the first and one past the last dump of each boot.
func (w *simulated) boots(yield func(from, to int) bool) {
	for from, to := 0, 0; from < len(w.boot); from = to {
		for to = from; to < len(w.boot) && w.boot[to] == w.boot[from]; to++ {
		}
		if !yield(from, to) {
			return
		}
	}
}

// fill computes the values in the log.
func (w *simulated) fill(rng *rand.Rand, list []source, hours, loss float64) {
	w.all = make([]amount, len(w.boot))
	got := make([]float64, len(w.boot))
	boots := float64(w.boot[len(w.boot)-1])
	for i := range list {
		seen := make([]amount, 0, len(w.boot))
		for from, to := range w.boots {
			u := make([]float64, to-from) // time as a part of the boot
			for j := range u {
				u[j] = w.at[from+j] / (hours / boots)
			}
			for j, v := range list[i].shape(rng, u) {
				a := list[i].amount(v)
				w.all[from+j].count += a.count
				w.all[from+j].bytes += a.bytes
				a = lose(rng, a, loss)
				got[from+j] += a.count
				seen = append(seen, a)
			}
		}
		w.seen = append(w.seen, seen)
	}
	for i := range got {
		w.kept = append(w.kept, got[i]/math.Max(1, w.all[i].count))
	}
}

// amount converts the value of a shape, which is a multiple of the level.
func (s *source) amount(v float64) amount {
	if s.buffer {
		return amount{1, math.Round(math.Max(1, v*s.level*s.size))}
	}
	n := math.Round(math.Max(0, v*s.level))
	return amount{n, n * s.size}
}

// lose removes each block with a probability.
func lose(rng *rand.Rand, a amount, p float64) amount {
	if p == 0 || a.count == 0 {
		return a
	}
	n := 0.0
	for range int(a.count) {
		if rng.Float64() >= p {
			n++
		}
	}
	return amount{n, a.bytes * n / a.count}
}

// follow makes the number of blocks follow the time of day: half as many at night.
func (s *source) follow(hours float64) {
	shape := s.shape
	s.shape = func(rng *rand.Rand, u []float64) []float64 {
		v := shape(rng, u)
		for i := range v {
			v[i] *= 0.75 - 0.25*math.Cos(2*math.Pi*u[i]*hours/24)
		}
		return v
	}
}

func uniform(rng *rand.Rand, from, to float64) float64 { return from + (to-from)*rng.Float64() }

// poisson returns a number with a Poisson distribution, from a normal one if it is large.
func poisson(rng *rand.Rand, mean float64) float64 {
	if mean > 50 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64()))
	}
	n, p, limit := 0.0, rng.Float64(), math.Exp(-mean)
	for p > limit {
		p *= rng.Float64()
		n++
	}
	return n
}

// newSource returns a call path that does not leak.
func newSource(rng *rand.Rand) source {
	s := source{level: math.Exp(uniform(rng, 0, math.Log(200))), size: 8 * math.Round(math.Exp(uniform(rng, math.Log(2), math.Log(512))))}
	switch {
	case rng.Float64() < 0.29:
		s.shape = steadily(func(*rand.Rand, float64) float64 { return 1 })
	case rng.Float64() < 0.14:
		s.shape = warmUp(rng)
	default:
		caches[rng.IntN(len(caches))](rng, &s)
	}
	return s
}

// steadily makes a shape of a function of time.
func steadily(f func(rng *rand.Rand, u float64) float64) func(*rand.Rand, []float64) []float64 {
	return func(rng *rand.Rand, u []float64) []float64 {
		v := make([]float64, len(u))
		for i := range u {
			v[i] = f(rng, u[i])
		}
		return v
	}
}

// warmUp returns one of two shapes of a program that starts: exponential, or logarithmic and
// never quite done.
func warmUp(rng *rand.Rand) func(*rand.Rand, []float64) []float64 {
	tau := uniform(rng, 0.03, 0.3)
	if rng.IntN(2) == 0 {
		return steadily(func(rng *rand.Rand, u float64) float64 { return (1 - math.Exp(-u/tau)) * (1 + 0.02*rng.NormFloat64()) })
	}
	return steadily(func(_ *rand.Rand, u float64) float64 { return math.Log(1+u/tau*3) / math.Log(1+3/tau) })
}

// caches are nine kinds of memory that comes and goes; warmUp is the tenth.
var caches = []func(rng *rand.Rand, s *source){
	func(_ *rand.Rand, s *source) { // independent noise
		level := s.level
		s.shape = steadily(func(rng *rand.Rand, _ float64) float64 { return poisson(rng, level) / level })
	},
	func(rng *rand.Rand, s *source) { // autocorrelated noise
		keep, width := uniform(rng, 0.5, 0.95), uniform(rng, 0.1, 0.4)
		s.shape = func(rng *rand.Rand, u []float64) []float64 {
			v, x := make([]float64, len(u)), rng.NormFloat64()
			for i := range v {
				x = keep*x + math.Sqrt(1-keep*keep)*rng.NormFloat64()
				v[i] = 1 + width*x
			}
			return v
		}
	},
	func(rng *rand.Rand, s *source) { // a random walk between walls
		width := uniform(rng, 0.03, 0.2)
		s.shape = func(rng *rand.Rand, u []float64) []float64 {
			v, x := make([]float64, len(u)), 1.0
			for i := range v {
				x = math.Min(2, math.Max(0, x+width*rng.NormFloat64()))
				v[i] = x
			}
			return v
		}
	},
	func(rng *rand.Rand, s *source) { // a cycle, such as a day, perhaps longer than the log
		period, phase, width := uniform(rng, 0.15, 1.5), uniform(rng, 0, 2*math.Pi), uniform(rng, 0.2, 0.9)
		s.shape = steadily(func(rng *rand.Rand, u float64) float64 {
			return 1 + width*math.Sin(phase+2*math.Pi*u/period) + 0.05*rng.NormFloat64()
		})
	},
	func(rng *rand.Rand, s *source) { // filled and flushed
		period, phase := uniform(rng, 0.1, 0.8), rng.Float64()
		s.shape = steadily(func(_ *rand.Rand, u float64) float64 { _, f := math.Modf(u/period + phase); return 2 * f })
	},
	func(rng *rand.Rand, s *source) { // a cache that fills from some time on, up to its limit
		from, lasts, noise := math.Max(0, uniform(rng, -0.5, 0.8)), uniform(rng, 0.1, 0.7), uniform(rng, 0, 0.05)
		s.shape = steadily(func(rng *rand.Rand, u float64) float64 {
			return math.Min(1, math.Max(0, (u-from)/lasts)) * (1 - noise*rng.Float64())
		})
	},
	func(rng *rand.Rand, s *source) { // a step, or two
		first, second := rng.Float64(), uniform(rng, 0, 2)
		s.shape = steadily(func(_ *rand.Rand, u float64) float64 {
			v := 0.5
			for _, at := range []float64{first, second} {
				if u > at {
					v += 0.5
				}
			}
			return v
		})
	},
	func(rng *rand.Rand, s *source) { // bursts
		often, high := uniform(rng, 0.05, 0.3), uniform(rng, 2, 8)
		s.shape = steadily(func(rng *rand.Rand, _ float64) float64 {
			if rng.Float64() < often {
				return 1 + high*rng.Float64()
			}
			return 1
		})
	},
	func(rng *rand.Rand, s *source) { // a buffer of varying size
		s.buffer = true
		keep := uniform(rng, 0, 0.95)
		s.shape = func(rng *rand.Rand, u []float64) []float64 {
			v, x := make([]float64, len(u)), 0.0
			for i := range v {
				x = keep*x + math.Sqrt(1-keep*keep)*rng.NormFloat64()
				v[i] = math.Exp(0.4 * x)
			}
			return v
		}
	},
}

// leakKinds are the kinds of leaks.
var leakKinds = []string{"steady", "busy path", "growing buffer", "1 % of the heap", "drained", "in bursts"}

// newLeak makes the leak: a path that gains a part of the heap during the log.
func (w *simulated) newLeak(rng *rand.Rand, heap, hours float64) source {
	w.kind = leakKinds[rng.IntN(len(leakKinds))]
	part := math.Exp(uniform(rng, math.Log(0.01), math.Log(0.4)))
	if w.kind == "1 % of the heap" {
		part = 0.01
	}
	gain := part * heap
	boots := float64(w.boot[len(w.boot)-1])
	w.rate = gain / hours
	s := source{level: 1, size: 8 * math.Round(math.Exp(uniform(rng, math.Log(2), math.Log(128))))}
	blocks := gain / boots / s.size // in a boot
	busy := 0.0
	switch w.kind {
	case "growing buffer":
		s.buffer, s.size = true, 1
		gain /= boots
		s.shape = steadily(func(_ *rand.Rand, u float64) float64 { return 64 + 8*math.Floor(gain*u/8) })
		return s
	case "busy path":
		busy = blocks * uniform(rng, 0.1, 0.5)
	}
	drain, drains := uniform(rng, 0.3, 0.7), rng.IntN(2)+1
	if w.kind == "drained" {
		level, part := 0.0, 1/float64(drains+1)
		for range drains {
			level = (level + part) * (1 - drain)
		}
		w.net = w.rate * (level + part)
	}
	s.shape = leakShape(w.kind, blocks, busy, drain, drains)
	return s
}

// leakShape returns the number of blocks of a leak.
func leakShape(kind string, blocks, busy, drain float64, drains int) func(*rand.Rand, []float64) []float64 {
	return func(rng *rand.Rand, u []float64) []float64 {
		v, total, before := make([]float64, len(u)), 0.0, 0.0
		var burst [4]float64
		for i := range burst {
			burst[i] = rng.Float64()
		}
		for i := range u {
			step := poisson(rng, blocks*(u[i]-before))
			if kind == "in bursts" {
				step = 0
				for _, at := range burst {
					if before <= at && at < u[i] {
						step += poisson(rng, blocks/float64(len(burst)))
					}
				}
			}
			total += step
			for d := 1; d <= drains && kind == "drained"; d++ {
				if at := float64(d) / float64(drains+1); before <= at && at < u[i] {
					total *= 1 - drain
				}
			}
			v[i], before = total, u[i]
			if busy > 0 {
				v[i] += poisson(rng, busy)
			}
		}
		return v
	}
}

// worldLeak makes a leak of one of the worlds: a path that gains a part of the heap.
func (w *simulated) worldLeak(rng *rand.Rand, world string, heap, hours float64) source {
	gain := heap * math.Exp(uniform(rng, math.Log(0.02), math.Log(0.4)))
	boots := float64(w.boot[len(w.boot)-1])
	s := source{level: 1, size: 8 * math.Round(math.Exp(uniform(rng, math.Log(2), math.Log(128))))}
	w.kind = world
	at := uniform(rng, 0.1, 0.7) // of the log
	if world == "begins with a boot" {
		at = math.Round(uniform(rng, 0.5, boots-0.5)) / boots
	}
	var leaked func(x float64) float64 // share of the gain, by share of the log
	switch world {
	case "faster":
		leaked, w.rate = func(x float64) float64 { return x * x }, 2*gain/hours
	case "ends":
		leaked, w.until = func(x float64) float64 { return math.Min(1, x/at) }, at*hours
	case "mended":
		end := 1 - 1/boots
		leaked, w.until = func(x float64) float64 { return math.Min(1, x/end) }, end*hours
	default:
		leaked = func(x float64) float64 { return math.Max(0, x-at) / (1 - at) }
		w.rate, w.since = gain/(1-at)/hours, at*hours
	}
	boot := 0.0
	s.shape = func(rng *rand.Rand, u []float64) []float64 {
		v := make([]float64, len(u))
		total, before := 0.0, leaked(boot/boots)
		for i := range u {
			now := leaked((boot + u[i]) / boots)
			total += poisson(rng, gain/s.size*(now-before))
			v[i], before = total, now
		}
		boot++
		return v
	}
	return s
}

// right reports whether the rate of the leak passes a test: of one that is drained, that since the last drain or
// that over a boot, since a log does not tell whether the drains go on.
func (w *simulated) right(test func(rate float64) bool) bool {
	return test(w.rate) || w.net > 0 && test(w.net)
}

// moment returns the hours from the beginning of the log to a dump.
func (w *simulated) moment(dump int) float64 {
	hours := w.at[dump]
	for i := range dump {
		if w.boot[i] != w.boot[i+1] {
			hours += w.at[i]
		}
	}
	return hours
}

// A pathWorld is a kind of logs of call paths.
type pathWorld struct {
	name string
	setting
	startUp bool // 70 % of the paths start up
}

// pathWorlds returns all kinds. Their order is part of the seeds.
func pathWorlds() (list []pathWorld) {
	kinds := []pathWorld{
		{name: "8 dumps", setting: setting{dumps: 8, boots: 1}},
		{name: "20 dumps", setting: setting{dumps: 20, boots: 1}},
		{name: "20 dumps, lossy", setting: setting{dumps: 20, boots: 1, lossy: true}},
		{name: "20 dumps, 3 boots", setting: setting{dumps: 20, boots: 3}},
		{name: "4 dumps", setting: setting{dumps: 4, boots: 1}},
		{name: "100 dumps", setting: setting{dumps: 100, boots: 1}},
		{name: "100 dumps, lossy", setting: setting{dumps: 100, boots: 1, lossy: true}},
		{name: "100 dumps, 3 boots", setting: setting{dumps: 100, boots: 3}},
		{name: "begins mid-life", setting: setting{dumps: 100, boots: 1, world: "begins"}},
		{name: "begins mid-life, lossy", setting: setting{dumps: 100, boots: 1, world: "begins", lossy: true}},
		{name: "begins in one of 3 boots", setting: setting{dumps: 100, boots: 3, world: "begins"}},
		{name: "begins with boot 2 or 3", setting: setting{dumps: 100, boots: 3, world: "begins with a boot"}},
		{name: "rate grows with time", setting: setting{dumps: 100, boots: 1, world: "faster"}},
		{name: "ends", setting: setting{dumps: 100, boots: 1, world: "ends"}},
		{name: "12 short boots", setting: setting{dumps: 120, boots: 12}},
		{name: "a daily cycle in all paths", setting: setting{dumps: 100, boots: 1, rhythm: true}},
	}
	for _, up := range []bool{false, true} {
		for _, k := range kinds {
			k.startUp = up
			list = append(list, k)
		}
	}
	return append(list,
		pathWorld{"3 boots of 60", setting{dumps: 180, boots: 3}, true},
		pathWorld{"30 boots of 4", setting{dumps: 120, boots: 30}, true},
		pathWorld{"12 boots of 10, lossy", setting{dumps: 120, boots: 12, lossy: true}, true},
		pathWorld{"begins in one of 12 boots", setting{dumps: 120, boots: 12, world: "begins with a boot"}, true},
		pathWorld{"600 dumps", setting{dumps: 600, boots: 1}, true},
		pathWorld{"mended in the last of 4 boots", setting{dumps: 100, boots: 4, world: "mended"}, true},
	)
}

// addStartUp adds a start-up to a shape with a probability of 70 %.
func addStartUp(rng *rand.Rand, s *source) {
	if rng.Float64() >= 0.7 {
		return
	}
	kind, size, tau := rng.IntN(4), uniform(rng, 0.2, 3), uniform(rng, 0.01, 0.1)
	shape := s.shape
	most := 0.0
	s.shape = func(rng *rand.Rand, u []float64) []float64 {
		v := shape(rng, u)
		most = math.Max(most, slices.Max(v)-slices.Min(v))
		amount := size * most
		if most == 0 {
			amount = size
		}
		for i := range v {
			switch x := u[i] - u[0]; kind {
			case 0: // the first dump is from before the start-up
				if i > 0 {
					v[i] += amount
				}
			case 1:
				v[i] += amount * (1 - math.Exp(-u[i]/tau))
			case 2: // a step
				if x >= tau {
					v[i] += amount
				}
			case 3: // a peak that falls back
				v[i] += amount * math.Exp(-square(x/tau-0.5)*4)
			}
		}
		return v
	}
}

// simulateWorld makes a log, with a leak or without.
func simulateWorld(rng *rand.Rand, s pathWorld, leaking bool) *simulated {
	w := &simulated{leak: -1}
	hours := math.Exp(uniform(rng, math.Log(1), math.Log(100)))
	w.dumpTimes(rng, s.setting, hours)
	var list []source
	for range int(math.Exp(uniform(rng, math.Log(30), math.Log(300)))) {
		list = append(list, newSource(rng))
	}
	heap := 0.0
	for i := range list {
		if s.rhythm {
			list[i].follow(hours)
		}
		heap += list[i].level * list[i].size
	}
	if leaking {
		w.leak = rng.IntN(len(list))
		if s.world != "" {
			list[w.leak] = w.worldLeak(rng, s.world, heap, hours)
		} else {
			list[w.leak] = w.newLeak(rng, heap, hours)
		}
	}
	if s.startUp {
		for i := range list {
			addStartUp(rng, &list[i])
		}
	}
	loss := 0.0
	if s.lossy {
		loss = uniform(rng, 0.01, 0.05)
	}
	w.fill(rng, list, hours, math.Max(loss, s.lost))
	return w
}

// series returns the values of a path.
func (w *simulated) series(path int) Series {
	s := Series{Quantum: 16, Per: "hour"}
	changes, most, bytes, count := 0.0, 0.0, 0.0, 0.0
	for i, a := range w.seen[path] {
		bytes, count = bytes+a.bytes, count+a.count
		if most += 0.2; a.count <= 2 {
			most += 3 * (1 - w.kept[i])
		}
		if i > 0 && w.boot[i] == w.boot[i-1] {
			changes += math.Abs(a.count/w.kept[i] - w.seen[path][i-1].count/w.kept[i-1])
		}
	}
	byBytes := changes <= most
	if size := bytes / math.Max(1, count); !byBytes {
		s.Quantum = size
	}
	for from, to := range w.boots {
		b := Boot{}
		for i := from; i < to; i++ {
			a := w.seen[path][i]
			switch {
			case !byBytes:
				a.bytes = a.count * s.Quantum
				b.Kept = append(b.Kept, w.kept[i])
			case a.count == 0 && w.kept[i] < 1:
				continue
			}
			b.At, b.Value = append(b.At, w.at[i]), append(b.Value, a.bytes)
		}
		s.Boots = append(s.Boots, b)
	}
	return s
}

// starts returns the hours before each boot.
func (w *simulated) starts() (list []float64) {
	sum := 0.0
	for _, to := range w.boots {
		list = append(list, sum)
		sum += w.at[to-1]
	}
	return list
}

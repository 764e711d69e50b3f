package leak

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// heapLog is a simulated log of reports on one heap.
type heapLog struct {
	boots []Boot // memory in use
	heap  float64
	leak  bool
	rate  float64 // present, per hour
	since float64
	until float64 // end of a leak that ended
	free  float64
}

// heapKinds are kinds of logs, harmless those of which none leaks. Their order is part of the seeds.
var heapKinds = []string{"none", "steady", "late", "ended", "accel", "none-cache", "boots", "steady-cycle", "none-cycle", "noisy",
	"step", "two levels", "sawtooth", "small steps", "crash loop"}
var harmless = []string{"late cache", "logarithmic", "square root", "walk between walls", "steps twice", "daily", "weekly", "bursts", "high-water pool", "fragmentation ratchet", "full cache", "flushed"}

// more kinds, whose seeds come after those of harmless: those that leak, and those that do not.
var moreLeaks = []string{"drained", "leak in bursts", "damaged leak", "late leak, 3 boots", "weeks of leak", "leak under load", "quantised leak", "leak of half a day"}
var moreHarmless = []string{"late cache, 3 boots", "exponential cache", "cache in steps", "half a daily cycle", "weeks", "damaged", "load", "business hours"}

// heapWorld makes a log of n reports.
func heapWorld(rng *rand.Rand, kind string, n int, startUp bool) *heapLog {
	h := &heapLog{}
	days := []float64{0.5, 1, 3, 5, 7}[rng.IntN(5)]
	switch {
	case kind == "half a daily cycle", kind == "leak of half a day":
		days = uniform(rng, 0.3, 0.8)
	case strings.Contains(kind, "weeks"):
		days = uniform(rng, 10, 30)
	case strings.Contains(kind, "cycle") || kind == "daily":
		days = []float64{4, 5, 7}[rng.IntN(3)]
	}
	hours := days * 24
	h.heap = []float64{40000, 80000, 160000, 290000}[rng.IntN(4)]
	boots := 1
	switch kind {
	case "late leak, 3 boots", "late cache, 3 boots":
		boots = 3
	case "boots":
		boots = 2 + rng.IntN(2)
	case "crash loop":
		boots = max(2, n/(6+rng.IntN(8)))
	}
	per := n / boots
	length := hours / float64(boots) // of a boot
	total := uniform(rng, 0.15, 0.45) * h.heap
	rate := total / length
	noise := h.heap * []float64{0.001, 0.005, 0.01}[rng.IntN(3)]
	if kind == "noisy" {
		noise = h.heap * 0.03
	}
	if kind == "small steps" || kind == "quantised leak" {
		noise = 0
	}
	amp := 0.0
	if strings.Contains(kind, "cycle") {
		amp = h.heap * 0.05
	}
	at := uniform(rng, 0.2, 0.7)
	period, second := uniform(rng, 0.03, 0.12)*length, rng.Float64()
	tau, part := uniform(rng, 0.01, 0.1)*length, uniform(rng, 0.2, 3)
	lasts, pool, level, x := uniform(rng, 0.2, 0.7), 0.0, 0.0, 0.3
	up := rng.IntN(4)
	fall := uniform(rng, 0.02, 0.1) // of the heap: what a quantised leak loses at once
	lateBoot := rng.IntN(3)
	burst := make([]float64, 20)
	for i := range burst {
		burst[i] = rng.Float64()
	}
	for boot := range boots {
		b := Boot{}
		for k := range per {
			t := length * (float64(k) + 0.05) / float64(per)
			u := h.heap * 0.15
			if startUp && kind != "full cache" {
				switch up {
				case 0:
					if k > 0 {
						u += part * total / 3
					}
				case 1:
					u += part * total / 3 * (1 - math.Exp(-t/tau))
				case 2:
					if t > tau {
						u += part * total / 3
					}
				case 3:
					u += part * total / 3 * math.Exp(-square(t/tau-1.5))
				}
			}
			y := t / length
			switch kind {
			case "steady", "boots", "steady-cycle", "noisy", "crash loop":
				u += rate * t
			case "small steps":
				u += 8 * math.Floor(rate*t/8)
			case "step":
				u += rate * t
				if y > second {
					u += total
				}
			case "two levels":
				u += rate*t + total*float64(k%2)
			case "sawtooth":
				_, f := math.Modf(t / period)
				u += rate*t + 0.4*total*f
			case "drained":
				u += rate * (t - 0.5*length*math.Floor(2.999*y)/2.999)
			case "leak in bursts":
				for _, at := range burst {
					if y > at {
						u += total / float64(len(burst))
					}
				}
			case "damaged leak", "weeks of leak", "leak of half a day":
				u += rate * t
			case "leak under load":
				u += rate*t + total/3*(1+math.Sin(2*math.Pi*(t/24+second)))
			case "quantised leak":
				u += total * fall * math.Floor(y/fall)
			case "late leak, 3 boots":
				if since := at * length; boot > lateBoot%2 {
					u += rate * t
				} else if boot == lateBoot%2 {
					u += rate * math.Max(0, t-since)
				}
			case "late cache, 3 boots":
				u += total * math.Min(1, math.Max(0, (y-at)/lasts))
			case "exponential cache":
				u += total * (1 - math.Exp(-math.Max(0, y-at)/lasts*2))
			case "cache in steps":
				u += total * math.Floor(math.Min(1, y/at)*8) / 8
			case "half a daily cycle", "weeks":
				u += total / 2 * (1 + math.Sin(2*math.Pi*(t/24+second)))
				if _, week := math.Modf(t/168 + x); kind == "weeks" && week > 5.0/7 {
					u -= total / 3
				}
			case "load":
				u += total * (0.5 + 0.5*math.Sin(2*math.Pi*(y*uniform(rng, 1.19, 1.21)+second)))
			case "business hours":
				if _, hour := math.Modf(t/24 + second); hour > 0.35 && hour < 0.75 {
					u += total
				}
			case "late":
				u += rate / (1 - at) * math.Max(0, t-at*length)
			case "ended":
				u += rate / at * math.Min(t, at*length)
			case "accel":
				u += rate*0.5*t + rate*1.5*math.Max(0, t-0.5*length)
			case "none-cache":
				u += math.Min(1, y/0.3) * total
			case "late cache":
				u += total * math.Min(1, math.Max(0, (y-at)/lasts))
			case "full cache":
				u += total * math.Min(1, y/at)
			case "logarithmic":
				u += total * math.Log(1+y/tau*length*3) / math.Log(1+3*length/tau)
			case "square root":
				u += total * math.Sqrt(y)
			case "walk between walls":
				x = math.Min(1, math.Max(0, x+0.5/math.Sqrt(float64(per))*rng.NormFloat64()))
				u += total * x
			case "steps twice":
				for _, s := range []float64{at, second} {
					if y > s {
						u += total / 2
					}
				}
			case "daily":
				u += total / 2 * (1 + math.Sin(2*math.Pi*(t/24+second)))
			case "weekly":
				u += total / 2 * (1 + math.Sin(2*math.Pi*(t/168+second)))
			case "bursts":
				if rng.Float64() < 0.15 {
					u += total * rng.Float64()
				}
			case "high-water pool":
				pool = math.Max(pool, total*0.3*(1+0.3*rng.NormFloat64()))
				u += pool
			case "fragmentation ratchet":
				level = math.Max(level, 0.4*total*rng.ExpFloat64()/math.Log(float64(per)))
				u += level
			case "flushed":
				_, f := math.Modf(t/(length*lasts) + second)
				u += total * f
			}
			u += amp * math.Sin(2*math.Pi*t/24)
			u += math.Abs(rng.NormFloat64()) * noise
			if kind != "small steps" && rng.Float64() < 0.02 {
				u += 0.05 * h.heap
			}
			if strings.HasPrefix(kind, "damaged") && rng.Float64() < 0.01 { // a digit is lost, or doubled
				u *= []float64{0.1, 0.3, 3, 10}[rng.IntN(4)]
			}
			b.At, b.Value = append(b.At, t), append(b.Value, math.Floor(u))
		}
		h.boots = append(h.boots, b)
	}
	switch kind {
	case "steady", "boots", "steady-cycle", "noisy", "crash loop", "step", "two levels", "sawtooth", "small steps":
		h.leak, h.rate = true, rate
	case "damaged leak", "weeks of leak", "leak of half a day", "leak under load", "quantised leak", "leak in bursts":
		h.leak, h.rate = true, rate
	case "drained":
		h.leak, h.rate = true, rate
	case "late leak, 3 boots":
		h.leak, h.rate, h.since = true, rate, length*(float64(lateBoot%2)+at)
	case "late":
		h.leak, h.rate, h.since = true, rate/(1-at), at*length
	case "accel":
		h.leak, h.rate = true, 2*rate
	case "ended":
		h.until = at * length
	}
	last := h.boots[len(h.boots)-1].Value
	h.heap = math.Max(h.heap, 1.3*slices.Max(last))
	h.free = h.heap - last[len(last)-1]
	return h
}

// starts returns the hours before each boot.
func (h *heapLog) starts() (list []float64) {
	sum := 0.0
	for _, b := range h.boots {
		list = append(list, sum)
		sum += b.At[len(b.At)-1]
	}
	return list
}

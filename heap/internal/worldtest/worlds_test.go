package worldtest

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

var densities = []int{12, 48, 144, 672, 1440, 3000}

// each calls f for some logs of every world.
func each(t *testing.T, seeds int, f func(t *testing.T, w World, log Log, reports int)) {
	for _, w := range All() {
		t.Run(w.Name, func(t *testing.T) {
			for _, n := range densities {
				for seed := range seeds {
					f(t, w, w.Make(uint64(seed), n), n)
					if !w.HeapOnly() && n < 1000 {
						f(t, w, w.Paths(uint64(seed), n, 3), n)
					}
					if t.Failed() {
						t.Fatalf("seed %d, %d reports", seed, n)
					}
				}
			}
		})
	}
}

func TestAll(t *testing.T) {
	names := map[string]bool{}
	for _, w := range All() {
		if names[w.Name] || w.Name == "" || w.Doc == "" || len(w.Name) > 24 {
			t.Errorf("world %q: %q", w.Name, w.Doc)
		}
		names[w.Name] = true
		if Find(w.Name).Doc != w.Doc {
			t.Errorf("%s is not found", w.Name)
		}
	}
	if len(names) < 60 {
		t.Errorf("%d worlds", len(names))
	}
}

func TestLogsAreWellFormed(t *testing.T) {
	each(t, 5, func(t *testing.T, w World, log Log, reports int) {
		total := 0
		for b, boot := range log.Boots {
			total += len(log.Series[0].Values[b])
			if !log.Untimed && w.Name != "clock-jump" && w.Name != "leak-clock-jump" && !slices.IsSorted(boot.Hours) {
				t.Error("times are not in order")
			}
			if b > 0 && !log.Untimed && boot.Start < log.Boots[b-1].Start {
				t.Errorf("boot %d starts at %g, before the one before it", b, boot.Start)
			}
			for _, s := range log.Series {
				if len(s.Values) != len(log.Boots) || !log.Untimed && len(s.Values[b]) != len(boot.Hours) {
					t.Errorf("%d boots, %d of values", len(log.Boots), len(s.Values))
				}
				for _, v := range s.Values[b] {
					if !(v >= 0) || math.IsInf(v, 0) || s.Block > 0 && math.Abs(math.Mod(v/s.Block+0.5, 1)-0.5) > 1e-6 {
						t.Errorf("value %g", v)
					}
				}
			}
		}
		if w.damage == nil && total != reports || total < reports*6/10 {
			t.Errorf("%d reports of %d", total, reports)
		}
	})
}

func TestSeedDecides(t *testing.T) {
	each(t, 1, func(t *testing.T, w World, log Log, reports int) {
		again, other := w.Make(log.Seed, reports), w.Make(log.Seed+1, reports)
		if len(log.Series) == 1 && !reflect.DeepEqual(log, again) {
			t.Error("two logs of one seed differ")
		}
		if reflect.DeepEqual(again.Series[0].Values, other.Series[0].Values) {
			t.Error("two seeds have the same values")
		}
	})
}

// What is lost never comes back within a boot; it is lost at the true rate, on average from the
// true begin to the end, and not at all where nothing leaks.
func TestLossIsTheTruth(t *testing.T) {
	within := map[string]float64{"office-hours": 0.6, "night": 0.6, "bursts": 0.35, "reconnects": 0.9}
	each(t, 5, func(t *testing.T, w World, log Log, _ int) {
		if log.Untimed || w.Name == "leak-clock-jump" {
			return
		}
		for k, s := range log.Series {
			last := len(log.Boots) - 1
			boot, lost := log.Boots[last], s.parts.lost[last]
			for b := range s.parts.lost {
				if !slices.IsSorted(s.parts.lost[b]) {
					t.Error("what was lost comes back")
				}
			}
			n := len(lost) - 1
			from := sortIndex(boot.Hours, s.Truth.Since-boot.Start)
			if w.Name == "slower" || w.Name == "faster" {
				from = n * 2 / 3 // after the bend
			}
			rate := (lost[n] - lost[from]) / (boot.Hours[n] - boot.Hours[from])
			allowed := math.Max(1e-6, within[w.Name])
			if k > 0 {
				allowed = 1e-6
			}
			if s.Truth.Leak && math.Abs(rate/s.Truth.Rate-1) > allowed {
				t.Errorf("path %d loses %g per hour, the truth is %g", k, rate, s.Truth.Rate)
			}
			if !s.Truth.Leak && s.Truth.Rate != 0 || s.Truth.Leak && s.Truth.Rate <= 0 || s.Truth.Leak && s.Truth.Ended {
				t.Errorf("contradictory truth: %+v", s.Truth)
			}
			checkNoLoss(t, s, log)
		}
	})
}

// checkNoLoss checks that nothing is lost outside of a leak, and the former rate within it.
func checkNoLoss(t *testing.T, s Series, log Log) {
	if s.Truth.Leak {
		return
	}
	lost := 0.0
	for b, boot := range log.Boots {
		for i, hour := range boot.Hours {
			if i == 0 {
				continue
			}
			by := s.parts.lost[b][i] - s.parts.lost[b][i-1]
			if by > 1e-9 && (!s.Truth.Ended || boot.Start+boot.Hours[i-1] >= s.Truth.Until) {
				t.Errorf("%g bytes are lost at %g h, until %g", by, boot.Start+hour, s.Truth.Until)
			}
			lost += by
			if rate := by / (hour - boot.Hours[i-1]); by > 1e-9 && boot.Start+hour < s.Truth.Until && math.Abs(rate/s.Truth.Former-1) > 1e-6 {
				t.Errorf("lost %g per hour, not %g", rate, s.Truth.Former)
			}
		}
	}
	if s.Truth.Ended && lost == 0 {
		t.Error("the leak that ended never leaked")
	}
}

// sortIndex returns the index of the first hour from one on, and of the first hour if it is
// before the boot.
func sortIndex(hours []float64, from float64) int {
	i, _ := slices.BinarySearch(hours, from)
	return i
}

// The values are free memory less the parts, and the heap is exhausted when its rate says so.
func TestValuesAreTheirParts(t *testing.T) {
	each(t, 3, func(t *testing.T, w World, log Log, _ int) {
		s := log.Series[0]
		if !s.Falls || w.Name == "damaged" || w.Name == "leak-damaged" {
			return
		}
		last := len(log.Boots) - 1
		n := len(s.Values[last]) - 1
		p := s.parts
		end := s.Truth.Left - p.noise[last][n]
		if math.Abs(math.Max(0, end)-s.Values[last][n]) > 65 {
			t.Errorf("%g free at the end, want %g", s.Values[last][n], end)
		}
		low, high := s.Truth.Hours()
		if s.Truth.Leak == math.IsInf(high, 0) || low > high {
			t.Errorf("exhausted in %g to %g hours", low, high)
		}
		if s.Truth.Leak && high > 0 && math.Abs(high*s.Truth.Rate-s.Truth.Left) > 1e-6*s.Truth.Left {
			t.Errorf("%g hours at %g leave something of %g", high, s.Truth.Rate, s.Truth.Left)
		}
	})
}

// The paths of a load keep their proportion, but for the first if it leaks, and those that are flat.
func TestLoad(t *testing.T) {
	for seed := range 50 {
		for _, leak := range []float64{0, 3} {
			log := Load(uint64(seed), 48, 10, leak)
			for k, s := range log.Series {
				if s.Truth.Leak != (k == 0 && leak > 0) || s.Truth.Blind {
					t.Errorf("seed %d, path %d: %+v", seed, k, s.Truth)
				}
				b := len(log.Boots) - 1
				hours, lost := log.Boots[b].Hours, s.parts.lost[b]
				n := len(hours) - 1
				if rate := (lost[n] - lost[0]) / (hours[n] - hours[0]); math.Abs(rate-s.Truth.Rate) > 1e-6*rate {
					t.Errorf("seed %d, path %d loses %g, the truth is %g", seed, k, rate, s.Truth.Rate)
				}
				for i, held := range s.parts.held[b] {
					of := log.Series[1].parts.held[b]
					if s.Truth.Open && log.Series[1].Truth.Open && of[n] > 0 && math.Abs(held/s.parts.held[b][n]-of[i]/of[n]) > 1e-9 {
						t.Fatalf("seed %d, path %d does not follow the load", seed, k)
					}
				}
			}
		}
	}
}

// A stationary process has the same mean and spread in both halves, over many logs.
func TestStationary(t *testing.T) {
	for _, name := range []string{"walk-short", "walk", "walk-long", "requests", "levels", "teeth", "cache-dns"} {
		diff, spread, n := 0.0, 0.0, 0.0
		for seed := range 400 {
			log := Find(name).Make(uint64(seed), 144)
			held := log.Series[0].parts.held[0]
			if len(held) < 12 {
				continue
			}
			held = held[len(held)*3/10:] // after a start-up and the first lives
			half := len(held) / 2
			a, b := mean(held[:half]), mean(held[half:])
			scale := slices.Max(held) - slices.Min(held) + 1e-9
			diff += (b - a) / scale
			spread += (b - a) * (b - a) / scale / scale
			n++
		}
		if z := diff / math.Sqrt(spread+1e-12); math.Abs(z) > 3.5 {
			t.Errorf("%s: the second half differs by %.3f of the range, z = %.1f in %g logs", name, diff/n, z, n)
		}
	}
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Caches that say to be full are: no more than a twentieth is added in the last quarter. Those
// of which it is not known whether they end are open.
func TestOpen(t *testing.T) {
	always := []string{"cache-root", "half-day", "teeth-one", "customers-still", "cache-still", "walk-long"}
	never := []string{"flat", "start-step", "daily", "weekly", "teeth", "levels", "steady", "ended", "customers"}
	each(t, 5, func(t *testing.T, w World, log Log, _ int) {
		s := log.Series[0]
		if slices.Contains(always, w.Name) && !s.Truth.Open || slices.Contains(never, w.Name) && s.Truth.Open {
			t.Errorf("open: %t", s.Truth.Open)
		}
		f := s.parts.fills[len(log.Boots)-1]
		if n := len(f); n > 0 && !s.Truth.Open && f[n-1]-f[n*3/4] > 0.05*(f[n-1]-f[0]) {
			t.Errorf("fills by %g of %g at the end, and is not open", f[n-1]-f[n*3/4], f[n-1]-f[0])
		}
	})
}

package leak

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Of many short boots, a leak that is small beside the noise of each is evident from all. A step, a cycle and a warm-up at the same
// time of each boot are not a growth of this kind, and neither is noise.
func TestGrowthOfManyBoots(t *testing.T) {
	for _, c := range []struct {
		name  string
		grows bool
		value func(hour float64) float64
	}{
		{"leak", true, func(h float64) float64 { return 60 * h }},
		{"noise", false, func(float64) float64 { return 0 }},
		{"falls", false, func(h float64) float64 { return -60 * h }},
		{"step", false, func(h float64) float64 { return 1000 * math.Floor(math.Min(1, h/3)) }},
		{"cycle", false, func(h float64) float64 { return 300 * math.Sin(2*math.Pi*(h-2)/8) }},
		{"warm-up", false, func(h float64) float64 { return 1000 * (1 - math.Exp(-h/1.5)) }},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := Series{Quantum: 8}
			for range 16 {
				var b Boot
				for k := range 8 {
					at := float64(k) + r.Float64()/5
					b.At, b.Value = append(b.At, at), append(b.Value, 8*math.Round((2000+c.value(at)+90*r.NormFloat64())/8))
				}
				s.Boots = append(s.Boots, b)
			}
			m := JudgeMember(s)
			if j := Judge(s); m.Shape > 0 || m.Weight > j.Weight || m.Weight < min(j.Weight, 0) {
				t.Errorf("%s, seed %d: weight %.1f, shape %.1f", c.name, seed, m.Weight, m.Shape)
			}
			if w := m.Weight - m.Shape; c.grows != (w > 1.9) {
				t.Errorf("%s, seed %d: grows with a weight of %.1f", c.name, seed, w)
			}
			if c.grows && math.Abs(m.Rate-60) > 15 {
				t.Errorf("%s, seed %d: a rate of %.0f", c.name, seed, m.Rate)
			}
		}
	}
}

// A late begin is the shape of a growth, not evidence against it.
func TestShape(t *testing.T) {
	early, late := Boot{}, Boot{}
	for i := range 40 {
		at := float64(i)
		early.At, early.Value = append(early.At, at), append(early.Value, 4000+100*at)
		late.At, late.Value = append(late.At, at), append(late.Value, 4000+100*math.Max(0, at-28))
	}
	e, l := JudgeMember(Series{Boots: []Boot{early}}), JudgeMember(Series{Boots: []Boot{late}})
	if e.Shape != 0 || l.Shape > -2 || l.Weight-l.Shape < 3 {
		t.Errorf("early: weight %.1f, shape %.1f; late: %.1f, %.1f", e.Weight, e.Shape, l.Weight, l.Shape)
	}
}

// A growth since a later boot is evidence if it goes beyond what the boots before held: the rise of a day, which ends as high as on the days
// before, is none, wherever the boots begin in it.
func TestReturned(t *testing.T) {
	for begin := range 24 {
		r := rand.New(rand.NewPCG(uint64(begin), 2))
		var day, leaks Series
		for boot := range 15 {
			var d, l Boot
			for k := range 8 {
				hour := float64(begin + 8*boot + k)
				noise := 200 * r.NormFloat64()
				d.At, d.Value = append(d.At, float64(k)), append(d.Value, 8000+4000*math.Sin(2*math.Pi*hour/24)+noise)
				l.At, l.Value = append(l.At, float64(k)), append(l.Value, 8000+500*math.Max(0, float64(8*(boot-13)+k))+noise)
			}
			day.Boots, leaks.Boots = append(day.Boots, d), append(leaks.Boots, l)
		}
		if m := JudgeMember(day); m.Since.Boot > 0 && m.Weight-m.Shape > 0.5 {
			t.Errorf("the day begins at %d: weight %.1f, shape %.1f, since %v", begin, m.Weight, m.Shape, m.Since)
		}
		if m := JudgeMember(leaks); m.Since.Boot < 12 || m.Weight-m.Shape < 1 {
			t.Errorf("a leak since boot 13: weight %.1f, shape %.1f, since %v", m.Weight, m.Shape, m.Since)
		}
	}
}

// A device without reports has no changes.
func TestMemberWithoutReports(t *testing.T) {
	for _, s := range []Series{{}, {Boots: []Boot{{}}}} {
		if m := JudgeMember(s); m.Net != 0 || m.Level != 0 || m.Swing != 0 || m.Early != 0 || m.Late != 0 || m.Jump != 0 || m.Grown != 0 {
			t.Errorf("%+v", m)
		}
	}
}

package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// population is two builds, and what their devices hold: as paths of two builds that do not differ.
type population struct {
	r      *rand.Rand
	d      Diff
	paths  []*heldPath
	number int64
}

func newPopulation(seed uint64, before, after int64) *population {
	return &population{r: rand.New(rand.NewPCG(seed, 41)), d: Diff{DevicesBefore: before, DevicesAfter: after}}
}

// add adds a call path, with what a device of a build holds.
func (p *population) add(bytes func(side, device int) float64) {
	id := p.number
	p.number++
	for side, n := range []int64{p.d.DevicesBefore, p.d.DevicesAfter} {
		h := &heldPath{side: side, path: id, stack: []Frame{{Address: fmt.Sprint(id)}}}
		for i := range n {
			if v := bytes(side, int(i)); v > 0 {
				h.add(int32(i), v)
			}
		}
		if h.bytes != nil {
			p.paths = append(p.paths, h)
		}
	}

}

// usual adds paths that all devices hold: a third of them constant, a third of sizes between devices, a third of
// few different values.
func (p *population) usual(n int) {
	for i := range n {
		p.add(func(_, _ int) float64 {
			switch x := 1000 * math.Exp(0.3*p.r.NormFloat64()); i % 3 {
			case 0:
				return 64
			case 1:
				return x
			default:
				return 256 * math.Round(x/256)
			}
		})
	}
}

// rare adds paths that a tenth of the devices hold.
func (p *population) rare(n int) {
	for range n {
		p.add(func(_, _ int) float64 {
			if p.r.Float64() >= 0.1 {
				return 0
			}
			return 1000 * math.Exp(0.5*p.r.NormFloat64())
		})
	}
}

// Of builds that do not differ, at most one in a hundred diffs says that a path probably changed, and one in ten
// thousand that it changed. At most a twentieth of the rare paths possibly changed.
func TestEqualBuilds(t *testing.T) {
	const diffs, rare = 1000, 12
	for _, devices := range [][2]int64{{40, 40}, {10, 150}} {
		var probably, changed, possibly int
		for seed := range uint64(diffs) {
			p := newPopulation(seed, devices[0], devices[1])
			p.usual(12)
			p.rare(rare)
			p.d.compare(p.paths)
			switch p.d.Rows[0].Evidence {
			case Changed:
				changed++
			case Perhaps:
				probably++
			}
			for _, r := range p.d.Rows {
				if r.Evidence == Possibly {
					possibly++
				}
			}
		}
		t.Logf("%d devices: changed in %d, probably in %d of %d diffs; %d paths possibly", devices, changed, probably, diffs, possibly)
		// Three standard deviations more than expected.
		if changed > 1 || changed+probably > 10+9 || possibly > rare*diffs/20 {
			t.Errorf("%d devices: changed in %d, probably in %d of %d diffs; %d paths possibly", devices, changed, probably, diffs, possibly)
		}
	}
}

// A path that no device of the build before holds, and some of 40 of the build after, is always reported if it
// is on six devices or more, whatever the number of other paths.
func TestNewPath(t *testing.T) {
	rank := map[string]int{NoEvidence: 0, Possibly: 1, Perhaps: 2, Changed: 3}
	for _, c := range []struct {
		rare, devices int
		least         string
	}{
		{1, 6, Possibly}, {1, 7, Possibly}, {1, 10, Perhaps}, {1, 14, Changed},
		{20, 7, Possibly}, {20, 12, Perhaps}, {20, 16, Changed},
		{50, 7, Possibly}, {50, 13, Perhaps}, {50, 16, Changed},
	} {
		for seed := range uint64(3) {
			p := newPopulation(seed, 40, 40)
			p.add(func(side, device int) float64 {
				if side == 1 && device < c.devices {
					return 500
				}
				return 0
			})
			p.usual(60)
			p.rare(c.rare - 1)
			p.d.compare(p.paths)
			for i, r := range p.d.Rows {
				if r.Chain != "0" {
					continue
				}
				if rank[r.Evidence] < rank[c.least] || r.Kind != "new" || r.Have != int64(c.devices) || r.Had != 0 {
					t.Errorf("new on %d of 40 devices, %d rare paths: row %d is %+v, want %q", c.devices, c.rare, i, r, c.least)
				}
			}
		}
	}
}

// A test whose devices cannot be divided so unevenly does not count: P of 7 devices beside 50 paths of 5 devices
// is P of 7 devices.
func TestImpossible(t *testing.T) {
	x := newTests([2]int64{40, 40})
	x.add([2]int64{0, 7})
	for range 50 {
		x.add([2]int64{2, 3})
	}
	if alone := x.alone([2]int64{0, 7}); x.any(alone) != alone || math.Abs(alone-2*choose(40, 7)/choose(80, 7)) > 1e-12 {
		t.Errorf("p %g, of any path %g", alone, x.any(alone))
	}
	x.add([2]int64{4, 3}) // 0 to 7 is possible
	if got, want := x.any(x.alone([2]int64{0, 7})), 2*x.alone([2]int64{0, 7}); math.Abs(got-want) > 1e-12 {
		t.Errorf("p of any of two paths %g, want %g", got, want)
	}
}

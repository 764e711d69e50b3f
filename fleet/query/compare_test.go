package query

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// population is two builds, and what their devices hold: as paths of two builds that do not differ.
type population struct {
	r      *rand.Rand
	d      Diff
	paths  []*heldPath
	number int64
}

func newPopulation(seed uint64, before, after int64) *population {
	return &population{r: rand.New(rand.NewPCG(seed, 41)), d: Diff{DevicesBefore: before, DevicesAfter: after, both: make([]bool, before+after)}}
}

// add adds a call path, with what a device of a build holds.
func (p *population) add(bytes func(side, device int) float64) {
	id := p.number
	p.number++
	for side, n := range []int64{p.d.DevicesBefore, p.d.DevicesAfter} {
		h := &heldPath{side: side, path: id, stack: []Frame{{Address: fmt.Sprint(id)}}}
		for i := range n {
			if v := bytes(side, int(i)); v > 0 {
				device := int64(side)*p.d.DevicesBefore + i
				h.devices, h.bytes, h.sum = append(h.devices, int32(device%int64(len(p.d.both)))), append(h.bytes, v), h.sum+v
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

// updated adds paths of devices that ran both builds, each of which has a level of its own: constant ones, with
// noise of several sizes around it, caches that are flushed, and those that come and go on a tenth of the devices. All but
// the constant ones grow with the load.
func (p *population) updated(n int, load float64) {
	p.d.both = slices.Repeat([]bool{true}, int(p.d.DevicesBefore))
	for i := range n {
		level := map[int]float64{}
		noise := []float64{0, 0.02, 0.15, 0.5, 0, 0}[i%6]
		p.add(func(side, device int) float64 {
			if level[device] == 0 {
				level[device] = 1000 * math.Exp(0.3*p.r.NormFloat64())
			}
			x := level[device] * math.Exp(noise*p.r.NormFloat64())
			switch i % 6 {
			case 0:
				return x
			case 4:
				x *= p.r.Float64()
			case 5:
				if device%10 != 0 || p.r.Float64() < 0.5 {
					return 0
				}
			}
			return 16 * math.Round(x/16*(1+load*float64(side)))
		})
	}
}

// many returns n with LWSBT_FULL=all, else a quarter of it.
func many(n int) int {
	if !cmdtest.All() {
		n /= 4
	}
	return n
}

// atMost returns the number of events of a probability in n tries that three standard deviations more than expected are.
func atMost(n int, p float64) int {
	return int(float64(n)*p + 3*math.Sqrt(float64(n)*p*(1-p)))
}

// Of builds that do not differ, at most one in a hundred diffs says that a path probably changed, and one in ten
// thousand that it changed. At most a twentieth of the rare paths possibly changed.
func TestEqualBuilds(t *testing.T) {
	const rare = 12
	diffs := many(1000)
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
		if changed > 1 || changed+probably > atMost(diffs, 0.01) || possibly > rare*diffs/20 {
			t.Errorf("%d devices: changed in %d, probably in %d of %d diffs; %d paths possibly", devices, changed, probably, diffs, possibly)
		}
	}
}

// Paths that do not vary at all did not change, also if there is nothing else to test: as with one log for two builds.
func TestConstantPaths(t *testing.T) {
	for _, both := range []bool{false, true} {
		for _, devices := range []int64{1, 2, 10} {
			p := newPopulation(1, devices, devices)
			if both {
				p.d.both = slices.Repeat([]bool{true}, int(devices))
			}
			for i := range 3 {
				p.add(func(_, _ int) float64 { return float64(64 * (i + 1)) })
			}
			p.d.compare(p.paths)
			for _, r := range p.d.Rows {
				if r.Evidence != NoEvidence || r.P != 1 {
					t.Errorf("%d devices, both builds %v: %+v", devices, both, r)
				}
			}
		}
	}
}

// The tests of devices that ran both builds keep to their p-values, also if the load differs a little between the times of both.
func TestEqualUpdated(t *testing.T) {
	diffs := many(300)
	for _, c := range []struct {
		devices int64
		load    float64
	}{{15, 0}, {40, 0.03}, {150, -0.08}, {150, 0.1}, {600, 0.05}} {
		tenth, hundredth := 0, 0
		for seed := range uint64(diffs) {
			p := newPopulation(seed, c.devices, c.devices)
			p.updated(24, c.load)
			list := p.d.match(p.paths)
			var tests paired
			least := 1.0
			for _, m := range list {
				least = min(least, tests.add(m.merge(p.d.both, make([][2]float64, c.devices))))
			}
			if any := tests.any(least); any <= 0.01 {
				hundredth++
			} else if any <= 0.1 {
				tenth++
			}
		}
		t.Logf("%+v: p at most 0.01 in %d, 0.1 in %d of %d diffs", c, hundredth, tenth, diffs)
		if hundredth > atMost(diffs, 0.01) || hundredth+tenth > atMost(diffs, 0.1) {
			t.Errorf("%+v: p at most 0.01 in %d, 0.1 in %d of %d diffs", c, hundredth, tenth, diffs)
		}
	}
}

// updated writes the rows of a fleet of one build as if its devices ran another since their first boot after a time.
type updated struct {
	store.Putter
	at time.Time
}

func (u updated) Put(ctx context.Context, b *store.Batch) error {
	var before, after store.Batch
	half := func(boot int64, build *string) *store.Batch {
		if time.UnixMicro(boot).After(u.at) {
			*build = "after"
			return &after
		}
		return &before
	}
	for _, d := range b.Dumps {
		h := half(d.Boot, &d.Build)
		h.Dumps = append(h.Dumps, d)
	}
	for _, f := range b.Facts {
		h := half(f.Boot, &f.Build)
		h.Facts = append(h.Facts, f)
	}
	for _, p := range b.Paths {
		before.Paths = append(before.Paths, p)
		p.Build = "after"
		after.Paths = append(after.Paths, p)
	}
	for name, h := range map[string]*store.Batch{"before": &before, "after": &after} {
		if h.Name, h.Day = b.Name+name, b.Day; len(h.Dumps) == 0 {
			continue
		}
		if err := u.Putter.Put(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// A leak on a sixth of 100 devices is found if all of them ran both builds.
func TestUpdated(t *testing.T) {
	for seed := range uint64(3) {
		f := defaultFleet()
		f.Devices, f.Builds, f.Days, f.PerDay, f.Paths, f.Seed, f.Every = 100, 1, 14, 2, 36, 7000+seed, 7*24*time.Hour
		f.Leak = planted{Share: 1.0 / 6, Rate: 200, Path: int(7*seed+17) % f.Paths, From: 5, To: 5.1}
		s, err := store.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Store(t.Context(), updated{s, f.Start.AddDate(0, 0, 4)}); err != nil {
			t.Fatal(err)
		}
		x, err := open(t, s).Diff(t.Context(), f.BuildID(0), "after", Scope{})
		if err != nil {
			t.Fatal(err)
		}
		if r := x.Rows[0]; x.DevicesBoth != 100 || r.PathNew != f.PathID(0) || r.Evidence != Changed && r.Evidence != Perhaps {
			t.Errorf("seed %d: %d devices ran both builds; first row %+v", seed, x.DevicesBoth, r)
		}
		if r := x.Rows[1]; r.Evidence != NoEvidence {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
}

// Devices that ran both builds are compared at the same uptime, although they ran one longer: a leak that both builds
// have did not change.
func TestUpdatedUptime(t *testing.T) {
	s, b := byHandStore(t)
	for i := range 40 {
		for boot, build := range []string{"old", "new"} {
			for hour := range int64(16 - i%6*boot) {
				d := store.Dump{Build: build, Device: fmt.Sprint(i), Boot: int64(boot), Dump: hour, Uptime: (hour + 1) * 3600e6, Bytes: 100 * (hour + 1), Count: 1, Complete: true, HeapFree: -1, Upload: fmt.Sprint(i, boot, hour)}
				b.Dumps = append(b.Dumps, d)
				b.Facts = append(b.Facts, store.Fact{Build: build, Device: d.Device, Path: 1, Boot: d.Boot, Dump: hour, Count: 1, Bytes: d.Bytes, Complete: true})
			}
		}
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	x, err := open(t, s).Diff(t.Context(), "old", "new", Scope{})
	if err != nil || x.DevicesBoth != 40 || x.Before != x.After || x.Before < 900 {
		t.Errorf("%+v, %v", x, err)
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

// Updates are compared with the devices that had not got them yet: the most, for the longest time. Fewer than eight of either are not, and
// neither are updates before which there is nothing.
func TestWindow(t *testing.T) {
	times := func(list ...int) (at []float64) { // number, time, number, time
		for i := 0; i < len(list); i += 2 {
			for k := range list[i] {
				at = append(at, float64(list[i+1])+float64(k)/100)
			}
		}
		return at
	}
	for _, c := range []struct {
		at   []float64
		want span
		ok   bool
	}{
		{times(2, 20, 18, 50, 80, 80, 100, 110), span{50, 80, 110}, true},
		{times(60, 99, 60, 200), span{99, 99, 200}, true},
		{times(8, 99, 9, 200), span{99, 99, 200}, true},
		{times(15, 99), span{}, false},
		{times(8, 99, 7, 200), span{}, false},
		{times(8, 0, 8, 200), span{}, false}, // nothing before
		{nil, span{}, false},
	} {
		w, ok := window(c.at, 0)
		if ok != c.ok || ok && (w.From != c.want.From || w.To < c.want.To || w.To > c.want.To+1 || w.End != c.want.End) {
			t.Errorf("%v, %t: want %v of %v", w, ok, c.want, c.at)
		}
	}
}

package query

import (
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestPower measures how often a leak is found, by the number of devices of a build and the
// share that leaks, and logs the table of fleet/docs/fleet-leaks.md. A larger share must not be found
// less often.
func TestPower(t *testing.T) {
	if !cmdtest.All() {
		t.Skip("it takes minutes: LWSBT_FULL is not all")
	}
	t.Log("devices  share  first  leak  leak or probably; others accused; fleets")
	for _, devices := range []int{20, 100, 500} {
		before, fleets := 0, 60
		if devices > 100 {
			fleets = 20
		}
		for _, share := range []float64{0.05, 0.2, 1} {
			first, leak, probably, accused := power(t, devices, share, fleets)
			if 20*accused > fleets+20 {
				t.Errorf("%d devices: %d of %d fleets have an accused path without a leak", devices, accused, fleets)
			}
			t.Logf("%7d  %5.2f  %5d  %4d  %16d; %d; %d", devices, share, first, leak, probably, accused, fleets)
			if first+2 < before {
				t.Errorf("%d devices: first in %d of %d fleets, and in %d if fewer devices leak", devices, first, fleets, before)
			}
			before = first
		}
	}
}

// Seven dumps at the same time of each day see a cache that is flushed somewhat more often than once a day
// rise slowly on most devices. It falls on the others. A logarithmic warm-up that noise hides on most devices is
// nearly straight on the few on which it is seen. Noise may rise on most devices, and fall more on few. None is a leak.
func TestDailyDumps(t *testing.T) {
	for seed, c := range map[uint64]struct {
		devices int
		leaking float64
	}{30_002: {100, 0.2}, 30_005: {100, 0.2}, 30_013: {100, 0.2}, 30_022: {20, 0.2}, 30_054: {100, 0.2}, 30_078: {50, 0.1}, 30_210: {100, 0.05}, 30_441: {100, 1}} {
		f := defaultFleet()
		f.Devices, f.Builds, f.Paths, f.Seed = c.devices, 1, 50, seed
		f.Leak = planted{Build: 0, Share: c.leaking, Rate: 200, Path: int(7*(seed%200)+17) % f.Paths}
		l, err := simulated(t, &f).Leaks(t.Context(), Scope{Builds: []string{f.BuildID(0)}})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range l.Rows {
			planted := r.Stack[0].Address == leaf(&f)
			if found = found || planted && r.Verdict.Sure(); !planted && r.Verdict.Sure() {
				t.Errorf("seed %d: accused: %s", seed, describe(&r))
			}
		}
		if !found {
			t.Errorf("seed %d: the leak is not found", seed)
		}
	}
}

// word leak, and has the word leak or probably, and the number of other paths with these words.
func power(t *testing.T, devices int, share float64, fleets int) (first, leak, probably, accused int) {
	for seed := range fleets { // with seeds that no threshold was chosen by
		f := defaultFleet()
		f.Devices, f.Builds, f.Paths, f.Seed = devices, 1, 50, uint64(67_000+seed)
		f.Leak = planted{Build: 0, Share: share, Rate: 200, Path: (7*seed + 17) % f.Paths}
		l, err := inMemory(t, &f).Leaks(t.Context(), Scope{Builds: []string{f.BuildID(0)}})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range l.Rows {
			planted, said := r.Path == f.PathID(0), r.Verdict >= Probably
			switch {
			case planted && i == 0:
				first++
			case !planted && said:
				accused++
				t.Logf("%d devices, seed %d: %s", devices, f.Seed, describe(&r))
			}
			if planted && said {
				probably++
			}
			if planted && r.Verdict == Leaking {
				leak++
			}
		}
	}
	return first, leak, probably, accused
}

// One device is not enough: in a build without a leak, the rule for one device reports leaks in
// many paths of many devices. The rule for a fleet reports none.
func TestManyDevices(t *testing.T) {
	f := defaultFleet()
	f.Devices, f.Builds, f.Paths, f.Leak = 500, 1, 150, planted{Build: -1}
	d := simulated(t, &f)
	l, err := d.Leaks(t.Context(), Scope{Builds: []string{f.BuildID(0)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Rows {
		if r.Verdict >= Probably {
			t.Errorf("accused: %s", describe(&r))
		}
	}
}

package query

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// worldScore counts what Leaks says of the fleets of a world.
type worldScore struct {
	name, about    string
	fleets, builds int
	sure, leak     int       // planted leaks with the words leak or probably, and with leak
	falseLeak      int       // other paths with the word leak
	falseProbably  int       // other paths with the word probably
	devices        []float64 // counted, divided by those that leak
	deadline       []float64 // divided by the true one
	rate           []float64 // divided by the true one
	moving         int       // builds whose addresses change with each boot
}

func (s *worldScore) add(t *testing.T, w *world, stored bool) {
	f := &w.Fleet
	m := inMemory(t, f)
	leaks := m.Leaks
	if stored {
		d := simulated(t, f)
		defer d.Close()
		leaks = d.Leaks
	}
	s.fleets++
	truth := f.Leaking()
	for b := range f.Builds {
		l, err := leaks(t.Context(), Scope{Builds: []string{f.BuildID(b)}})
		if err != nil {
			t.Fatal(err)
		}
		s.builds++
		if l.Moving {
			s.moving++
		}
		for i := range l.Rows {
			r := &l.Rows[i]
			planted := b == f.Leak.Build && r.Path == f.PathID(b)
			if planted != r.Verdict.Sure() {
				t.Logf("%s, seed %d: planted %t: %s", w.Name, f.Seed, planted, describe(r))
			}
			switch {
			case !r.Verdict.Sure():
			case !planted && r.Verdict == Leaking:
				s.falseLeak++
			case !planted:
				s.falseProbably++
			default:
				s.sure++
				if r.Verdict == Leaking {
					s.leak++
				}
				if begin := f.Start.Add(time.Duration(f.Leak.From*24) * time.Hour); f.Leak.To > 0 && f.Leak.To == f.Leak.From &&
					(r.Since == nil || r.Since.Sub(begin).Abs() > time.Duration(max(12, 24/f.PerDay))*time.Hour) {
					t.Errorf("%s, seed %d: since %v, want %v", w.Name, f.Seed, r.Since, begin)
				}
				s.devices = append(s.devices, float64(r.Grew)/float64(len(truth)))
				if r.Rate != nil {
					s.rate = append(s.rate, *r.Rate/quantile(slices.Collect(maps.Values(truth)), 0.5))
				}
				if l.Exhaustion != nil && l.Exhaustion.Hours != nil {
					s.deadline = append(s.deadline, *l.Exhaustion.Hours/deadline(m.free(l.Build), truth))
				}
			}
		}
	}
}

// deadline returns the median over the leaking devices of the free memory, divided by the true rate.
func deadline(free map[string]int64, truth map[string]float64) float64 {
	var hours []float64
	for device, rate := range truth {
		hours = append(hours, float64(free[device])/rate)
	}
	return quantile(hours, 0.5)
}

func (s *worldScore) row() string {
	per := func(n, of int) float64 { return float64(n) / float64(of) }
	if s.moving > 0 {
		return fmt.Sprintf("| %s | refused | | | | |", s.name)
	}
	return fmt.Sprintf("| %s | %d/%d | %.3f | %.0f%% | %s | %s |", s.name, s.sure, s.fleets, per(s.falseLeak+s.falseProbably, s.builds),
		100*quantile(s.devices, 0.5), away(s.rate), away(s.deadline))
}

// away returns the median distance of ratios from 1, in percent.
func away(ratios []float64) string {
	var list []float64
	for _, v := range ratios {
		list = append(list, math.Abs(v-1))
	}
	if len(list) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*quantile(list, 0.5))
}

// check checks the percentages of a world.
func (s *worldScore) check(t *testing.T) {
	if s.name == "bases" {
		if s.moving != s.builds || s.sure+s.falseLeak+s.falseProbably > 0 {
			t.Errorf("%s: %+v: expected that all builds are refused", s.about, *s)
		}
		return
	}
	found := 0.95
	if s.name == "week" { // seven dumps of a leak do not always decide
		found = 0.8
	}
	if s.moving > 0 || float64(s.sure) < found*float64(s.fleets) {
		t.Errorf("%s: found in %d of %d fleets; %d builds refused", s.about, s.sure, s.fleets, s.moving)
	}
	if float64(s.falseLeak) > 0.05*float64(s.builds) {
		t.Errorf("%s: %d false leaks in %d builds", s.about, s.falseLeak, s.builds)
	}
	if v := quantile(s.devices, 0.5); v < 0.6 || v > 1.2 {
		t.Errorf("%s: %.0f %% of the leaking devices are counted", s.about, 100*v)
	}
	if v := quantile(s.deadline, 0.5); v < 0.8 || v > 1.25 {
		t.Errorf("%s: the time until the heap is full is %.2f of the true one", s.about, v)
	}
}

// In fleets of other structures than that of defaultFleet, the leak is found and nothing else is
// accused. LWSBT_FULL=all has twenty of each, and the table of FIGURES.md.
func TestWorlds(t *testing.T) {
	fleets, seed := 1, uint64(1)
	only := []string{"config", "few", "caches", "week", "bases"}
	if cmdtest.All() {
		fleets, seed, only = 20, 92_000, nil
	}
	var scores []*worldScore
	t.Run("fleets", func(t *testing.T) {
		for i, w := range worlds(seed) {
			scores = append(scores, &worldScore{name: w.Name, about: w.About})
			if only != nil && !slices.Contains(only, w.Name) {
				continue
			}
			t.Run(w.Name, func(t *testing.T) {
				t.Parallel()
				scores[i].add(t, &w, only == nil || w.Name == "bases")
				for n := 1; n < fleets && w.Name != "bases"; n++ {
					next := worlds(seed + uint64(n))[i]
					scores[i].add(t, &next, false) // TestInMemory: with the answers of a store
				}
				t.Log(scores[i].row())
			})
		}
	})
	var table strings.Builder
	for _, s := range scores {
		if s.fleets == 0 {
			continue
		}
		fmt.Fprintf(&table, "\n%s", s.row())
		s.check(t)
	}
	head := "| fleet | found | false words per build | devices counted | rate, error | deadline, error |\n| --- | ---: | ---: | ---: | ---: | ---: |"
	t.Logf("%d fleets\n%s%s", fleets, head, &table)
	if only == nil && fleets == 20 {
		figures.Check(t, "../FIGURES.md", "worlds", head+table.String())
	}
}

// The rows of a fleet in memory have the answers of a store.
func TestInMemory(t *testing.T) {
	f := worlds(5)[0].Fleet
	f.Devices = 40
	d, m := simulated(t, &f), inMemory(t, &f)
	rows := 0
	for b := range f.Builds {
		scope := Scope{Builds: []string{f.BuildID(b)}}
		want, err := d.Leaks(t.Context(), scope)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Leaks(t.Context(), scope)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Rows {
			want.Rows[i].Stack = nil
		}
		want.Paths = 0 // counted by SQL
		if rows += len(want.Rows); !reflect.DeepEqual(got, want) {
			t.Errorf("build %d:\n got %+v\nwant %+v", b, got, want)
		}
	}
	if rows < 1 {
		t.Errorf("%d rows: too few to compare", rows)
	}
}

// A device that sends thousands of call paths of its own does not hide the leak of the others.
func TestOneDeviceOfManyPaths(t *testing.T) {
	f := worlds(3)[0].Fleet
	f.Devices = 40
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	b := &store.Batch{Name: "other", Day: f.Start, Dumps: []store.Dump{{Build: f.BuildID(1), Device: "other", Boot: 1, Uptime: 1, Received: f.Start.UnixMicro(), Count: 1000, Bytes: 1000, Complete: true}}}
	for i := range int64(1000) {
		b.Paths = append(b.Paths, store.Path{Build: f.BuildID(1), Path: i, Addresses: []string{fmt.Sprint(i)}})
		b.Facts = append(b.Facts, store.Fact{Build: f.BuildID(1), Device: "other", Path: i, Boot: 1, Count: 1, Bytes: 1, Complete: true})
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	l, err := open(t, s).Leaks(t.Context(), Scope{Builds: []string{f.BuildID(1)}})
	if err != nil {
		t.Fatal(err)
	}
	if l.Moving || len(l.Rows) == 0 || l.Rows[0].Path != f.PathID(1) || !l.Rows[0].Verdict.Sure() {
		t.Errorf("moving %t, %d rows: expected the leak first", l.Moving, len(l.Rows))
	}
}

package query

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// truth is what testdata/worlds.py says of a fleet.
type truth struct {
	Builds map[string]string
	Leak   []struct {
		Build   string
		Stack   []string
		Devices map[string]float64 // rate
		Hours   *float64           // until the heaps are full, median
	}
}

// written returns a store with the logs that testdata/worlds.py writes.
func written(t *testing.T, world string) (*DB, truth) {
	dir := filepath.Join(t.TempDir(), "logs")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing")
	}
	if out, err := exec.Command(python, "testdata/worlds.py", dir, world, "7").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(dir + ".json")
	var tr truth
	if err != nil || json.Unmarshal(text, &tr) != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir + "/*.log")
	if err != nil {
		t.Fatal(err)
	}
	b := &store.Batch{Name: "logs", Day: time.Now()}
	for i, name := range files {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		u := &ingest.Upload{Device: strings.TrimSuffix(filepath.Base(name), ".log"), Text: log, Received: b.Day.Add(time.Duration(i) * time.Microsecond)}
		if _, err := u.Read(t.Context(), &ingest.State{}, ingest.DefaultLimits, func(d *ingest.Dump) error { d.Append(b); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return open(t, s), tr
}

// What leaks, at which rate, and when the first heap is full: fleets with reboots, several heaps, loads, caches, gaps and
// bursts, as logs. Nothing else is called a leak.
func TestLogs(t *testing.T) {
	for _, c := range []struct {
		world   string
		reboots bool   // before a heap is full
		heap    string // that is full first
		long    bool   // only with LWSBT_FULL=all
	}{
		{world: "nightly"}, {world: "onofffast", reboots: true}, {world: "heaps", heap: "dma"}, {world: "base", long: true}, {world: "weekly", long: true}, {world: "onoff", reboots: true, long: true},
		{world: "cron", long: true}, {world: "staged", long: true}, {world: "drift", long: true}, {world: "bursts", long: true}, {world: "sessions", long: true}, {world: "refill", long: true},
		{world: "mended", long: true}, {world: "two", long: true}, {world: "watchdog"}, {world: "hours", long: true}, {world: "gaps", long: true}, {world: "plateau", long: true},
	} {
		t.Run(c.world, func(t *testing.T) {
			if c.long && !cmdtest.All() {
				t.Skip("it takes minutes: LWSBT_FULL is not all")
			}
			t.Parallel()
			d, want := written(t, c.world)
			for name, build := range want.Builds {
				l, err := d.Leaks(t.Context(), Scope{Builds: []string{build}})
				if err != nil {
					if strings.Contains(err.Error(), ErrNoDump.Error()) {
						continue
					}
					t.Fatal(err)
				}
				found := 0
				for i := range l.Rows {
					r := &l.Rows[i]
					if !r.Verdict.Sure() {
						continue
					}
					var stack []string
					for _, f := range r.Stack {
						stack = append(stack, f.Address)
					}
					planted := false
					for _, w := range want.Leak {
						if w.Build != name || fmt.Sprint(w.Stack) != fmt.Sprint(stack) {
							continue
						}
						planted = true
						rate := 0.0
						for _, r := range w.Devices {
							rate += r / float64(len(w.Devices))
						}
						if r.Rate == nil || math.Abs(*r.Rate-rate) > 0.05*rate || float64(r.Grew) < 0.8*float64(len(w.Devices)) || r.Grew > int64(len(w.Devices)) {
							t.Errorf("%s: %s: want %.0f bytes per hour on %d devices", name, describe(r), rate, len(w.Devices))
						}
						x := l.Exhaustion
						switch {
						case c.reboots:
							if x == nil || x.Devices > 0 || x.Reboot != r.Grew {
								t.Errorf("%s: exhaustion %+v, want none before the next boot", name, x)
							}
						case w.Hours != nil && (x == nil || x.Hours == nil || math.Abs(*x.Hours-*w.Hours) > 0.1**w.Hours+1 || x.Heap != c.heap):
							t.Errorf("%s: exhaustion %+v, want %.0f hours of heap %q", name, x, *w.Hours, c.heap)
						}
					}
					if found++; !planted {
						t.Errorf("%s: accused: %s %v", name, describe(r), stack)
					}
				}
				for _, w := range want.Leak {
					if w.Build == name {
						found--
					}
				}
				if found < 0 {
					t.Errorf("%s: %d leaks are missed", name, -found)
				}
			}
		})
	}
}

// What changed with the time, on devices that stayed on the build before, too, is no change of a build.
func TestControls(t *testing.T) {
	for world, changed := range map[string]int{"weekend": 0, "rollout": 1} {
		t.Run(world, func(t *testing.T) {
			t.Parallel()
			d, want := written(t, world)
			f, err := d.Diff(t.Context(), want.Builds["A"], want.Builds["B"], Scope{})
			if err != nil {
				t.Fatal(err)
			}
			if f.Updated != 60 || f.Controls != 60 {
				t.Errorf("%d devices updated, %d stayed, want 60 of each", f.Updated, f.Controls)
			}
			for _, r := range f.Rows {
				leak := len(want.Leak) > 0 && r.Stack[0].Address == want.Leak[0].Stack[0]
				if leak != (r.Evidence == Changed) || !leak && r.Evidence == Perhaps {
					t.Errorf("leak %t: %+v", leak, r)
				}
				if r.Evidence == Changed {
					changed--
				}
			}
			if changed != 0 {
				t.Errorf("%d changes are missed", changed)
			}
		})
	}
}

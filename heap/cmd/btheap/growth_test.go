package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// growthLogs are logs of which it is known what leaks, by construction: a heap, or with path the call path
// with that innermost frame.
var growthLogs = []struct {
	name, path string
	rate       float64 // bytes per unit
	per        string
	in         float64 // hours until the heap is full, 0 if that is not known
}{
	{"dense-noise", "", 91.7, "hour", 840},
	{"dump-before-startup", "0x401130", 384, "hour", 0},
	{"eight-byte-steps", "", 14400, "hour", 6.8},
	{"block-overhead", "", 1280, "hour", 19.25},
	{"first-report-before-startup", "", 500, "hour", 250},
	{"seven-days", "", 209, "hour", 361},
	{"living-leak", "0x401130", 76.8, "hour", 0},
	{"one-step", "", 300, "hour", 400},
	{"pause-between-dumps", "0x13be", 310, "dump", 0},
	{"sawtooth", "", 300, "hour", 459},
	{"long-after-startup", "", 500, "hour", 160},
	{"three-boots", "", 184, "hour", 96},
	{"two-levels", "", 300, "hour", 400},
}

// A leak with a start-up, a step, teeth, levels or noise is a leak, with its rate and its deadline.
func TestGrowthLogs(t *testing.T) {
	for _, c := range growthLogs {
		file := filepath.Join("testdata/growth", c.name+".log.gz")
		out, errs, code := command("", "leaks", "-q", "--json", file)
		type judged struct {
			Verdict, Per      string
			Probability, Rate float64
			Low, High         *float64
			Stack             []struct{ Function string }
			Since, Until, Why any
		}
		var j struct {
			Leaks, Heaps []judged
			Exhaustion   *struct {
				In  float64
				Per string
			}
		}
		if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
			t.Errorf("%s: exit code %d, %v, %s", c.name, code, err, errs)
			continue
		}
		list := j.Heaps
		if c.path != "" {
			list = j.Leaks
		}
		if len(list) == 0 {
			t.Errorf("%s: nothing is judged", c.name)
			continue
		}
		r := list[0]
		if r.Verdict != "leak" || r.Per != c.per || math.Abs(r.Rate/c.rate-1) > 0.2 || r.Until != nil || c.path != "" && r.Stack[0].Function != c.path {
			t.Errorf("%s: %+v, want a leak of %v bytes per %s", c.name, r, c.rate, c.per)
		}
		if c.in > 0 && (j.Exhaustion == nil || j.Exhaustion.Per != "hour" || math.Abs(j.Exhaustion.In/c.in-1) > 0.2) {
			t.Errorf("%s: %+v, want exhaustion in %v h", c.name, j.Exhaustion, c.in)
		}
		out, errs, code = command("", "leaks", "-q", file)
		if code != 0 || !strings.Contains(out, "leak") || strings.Contains(out, "none above") && c.path == "" {
			t.Errorf("%s: exit code %d, %s%s", c.name, code, errs, out)
		}
		for _, not := range []string{"no leak found", "probabl", "may be", "shrinks", "grows", "ended"} {
			if strings.Contains(out, not) {
				t.Errorf("%s: %q in %s", c.name, not, out)
			}
		}
	}
}

// Of two leaks in a noisy heap, of which one began late, the report does not say that they leak. It says when the heap
// is full if they do: in 89 h.
func TestSecondLeak(t *testing.T) {
	out, errs, code := command("", "leaks", "-q", "testdata/growth/second-leak.log.gz")
	m := regexp.MustCompile(`cannot tell of 2 call paths \(if the first 2 leak, the heap is\s+exhausted in ([\d.]+) days`).FindStringSubmatch(out)
	if code != 0 || m == nil {
		t.Fatalf("exit code %d, %s%s", code, errs, out)
	}
	if days, err := strconv.ParseFloat(m[1], 64); err != nil || math.Abs(days*24/89-1) > 0.25 {
		t.Errorf("%v days, want 3.7", m[1])
	}
}

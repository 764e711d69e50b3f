package main

import (
	"encoding/json"
	"fmt"
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

// Of two leaks in a noisy heap, the larger one began late, and may be a cache. The deadline counts it: 89 h.
func TestSecondLeak(t *testing.T) {
	out, errs, code := command("", "leaks", "-q", "testdata/growth/second-leak.log.gz")
	m := regexp.MustCompile(`^1 leak .*\nfree 125,936 bytes: exhausted in ([\d.]+) days`).FindStringSubmatch(out)
	if code != 0 || m == nil {
		t.Fatalf("exit code %d, %s%s", code, errs, out)
	}
	if days, err := strconv.ParseFloat(m[1], 64); err != nil || math.Abs(days*24/89-1) > 0.2 {
		t.Errorf("%v days, want 3.7", m[1])
	}
}

// reports returns a log of reports of the free memory, minutes apart after each other.
func reports(n int, minutes func(i int) float64, line func(i int) string) string {
	var b strings.Builder
	at := 1.0
	for i := range n {
		fmt.Fprintf(&b, "I (%.0f) mem: %s\n", at*60000, line(i))
		at += minutes(i)
	}
	return b.String()
}

func free(f func(i int) float64) func(i int) string {
	return func(i int) string { return fmt.Sprintf("Free heap: %.0f", math.Max(0, f(i))) }
}

// bootLoop returns boots that end with a few bytes free, but for one.
func bootLoop(n, but int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "rst:0xc (SW_CPU_RESET)\nI (500) mon: free heap: 180000\nI (9000) mon: free heap: %d\n", 60000+i*37%80-40)
		left := 300 + i*7%50
		if i == but {
			left = 50000
		}
		fmt.Fprintf(&b, "I (20000) mon: free heap: %d\n", left)
	}
	return b.String()
}

// The first lines say no more than is known, and no less.
func TestFirstLines(t *testing.T) {
	ten := func(int) float64 { return 10 }
	largest := strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(&largest, "~h#heap t=%d size=200000 free=%d largest=%d\n", i*600e6, 120000-i*7919%300, 100000-400*i)
	}
	for _, c := range []struct {
		name, log string
		has, not  []string
	}{
		{"exhausted, by 200 in 10 minutes", reports(300, ten, free(func(i int) float64 { return 40000 - 200*float64(i) })),
			[]string{"the heap leaks, and is exhausted", "free 0 bytes: exhausted since about line", "+1,199 bytes per hour (1,188 to 1,211)"}, []string{"none above", "exhausted in"}},
		{"8 to 32 bytes are left", reports(300, ten, free(func(i int) float64 { return math.Max(float64(8+8*(i*7%4)), 40000-200*float64(i)) })),
			[]string{"the heap leaks, and is exhausted", "exhausted since about line"}, []string{"none above", "exhausted in"}},
		{"a boot loop", bootLoop(30, 30),
			[]string{"exhausted in each of 30 boots, in the last since about line 120"}, []string{"none above", "exhausted in each of 29"}},
		{"a boot loop, of which one boot ends before", bootLoop(30, 7),
			[]string{"exhausted since about line 120"}, []string{"none above", "in each of"}},
		{"a cache leaves 5,000 bytes", reports(300, ten, free(func(i int) float64 { return math.Max(5000, 40000-200*float64(i)) })),
			[]string{"none above"}, []string{"exhausted"}},
		{"the largest block is lost, not the memory", largest.String(),
			[]string{"fragmentation: at this rate no free block in 8.5 h; none above", "largest free block 20,400 bytes: none left in 8.5 h"}, nil},
		{"memory is freed", reports(60, ten, free(func(i int) float64 { return 40000 + 100*float64(i) })),
			[]string{"none above 0.8 bytes per hour in 60 reports"}, []string{"cannot tell", "points"}},
		{"four reports", reports(4, ten, free(func(i int) float64 { return 40000 + 100*float64(i) })),
			[]string{"cannot tell: too short: 3 intervals"}, []string{"none above"}},
		{"a device that sleeps 8 hours after each fifth report", reports(60, func(i int) float64 {
			if i%5 == 4 {
				return 480
			}
			return 10
		}, free(func(i int) float64 { return 200000 - 500*float64(i) })), []string{"the heap leaks", "exhausted in", "days"}, []string{"reports at", "exhausted in 341 reports"}},
	} {
		out, errs, code := command(c.log, "leaks", "-q", "-")
		flat := strings.Join(strings.Fields(out), " ")
		for _, want := range c.has {
			if code != 0 || !strings.Contains(flat, want) {
				t.Errorf("%s: exit code %d, no %q in\n%s%s", c.name, code, want, out, errs)
			}
		}
		for _, not := range c.not {
			if strings.Contains(flat, not) {
				t.Errorf("%s: %q in\n%s", c.name, not, out)
			}
		}
	}
}

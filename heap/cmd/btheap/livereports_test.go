package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// freeHeap returns a log of n lines, ten minutes apart, each with 100 bytes less that are free, of 41,000.
func freeHeap(n int) string {
	var log strings.Builder
	for i := range n {
		fmt.Fprintf(&log, "I (%d) app: Free heap: %d\n", i*600_000, 41_000-100*i)
	}
	return log.String()
}

// Of a log without dumps, live shows the trend with each report, as soon as it is read. 600 bytes an hour are
// lost: 40,200 bytes last 67 hours.
func TestLiveReports(t *testing.T) {
	out, errs, code := command(freeHeap(9), "live", "--fail-over", "500/h")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 9 || code != 1 || !strings.Contains(errs, "leaks +600 bytes per hour, more than 500/h (--fail-over)") {
		t.Fatalf("%d lines, exit code %d, %q\n%s", len(lines), code, errs, out)
	}
	if want := "report 1, 0 s: 41,000 free; cannot tell: too short: no boot has 3 reports"; lines[0] != want {
		t.Errorf("%q, want %q", lines[0], want)
	}
	want := "report 9, 1.33 h: 40,200 free; leak, N %; +600 bytes per hour (597 to 603); exhausted in 2.79 days (2.78 days to 2.81 days); ALARM: leaks +600 bytes per hour, more than 500/h"
	if lines[8] != want {
		t.Errorf("%q, want %q", lines[8], want)
	}
}

// The last reports on each heap are kept: the heap shrinks by 600 bytes an hour now, and grew before.
func TestLiveKeepsReports(t *testing.T) {
	var log strings.Builder
	for i := range 30 {
		fmt.Fprintf(&log, "~h#heap t=%d name=internal size=65536 free=%d\n", i*600_000_000, 20_000+1000*min(i, 20)-100*max(0, i-20))
		fmt.Fprintf(&log, "~h#heap t=%d name=PSRAM size=4194304 free=4000000\n", i*600_000_000)
	}
	list := states(t, log.String(), 9)
	st := list[len(list)-1]
	if len(list) != 60 || len(st.reports) != 18 || st.count != 60 || len(st.found.Heaps) != 2 {
		t.Fatalf("%d states, %d of %d reports kept, of %d heaps", len(list), len(st.reports), st.count, len(st.found.Heaps))
	}
	if got, want := withoutPercents(list[58].line()), "report 59, 4.83 h: internal: 39,100 of 65,536 free; leak, N %; +600 bytes per hour (597 to 603); exhausted in 2.72 days (2.7 days to 2.73 days); ALARM: heap internal leaks +600 bytes per hour, more than 100/h"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := st.line(), "report 60, 4.83 h: PSRAM: 4,000,000 of 4,194,304 free; none above 6 bytes per hour; ALARM: "; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	shows(t, shown(t, st, "fw.log", 80, 24), "the screen", "btheap live: fw.log\n", "ALARM: heap internal leaks +600 bytes per hour, more than 100/h", "1 of 2 heaps leaks in 18 reports",
		"exhausted in 2.72 days", "heap internal: leak, N %", "39,100 of 65,536", "heap PSRAM: none above 6 bytes per hour")
}

// A report in a dump says nothing before the dump ends. One directly behind its ~h#end belongs to it, too; another one
// between dumps says something at once. A dump is known to be whole when the next one begins.
func TestLiveReportsAndDumps(t *testing.T) {
	log := strings.Replace(device(t, 3, 0), "~h#end 2\n", "~h#heap free=3000\n~h#end 2\n~h#heap free=2500\napp: up\n~h#heap free=2000\n", 1)
	var lines []string
	for _, st := range states(t, log, 240) {
		lines = append(lines, st.line())
	}
	if len(lines) != 4 || !strings.HasPrefix(lines[3], "dump 3, 3 h: ") || lines[2] != "report 3: 2,000 free; cannot tell: too short: 2 intervals; about 8 decide" {
		t.Errorf("%q", lines)
	}
	one := freeHeap(3) + device(t, 1, 0) + strings.Replace(freeHeap(9), "41", "40", 1)
	list := states(t, one, 240)
	if got, want := list[len(list)-1].line(), "; 1 dump, expected three or more whole ones; the heap leaks in 12 reports of the allocator"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// live --json has the heaps, with the first report, too.
func TestLiveJSONOfReports(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/btheap.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	out, errs, code := command(freeHeap(9), "live", "--json")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 9 || code != 0 {
		t.Fatalf("%d lines, exit code %d, %q", len(lines), code, errs)
	}
	for i, line := range lines {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
	}
	if !strings.Contains(lines[8], `"verdict":"leak"`) || !strings.Contains(lines[8], `"per":"hour"`) {
		t.Errorf("the last line: %s", lines[8])
	}
}

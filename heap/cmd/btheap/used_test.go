package main

import (
	"fmt"
	"strings"
	"testing"
)

// usedLogs are logs that say only what is used: they have a rate under the name of the line, and a
// deadline if the size is given.
var usedLogs = map[string]struct {
	log  func(round int) string
	n    int
	args []string
	want string
}{
	"VmRSS": {func(i int) string {
		return fmt.Sprintf("2026-01-02T%02d:00:00Z\nVmPeak:\t   90000 kB\nVmRSS:\t%8d kB\n", i, 8120+100*i)
	}, 10, nil, `memory leaks in 10 reports of what is used over 9 h
VmRSS: leak, N %, +102,400 bytes per hour
  ▁▁▂▃▄▄▅▆▇█
  used 8,314,880 → 9,236,480
`},
	"VmRSS and the size": {func(i int) string { return fmt.Sprintf("VmRSS:\t%8d kB\n", 8120+100*i) }, 10, []string{"--heap", "16M"},
		`memory leaks in 10 reports of what is used
free 7,540,736 bytes (--heap less VmRSS): exhausted in 74 reports at +102,400
    bytes per report
VmRSS: leak, N %, +102,400 bytes per report
  ▁▁▂▃▄▄▅▆▇█
  used 8,314,880 → 9,236,480
`},
	"Node.js": {func(i int) string {
		return fmt.Sprintf("{\n  rss: %d,\n  heapTotal: %d,\n  heapUsed: %d,\n  external: 49879,\n  arrayBuffers: 9386\n}\n", 40960000+4096*(i%3), 1826816+262144*i, 650472+1000*i)
	}, 8, nil, `memory leaks in 16 reports of what is used
heapUsed: leak, N %, +1,000 bytes per report (999 to 1,001)
  ▁▂▃▄▅▆▇█
  used 650,472 → 657,472
rss: none above 0.9 bytes per report
  ▁▄█▁▄█▁▄
  used 40,960,000 → 40,964,096
`},
	"too few": {func(i int) string { return fmt.Sprintf("heap used: %d\n", 12000+100*i) }, 4, nil, `memory leaks in 4 reports of what is used
heap used: leak, N %, +100 bytes per report (98.1 to 102)
  ▁▃▅█
  used 12,000 → 12,300
`},
	"what is free counts": {func(i int) string { return fmt.Sprintf("heap used: %d\nFree heap: %d\n", 12000+100*i, 40000-100*i) }, 8, nil, `the heap leaks in 8 reports of the allocator
free 39,300 bytes: exhausted in 393 reports (391 to 396) at +100 bytes per
    report (99.4 to 101)
heap: leak, N %, +100 bytes per report (99.4 to 101)
  ▁▂▃▄▅▆▇█
  used 12,000 → 12,700, free 40,000 → 39,300 of 52,000
`},
	"RSS beside what is free": {func(i int) string { return fmt.Sprintf("RSS: %d kB\nok\nFree heap: %d\n", 9000, 40000-100*i) }, 8, nil, `1 of 2 heaps leaks in 16 reports of the allocator
free 39,300 bytes: exhausted in 393 reports (391 to 396) at +100 bytes per
    report (99.4 to 101)
heap: leak, N %, +100 bytes per report (99.4 to 101)
  ▁▂▃▄▅▆▇█
  free 40,000 → 39,300
RSS: none above 1.1 bytes per report
  ▁▁▁▁▁▁▁▁
  used 9,216,000
`},
	"named by --heap-line": {func(i int) string { return fmt.Sprintf("step %d: mem after %d KB\n", i, 5000+10*i) }, 8, []string{"--heap-line", `after (?P<used>\d+ KB)`}, `memory leaks in 8 reports of what is used
heap: leak, N %, +10,240 bytes per report (10,239 to 10,241)
  ▁▂▃▄▅▆▇█
  used 5,120,000 → 5,191,680
`},
}

func TestLeaksOfUsed(t *testing.T) {
	for name, c := range usedLogs {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			for i := range c.n {
				log.WriteString(c.log(i))
			}
			args := append([]string{"leaks", "-q"}, c.args...)
			out, errs, code := command(log.String(), args...)
			if code != 0 || errs != "" || out != c.want {
				t.Errorf("exit code %d, %s, got\n%s\nwant\n%s", code, errs, out, c.want)
			}
			heaps, _ := checkJSON(t, append([]string{"leaks"}, append(c.args, logFile(t, "used.log", log.String()))...)...)["heaps"].([]any)
			if len(heaps) != strings.Count(c.want, "  used ")+strings.Count(c.want, "\n  free ") {
				t.Errorf("JSON has %d heaps", len(heaps))
			}
		})
	}
	log := "heap used: 12000\nheap used: 12100\n"
	if _, errs, code := command(log, "map"); code != 2 || !strings.Contains(errs, "neither block addresses nor reports") {
		t.Errorf("map: exit code %d, %s", code, errs)
	}
	steps := ""
	for i := range 8 {
		steps += fmt.Sprintf("Memory usage after iteration: %d.5 MiB\n", 137+i)
	}
	if out, errs, code := command(steps, "leaks"); code != 0 || !strings.Contains(out, "Memory usage after iteration: leak") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	rises := ""
	for i := range 16 {
		rises += fmt.Sprintf("heap used: %d\n", 12000+1000*i)
	}
	for limit, want := range map[string]int{"99/dump": 1, "1001/dump": 0} {
		if _, errs, code := command(rises, "leaks", "-q", "--fail-over", limit); code != want {
			t.Errorf("--fail-over %s: exit code %d, %s", limit, code, errs)
		}
	}
}

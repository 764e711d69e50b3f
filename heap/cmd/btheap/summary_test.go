package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// btheap FILE tells what leaks, until when, the largest call paths, what is free, and damage, in lines
// of 80 columns, without notes on stderr.
func TestSummary(t *testing.T) {
	var two strings.Builder
	for i := range 8 {
		two.WriteString(espHeap(0x800, 290_000, 120_000-48*i, 60_000) + espHeap(0x400, 4_194_304, 4_122_000, 4_121_984) + espTrace(1+3*i))
	}
	for name, c := range map[string]struct {
		log  string
		want []string
		not  []string
	}{
		"two heaps and a trace": {two.String(), []string{"a.log: 1 leak in 8 dumps\n", "free 119,664 bytes in heap internal: exhausted in 2,493 dumps (2,461 to 2,527)\n  at +48 bytes per dump (47.4 to 48.6)\n",
			"largest 60,000 (50 % of free): not fragmented\n", "leak, N %  +48 bytes per dump (46.7 to 49.3)\n  0x40376183 < 0x42080a1b < 0x42081c2d\n", "dump 8: 352 bytes in 22 blocks; the largest call paths:\n",
			"  352  100.0     22  0x40376183 < 0x42080a1b < 0x42081c2d\n", "addresses without names: -e FILE gives the ELF file\n", "damage: none\n", "more: btheap leaks, btheap top, btheap html, btheap map\n"}, nil},
		"one dump": {espTrace(3), []string{"a.log: 1 dump; 3 or more of a boot, some time apart, show what leaks\n", "48 bytes in 3 blocks", "damage: none\n", "more: btheap top"}, []string{"btheap leaks"}},
		"reports only": {heapLogs["FreeRTOS, by the names of the fields"].log(0) + heapLogs["FreeRTOS, by the names of the fields"].log(1), []string{"2 reports of the allocator, too few to tell\n", "  free 30,000 → 29,000", "more: btheap leaks"},
			[]string{"call paths", "btheap top"}},
		"a damaged line": {strings.Replace(two.String(), "0x3fcb0020, Internal) allocated CPU 0", "0x3fcb002W (5600) wifi: no beacon", 1), []string{"a.log: 1 leak in ", "damage: 1 line of the heap traces could not be read"}, []string{"damage: none"}},
	} {
		out, errs, code := command("", logFile(t, "a.log", c.log))
		if code != 0 || errs != "" {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		for _, not := range c.not {
			if strings.Contains(out, not) {
				t.Errorf("%s: %q in\n%s", name, not, out)
			}
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
	if out, _, code := command(two.String(), "-"); code != 0 || !strings.Contains(out, "1 leak in 8 dumps") {
		t.Errorf("standard input: exit code %d, %s", code, out)
	}
	if _, errs, code := command("", fmt.Sprint(t.TempDir(), "/none.log")); code != 2 || !strings.Contains(errs, "neither a command nor a file") {
		t.Errorf("no such file: exit code %d, %s", code, errs)
	}
}

// Each line of a summary and of leaks fits a terminal.
func TestSummaryFits(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "I (%d) m: Free internal: %d, largest block %d\nI (%d) m: Free PSRAM: %d, largest block %d\n",
			i*600_000, 119_664-150*i-i%3*50, 90_000, i*600_000+1, 4_000_000-800*i-i%5*200, 3_000_000)
	}
	two := logFile(t, "two.log", b.String())
	versions := logFile(t, "fw.log", version(t, "fw=1", 2, 0x401110)+version(t, "fw=2", 0, 0x401110)+version(t, "fw=3", 3, 0x401110))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{two}, "heap PSRAM: leak"}, {[]string{"leaks", two}, "heap PSRAM: leak"},
		{[]string{versions}, "firmware 3: leak"}, {[]string{"leaks", versions}, "firmware 3: leak"},
		{[]string{"leaks", logFile(t, "late.log", late(t))}, "+74 bytes per hour"}, {[]string{"leaks", logFile(t, "one.log", espTrace(3))}, "1 dump: "},
	} {
		out, errs, code := command("", c.args...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit code %d, %s, %s", c.args, code, errs, out)
		}
		for line := range strings.Lines(out) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%q: too wide: %s", c.args, line)
			}
		}
	}
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// espHeap returns the lines of heap_caps_print_heap_info of ESP-IDF.
func espHeap(caps, size, free, largest int) string {
	return fmt.Sprintf("Heap summary for capabilities 0x%08X:\n  At 0x3fcb0000 len %d free %d allocated %d min_free %d\n"+
		"    largest_free_block %d alloc_blocks 46 free_blocks 5 total_blocks 51\n  Totals:\n    free %d allocated %d min_free %d largest_free_block %d\n",
		caps, size, free, size-free, free-100, largest, free, size-free, free-100, largest)
}

// espTrace returns the lines of heap_trace_dump: some blocks of 16 bytes.
func espTrace(blocks int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "====== Heap Trace: %d records (500 capacity) ======\n", blocks)
	for i := range blocks {
		fmt.Fprintf(&b, "    16 bytes (@ 0x3fcb%04x, Internal) allocated CPU 0 ccount 0x%08x caller 0x40376183:0x42080a1b:0x42081c2d\n", 32*i, i)
	}
	fmt.Fprintf(&b, "====== Heap Trace Summary ======\nMode: Heap Trace Leaks\n%d bytes 'leaked' in trace (%d allocations)\n", 16*blocks, blocks)
	return b.String()
}

// The deadline of a device with two heaps is that of the heap that leaks, whichever line is last. PSRAM
// behind internal RAM gave "exhausted in 85,875 dumps".
func TestLeaksOfTwoHeaps(t *testing.T) {
	var esp, zephyr strings.Builder
	for i := range 8 {
		esp.WriteString(espHeap(0x800, 290_000, 120_000-48*i, 60_000) + espHeap(0x400, 4_194_304, 4_122_000, 4_121_984) + espTrace(1+3*i))
		fmt.Fprintf(&zephyr, "Heap at 0x20001000 contains 2048 units in 9 buckets\n        7          128            1          120          960\n%d free bytes, 4200 allocated bytes, overhead = 100 bytes (1.1%%)\n"+
			"Heap at 0x20008000 contains 2048 units in 9 buckets\n        7          128            1          120       296000\n300000 free bytes, 13200 allocated bytes, overhead = 100 bytes (1.1%%)\n"+
			"=============== heaptrace dump begin ===============\n", 2000-64*i)
		for k := range 3 + i {
			fmt.Fprintf(&zephyr, "[heaptrace] ptr=0x2000%04x size=64 heap=_system_heap alloc_tid=0x20000100 alloc_thread=main alloc_cpu=0 alloc_ms=1000\n[heaptrace]   backtrace: 0x8001234 0x8002100\n", 64*k)
		}
		fmt.Fprintf(&zephyr, "[heaptrace] outstanding_blocks=%d outstanding_bytes=%d\n=============== heaptrace dump end =================\n", 3+i, 64*(3+i))
	}
	for log, want := range map[string]string{
		esp.String():    "1 leak in 8 dumps\nfree 119,664 bytes in heap internal: exhausted in 2,493 dumps (2,461 to 2,527)\n    at +48 bytes per dump (47.4 to 48.6)\n",
		zephyr.String(): "1 leak in 8 dumps\nfree 1,552 bytes in heap 0x20001000: exhausted in 25 dumps at +64 bytes per dump\n    (63.4 to 64.6)\n",
	} {
		out, errs, code := command(log, "leaks")
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("exit code %d, %s, got\n%s\nwant\n%s", code, errs, out, want)
		}
		heaps, _ := checkJSON(t, "leaks", logFile(t, "two.log", log))["heaps"].([]any)
		if len(heaps) != 2 || heaps[0].(map[string]any)["verdict"] != "leak" || heaps[1].(map[string]any)["verdict"] != "none" {
			t.Errorf("heaps %v", heaps)
		}
	}
}

// heapLogs are logs with nothing but what an allocator reports, the commonest form, as the systems
// print them, and what leaks writes of them.
var heapLogs = map[string]struct {
	log  func(round int) string
	n    int
	args []string
	want string
}{
	"ESP-IDF, internal RAM fragments, PSRAM does not": {func(i int) string {
		return fmt.Sprintf("I (%d) app: round %d\n", 5000+60000*i, i) + espHeap(0x800, 290_000, 120_000-2000*i, 90_000-9000*i) + espHeap(0x400, 4_194_304, 4_122_000, 4_121_984)
	}, 8, nil, `1 of 2 heaps leaks in 16 reports of the allocator over 7 min
free 106,000 bytes in heap internal: exhausted in 53 min at +120,000 bytes per
    hour (119,962 to 120,038)
heap internal: leak, N %, +120,000 bytes per hour (119,962 to 120,038)
  ▁▂▃▄▅▆▇█
  used 170,000 → 184,000, free 120,000 → 106,000 of 290,000, never below 105,900
  largest 90,000 → 27,000 (75 % → 25 % of free): fragmented, and ever more
  the largest free block: leak, N %, none left in 3 min at +540,000 bytes per
    hour (539,962 to 540,038)
heap PSRAM: none above 1.1 bytes per report
  ▁▁▁▁▁▁▁▁
  used 72,304, free 4,122,000 of 4,194,304, never below 4,121,900
  largest 4,121,984 (100 % of free): not fragmented
`},
	"ESP-IDF, a line of another task in the totals": {func(i int) string {
		log := espHeap(0x800, 290_000, 120_000-2000*i, 90_000)
		if i == 1 {
			log = strings.Replace(log, "Totals:\n", "Totals:\nW (65250911) wifi:alloc eb len=76 type=2 fail, heap:2872652\n", 1)
		}
		return log
	}, 4, nil, `the heap leaks in 4 reports of the allocator
free 114,000 bytes in heap internal: exhausted in 57 reports (57 to 58) at
    +2,000 bytes per report (1,998 to 2,002)
heap internal: leak, N %, +2,000 bytes per report (1,998 to 2,002)
  ▁▃▅█
  used 170,000 → 176,000, free 120,000 → 114,000 of 290,000, never below 113,900
  largest 90,000 (75 % → 79 % of free): not fragmented
`},
	"ESP-IDF, once, nearly full": {func(int) string {
		return "Heap summary for capabilities 0x00000800:\n  Totals:\n    free 900 allocated 190000 min_free 800 largest_free_block 300\n" + espHeap(0x400, 4_194_304, 4_122_000, 4_121_984)
	}, 1, nil, `2 reports of the allocator, too few to tell
heap internal: cannot tell: too short: no boot has 3 reports; nearly full
  used 190,000, free 900 of 190,900, never below 800
  largest 300 (33 % of free): fragmented
heap PSRAM: cannot tell: too short: no boot has 3 reports
  used 72,304, free 4,122,000 of 4,194,304, never below 4,121,900
  largest 4,121,984 (100 % of free): not fragmented
`},
	"NuttX, free": {func(int) string {
		return "nsh> free\n      total       used       free    maxused    maxfree  nused  nfree name\n" +
			"    5583024    5022456     560568    5222880      60568     53      9 Kmem\n    1583024      22456    1560568      22880    1560568     53      1 Umem\n"
	}, 1, nil, `2 reports of the allocator, too few to tell
heap Kmem: cannot tell: too short: no boot has 3 reports
  used 5,022,456, free 560,568 of 5,583,024, never below 360,144
  largest 60,568 (11 % of free): fragmented
heap Umem: cannot tell: too short: no boot has 3 reports
  used 22,456, free 1,560,568 of 1,583,024, never below 1,560,144
  largest 1,560,568 (100 % of free): not fragmented
`},
	"FreeRTOS, by the names of the fields": {func(i int) string {
		return fmt.Sprintf("xAvailableHeapSpaceInBytes: %d\nxSizeOfLargestFreeBlockInBytes: %d\nxMinimumEverFreeBytesRemaining: %d\nok\n", 30_000-1000*i, 20_000-3000*i, 29_000-1000*i)
	}, 6, nil, `the heap leaks in 6 reports of the allocator
free 25,000 bytes: exhausted in 25 reports (25 to 26) at +1,000 bytes per report
    (999 to 1,001)
heap: leak, N %, +1,000 bytes per report (999 to 1,001)
  ▁▂▃▅▆█
  free 30,000 → 25,000, never below 24,000
  largest 20,000 → 5,000 (67 % → 20 % of free): fragmented, and ever more
  the largest free block: leak, N %, none left in 2 reports at +3,000 bytes per
    report (2,999 to 3,001)
`},
	"a user's own print statements, named by --heap-line": {func(i int) string {
		return fmt.Sprintf("13:3%d:39.719 -> AARD:1: <- AK 30b Q=0 FH=222892 hcgfs=%d MB=67356 hcglfb=%d\n", i, []int{155_536, 155_480, 7_860, 7_608}[i], []int{113_792, 113_792, 1_536, 1_536}[i])
	}, 4, []string{"--heap-line", `hcgfs=(?P<free>\d+).*hcglfb=(?P<largest>\d+)`}, `cannot tell in 4 reports of the allocator over 3 min
heap: cannot tell: it grew only at the end; a longer log decides
  ▁▁▇█
  free 155,536 → 7,608
  largest 113,792 → 1,536 (73 % → 20 % of free): fragmented, and ever more
`},
	"a user's own print statements that are known": {func(i int) string {
		return fmt.Sprintf("app_main: Free internal %d biggest block %d total 41480\n", 41_480-200*i, 21_504-1024*i)
	}, 8, nil, `the heap leaks in 8 reports of the allocator
free 40,080 bytes in heap internal: exhausted in 201 reports (200 to 202) at
    +200 bytes per report (199 to 201)
heap internal: leak, N %, +200 bytes per report (199 to 201)
  ▁▂▃▄▅▆▇█
  free 41,480 → 40,080
  largest 21,504 → 14,336 (52 % → 36 % of free): ever more fragmented
  the largest free block: leak, N %, none left in 14 reports (14 to 15) at
    +1,024 bytes per report (1,023 to 1,025)
`},
	"mbed": {func(i int) string {
		return []string{`Heap: 185 malloc(s) (0 failed), total 19828, alloced 13699 (high watermark 13699), left 6129 (at .\main.cpp:263).`,
			`Heap: 258 malloc(s) (0 failed), total 19828, alloced 15000 (high watermark 15200), left 4828 (at .\main.cpp:270).`}[i] + "\n"
	}, 2, nil, `2 reports of the allocator, too few to tell
heap: cannot tell: too short: no boot has 3 reports
  used 13,699 → 15,000, free 6,129 → 4,828 of 19,828, never below 4,628
`},
	"headers of our own, with times": {func(i int) string {
		return fmt.Sprintf("~h#heap t=%d size=65536 free=%d\n", 3_600_000_000*int64(i+1), 40_000-100*i)
	}, 10, nil, `the heap leaks in 10 reports of the allocator over 9 h
free 39,100 bytes: exhausted in 16.3 days (16.2 days to 16.4 days) at +100 bytes
    per hour (99.5 to 100)
heap: leak, N %, +100 bytes per hour (99.5 to 100)
  ▁▁▂▃▄▄▅▆▇█
  used 25,536 → 26,436, free 40,000 → 39,100 of 65,536
`},
	"values that rise and fall": {func(i int) string { return fmt.Sprintf("~h#heap free=%d largest=900\n", 1000+(i*37)%100) }, 12, nil,
		`none above 2.1 bytes per report in 12 reports of the allocator
heap: none above 2.1 bytes per report
  █▅▂▇▄▁▆▃▁▅▂▇
  free 1,000 → 1,007, never below 1,000
  largest 900 (90 % → 89 % of free): not fragmented
`},
}

func TestLeaksOfReportsOnly(t *testing.T) {
	for name, c := range heapLogs {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			for i := range c.n {
				log.WriteString(c.log(i))
			}
			file := logFile(t, "heap.log", log.String())
			out, errs, code := command("", append([]string{"leaks", "-q"}, append(c.args, file)...)...)
			if code != 0 || errs != "" || out != c.want {
				t.Errorf("exit code %d, %s, got\n%s\nwant\n%s", code, errs, out, c.want)
			}
			args := append(c.args, file)
			if heaps, _ := checkJSON(t, append([]string{"leaks"}, args...)...)["heaps"].([]any); len(heaps) != strings.Count(c.want, "\nheap ")+strings.Count(c.want, "\nheap: ") {
				t.Errorf("JSON has %d heaps", len(heaps))
			}
			if heaps, _ := checkJSON(t, append([]string{"map"}, args...)...)["heaps"].([]any); len(heaps) == 0 {
				t.Error("map: JSON has no heap")
			}
			if out, errs, code := command("", append([]string{"map", "-q"}, args...)...); code != 0 || strings.Count(out, "Largest") < 1 || errs != "" {
				t.Errorf("map: exit code %d, %s, %s", code, errs, out)
			}
			if len(c.args) > 0 { // top has no --heap-line
				return
			}
			// What needs call paths says so.
			if slices.Contains(args, "--heap-line") {
				return // which top does not read
			}
			if _, errs, code := command("", append([]string{"top", "-q"}, args...)...); code != 2 || !strings.Contains(errs, "only what the allocator reports: btheap leaks tells the trend") {
				t.Errorf("top: exit code %d, %s", code, errs)
			}
		})
	}
}

// An expression without what it needs is an error, and a log in which nothing is found leads to the flag.
func TestHeapLineErrors(t *testing.T) {
	log := "FH=222892 hcgfs=155536\nFH=222000 hcgfs=155500\n"
	if _, errs, code := command(log, "leaks"); code != 2 || !strings.Contains(errs, `if it is what is free: --heap-line 'FH=(?P<free>\d+)', which reads 222892 and at last 222000 bytes`) {
		t.Errorf("no expression made from a line: %s", errs)
	}
	if out, _, code := command(log, "leaks", "--heap-line", `FH=(?P<free>\d+)`); code != 0 || !strings.Contains(out, "free 222,892 → 222,000") {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"leaks", "--heap-line", `(\d+)`}, `--heap-line no group free: write (?P<free>\d+)`},
		{[]string{"leaks", "--heap-line", `(?P<free>`}, `--heap-line`},
		{[]string{"leaks"}, "--heap-line names lines that say what is free or used"},
		{[]string{"map"}, "--heap-line names lines that say what is free or used"},
	} {
		if _, errs, code := command("FH=222892 hcgfs=155536\n", c.args...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %s, want %q", c.args, code, errs, c.want)
		}
	}
}

// --fail-over is for the rate of a heap, too.
func TestFailOverOfReports(t *testing.T) {
	log := ""
	for i := range 10 {
		log += fmt.Sprintf("~h#heap t=%d free=%d\n", 3_600_000_000*int64(i+1), 40_000-100*i)
	}
	untimed := ""
	for i := range 10 {
		untimed += fmt.Sprintf("~h#heap free=%d\n", 40_000-100*i)
	}
	for _, c := range []struct {
		log, limit string
		code       int
	}{{log, "99/h", 1}, {log, "101/h", 0}, {log, "2401/day", 0}, {log, "99/dump", 2}, {untimed, "99/dump", 1}, {untimed, "101/dump", 0}, {untimed, "99/h", 2}} {
		if _, errs, code := command(c.log, "leaks", "-q", "--fail-over", c.limit); code != c.code {
			t.Errorf("--fail-over %s: exit code %d, want %d: %s", c.limit, code, c.code, errs)
		}
	}
}

// A trace that is started, stopped and dumped for each request has only the blocks of its interval:
// they add up, although no dump grows. A full trace with the same numbers does not.
func TestLeaksOfIntervals(t *testing.T) {
	trace := func(at func(dump, block int) int) string {
		var b strings.Builder
		for d := range 10 {
			fmt.Fprintf(&b, "I (%d) app: request %d\n====== Heap Trace: 3 records (100 capacity) ======\n", 10_000*(d+1), d)
			for k, size := range []int{84, 16, 12} {
				fmt.Fprintf(&b, "    %d bytes (@ 0x%08x, Internal) allocated CPU 0 ccount 0x%08x caller 0x40376183:0x4200%04x\n", size, 0x3fcb0000+96*at(d, k), d, 0x1000*(k+1))
			}
			b.WriteString("====== Heap Trace Summary ======\nMode: Heap Trace Leaks\n112 bytes 'leaked' in trace (3 allocations)\n")
		}
		return b.String()
	}
	out, errs, code := command(trace(func(d, k int) int { return 3*d + k }), "leaks")
	for _, want := range []string{"3 leaks (none of them sure) in 10 dumps over 1.5 min\n", "1 → 10 blocks, 84 → 840 bytes", "they add up to 1,120 bytes in 30 blocks\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %s, no %q in\n%s", code, errs, want, out)
		}
	}
	for name, at := range map[string]func(d, k int) int{
		"the same addresses": func(d, k int) int { return k },
		"one comes again":    func(d, k int) int { return (3*d + k) % 29 },
	} {
		if out, errs, code := command(trace(at), "leaks"); code != 0 || !strings.HasPrefix(out, "none above ") || strings.Contains(out, "add up") {
			t.Errorf("%s: exit code %d, %s, %s", name, code, errs, out)
		}
	}
}

// Dumps of call paths have no addresses of blocks: they are not those of intervals, and what stays
// is no leak. A reset of an ESP32 in the log is no heap trace.
func TestLeaksOfCallPaths(t *testing.T) {
	log := "rst:0x1 (POWERON_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\n~h#boot prog=fw w=32 code=400000+10000\n"
	w := callpath.Writer{Limit: callpath.MaxSerial}
	for d := range 12 {
		w.Dump = uint32(d)
		log += fmt.Sprintf("~h#begin %d t=%d k=paths l=%d\n", d, 600_000_000*(d+1), w.Lines)
		var text []byte
		for _, e := range []struct{ caller, blocks uint64 }{{0x1200, 100}, {0x1400, uint64(d + 1)}, {0x1500, uint64(d/3 + 1)}} {
			var err error
			if text, err = w.Append(text, &callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: e.caller}, {Value: 0x1900}}}, Live: e.blocks, Bytes: 60 * e.blocks}); err != nil {
				t.Fatal(err)
			}
		}
		log += string(w.Flush(text)) + fmt.Sprintf("~h#end %d l=%d\n", d, w.Lines)
	}
	out, errs, code := command(log, "leaks")
	if code != 0 || strings.Contains(out, "add up") || strings.Contains(errs, "heap traces") || !strings.HasPrefix(out, "1 leak in 12 dumps") ||
		!strings.Contains(out, "1 → 12 blocks") {
		t.Errorf("exit code %d, %s, %s", code, errs, out)
	}
}

// --fail-over names a heap that shrinks in a log of reports.
func TestHeapsOverLimit(t *testing.T) {
	log := func(reports, from int) string {
		var b strings.Builder
		for i := range reports {
			fmt.Fprintf(&b, "I (%d) app: Internal: free 50000 largest 40000 | PSRAM: free %d largest 60000\n", 60_000*(i+1), 90_000-100*max(0, i-from))
		}
		return b.String()
	}
	for _, c := range []struct {
		log  string
		code int
	}{
		{log(60, 0), 1},
		{log(90, 45), 0}, // it may be a cache that fills
		{log(5, 0), 0},
		{log(60, 60), 0},
	} {
		_, errs, code := command(c.log, "leaks", "-q", "--fail-over", "1K/h")
		if code != c.code || strings.Contains(errs, "heap PSRAM leaks +") != (code == 1) {
			t.Errorf("exit code %d, %s", code, errs)
		}
	}
}

package main

import (
	"fmt"
	"strings"
	"testing"
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
		esp.String():    "1 leak in 8 dumps\nfree 119,664 bytes in heap internal: exhausted in 2,493 dumps at +48 ± 0 bytes per dump\n",
		zephyr.String(): "1 leak in 8 dumps\nfree 1,552 bytes in heap 0x20001000: exhausted in 25 dumps at +64 ± 0 bytes per dump\n",
	} {
		out, errs, code := command(log, "leaks")
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("exit code %d, %s, got\n%s\nwant\n%s", code, errs, out, want)
		}
		heaps, _ := checkJSON(t, "leaks", logFile(t, "two.log", log))["heaps"].([]any)
		if len(heaps) != 2 || heaps[0].(map[string]any)["verdict"] != "leak" || heaps[1].(map[string]any)["verdict"] != "no evidence" {
			t.Errorf("heaps %v", heaps)
		}
	}
}

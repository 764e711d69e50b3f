package report_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lwsbt/lwsbt/heap/internal/heapmap"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/report"
)

// sampleMap is the map of a heap of 4,096 bytes: at first full, then with two holes of 1,048
// and 2,024 bytes that a block of 24 bytes keeps apart.
func sampleMap() *report.Map {
	cells := make([]int, 128)
	for i := range 32 {
		cells[i] = 100
	}
	cells[64] = 75
	pin := heapmap.Pin{Stack: []profile.Site{{Func: "dup_header", File: "src/upload.c", Line: 85, Module: "sensord"}, {Func: "parse_header", File: "src/session.c", Line: 72, Module: "sensord"},
		{Func: "session_open", File: "src/upload.c", Line: 46, Module: "sensord"}, {Func: "event_loop", File: "src/session.c", Line: 33, Module: "sensord"}, {Func: "main", File: "src/main.c", Line: 20, Module: "sensord"}},
		Kept: 1048, Count: 1, Bytes: 24, Address: 0xffffffff80001800}
	allocator := func(free, largest uint64) *heapmap.Allocator {
		known := func(n uint64) profile.Amount { return profile.Amount{Bytes: n, Known: true} }
		return heapmap.NewAllocator(&profile.DumpInfo{Heaps: []profile.Heap{{Size: known(4096), Free: known(free), Largest: known(largest), Min: known(900)}}})
	}
	times := []float64{0, 2, 3}
	return &report.Map{About: "The log has the addresses of the heap.", Open: 1, Moments: []report.MapMoment{
		{Name: hostile[0], Moment: heapmap.Moment{Time: &times[0], Boot: 1, Blocks: &heapmap.Space{Size: 4096, Used: 4096, Count: 4}}, Layout: heapmap.Layout{LeastHole: 40}},
		{Name: "dump 2, 2 s", Moment: heapmap.Moment{Time: &times[1], Boot: 1, Allocator: allocator(3000, 2000),
			Blocks: &heapmap.Space{Size: 4096, Used: 1024, Count: 2, Holes: 2, Free: 3072, Largest: 2024, Fragmentation: heapmap.Fragmentation(3072, 2024)}},
			Layout: heapmap.Layout{LeastHole: 40, Ranges: []heapmap.Range{{Start: 0xffffffff80001000, Length: 4096, Cells: cells}},
				Sizes: []heapmap.SizeClass{{Min: 16, Max: 31, Blocks: 1, BlockBytes: 24}, {Min: 512, Max: 1023, Blocks: 1, BlockBytes: 1000}, {Min: 1024, Max: 2047, Holes: 2, HoleBytes: 3072}},
				Pins:  []heapmap.Pin{pin}}},
		{Name: "dump 3, 3 s", Moment: heapmap.Moment{Time: &times[2], Boot: 1, Allocator: allocator(1000, 250)}},
	}}
}

func TestMap(t *testing.T) {
	ctx := browser(t, writePage(t, write(t, firmware.profile(t), report.Options{Map: sampleMap()})))
	click(t, ctx, "#tab-map")
	wantText(t, ctx, "#map-summary", "dump 2, 2 s: 1,024 of 4,096 bytes used by 2 blocks; 3,072 free in 2 holes, the largest of 2,024: fragmentation 34.1 %.")
	wantText(t, ctx, "#panel", "The log has the addresses of the heap. Gaps below 40 bytes", "0xffffffff80001000, 4,096 bytes", "3,000 of 4,096 bytes free, the largest free block 2,000, fragmentation 33.3 %",
		"dup_header", "1,048", "0xffffffff80001800", "1 KiB to 2 KiB", "3,072")
	if n := eval[[]int](t, ctx, `[".cells .used", ".cells .hole"].map(s => document.querySelectorAll(s).length)`); n[0] != 33 || n[1] != 95 {
		t.Errorf("%d cells with blocks and %d without, want 33 and 95", n[0], n[1])
	}
	// The chart leads from moment to moment, and the address has the moment.
	eval[any](t, ctx, `document.getElementById("map-chart").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}))`)
	wantText(t, ctx, "#map-summary", "dump 3, 3 s: the blocks have no addresses.")
	wantText(t, ctx, "#panel", "1,000 of 4,096 bytes free", "fragmentation 75.0 %")
	if got := eval[string](t, ctx, `location.hash`); got != "#tab=map&at=2" {
		t.Errorf("the address ends with %q", got)
	}
	eval[any](t, ctx, `(() => { const s = document.getElementById("moment"); s.value = 0; s.dispatchEvent(new Event("change")); })()`)
	wantText(t, ctx, "#map-summary", "4,096 of 4,096 bytes used by 4 blocks; 0 free in 0 holes", "fragmentation 0.0 %")
	if got, title := text(t, ctx, "#map-summary b"), do(t, ctx, chromedp.Title()); got != hostile[0] || title != "heap" {
		t.Errorf("the name of the moment is %q, want %q as text; the page is called %q", got, hostile[0], title)
	}
	// A call path opens in the flame graph.
	eval[any](t, ctx, `location.hash = "tab=map"`)
	click(t, ctx, "#panel td.name button")
	if got := eval[string](t, ctx, `document.querySelector("[role=tab][aria-selected=true]").innerText`); got != "Flame graph" {
		t.Errorf("the call path leads to %q", got)
	}
	if got := width(t, ctx, "dup_header"); got != 100 {
		t.Errorf("dup_header takes %d%% of the width", got)
	}
}

// The axis of the map's chart has one label for each boot, and one for the last moment, however many dumps there are.
func TestMapAxis(t *testing.T) {
	m := &report.Map{About: "The log has the addresses of the heap."}
	for boot := range 3 {
		for i := range 40 {
			at := float64(i * 60)
			m.Moments = append(m.Moments, report.MapMoment{Name: fmt.Sprint("dump ", i), Moment: heapmap.Moment{Time: &at, Boot: boot + 1,
				Blocks: &heapmap.Space{Size: 4096, Used: 1024, Count: 4}}})
		}
	}
	ctx := browser(t, writePage(t, write(t, firmware.profile(t), report.Options{Map: m})))
	click(t, ctx, "#tab-map")
	labels := eval[[]string](t, ctx, `Array.from(document.querySelectorAll("#map-chart text")).filter(x => x.getAttribute("text-anchor") !== "end" || x.getAttribute("y") == 143).map(x => x.textContent)`)
	if len(labels) != 4 {
		t.Errorf("the axis has the labels %q, want one of each boot, and the last", labels)
	}
}

// Without a map, there is no tab.
func TestNoMap(t *testing.T) {
	ctx := browser(t, writePage(t, pageOf(t, leak, report.Options{}))+"#tab=map")
	if eval[bool](t, ctx, `!!document.getElementById("tab-map")`) {
		t.Error("there is a tab")
	}
	wantText(t, ctx, "#summary", "dump 4")
}

// The outermost frames are threads, of which one can be chosen.
func TestThreads(t *testing.T) {
	stacks := []stack{{[]string{"a", "main", "thread 1 app"}, []profile.Value{v(100, 1)}}, {[]string{"b", "run", "thread 2 mqtt"}, []profile.Value{v(300, 2)}}, {[]string{"a", "run", "thread 2 mqtt"}, []profile.Value{v(600, 3)}}}
	ctx := browser(t, writePage(t, pageOf(t, stacks, report.Options{Threads: true})))
	wantText(t, ctx, "#summary", "1,000 bytes in 6 allocations")
	eval[any](t, ctx, `(() => { const s = document.getElementById("thread"); s.value = "thread 2 mqtt"; s.dispatchEvent(new Event("change")); })()`)
	wantText(t, ctx, "#summary", "900 bytes in 5 allocations")
	if got := eval[string](t, ctx, `location.hash`); got != "#thread=thread+2+mqtt" {
		t.Errorf("the address ends with %q", got)
	}
	press(t, ctx, "\x1b")
	wantText(t, ctx, "#summary", "1,000 bytes in 6 allocations")
	ctx = browser(t, writePage(t, pageOf(t, stacks, report.Options{})))
	if eval[bool](t, ctx, `!!document.getElementById("thread")`) {
		t.Error("without threads, one can be chosen")
	}
}

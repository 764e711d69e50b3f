package growth_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

func bytes(n int) profile.Amount { return profile.Amount{Bytes: uint64(n), Known: true} }

// reports returns n reports of a boot, an hour apart if timed is set: what is free changes by step
// from one to the next.
func reports(list []growth.HeapSeries, name string, boot, n, free, step int, timed bool) []growth.HeapSeries {
	for i := range n {
		h := profile.Heap{Name: name, Free: bytes(free + step*i)}
		list = growth.AddReport(list, growth.HeapReport{Heap: h, Boot: boot, Time: time.Duration(i+1) * time.Hour, Timed: timed})
	}
	return list
}

// The deadline is that of the heap that is full first, whichever reported last.
func TestFirstHeapIsFull(t *testing.T) {
	for _, order := range []bool{false, true} {
		var list []growth.HeapSeries
		add := func(name string, free, step int) { list = reports(list, name, 1, 12, free, step, true) }
		if order {
			add("PSRAM", 4_000_000, -10)
		}
		add("DMA", 50_000, -10)
		add("internal", 12_000, -100)
		add("idle", 40, 0)
		if !order {
			add("PSRAM", 4_000_000, -10)
		}
		l := growth.Judge(new(profile.Profile), growth.Options{Heaps: list})
		x := l.Exhaustion
		if x == nil || x.Heap != "internal" || x.Free != 10_900 || !near(x.Rate, 100) || !near(x.In, 109) || x.Per != growth.PerHour {
			t.Errorf("%+v, want internal, full in 109 hours", x)
		}
		if len(l.Heaps) != 4 || l.Used != 0 {
			t.Errorf("%d heaps, %d dumps", len(l.Heaps), l.Used)
		}
		for _, h := range l.Heaps {
			want := leak.Leak
			if h.Name == "idle" {
				want = leak.None
			}
			if h.Verdict != want || h.Reports != 12 || (h.Exhaustion != nil) != (want == leak.Leak) {
				t.Errorf("%s: %v, %+v", h.Name, h.Verdict, h.Exhaustion)
			}
		}
	}
}

// Of one heap, the rate is that of the call paths that leak, unless the heap surely shrinks faster.
// If none of several heaps shrinks, the leak is in the one with the least free memory.
func TestHeapOfLeak(t *testing.T) {
	dumps := line(1, 10, 10, 3) // 48 bytes per hour
	for name, c := range map[string]struct {
		list []growth.HeapSeries
		heap string
		in   float64
	}{
		"one heap, flat":            {reports(nil, "a", 1, 10, 4800, 0, true), "a", 100},
		"one heap, shrinks as fast": {reports(nil, "a", 1, 10, 4800+9*48, -48, true), "a", 100},
		"one heap, shrinks faster":  {reports(nil, "a", 1, 10, 4800+9*96, -96, true), "a", 50},
		"one heap, too few reports": {reports(nil, "a", 1, 2, 4800, 0, true), "a", 100},
		"two heaps, flat":           {reports(reports(nil, "a", 1, 10, 9999, 0, true), "b", 1, 10, 4800, 0, true), "b", 100},
		"two heaps, one shrinks":    {reports(reports(nil, "a", 1, 10, 4800+9*48, -48, true), "b", 1, 10, 480, 0, true), "a", 100},
	} {
		x := leaksOf(t, growth.Options{Heaps: c.list}, dumps...).Exhaustion
		if x == nil || x.Heap != c.heap || !near(x.In, c.in) {
			t.Errorf("%s: %+v, want heap %s in %v h", name, x, c.heap, c.in)
		}
	}
}

// Without times, the unit is the report. Boots are not compared.
func TestHeapWithoutTimes(t *testing.T) {
	list := reports(nil, "", 1, 8, 20_000, -100, false)
	list = reports(list, "", 2, 8, 20_000, -100, false)
	l := growth.Judge(new(profile.Profile), growth.Options{Heaps: list})
	h := l.Heaps[0]
	if h.Per != growth.PerReport || !near(h.Rate, 100) || h.Boots != 2 || h.Verdict != leak.Leak || h.First.Free.Bytes != 20_000 || h.First.Boot != 2 || h.Least.Bytes != 19_300 {
		t.Errorf("%+v", h)
	}
	if x := l.Exhaustion; x == nil || !near(x.In, 193) || x.Per != growth.PerReport {
		t.Errorf("%+v", l.Exhaustion)
	}
}

// A series of any length keeps a bounded number of reports, and its trend.
func TestLongSeries(t *testing.T) {
	const n = 100_000
	for _, timed := range []bool{true, false} {
		list := reports(nil, "", 1, n, 20_000_000, -100, timed)
		s := &list[0]
		if s.Total != n || len(s.Reports) > 4096 || len(s.Reports) < 2000 || s.Reports[len(s.Reports)-1].Number != n {
			t.Fatalf("%d of %d reports", len(s.Reports), s.Total)
		}
		h := growth.Judge(new(profile.Profile), growth.Options{Heaps: list}).Heaps[0]
		if !h.Sure() || !near(h.Rate, 100) || h.Last.Free.Bytes != 20_000_000-100*(n-1) {
			t.Errorf("timed %t: %v, %v per %s", timed, h.Verdict, h.Rate, h.Per)
		}
	}
}

func TestFragmenting(t *testing.T) {
	for _, c := range []struct {
		free, largest [3]int
		fragmenting   bool
		fragmented    bool
	}{
		{[3]int{120_000, 113_000, 106_000}, [3]int{90_000, 60_000, 27_000}, true, true},
		{[3]int{155_536, 155_480, 7_608}, [3]int{113_792, 113_792, 1_536}, true, true},
		{[3]int{100, 50, 20}, [3]int{90, 45, 18}, false, false}, // full, not fragmented
		{[3]int{100, 100, 100}, [3]int{30, 30, 30}, false, true},
		{[3]int{100, 100, 100}, [3]int{90, 80, 76}, false, false},
		{[3]int{100, 50, 0}, [3]int{90, 45, 0}, false, false},
	} {
		var list []growth.HeapSeries
		for i := range 3 {
			list = growth.AddReport(list, growth.HeapReport{Heap: profile.Heap{Free: bytes(c.free[i]), Largest: bytes(c.largest[i])}, Boot: 1})
		}
		h := growth.Judge(new(profile.Profile), growth.Options{Heaps: list}).Heaps[0]
		if h.Fragmenting != c.fragmenting || h.Fragmented() != c.fragmented {
			t.Errorf("%+v: fragmenting %t, fragmented %t", c, h.Fragmenting, h.Fragmented())
		}
	}
}

// A heap that shrinks from boot 2 on does so since boot 2: noise, which raises the floor near the end
// of boot 1, is no growth.
func TestHeapShrinksSinceBoot(t *testing.T) {
	const logs, each = 100, 144
	right := 0
	for seed := range uint64(logs) {
		rng := rand.New(rand.NewPCG(seed, 27112607))
		var list []growth.HeapSeries
		for boot := range 2 {
			for i := range each {
				at := time.Duration(i) * 10 * time.Minute
				free := 90_000 - 800*float64(boot)*at.Hours() + 300*rng.Float64()
				list = growth.AddReport(list, growth.HeapReport{Heap: profile.Heap{Free: bytes(int(free))}, Boot: boot + 1, Time: at, Timed: true})
			}
		}
		h := growth.Judge(new(profile.Profile), growth.Options{Heaps: list}).Heaps[0]
		if i := int(6 * h.Since.At); h.Verdict == leak.Leak && h.Since.Boot == 1 && i <= 14 || h.Since.Boot == 0 && i >= each-7 {
			right++
		}
	}
	if right < logs {
		t.Errorf("since when is right in %d of %d logs", right, logs)
	}
}

// One report whose number lost digits, or has a digit of another line, changes nothing. A dip is none,
// nor is what happens often.
func TestMisreadReports(t *testing.T) {
	for name, c := range map[string]struct {
		at, free int // a report, and what it says
		misread  int
		least    uint64
	}{
		"none":                     {0, 90_000, 0, 75_600},
		"the last lost digits":     {144, 756, 1, 75_700},
		"the first lost digits":    {0, 90, 1, 75_600},
		"one digit is left":        {70, 8, 1, 75_600},
		"a digit was written":      {70, 983_000, 1, 75_600},
		"a digit stands within it": {70, 830_700, 1, 75_600},
		"a dip":                    {70, 12_000, 0, 12_000},
	} {
		list := reports(nil, "", 1, 145, 90_000, -100, true)
		list[0].Reports[c.at].Free = bytes(c.free)
		var series []growth.HeapSeries
		for _, r := range list[0].Reports {
			series = growth.AddReport(series, r)
		}
		h := growth.Judge(new(profile.Profile), growth.Options{Heaps: series}).Heaps[0]
		if h.Misread != c.misread || h.Least.Bytes != c.least || h.Reports != 145 || c.misread > 0 && (!h.Sure() || !near(h.Rate, 100)) {
			t.Errorf("%s: %d misread, never below %d, %v %+v per hour", name, h.Misread, h.Least.Bytes, h.Verdict, h.Rate)
		}
	}
	cut := reports(nil, "", 1, 12, 90_000, -100, true)
	for i := range cut[0].Reports {
		cut[0].Reports[i].Largest = bytes(60_000 + i)
	}
	cut[0].Reports[11].Largest = bytes(60)
	if h := growth.Judge(new(profile.Profile), growth.Options{Heaps: cut}).Heaps[0]; h.Misread != 1 || h.Fragmenting || h.Last.Largest.Bytes != 60_010 {
		t.Errorf("the largest block lost digits: %+v", h)
	}
	var often []growth.HeapSeries
	for i := range 40 {
		often = reports(often, "", 1, 1, []int{84_000, 83_900, 84_100, 8_400}[i%4], 0, true)
	}
	if h := growth.Judge(new(profile.Profile), growth.Options{Heaps: often}).Heaps[0]; h.Misread != 0 || h.Least.Bytes != 8_400 {
		t.Errorf("often: %d misread, never below %d", h.Misread, h.Least.Bytes)
	}
}

// Boots that use up the heap have neighbours that tell nothing of a low number.
func TestExhaustedBootsAreNotMisread(t *testing.T) {
	var list []growth.HeapSeries
	for boot := range 30 {
		for k, free := range []int{180_000, 60_000 + 7*boot, 300 + boot} {
			list = growth.AddReport(list, growth.HeapReport{Heap: profile.Heap{Free: profile.Amount{Bytes: uint64(free), Known: true}}, Boot: boot + 1, Time: time.Duration(k) * 10 * time.Second, Timed: true})
		}
	}
	h := growth.Judge(new(profile.Profile), growth.Options{Heaps: list}).Heaps[0]
	if h.Misread != 0 || h.Boots != 30 || h.Last.Free.Bytes != 329 || h.Least.Bytes != 300 {
		t.Errorf("%d misread, %d boots, last %d, never below %d", h.Misread, h.Boots, h.Last.Free.Bytes, h.Least.Bytes)
	}
}

// A log with very many heaps does not take time for the square of their number: the first ones count.
func TestManyHeaps(t *testing.T) {
	var series []growth.HeapSeries
	for i := range 100_000 {
		h := profile.Heap{Name: strconv.Itoa(i), Free: bytes(i)}
		series = growth.AddReport(series, growth.HeapReport{Heap: h})
	}
	if len(series) != 256 {
		t.Errorf("%d series, want 256", len(series))
	}
}

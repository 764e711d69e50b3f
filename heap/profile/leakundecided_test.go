package profile_test

import (
	"math"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// ramp returns n dumps of a boot, an hour apart: 10 blocks in path 1, and from dump begin on 2 more in each
// dump; and 100 in path 2.
func ramp(n, begin int) (list []dumpOf) {
	for i := range n {
		list = append(list, dumpOf{boot: 1, at: time.Duration(i+1) * time.Hour, blocks: []uint64{10 + 2*uint64(max(0, i-begin)), 100}})
	}
	return list
}

// A path that grows since the middle of the only boot may be a cache that fills. The report says
// after which time it is probably a leak, with its rate and when the heap is full.
func TestLeaksUndecided(t *testing.T) {
	const n, begin = 40, 20
	l := leaksOf(t, profile.LeakOptions{Heap: 4000}, ramp(n, begin)...)
	if len(l.Rows) != 1 || l.Exhaustion != nil {
		t.Fatalf("%d rows, %+v", len(l.Rows), l.Exhaustion)
	}
	r := l.Rows[0]
	// 20 h of 39 h are before the growth.
	if r.Verdict != profile.Grows || math.Abs(r.More-(20/0.24-39)) > 1e-6 || l.Dumps[r.Since].Time != 21*time.Hour || math.Abs(r.Rate-32) > 1e-6 {
		t.Errorf("%v, %v h more, since %v, %v bytes per hour", r.Verdict, r.More, l.Dumps[r.Since].Time, r.Rate)
	}
	// 148 blocks of 16 bytes are live, and two come in each hour.
	if x := l.IfLeak(r); x == nil || x.Free != 4000-148*16 || math.Abs(x.In-(4000-148*16)/32.0) > 1e-6 {
		t.Errorf("if it leaks: %+v", x)
	}
	hours := int(math.Ceil(r.More))
	if before := leaksOf(t, profile.LeakOptions{}, ramp(n+hours-3, begin)...).Rows[0]; before.Verdict != profile.Grows {
		t.Errorf("%d h later: %v", hours-3, before.Verdict)
	}
	after := leaksOf(t, profile.LeakOptions{Heap: 8000}, ramp(n+hours, begin)...)
	if r := after.Rows[0]; r.Verdict != profile.Probably || r.More != 0 || after.Exhaustion == nil || after.IfLeak(r) != nil {
		t.Errorf("%d h later: %v, %v h more, %+v", hours, r.Verdict, r.More, after.Exhaustion)
	}
}

// The distances of the floors of several boots from a straight line are added up before their
// absolute value is taken: what comes early in one boot and late in another is no bend.
func TestLeaksBendOfBoots(t *testing.T) {
	var early, both []dumpOf
	for boot := range 6 {
		for i := range 8 {
			n := uint64(min(2*i, 7)) // 7 blocks in the first half
			early = append(early, dumpOf{boot: boot + 1, at: time.Duration(i+1) * time.Hour, blocks: []uint64{n}})
			if boot%2 == 1 {
				n = uint64(max(0, 2*i-7))
			}
			both = append(both, dumpOf{boot: boot + 1, at: time.Duration(i+1) * time.Hour, blocks: []uint64{n}})
		}
	}
	if r := leaksOf(t, profile.LeakOptions{}, early...).Rows[0]; r.Bend < 0.4 {
		t.Errorf("early in each boot: d %.2f", r.Bend)
	}
	if r := leaksOf(t, profile.LeakOptions{}, both...).Rows[0]; r.Bend > 1e-9 {
		t.Errorf("early and late by turns: d %.2f", r.Bend)
	}
}

// The margin of a rate that grows covers the rate at the end. A rate that rises once, in the middle
// of a boot or with the next one, is not taken to grow on.
func TestLeaksFaster(t *testing.T) {
	at := func(boot, n int, blocks func(i int) uint64) (list []dumpOf) {
		for i := range n {
			list = append(list, dumpOf{boot: boot, at: time.Duration(i+1) * time.Hour, blocks: []uint64{blocks(i), 100}})
		}
		return list
	}
	for _, c := range []struct {
		name  string
		dumps []dumpOf
		rate  float64 // bytes per hour at the end
		most  float64 // margin
	}{
		{"faster and faster", at(1, 60, func(i int) uint64 { return uint64(i * i / 4) }), 16 * 59 / 2.0, 120},
		{"once", at(1, 60, func(i int) uint64 { return uint64(i + 4*max(0, i-30)) }), 16 * 5, 0},
		{"with a boot", append(at(1, 30, func(i int) uint64 { return uint64(2 * i) }), at(2, 30, func(i int) uint64 { return uint64(5 * i) })...), 16 * 5, 0},
	} {
		r := leaksOf(t, profile.LeakOptions{}, c.dumps...).Rows[0]
		if math.Abs(r.Rate-c.rate) > r.Margin+1e-6 || r.Margin > c.most+1e-6 || !r.Changed {
			t.Errorf("%s: %.1f ± %.1f bytes per hour, expected %.1f", c.name, r.Rate, r.Margin, c.rate)
		}
	}
}

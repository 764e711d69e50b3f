package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// byHand describes a device: the number of blocks of a path, 16 bytes each, in dumps an hour apart.
type byHand struct {
	device string
	blocks []int64
	bytes  []int64 // instead of 16 per block
	why    string  // of the last dump
	noTime bool
	once   bool // all dumps are of one upload, ten days later
	daily  bool // a day apart
}

// hand returns a database with these devices, which run build "b".
func hand(t *testing.T, list ...byHand) *DB {
	t.Helper()
	s, b := byHandStore(t)
	b.Paths = []store.Path{{Build: "b", Path: 7, Addresses: []string{"0x10", "0x20"}}}
	at := b.Day
	for _, d := range list {
		for i, n := range d.blocks {
			uptime := time.Duration(i+1) * time.Hour
			if d.daily {
				uptime *= 24
			}
			received := at.Add(uptime)
			row := store.Dump{Build: "b", FW: "1.0", Device: d.device, Boot: 1, Dump: int64(i), Uptime: uptime.Microseconds(), Received: received.UnixMicro(),
				Time: received.UnixMicro(), Bytes: 16 * n, Count: n, Complete: true, HeapSize: 4096, HeapFree: 480, HeapLargest: -1, HeapMinimum: -1, Upload: fmt.Sprint(d.device, i)}
			if d.bytes != nil {
				row.Bytes = d.bytes[i]
			}
			if d.noTime {
				row.Uptime = -1
			}
			if d.once {
				row.Received = at.AddDate(0, 0, 10).UnixMicro()
			}
			if i == len(d.blocks)-1 {
				row.Why = d.why
			}
			b.Dumps = append(b.Dumps, row)
			b.Facts = append(b.Facts, store.Fact{Build: "b", Device: d.device, Path: 7, Boot: 1, Dump: int64(i), Time: row.Time, Count: n, Bytes: row.Bytes, Complete: true})
		}
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return open(t, s)
}

// For a single device, Leaks gives the word that its log alone has: that of btheap leaks. A cache that fills evenly, too, has so few equal
// steps: of simulated paths that rise so, three of four are leaks after four dumps, and nineteen of twenty from about twelve on.
func TestLeaksOfOneDevice(t *testing.T) {
	line := []int64{10, 13, 16, 19, 22, 25, 28, 31}
	var long []int64
	for i := range int64(32) {
		long = append(long, 10+3*i)
	}
	buffer := []int64{1000, 1064, 1128, 1192, 1256, 1320, 1384, 1448}
	for _, c := range []struct {
		name string
		byHand
		want Verdict
		rate float64 // bytes per hour
	}{
		{"straight", byHand{blocks: line}, Probably, 48},
		{"an exit by name", byHand{blocks: append(slices.Clone(line), 30), why: "exit"}, Probably, 48},
		{"an exit by its bytes", byHand{blocks: append(slices.Clone(line), 3)}, Probably, 48},
		{"a growing buffer", byHand{blocks: []int64{1, 1, 1, 1, 1, 1, 1, 1}, bytes: buffer}, Probably, 64},
		{"six dumps", byHand{blocks: line[:6]}, Probably, 48},
		{"four dumps", byHand{blocks: line[:4]}, Probably, 48},
		{"32 dumps", byHand{blocks: long}, Leaking, 48},
		{"two dumps", byHand{blocks: line[:2]}, none, 0},
		{"no uptime", byHand{blocks: line, noTime: true}, Probably, 0},
		{"a step", byHand{blocks: []int64{10, 10, 10, 10, 40, 40, 40, 40}}, none, 0},
		{"warm-up", byHand{blocks: []int64{10, 60, 80, 90, 95, 97, 98, 99}}, none, 0},
		{"shrinks", byHand{blocks: []int64{80, 70, 60, 50, 40, 35, 30, 20}}, none, 0},
	} {
		c.device = "d"
		l, err := hand(t, c.byHand).Leaks(t.Context(), Scope{Builds: []string{"b"}})
		if err != nil {
			t.Fatal(err)
		}
		if c.want == none {
			if len(l.Rows) > 0 {
				t.Errorf("%s: %s", c.name, describe(&l.Rows[0]))
			}
			continue
		}
		if len(l.Rows) != 1 || l.Rows[0].Verdict != c.want {
			t.Errorf("%s: %d rows, want %v: %+v", c.name, len(l.Rows), c.want, l.Rows)
			continue
		}
		r := l.Rows[0]
		switch {
		case c.rate == 0 && r.Rate != nil:
			t.Errorf("%s: %g bytes per hour, without times", c.name, *r.Rate)
		case c.rate > 0 && (r.Rate == nil || math.Abs(*r.Rate-c.rate) > 1e-9):
			t.Errorf("%s: rate %v, want %g", c.name, r.Rate, c.rate)
		}
		if x := l.Exhaustion; c.want >= Probably && c.rate > 0 && (x == nil || x.Devices != 1 || math.Abs(*x.Hours-480/c.rate) > 1e-9) {
			t.Errorf("%s: exhaustion %+v, want 480 bytes at %g", c.name, x, c.rate)
		}
		if len(r.Stack) != 2 || r.Stack[0].Address != "0x10" || r.Stack[1].Address != "0x20" {
			t.Errorf("%s: stack %v", c.name, r.Stack)
		}
	}
}

// words returns the word for the path of these devices.
func words(t *testing.T, list []byHand) string {
	t.Helper()
	l, err := hand(t, list...).Leaks(t.Context(), Scope{Builds: []string{"b"}})
	if err != nil || len(l.Rows) > 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if len(l.Rows) == 0 {
		return ""
	}
	return l.Rows[0].Word()
}

// A leak may depend on the load: on devices that free nothing in seven days, a slow last day does not end it. A last day without growth does.
func TestSlowDays(t *testing.T) {
	for _, c := range []struct {
		slow []int // days
		rate int64 // blocks per hour on these, 4 on the others
		want string
	}{{[]int{1, 6}, 2, "leak"}, {[]int{6}, 2, "leak"}, {[]int{6}, 0, ""}} {
		var list []byHand
		for i := range 8 {
			d, n := byHand{device: fmt.Sprint(i)}, int64(100)
			for hour := range 7 * 24 {
				if slices.Contains(c.slow, hour/24) {
					n += c.rate
				} else {
					n += 4
				}
				d.blocks = append(d.blocks, n+int64(hour*(i+1)%3))
			}
			list = append(list, d)
		}
		if got := words(t, list); got != c.want && (c.want != "" || got == "probably" || got == "leak") {
			t.Errorf("%d blocks per hour on days %v: %q, want %q", c.rate, c.slow, got, c.want)
		}
	}
}

// The last step of two devices is equal, which says nothing of its error.
func TestTwoDevices(t *testing.T) {
	list := []byHand{{device: "a", daily: true, blocks: []int64{42, 92, 146, 212, 276, 338, 432, 430, 510, 554}},
		{device: "b", daily: true, blocks: []int64{98, 146, 202, 246, 320, 368, 440, 502, 548, 592}}}
	for i := range 20 {
		list = append(list, byHand{device: fmt.Sprint(i), daily: true, blocks: []int64{40, 42, 44, 40, 38, 42, 40, 44, 42, 40}})
	}
	if got := words(t, list); got != "leak" {
		t.Errorf("%q, want leak", got)
	}
}

// A queue grows on one or two devices now, as it did on others before. If it did not, the devices may leak.
func TestQueue(t *testing.T) {
	for _, c := range []struct {
		now    int   // devices
		others int64 // blocks per hour
		want   string
	}{{1, 3, ""}, {1, 0, "probably"}, {2, 3, ""}, {2, 0, "leak"}} {
		var list []byHand
		for i := range 25 {
			d := byHand{device: fmt.Sprint(i)}
			for hour := range 32 {
				n := int64(hour&1) + 1
				switch begin := 8 + i%2; {
				case i < c.now && hour >= 12:
					n += 3 * int64(hour-11)
				case i >= c.now && hour >= begin && hour < begin+12:
					n += c.others * int64(hour-begin)
				}
				d.blocks = append(d.blocks, n)
			}
			list = append(list, d)
		}
		if got := words(t, list); got != c.want && (c.want != "" || got == "probably" || got == "leak") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A log is flushed on all devices at once, and grows as before. A path that grows faster since then may leak.
func TestFlushed(t *testing.T) {
	for times, want := range map[float64]string{1: "", 3: "leak"} {
		r := rand.New(rand.NewPCG(0, 1))
		var list []byHand
		for i := range 60 {
			d, n, rate := byHand{device: fmt.Sprint(i)}, int64(1), 0.5+3*r.Float64()
			for hour := range 40 {
				if hour == 13 {
					n, rate = 0, times*rate
				}
				for x := rate; x > 0; x-- {
					n += int64(r.IntN(2))
				}
				d.blocks = append(d.blocks, n)
			}
			list = append(list, d)
		}
		if got := words(t, list); got != want && (want != "" || got == "leak" || got == "probably") {
			t.Errorf("grows %g times as fast after it: %q, want %q", times, got, want)
		}
	}
}

// Since is the time of a dump, also if the device sends many dumps at once: the last one is then new.
func TestSince(t *testing.T) {
	var blocks []int64
	for i := range int64(30) {
		blocks = append(blocks, 10+10*max(0, i-11))
	}
	last := time.Date(2026, 6, 2, 6, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		byHand
		last time.Time
	}{
		{byHand{device: "d", blocks: blocks}, last},
		{byHand{device: "d", blocks: blocks, once: true}, time.Date(2026, 6, 11, 0, 0, 0, 0, time.UTC)},
		{byHand{device: "d", blocks: blocks, once: true, noTime: true}, time.Date(2026, 6, 11, 18, 0, 0, 0, time.UTC)}, // that of the upload
	} {
		l, err := hand(t, c.byHand).Leaks(t.Context(), Scope{Builds: []string{"b"}})
		if err != nil || len(l.Rows) != 1 || l.Rows[0].Since == nil {
			t.Errorf("%+v: %+v, %v", c.byHand, l, err)
			continue
		}
		if want := c.last.Add(-18 * time.Hour); l.Rows[0].Since.Sub(want).Abs() > time.Hour {
			t.Errorf("%+v: since %v, want %v", c.byHand, l.Rows[0].Since, want)
		}
	}
}

// none is for a path that has no verdict.
const none = Verdict(255)

package growth_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol"
)

// dumpOf describes a dump of a test: the blocks of call paths 1, 2, …, of 16 bytes each.
type dumpOf struct {
	boot   int
	at     time.Duration // 0: not known
	why    string
	lost   uint64 // blocks that are announced and missing
	cut    bool
	blocks []uint64
	bytes  uint64 // of path 1, instead of 16 per block
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-3*want }

func leaksOf(t *testing.T, o growth.Options, dumps ...dumpOf) *growth.Leaks {
	t.Helper()
	p, err := profile.New(build(dumps)...)
	if err != nil {
		t.Fatal(err)
	}
	return growth.Judge(p, o)
}

func build(dumps []dumpOf) (list []*profile.Dump) {
	b := profile.NewBuilder(0)
	for _, d := range dumps {
		total := uint64(0)
		for i, n := range d.blocks {
			v := profile.Value{Bytes: 16 * n, Count: n}
			if i == 0 && d.bytes > 0 {
				v.Bytes = d.bytes
			}
			b.Add(b.Path([]symbol.Addr{{PC: uint64(0x1000 * (i + 1))}}), v)
			total += n
		}
		list = append(list, b.End(profile.DumpInfo{Boot: max(1, d.boot), Time: d.at, Timed: d.at > 0, Why: d.why, Cut: d.cut,
			Announced: profile.Announced{Records: total + d.lost, HasRecords: true}}))
	}
	return list
}

// A cache that is flushed each two to four days is no leak, however often it is examined: that its values resemble
// those of the day before is no rhythm of a day.
func TestLeaksSlowSawTooth(t *testing.T) {
	for _, perDay := range []int{4, 12, 24} {
		rng := rand.New(rand.NewPCG(uint64(perDay), 27112641))
		var period, phase [40]float64
		for p := range period {
			period[p], phase[p] = 50+50*rng.Float64(), rng.Float64()
		}
		var dumps []dumpOf
		for i := range 8 * perDay {
			at := 24 * float64(i) / float64(perDay)
			d := dumpOf{at: time.Duration((1 + at) * float64(time.Hour))}
			for p := range period {
				_, part := math.Modf(at/period[p] + phase[p])
				d.blocks = append(d.blocks, uint64(30+120*part))
			}
			dumps = append(dumps, d)
		}
		for _, r := range leaksOf(t, growth.Options{}, dumps...).Rows {
			if r.Verdict == leak.Leak {
				t.Errorf("%d dumps a day: %v, %d to %d blocks", perDay, r.Verdict, r.First.Count, r.Last.Count)
			}
		}
	}
}

// line returns n dumps of a boot with first, first+step, … blocks in path 1, and 100 in path 2.
func line(boot, n int, first, step uint64) (list []dumpOf) {
	for i := range n {
		list = append(list, dumpOf{boot: boot, at: time.Duration(i+1) * time.Hour, blocks: []uint64{first + step*uint64(i), 100}})
	}
	return list
}

// A dump without a time, because its begin mark was damaged, gets one between its neighbours: the
// rate stays one per hour. So does one whose time is not between its neighbours, and the report says so.
func TestLeaksLostBegin(t *testing.T) {
	for _, at := range []time.Duration{0, 22 * time.Microsecond, 50 * time.Hour} {
		dumps := line(1, 10, 10, 3)
		dumps[4].at = at
		l := leaksOf(t, growth.Options{}, dumps...)
		if l.Per != growth.PerHour || l.Used != 10 || l.Dumps[4].Time != 5*time.Hour || (l.Dumps[4].Note != "") != (at != 0) || len(l.Rows) != 1 || !near(l.Rows[0].Rate, 48) {
			t.Errorf("%v: per %s, %d used, %+v, %d rows", at, l.Per, l.Used, l.Dumps[4], len(l.Rows))
		}
	}
}

// One block that grows is examined by its bytes.
func TestLeaksBuffer(t *testing.T) {
	var dumps []dumpOf
	for i := range 10 {
		dumps = append(dumps, dumpOf{blocks: []uint64{1}, bytes: uint64(1000 + 64*i)})
	}
	l := leaksOf(t, growth.Options{}, dumps...)
	if len(l.Rows) != 1 || l.Rows[0].Verdict != leak.Leak || !near(l.Rows[0].Rate, 64) || l.Per != growth.PerDump {
		t.Errorf("%+v, want a leak of 64 bytes per dump", l.Rows)
	}
}

// Boots are added up, and what cannot be compared is left out, with the reason.
func TestLeaksDumps(t *testing.T) {
	dumps := append(line(1, 8, 10, 3), line(2, 8, 10, 3)...)
	dumps = append(dumps, dumpOf{boot: 2, at: 9 * time.Hour, blocks: []uint64{1, 1}})                        // an exit by its bytes
	dumps = append(dumps, line(3, 2, 10, 3)...)                                                              // too few
	dumps = append(dumps, dumpOf{boot: 4, at: time.Hour, why: "exit", blocks: []uint64{10, 100}})            // an exit by name
	dumps = append(dumps, dumpOf{boot: 4, at: 2 * time.Hour, lost: 50, blocks: []uint64{10, 100}})           // too much lost
	dumps = append(dumps, dumpOf{boot: 4, at: 3 * time.Hour, lost: 1, cut: true, blocks: []uint64{10, 100}}) // no end
	l := leaksOf(t, growth.Options{}, dumps...)
	if l.Used != 16 || l.Boots != 2 || len(l.Rows) != 1 || !near(l.Rows[0].Rate, 48) || l.Rows[0].Verdict != leak.Leak {
		t.Errorf("%d dumps of %d boots used: %+v", l.Used, l.Boots, l.Rows)
	}
	for i, want := range []string{"holds less than half of the dump before: the program was ending", "its boot has fewer than 3 whole dumps",
		"its boot has fewer than 3 whole dumps", "written at the exit of the program", "31 % of its blocks are missing", "has no end"} {
		if d := l.Dumps[16+i]; d.Used || d.Reason != want {
			t.Errorf("dump %d: used %t, %q, want %q", 17+i, d.Used, d.Reason, want)
		}
	}
}

// Each dump loses a different part of its blocks. The rate is that of the complete dumps,
// within its margin.
func TestLeaksLoss(t *testing.T) {
	var dumps []dumpOf
	for i := range 20 {
		n, lost := uint64(100+20*i), uint64(2+i%5)
		dumps = append(dumps, dumpOf{at: time.Duration(i+1) * time.Hour, lost: 2 * lost, blocks: []uint64{n - lost, n - lost}})
	}
	l := leaksOf(t, growth.Options{}, dumps...)
	if len(l.Rows) != 2 || l.Missing < 0.01 || l.Missing > 0.03 {
		t.Fatalf("%d rows, %.3f missing", len(l.Rows), l.Missing)
	}
	for _, r := range l.Rows {
		if r.Verdict != leak.Leak || math.Abs(r.Rate-320) > 1 || r.Low >= 320 || r.High <= 320 {
			t.Errorf("%+v, want a leak of 320 bytes per hour within an interval", r.Judgement)
		}
	}
}

func TestSteady(t *testing.T) {
	for _, c := range []struct {
		name   string
		dumps  []dumpOf
		want   int
		reason bool
	}{
		{"the last", line(1, 3, 10, 1), 2, false},
		{"an exit", append(line(1, 3, 10, 1), dumpOf{boot: 1, blocks: []uint64{1}}), 2, true},
		{"cut", append(line(1, 3, 10, 1), dumpOf{boot: 1, cut: true, lost: 60, blocks: []uint64{13, 40}}), 2, true},
		{"only an exit", []dumpOf{{why: "exit", blocks: []uint64{5}}}, 0, false},
	} {
		got, reason := growth.Steady(build(c.dumps)...)
		if got != c.want || (reason != "") != c.reason {
			t.Errorf("%s: %d, %q, want %d", c.name, got, reason, c.want)
		}
	}
}

func ExampleJudge() {
	b := profile.NewBuilder(0)
	var dumps []*profile.Dump
	for i := range 10 { // two blocks more in each dump
		n := uint64(5 + 2*i)
		b.Add(b.Path([]symbol.Addr{{PC: 0x8000284}}), profile.Value{Bytes: 24 * n, Count: n})
		dumps = append(dumps, b.End(profile.DumpInfo{Boot: 1}))
	}
	p, err := profile.New(dumps...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range growth.Judge(p, growth.Options{Heap: 4096}).Rows {
		fmt.Printf("%v, %.0f %%: %v, %+.0f bytes per dump, %d -> %d blocks\n", r.Verdict, 100*r.Probability, r.Stack()[0], r.Rate, r.First.Count, r.Last.Count)
	}
	// Output: leak, 94 %: 0x8000284, +48 bytes per dump, 5 -> 23 blocks
}

// A function of which each boot has other call paths: the paths show nothing, their sum leaks.
func TestLeaksOfFunctions(t *testing.T) {
	b := profile.NewBuilder(0)
	var dumps []*profile.Dump
	for boot := range 2 {
		for i := range 8 {
			own := symbol.Addr{PC: 0x1000, Location: &symbol.Location{Frames: []symbol.Frame{{Func: "keep", Name: "keep", File: "a.c", Line: 7}}}}
			random := symbol.Addr{PC: uint64(0x7000_0000 + boot)} // of a library that is loaded at another address
			n := uint64(10 + 3*i)
			b.Add(b.Path([]symbol.Addr{own, random}), profile.Value{Bytes: 16 * n, Count: n})
			b.Add(b.Path([]symbol.Addr{{PC: 0x2000}}), profile.Value{Bytes: 1600, Count: 100})
			dumps = append(dumps, b.End(profile.DumpInfo{Boot: boot + 1, Time: time.Duration(i+1) * time.Hour, Timed: true}))
		}
	}
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	l := growth.Judge(p, growth.Options{Heap: 16 * (100 + 31 + 30)})
	sure := l.Leaking()
	if len(sure) != 1 || fmt.Sprint(sure[0].Stack()) != "[keep]" || len(sure[0].Parts) != 2 {
		t.Fatalf("%d leak, want keep: %+v", len(sure), sure[0])
	}
	// 3 blocks of 16 bytes per hour; 30 blocks are free.
	if !near(l.Rate, 48) || l.Exhaustion == nil || !near(l.Exhaustion.In, 10) {
		t.Errorf("rate %v, exhausted %+v, want 48 and 10 hours", l.Rate, l.Exhaustion)
	}
	if r := sure[0]; r.First.Count != 10 || r.Last.Count != 31 || r.Boots != 2 {
		t.Errorf("%+v to %+v in %d boots", r.First, r.Last, r.Boots)
	}
}

// Two Readers count their boots from 1.
func TestLeaksOfTwoReaders(t *testing.T) {
	var dumps []*profile.Dump
	for _, file := range []string{"a.log", "b.log"} {
		for _, d := range build(line(1, 7, 10, 3)) {
			own := *d
			own.File = file
			dumps = append(dumps, &own)
		}
	}
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	if l := growth.Judge(p, growth.Options{}); l.Boots != 2 || len(l.Leaking()) != 1 || !near(l.Leaking()[0].Rate, 48) {
		t.Errorf("%d boots, %d leaks, want 2 and one of 48 bytes per hour", l.Boots, len(l.Leaking()))
	}
}

// A log of which each dump has a call path of its own takes no time for each of its dumps and paths.
func TestLeaksManyPaths(t *testing.T) {
	const many = 10_000
	b := profile.NewBuilder(0)
	var dumps []*profile.Dump
	for i := range many {
		b.Add(b.Path([]symbol.Addr{{PC: uint64(0x1000 * (i + 1))}}), profile.Value{Bytes: 16, Count: 1})
		dumps = append(dumps, b.End(profile.DumpInfo{Boot: 1, Time: time.Duration(i+1) * time.Minute, Timed: true}))
	}
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	start := cmdtest.ProcessorTime()
	l := growth.Judge(p, growth.Options{})
	if took := cmdtest.ProcessorTime() - start; l.Varied != many || took > 10*time.Second {
		t.Errorf("%d of %d call paths varied; took %v", l.Varied, many, took)
	}
}

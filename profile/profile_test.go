package profile

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// frame is a frame of the fixtures: function, file and line.
func frame(fn, file string, line int) Frame {
	return Frame{Func: fn, Linkage: fn, File: file, Line: line}
}

var app = &Module{Path: "/bin/app", BuildID: "abcd", Start: 0x400000, Limit: 0x500000, Object: 0x400000, HasFuncs: true, HasFiles: true, HasLines: true}

// fixture has two dumps of a program: main calls work, which grows, and idle, which
// goes. An inlined wrapper stands in front of malloc.
func fixture() *Profile {
	p := &Profile{}
	at := func(addr uint64, frames ...Frame) LocationID {
		id, fresh := p.Location(addr, 0)
		if fresh && len(frames) > 0 {
			p.Describe(id, &Location{Addr: addr, Call: addr - 1, Module: app, ObjAddr: addr, Frames: frames})
		}
		return id
	}
	wrapped := frame("xmalloc", "/src/mem.c", 10)
	wrapped.Inlined = true
	main := at(0x400100, frame("main", "/src/main.c", 3))
	work := at(0x400200, wrapped, frame("work", "/src/work.c", 7))
	idle := at(0x400300, frame("idle", "/src/main.c", 20))
	raw := at(0x9000)
	path := func(frames ...LocationID) PathID { id, _ := p.Path(frames); return id }
	p.Begin(Dump{Name: "dump 1", Number: 1, Boot: 1})
	p.Add(path(work, main), Value{100, 1})
	p.Add(path(work, main), Value{50, 1})
	p.Add(path(idle, main), Value{30, 3})
	p.Add(path(raw, work, main), Value{5, 1})
	p.Begin(Dump{Name: "dump 2", Number: 2, Boot: 1})
	p.Add(path(work, main), Value{400, 4})
	p.Add(path(raw, work, main), Value{5, 1})
	p.End()
	return p
}

func rows(r *TopReport) string {
	var b strings.Builder
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%d/%d %d/%d %s\n", row.Flat.Bytes, row.Flat.Count, row.Cum.Bytes, row.Cum.Count, row.Site)
	}
	return b.String()
}

func TestTop(t *testing.T) {
	p := fixture()
	re := regexp.MustCompile
	for _, c := range []struct {
		name string
		view View
		o    TopOptions
		want string
	}{
		{"lines", View{}, TopOptions{}, "150/2 155/3 xmalloc /src/mem.c:10\n30/3 30/3 idle /src/main.c:20\n5/1 5/1 0x9000\n0/0 185/6 main /src/main.c:3\n0/0 155/3 work /src/work.c:7\n"},
		{"functions, hidden wrapper", View{By: ByFunction, Hide: re("^xmalloc$")}, TopOptions{}, "150/2 155/3 work\n30/3 30/3 idle\n5/1 5/1 0x9000\n0/0 185/6 main\n"},
		{"cumulative, one row", View{By: ByFunction}, TopOptions{Cum: true, N: 1}, "0/0 185/6 main\n"},
		{"by count", View{By: ByFunction}, TopOptions{Weight: Count, N: 1}, "30/3 30/3 idle\n"},
		{"files", View{By: ByFile, Basenames: true}, TopOptions{}, "150/2 155/3 mem.c\n30/3 185/6 main.c\n5/1 5/1 (unknown file)\n0/0 155/3 work.c\n"},
		{"modules", View{By: ByModule}, TopOptions{}, "180/5 185/6 app\n5/1 5/1 (unknown module)\n"},
		{"focus", View{By: ByFunction, Focus: re("idle")}, TopOptions{}, "30/3 30/3 idle\n0/0 30/3 main\n"},
		{"focus by file", View{By: ByFunction, Focus: re(`work\.c`)}, TopOptions{N: 1}, "150/2 155/3 xmalloc\n"},
		{"ignore", View{By: ByFunction, Ignore: re("idle|0x9000")}, TopOptions{}, "150/2 150/2 xmalloc\n0/0 150/2 main\n0/0 150/2 work\n"},
		{"show", View{By: ByFunction, Show: re("main")}, TopOptions{}, "180/5 185/6 main\n5/1 5/1 0x9000\n"},
	} {
		if c.name == "show" { // idle is in main.c, which matches, too
			c.want = "155/3 185/6 main\n30/3 30/3 idle\n"
		}
		n := c.view.Names(p)
		if got := rows(n.Top(p.Dumps[0], c.o)); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
	n := (&View{Hide: re("nothing"), Ignore: re("idle")}).Names(p)
	n.Top(p.Dumps[0], TopOptions{})
	if n.Matched.Hide || !n.Matched.Ignore {
		t.Errorf("matched: %+v", n.Matched)
	}
}

func TestTreeAndPeek(t *testing.T) {
	p := fixture()
	n := (&View{By: ByFunction}).Names(p)
	root := n.Tree(p.Dumps[0], TreeOptions{})
	var b strings.Builder
	var walk func(n *Node, depth int)
	walk = func(n *Node, depth int) {
		fmt.Fprintf(&b, "%s%s %d/%d below %d\n", strings.Repeat(" ", depth), n.Site, n.Total.Bytes, n.Total.Count, n.Below())
		list, _, _ := n.Children(func(Value) bool { return true })
		for _, c := range list {
			walk(c, depth+1)
		}
	}
	walk(root, 0)
	want := " 185/6 below 5\n main 185/6 below 4\n  work 155/3 below 2\n   xmalloc 155/3 below 1\n    0x9000 5/1 below 0\n  idle 30/3 below 0\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if list, others, rest := root.Children(func(v Value) bool { return v.Bytes > 185 }); len(list) != 0 || others != 1 || rest != (Value{185, 6}) {
		t.Errorf("none of over 185 bytes: %v, %d others with %v", list, others, rest)
	}
	list, total, err := n.Peek(p.Dumps[0], regexp.MustCompile("^work$"), Bytes)
	if err != nil || total != (Value{185, 6}) || len(list) != 1 || list[0].Cum != (Value{155, 3}) || len(list[0].Callers) != 1 || list[0].Callers[0].Func != "main" ||
		len(list[0].Callees) != 1 || list[0].Callees[0].Func != "xmalloc" || list[0].Callees[0].Cum != (Value{155, 3}) {
		t.Errorf("peek: %+v of %v", list, total)
	}
}

func TestDiff(t *testing.T) {
	p := fixture()
	table := (&View{By: ByFunction}).Names(p).Table(p.Dumps)
	got := ""
	for _, c := range table.Diff(0, 1, Bytes) {
		got += fmt.Sprintf("%s %d→%d %v new=%v gone=%v\n", table.Stack(c.Row)[0], c.Before.Bytes, c.After.Bytes, c.Delta(Bytes).Float(), c.New(), c.Gone())
	}
	if want := "xmalloc 150→400 250 new=false gone=false\nidle 30→0 -30 new=false gone=true\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A log can have as many dumps as it has call paths: what a profile and its table
// take is in proportion to its records, not to the product.
func TestManyDumps(t *testing.T) {
	const n = 40000
	done := make(chan *Table)
	var p Profile
	go func() {
		for i := range n {
			p.Begin(Dump{})
			l, _ := p.Location(uint64(i), 0)
			id, _ := p.Path([]LocationID{l})
			p.Add(id, Value{uint64(i + 1), 1})
		}
		p.End()
		done <- (&View{}).Names(&p).Table(p.Dumps)
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	select {
	case table := <-done:
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > n*4096 {
			t.Errorf("%d bytes per record", used/n)
		}
		for i := range n {
			if v := p.Dumps[i].Value(PathID(i)); v.Bytes != uint64(i+1) || p.Dumps[i].Stacks() != 1 || table.Row(i).Value(i) != v {
				t.Fatalf("dump %d: %+v, %d call paths", i, v, p.Dumps[i].Stacks())
			}
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("over 2 minutes")
	}
}

// A dump that becomes large has what it had as a small one, and its order.
func TestLargeDump(t *testing.T) {
	var p Profile
	for i := range 100000 {
		l, _ := p.Location(uint64(i), 0)
		p.Path([]LocationID{l})
	}
	d := p.Begin(Dump{})
	want := map[PathID]Value{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 30000 {
		id := PathID(rnd.IntN(100000))
		v := want[id]
		v.Add(Value{3, 1})
		want[id] = v
		p.Add(id, Value{3, 1})
		if n := len(want); n == 5 || n == 5000 {
			if d.Stacks() != n || d.Value(id) != v {
				t.Fatalf("%d call paths, want %d; %+v, want %+v", d.Stacks(), n, d.Value(id), v)
			}
		}
	}
	p.End()
	last := -1
	for id, v := range d.Values() {
		if want[id] != v || int(id) <= last {
			t.Fatalf("path %d after %d: %+v, want %+v", id, last, v, want[id])
		}
		last = int(id)
	}
	if d.Stacks() != len(want) {
		t.Errorf("%d call paths, want %d", d.Stacks(), len(want))
	}
}

// Slopes are those of a spreadsheet's SLOPE over 0, 1, 2, …
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		points []uint64
		slope  float64
		every  bool
		spark  string
	}{
		{[]uint64{10, 20, 30, 40}, 10, true, "▁▃▅█"},
		{[]uint64{10, 30, 20, 40}, 8, false, "▁▅▃█"},
		{[]uint64{5, 5}, 0, false, "▁▁"},
		{[]uint64{0, 100}, 100, true, "▁█"},
		{[]uint64{7, 3, 2}, -2.5, false, "█▂▁"},
		{[]uint64{1, 2, 4, 8}, 2.3, true, "▁▂▄█"},
		{[]uint64{0, 0, 6, 0}, 0.6, false, "▁▁█▁"},
		{[]uint64{0, 0, 0, 6}, 1.8, false, "▁▁▁█"},
		{[]uint64{1 << 60, 1 << 60, 1 << 60}, 0, false, "▁▁▁"},
	} {
		var r TableRow
		for i, v := range c.points {
			if v > 0 {
				r.values = append(r.values, dumpValue{i, Value{Bytes: v, Count: 1}})
			}
		}
		g := (&Table{Dumps: make([]*Dump, len(c.points))}).growth(0, r, Bytes)
		if math.Abs(g.Slope-c.slope) > 1e-9 || g.Every != c.every {
			t.Errorf("%v: slope %v, in every dump %v; want %v, %v", c.points, g.Slope, g.Every, c.slope, c.every)
		}
		var bars []*Value
		for _, p := range r.Points(len(c.points)) {
			bars = append(bars, &p)
		}
		if got := Sparkline(bars, Bytes, 8); got != c.spark {
			t.Errorf("%v: %s, want %s", c.points, got, c.spark)
		}
	}
	p := fixture()
	table := (&View{By: ByFunction}).Names(p).Table(p.Dumps)
	g := table.Growth(Bytes)
	if len(g) != 1 || table.Stack(g[0].Row)[0].Func != "xmalloc" || g[0].Slope != 250 || !g[0].Every || table.Row(g[0].Row).Value(1).Bytes != 400 {
		t.Errorf("growth: %+v", g)
	}
	if all := table.TotalGrowth(Bytes); all.Slope != 405-185 {
		t.Errorf("total: %+v", all)
	}
}

func TestSums(t *testing.T) {
	p := &Profile{}
	l, _ := p.Location(0x10, 0)
	id, _ := p.Path([]LocationID{l})
	d := p.Begin(Dump{})
	p.Add(id, Value{1 << 62, 1})
	p.Add(id, Value{1 << 62, 1})
	if d.Total.Bytes != 1<<63 || p.Saturated {
		t.Errorf("two sizes of 2^62: %d, saturated %v", d.Total.Bytes, p.Saturated)
	}
	p.Add(id, Value{math.MaxUint64, 1})
	if d.Total.Bytes != math.MaxUint64 || d.Value(id) != (Value{math.MaxUint64, 3}) || !p.Saturated {
		t.Errorf("and 2^64-1: %+v, saturated %v", d.Total, p.Saturated)
	}
	if d := Sub(math.MaxUint64, 0); !d.Over(1<<63) || d.Float() != math.MaxUint64 {
		t.Errorf("growth by 2^64-1: %+v", d)
	}
	var out bytes.Buffer
	notes, err := (&View{}).Names(p).Export(&out, "pprof", d, ExportOptions{})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "2^63-1") {
		t.Errorf("pprof: %v, notes %q", err, notes)
	}
	ordered := []Delta{{true, 9}, {true, 1}, {}, {false, 1}, {false, 9}}
	for i := range ordered {
		for j := range ordered {
			if got := ordered[i].Compare(ordered[j]); got != min(1, max(-1, i-j)) {
				t.Errorf("%v with %v: %d", ordered[i], ordered[j], got)
			}
		}
	}
	if (Delta{true, 0}).Compare(Delta{}) != 0 {
		t.Error("-0 is not 0")
	}
}

// Against maps: random stacks in several dumps.
func TestAgainstMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := &Profile{}
	var want []map[string]Value
	for dump := range 5 {
		p.Begin(Dump{})
		sums := map[string]Value{}
		for range 6_000 {
			var ids []LocationID
			key := ""
			for range rng.IntN(32) {
				addr, tag := rng.Uint64N(1<<uint(1+rng.IntN(20))), uint32(rng.IntN(2))
				id, _ := p.Location(addr, tag)
				ids = append(ids, id)
				key += fmt.Sprint(addr, "/", tag, " ")
			}
			v := Value{rng.Uint64N(1 << uint(1+dump*8)), 1}
			id, more := p.Path(ids)
			if more {
				t.Fatal("more paths than the limit")
			}
			p.Add(id, v)
			s := sums[key]
			s.Add(v)
			sums[key] = s
		}
		want = append(want, sums)
	}
	p.End()
	for i, d := range p.Dumps {
		got := map[string]Value{}
		var ids []LocationID
		for id, v := range d.Values() {
			if d.Value(id) != v {
				t.Fatalf("path %d: %v and %v", id, d.Value(id), v)
			}
			key := ""
			ids = p.AppendPath(ids[:0], id)
			for _, l := range ids {
				key += fmt.Sprint(p.locations.keys.at(int(l)).addr, "/", p.locations.keys.at(int(l)).tag, " ")
			}
			got[key] = v
		}
		if len(got) != len(want[i]) || d.Stacks() != len(got) {
			t.Fatalf("dump %d: %d call paths, want %d", i, len(got), len(want[i]))
		}
		for k, v := range want[i] {
			if got[k] != v {
				t.Fatalf("dump %d, %s: %v, want %v", i, k, got[k], v)
			}
		}
	}
}

// Past the limit, records are added up as one path and counted.
func TestMaxPaths(t *testing.T) {
	p := &Profile{MaxPaths: 10}
	d := p.Begin(Dump{})
	for round := range 2 {
		for i := range 100 {
			l, _ := p.Location(uint64(i), 0)
			id, more := p.Path([]LocationID{l})
			if more != (i >= 10) {
				t.Fatalf("round %d, path %d: more is %v", round, i, more)
			}
			p.Add(id, Value{1, 1})
		}
	}
	if d.Total != (Value{200, 200}) || p.OtherRecords != 180 || d.Stacks() != 11 {
		t.Errorf("%+v, %d other, %d paths", d.Total, p.OtherRecords, d.Stacks())
	}
	r := (&View{}).Names(p).Top(d, TopOptions{N: 1})
	if r.Rows[0].Func != Other || r.Rows[0].Flat.Count != 180 {
		t.Errorf("top: %+v", r.Rows[0])
	}
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{
		"main": "main",
		"std::vector<int, std::allocator<int> >::push_back(int const&)": "std::vector<…>::push_back",
		"ns::f(std::function<void (int)>) const":                        "ns::f",
		"(anonymous namespace)::g(int)":                                 "(anonymous namespace)::g",
		"a::operator<<(a::b const&)":                                    "a::operator<<",
		"a::b::operator()(int) const":                                   "a::b::operator()",
		"cmp<a>::operator< (b)":                                         "cmp<…>::operator< ",
		"<alloc::vec::Vec<T> as core::ops::Drop>::drop":                 "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		"runtime.mallocgc":                                              "runtime.mallocgc",
		"main.(*T).Run":                                                 "main.(*T).Run",
		"broken<int":                                                    "broken<int",
	} {
		if got := Shorten(in); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestGranularities(t *testing.T) {
	for _, name := range Granularities() {
		if g, err := ParseGranularity(name); err != nil || g.String() != name {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
	if _, err := ParseGranularity("column"); err == nil {
		t.Error("column is a granularity")
	}
	if !slices.Equal(Granularities(), []string{"line", "function", "file", "module", "address"}) {
		t.Error(Granularities())
	}
}

package profile

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/symbol"
)

// frame is a frame of the fixtures: function, file and line.
func frame(fn, file string, line int) symbol.Frame {
	return symbol.Frame{Func: fn, Name: fn, File: file, Line: line}
}

var app = &symbol.Module{Name: "/bin/app", BuildID: "abcd", Start: 0x400000, End: 0x500000}

// addr is an address in the program of the fixtures.
func addr(pc uint64, frames ...symbol.Frame) symbol.Addr {
	return symbol.Addr{PC: pc, Location: &symbol.Location{Module: app, Own: pc, Call: pc - 1, Frames: frames}}
}

// bare returns an address without a Location.
func bare(pc uint64) symbol.Addr { return symbol.Addr{PC: pc} }

// fixture has two dumps of a program: main calls work, which grows, and idle, which
// goes. An inlined wrapper is in front of malloc. The paths are those of the first dump.
func fixture() (dumps []*Dump, paths []Path) {
	wrapped := frame("xmalloc", "/src/mem.c", 10)
	wrapped.Inlined = true
	main := addr(0x400100, frame("main", "/src/main.c", 3))
	work := addr(0x400200, wrapped, frame("work", "/src/work.c", 7))
	idle := addr(0x400300, frame("idle", "/src/main.c", 20))
	raw := bare(0x9000)
	var b Builder
	path := func(addrs ...symbol.Addr) Path { return b.Path(addrs) }
	paths = []Path{path(work, main), path(idle, main), path(raw, work, main)}
	b.Add(paths[0], Value{100, 1})
	b.Add(paths[0], Value{50, 1})
	b.Add(paths[1], Value{30, 3})
	b.Add(paths[2], Value{5, 1})
	dumps = append(dumps, b.End(DumpInfo{Name: "dump 1", Number: 1, Boot: 1}))
	b.Add(paths[0], Value{400, 4})
	b.Add(paths[2], Value{5, 1})
	return append(dumps, b.End(DumpInfo{Name: "dump 2", Number: 2, Boot: 1})), paths
}

// first is the profile of the first dump of the fixture, both of both dumps.
func first(t testing.TB, v View) *Profile {
	dumps, _ := fixture()
	return newProfile(t, dumps[:1]...).View(v)
}

func both(t testing.TB, v View) *Profile {
	dumps, _ := fixture()
	return newProfile(t, dumps...).View(v)
}

func newProfile(t testing.TB, dumps ...*Dump) *Profile {
	t.Helper()
	p, err := New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func siteRows(list []SiteRow) string {
	var b strings.Builder
	for _, row := range list {
		fmt.Fprintf(&b, "%d/%d %d/%d %s\n", row.Flat.Bytes, row.Flat.Count, row.Cum.Bytes, row.Cum.Count, row.Site)
	}
	return b.String()
}

// options are the arguments of Sites.
type options struct {
	n      int
	cum    bool
	weight Weight
}

func TestSites(t *testing.T) {
	re := regexp.MustCompile
	for _, c := range []struct {
		name string
		view View
		o    options
		want string
	}{
		{"lines", View{}, options{}, "150/2 155/3 xmalloc /src/mem.c:10\n30/3 30/3 idle /src/main.c:20\n5/1 5/1 0x9000\n0/0 185/6 main /src/main.c:3\n0/0 155/3 work /src/work.c:7\n"},
		{"functions, hidden wrapper", View{By: ByFunction, Filter: Filter{Hide: re("^xmalloc$")}}, options{}, "150/2 155/3 work\n30/3 30/3 idle\n5/1 5/1 0x9000\n0/0 185/6 main\n"},
		{"cumulative, one row", View{By: ByFunction}, options{cum: true, n: 1}, "0/0 185/6 main\n"},
		{"by count", View{By: ByFunction}, options{weight: Count, n: 1}, "30/3 30/3 idle\n"},
		{"modules", View{By: ByModule}, options{}, "180/5 185/6 app\n5/1 5/1 (unknown module)\n"},
		{"focus", View{By: ByFunction, Filter: Filter{Focus: re("idle")}}, options{}, "30/3 30/3 idle\n0/0 30/3 main\n"},
		{"focus by file", View{By: ByFunction, Filter: Filter{Focus: re(`work\.c`)}}, options{n: 1}, "150/2 155/3 xmalloc\n"},
		{"ignore", View{By: ByFunction, Filter: Filter{Ignore: re("idle|0x9000")}}, options{}, "150/2 150/2 xmalloc\n0/0 150/2 main\n0/0 150/2 work\n"},
	} {
		r := first(t, c.view).Sites(c.o.weight, c.o.cum, c.o.n)
		if got := siteRows(r.Rows); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
	p := first(t, View{Filter: Filter{Hide: re("nothing"), Ignore: re("idle")}})
	if r := p.Sites(Bytes, false, 1); r.Total != (Value{155, 3}) || r.Paths != 2 || r.Sites != 4 || len(r.Rows) != 1 || p.Total(0) != r.Total {
		t.Errorf("without idle: %+v", r)
	}
}

func TestRows(t *testing.T) {
	p := both(t, View{By: ByFunction})
	var got []string
	for row := range p.Rows() {
		got = append(got, fmt.Sprint(row.Stack()[0], row.Points(), row.Value()))
	}
	if want := []string{"xmalloc [{150 2} {400 4}] {400 4}", "idle [{30 3} {0 0}] {0 0}", "0x9000 [{5 1} {5 1}] {5 1}"}; !slices.Equal(got, want) || p.Len() != 3 {
		t.Errorf("%q", got)
	}
	top := p.Top(Bytes, 1)
	if len(top) != 1 || top[0].Value().Bytes != 400 || top[0].At(0).Bytes != 150 {
		t.Errorf("top: %+v", top)
	}
	if all := p.Top(Count, 0); len(all) != 2 || all[1].Stack()[0].Func != "0x9000" {
		t.Errorf("the last dump has %d rows, want 2", len(all))
	}
}

// Call paths that look alike are one row, in each dump.
func TestRowsAlike(t *testing.T) {
	var b Builder
	one := b.Path([]symbol.Addr{addr(0x1, frame("f", "a.c", 1)), addr(0x3, frame("main", "a.c", 9))})
	two := b.Path([]symbol.Addr{addr(0x2, frame("f", "a.c", 2)), addr(0x3, frame("main", "a.c", 9))})
	three := b.Path([]symbol.Addr{addr(0x4, frame("g", "a.c", 5))})
	b.Add(one, Value{1, 1})
	b.Add(three, Value{7, 1})
	first := b.End(DumpInfo{})
	b.Add(one, Value{10, 1})
	b.Add(two, Value{20, 1})
	second := b.End(DumpInfo{})
	p := newProfile(t, first, second)
	if p.Len() != 3 {
		t.Errorf("by line: %d rows, want 3", p.Len())
	}
	p = p.View(View{By: ByFunction})
	var got []string
	for row := range p.Rows() {
		got = append(got, fmt.Sprint(row.Stack(), row.Points()))
	}
	if want := []string{"[f main] [{1 1} {30 2}]", "[g] [{7 1} {0 0}]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A log can have as many dumps as it has call paths: the memory of a profile and its rows is
// in proportion to its records, not to the product.
func TestManyDumps(t *testing.T) {
	const n = 40000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var b Builder
	var dumps []*Dump
	for i := range n {
		b.Add(b.Path([]symbol.Addr{bare(uint64(i))}), Value{uint64(i + 1), 1})
		dumps = append(dumps, b.End(DumpInfo{}))
	}
	p := newProfile(t, dumps...)
	p.Len()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > n*2048 {
		t.Errorf("%d bytes per record", used/n)
	}
	i := 0
	for row := range p.Rows() {
		if want := (Value{uint64(i + 1), 1}); row.At(i) != want || dumps[i].Total != want || dumps[i].Len() != 1 {
			t.Fatalf("dump %d: %+v, %d call paths, %+v in row %d", i, dumps[i].Total, dumps[i].Len(), row.At(i), i)
		}
		i++
	}
	if i != n {
		t.Errorf("%d rows, want %d", i, n)
	}
}

func TestSums(t *testing.T) {
	var b Builder
	path := b.Path([]symbol.Addr{bare(0x10)})
	b.Add(path, Value{1 << 62, 1})
	b.Add(path, Value{1 << 62, 1})
	if d := b.Dump(DumpInfo{}); d.Total.Bytes != 1<<63 || d.Loss.Saturated {
		t.Errorf("two sizes of 2^62: %d, saturated %v", d.Total.Bytes, d.Loss.Saturated)
	}
	b.Add(path, Value{math.MaxUint64, 1})
	d := b.End(DumpInfo{})
	if d.Total.Bytes != math.MaxUint64 || d.Value(path) != (Value{math.MaxUint64, 3}) || !d.Loss.Saturated || d.Records != 3 {
		t.Errorf("and 2^64-1: %+v", d)
	}
	if d := b.End(DumpInfo{}); d.Loss.Saturated || d.Records != 0 {
		t.Errorf("the next dump: %+v", d)
	}
}

// testModules are modules of random stacks; nil stands for memory.
var testModules = []*symbol.Module{nil, {Name: "a"}, {Name: "a", BuildID: "1"}, {Name: "b"}}

// randomStack returns addresses and a text that is the same for call paths that are. An
// address in a module is the same wherever the module is.
func randomStack(rng *rand.Rand) (addrs []symbol.Addr, key string) {
	for range rng.IntN(32) {
		own, m, state := rng.Uint64N(1<<uint(1+rng.IntN(20))), rng.IntN(4), symbol.State(rng.IntN(2))
		a := symbol.Addr{PC: own, State: state}
		if m > 0 {
			module := *testModules[m]
			a = symbol.Addr{PC: own + rng.Uint64(), State: state, Location: &symbol.Location{Module: &module, Own: own}}
		}
		addrs = append(addrs, a)
		key += fmt.Sprint(own, "/", m, "/", state, " ")
	}
	return addrs, key
}

// keyOf returns the text of randomStack for a path.
func keyOf(p Path) (key string) {
	for _, x := range p.Append(nil) {
		own, m := x.PC, 0
		if x.Location != nil {
			own, m = x.Location.Own, slices.IndexFunc(testModules[1:], func(m *symbol.Module) bool { return *m == *x.Location.Module })+1
		}
		key += fmt.Sprint(own, "/", m, "/", x.State, " ")
	}
	return key
}

// Against maps: random stacks in several dumps.
func TestAgainstMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var b, other Builder
	var dumps, mixed []*Dump
	for i := range 5 {
		want := map[string]Value{}
		for range 1_000 {
			addrs, key := randomStack(rng)
			v := Value{1 + rng.Uint64N(1<<uint(1+i*8)), 1}
			b.Add(b.Path(addrs), v)
			s := want[key]
			s.Add(v)
			want[key] = s
		}
		d := b.End(DumpInfo{})
		got := map[string]Value{}
		for a := range d.Allocations() {
			key := keyOf(a.Path)
			if _, twice := got[key]; twice || d.Value(a.Path) != a.Value {
				t.Fatalf("%s: %v, twice %v", key, a.Value, twice)
			}
			got[key] = a.Value
			other.Add(a.Path, a.Value)
		}
		if !maps.Equal(got, want) || d.Len() != len(want) {
			t.Fatalf("dump %d: %d call paths, want %d", i, len(got), len(want))
		}
		dumps, mixed = append(dumps, d), append(mixed, d)
		if copied := other.End(d.DumpInfo); i%2 == 0 {
			mixed[i] = copied
		}
	}
	// Dumps of two Builders are merged.
	p, m := newProfile(t, dumps...), newProfile(t, mixed...)
	if p.Len() != m.Len() || Sum(mixed...).Total != Sum(dumps...).Total || Sum(mixed...).Len() != Sum(dumps...).Len() {
		t.Errorf("of two Builders %d rows, of one %d", m.Len(), p.Len())
	}
}

func TestSum(t *testing.T) {
	dumps, paths := fixture()
	sum := Sum(dumps...)
	if sum.Name != "dump 1 to dump 2" || sum.Records != 6 || sum.Total != (Value{590, 11}) || sum.Value(paths[0]) != (Value{550, 6}) || sum.Len() != 3 {
		t.Errorf("%+v", sum)
	}
	if Sum(dumps[1]) != dumps[1] {
		t.Error("the sum of one dump is another dump")
	}
}

// A returned dump does not change when allocations are added, and can be read concurrently.
func TestDumpWhileBuilding(t *testing.T) {
	var b Builder
	add := func(from, to int) {
		for i := from; i < to; i++ {
			b.Add(b.Path([]symbol.Addr{bare(uint64(i)), bare(uint64(i / 2))}), Value{1, 1})
		}
	}
	add(0, 3000)
	d := b.Dump(DumpInfo{Name: "so far"})
	if d.Ended || d.Complete() {
		t.Error("it has ended")
	}
	done := make(chan string)
	go func() {
		for range 20 {
			p, err := New(d)
			if err != nil {
				done <- err.Error()
				return
			}
			if r := p.Sites(Bytes, true, 1); r.Total != (Value{3000, 3000}) || r.Paths != 3000 || r.Rows[0].Cum.Count > 4 {
				done <- fmt.Sprintf("%+v", r)
				return
			}
		}
		done <- ""
	}()
	add(3000, 50_000)
	if text := <-done; text != "" {
		t.Error(text)
	}
	if d := b.End(DumpInfo{}); d.Len() != 50_000 || !d.Complete() {
		t.Errorf("%d call paths", d.Len())
	}
}

// Frames can be called concurrently, also of profiles of one dump.
func TestFramesConcurrently(t *testing.T) {
	var b Builder
	b.Add(b.Path([]symbol.Addr{bare(1)}), Value{1, 1})
	d := b.End(DumpInfo{})
	var done sync.WaitGroup
	for range 4 {
		p, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		p = p.View(View{Fold: true})
		done.Go(func() {
			for i := range 2000 {
				name := fmt.Sprintf("a<%d>::f()", i)
				frames := p.Frames(symbol.Addr{Location: &symbol.Location{Frames: []symbol.Frame{{Name: name}}}})
				if len(frames) != 1 || frames[0].Name != "a<…>::f" {
					t.Errorf("%s: %v", name, frames)
					return
				}
			}
		})
	}
	done.Wait()
}

// Past the limit, records are added up as one path and counted.
func TestMaxPaths(t *testing.T) {
	b := NewBuilder(10)
	for round := range 2 {
		for i := range 100 {
			path := b.Path([]symbol.Addr{bare(uint64(i))})
			if path.Other() != (i >= 10) {
				t.Fatalf("round %d, path %d: other is %v", round, i, path.Other())
			}
			b.Add(path, Value{1, 1})
		}
	}
	d := b.End(DumpInfo{})
	if d.Total != (Value{200, 200}) || d.Loss.OtherPaths != 180 || d.Len() != 11 {
		t.Errorf("%+v, %d paths", d, d.Len())
	}
	r := newProfile(t, d).Sites(Bytes, false, 1)
	if r.Rows[0].Func != OtherName || r.Rows[0].Flat.Count != 180 {
		t.Errorf("top: %+v", r.Rows[0])
	}
	if row := newProfile(t, d).Top(Bytes, 1)[0]; len(row.Stack()) != 1 || row.Stack()[0].Func != OtherName {
		t.Errorf("top: %v", row.Stack())
	}
}

// No function panics on nil, empty or out-of-range arguments.
func TestNothing(t *testing.T) {
	for name, f := range map[string]func() error{
		"New()":    func() error { _, err := New(); return err },
		"New(nil)": func() error { _, err := New(nil); return err },
	} {
		if f() == nil {
			t.Errorf("%s is no error", name)
		}
	}
	all := regexp.MustCompile("")
	for i, p := range []*Profile{nil, {}, newProfile(t, &Dump{}), newProfile(t, new(Builder).End(DumpInfo{}), Sum())} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			isEmpty(t, p)
			isEmpty(t, p.View(View{By: 99, Filter: Filter{Focus: all, Hide: all}}))
		})
	}
}

func isEmpty(t *testing.T, p *Profile) {
	t.Helper()
	for row := range p.Rows() {
		t.Errorf("a row: %v", row)
	}
	if p.Len()+len(p.Top(Bytes, -1))+len(p.Sites(9, true, -3).Rows) != 0 {
		t.Error("something in nothing")
	}
	if p.Total(-1) != (Value{}) || p.Total(5) != (Value{}) {
		t.Error("a total")
	}
	p.Stack(Path{})
	p.Current()
	for a := range p.Stacks() {
		t.Errorf("an allocation: %v", a)
	}
	p.Frames(symbol.Addr{})
}

func TestZeroValues(t *testing.T) {
	var row Row
	if row.Stack() != nil || row.Value() != (Value{}) || row.At(3) != (Value{}) || row.Points() != nil {
		t.Error("the zero Row is not empty")
	}
	if row := both(t, View{}).Top(Bytes, 1)[0]; row.At(-1) != (Value{}) || row.At(2) != (Value{}) {
		t.Error("a row holds something in no dump")
	}
	var path Path
	for range path.Frames() {
		t.Error("the zero Path has frames")
	}
	if path.Other() || len(path.Append(nil)) != 0 {
		t.Error("the zero Path is not empty")
	}
	var d *Dump
	for range d.Allocations() {
		t.Error("no dump has allocations")
	}
	if missing, known := d.Missing(); d.Complete() || missing != 0 || known {
		t.Error("no dump is complete, or announces records")
	}
	var b Builder
	b.Add(path, Value{5, 1})
	if d := b.End(DumpInfo{}); d.Len() != 1 || d.Total != (Value{5, 1}) {
		t.Errorf("a call path without address: %+v", d)
	}
}

// Dumps of several Builders keep the values since the boot and the standard errors.
func TestNewOfSeveralBuilders(t *testing.T) {
	var dumps []*Dump
	for range 2 {
		var b Builder
		live, freed := b.Path([]symbol.Addr{{PC: 1}}), b.Path([]symbol.Addr{{PC: 2}})
		b.AddAllocation(Allocation{Path: live, Value: Value{8, 1}, Ever: Value{80, 10}, BytesErr: 3})
		b.AddAllocation(Allocation{Path: freed, Ever: Value{16, 2}})
		dumps = append(dumps, b.End(DumpInfo{Sample: 512}))
	}
	for i, d := range newProfile(t, dumps...).Dumps() {
		list := slices.Collect(d.Allocations())
		if err, _ := d.TotalStdErr(); err != 3 || len(list) != 1 || list[0].Ever != (Value{80, 10}) || len(slices.Collect(d.Freed())) != 1 || d.Records != dumps[i].Records {
			t.Errorf("dump %d: %+v, standard error %g", i, list, err)
		}
	}
}

func TestPathFrames(t *testing.T) {
	_, paths := fixture()
	got := ""
	for f := range paths[2].Frames() {
		got += f.Name + " "
	}
	if got != "0x9000 xmalloc work main " {
		t.Error(got)
	}
}

// Collect goes on past an error, and returns it with what there is.
func TestCollect(t *testing.T) {
	dumps, _ := fixture()
	bad := errors.New("bad")
	p, err := Collect(func(yield func(*Dump, error) bool) {
		_ = yield(dumps[0], nil) && yield(nil, bad) && yield(dumps[1], nil) && yield(nil, errors.New("another"))
	})
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), "another") || len(p.Dumps()) != 2 {
		t.Errorf("%v, %v", p.Dumps(), err)
	}
	if _, err := Collect(func(func(*Dump, error) bool) {}); err == nil {
		t.Error("no dump is no error")
	}
	if p, err := Collect(nil); p != nil || err == nil {
		t.Errorf("nil: %v, %v", p, err)
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
		"cmp<a>::operator< (b)":                                         "cmp<…>::operator<",
		"<alloc::vec::Vec<T> as core::ops::Drop>::drop":                 "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		"int accept<36>(int)":                                           "accept",
		"unsigned long (anonymous namespace)::h<3>(int)":                "(anonymous namespace)::h",
		"std::shared_ptr<A> std::make_shared<A>(int&&)":                 "std::make_shared",
		"A::operator unsigned int()":                                    "A::operator unsigned int",
		"B* A::operator B*<int>()":                                      "A::operator B*",
		"void* operator new<int>(int)":                                  "operator new",
		"f(int) [clone .constprop.0] [clone .cold]":                     "f",
		"runtime.mallocgc":                                              "runtime.mallocgc",
		"main.(*T).Run":                                                 "main.(*T).Run",
		"broken<int":                                                    "broken<int",
	} {
		if got := shorten(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

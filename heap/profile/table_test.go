package profile

import (
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/symbol"
)

// Dumps that are equal share one table: reading one of 10,000 does not walk through those before it.
func TestEqualDumps(t *testing.T) {
	b := NewBuilder(0)
	p := b.Path([]symbol.Addr{bare(0x1000)})
	b.Add(p, Value{8, 1})
	first := b.End(DumpInfo{})
	for range 3 {
		b.Add(p, Value{8, 1})
		if d := b.End(DumpInfo{}); d.live != first.live || d.Value(p) != (Value{8, 1}) {
			t.Errorf("an equal dump has a table of its own, with %v", d.Value(p))
		}
	}
}

// Dumps that share values with those before them have the values that were added, and take memory
// for what changed only.
func TestSharedValues(t *testing.T) {
	const paths, dumps = 2000, 300
	rng := rand.New(rand.NewPCG(1, 2))
	b := NewBuilder(0)
	all := make([]Path, paths)
	for i := range all {
		all[i] = b.Path([]symbol.Addr{bare(uint64(0x1000 + i/2)), bare(uint64(0x9000 + i%2))})
	}
	want := map[Path]Value{}
	wants := make([]map[Path]Value, dumps)
	list := make([]*Dump, dumps)
	for _, p := range all {
		want[p] = Value{8, 1}
	}
	kept := 0
	for i := range list {
		for range rng.IntN(20) {
			p := all[rng.IntN(paths)]
			if rng.IntN(3) == 0 {
				delete(want, p)
			} else {
				want[p] = Value{rng.Uint64N(100), uint64(1 + i)}
			}
		}
		for p, v := range want {
			b.Add(p, v)
		}
		wants[i], list[i] = maps.Clone(want), b.End(DumpInfo{})
		kept += len(list[i].live.ids)
	}
	if most := 10 * paths; kept > most {
		t.Errorf("%d values are kept for %d dumps of %d call paths that differ in 10, want at most %d", kept, dumps, paths, most)
	}
	for i, d := range list {
		got := map[Path]Value{}
		for a := range d.Allocations() {
			got[a.Path] = a.Value
		}
		if !maps.Equal(got, wants[i]) || d.Len() != len(got) {
			t.Fatalf("dump %d: %d values, want %d", i, len(got), len(wants[i]))
		}
		for _, p := range all[:50] {
			if d.Value(p) != wants[i][p] {
				t.Fatalf("dump %d: %v, want %v", i, d.Value(p), wants[i][p])
			}
		}
	}
	// In another order, and merged by the inner address.
	order := rng.Perm(dumps)[:100]
	picked := make([]*Dump, len(order))
	for k, i := range order {
		picked[k] = list[i]
	}
	p := newProfile(t, picked...)
	p = p.View(View{By: ByModule})
	for k, i := range order {
		sum := Value{}
		for _, v := range wants[i] {
			sum.Add(v)
		}
		if p.Total(k) != sum || slices.Collect(p.Rows())[0].At(k) != sum {
			t.Fatalf("dump %d: total %v, row %v, want %v", i, p.Total(k), slices.Collect(p.Rows())[0].At(k), sum)
		}
	}
}

// A sum that overflows in one dump, such as by a damaged line, is right again in the next.
func TestOverflowOfOneDump(t *testing.T) {
	b := NewBuilder(0)
	x, y := b.Path([]symbol.Addr{bare(0x10)}), b.Path([]symbol.Addr{bare(0x20)})
	var list []*Dump
	for _, bytes := range []uint64{7, math.MaxUint64 - 1, 9} {
		b.Add(x, Value{bytes, 1})
		b.Add(y, Value{5, 1})
		list = append(list, b.End(DumpInfo{}))
	}
	p := newProfile(t, list...).View(View{By: ByModule})
	row := slices.Collect(p.Rows())[0]
	for i, want := range []uint64{12, math.MaxUint64, 14} {
		if got := row.At(i); got != (Value{want, 2}) {
			t.Errorf("dump %d: %v, want %d bytes", i, got, want)
		}
	}
}

// A focus that matches no address leaves out all call paths, those of addresses without names, too.
func TestFocusOfNoName(t *testing.T) {
	b := NewBuilder(0)
	b.Add(b.Path([]symbol.Addr{bare(0x10)}), Value{8, 1})
	p := newProfile(t, b.End(DumpInfo{})).View(View{Filter: Filter{Focus: regexp.MustCompile("main")}})
	if n := p.Len(); n != 0 || !p.Total(0).IsZero() {
		t.Errorf("%d rows of %v, want none", n, p.Total(0))
	}
}

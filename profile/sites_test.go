package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// siteStack is what a test adds.
type siteStack struct {
	pcs  []uint64
	lost uint32
	v    Value
}

// randomStacks returns stacks of addresses of which many repeat, in a stack and over all.
func randomStacks(rng *rand.Rand, n, addrs int) (list []siteStack) {
	for range n {
		s := siteStack{v: Value{rng.Uint64N(5000), 1}, lost: rng.Uint32() & rng.Uint32() & rng.Uint32()}
		switch rng.IntN(20) {
		case 0:
			s.v = Value{rng.Uint64N(1 << 50), 1 + rng.Uint64N(1<<40)}
		case 1:
			s.lost = 0
		}
		for i := range rng.IntN(33) {
			pc := 0x7f0000000000 + rng.Uint64N(uint64(addrs))*8
			if i > 0 && rng.IntN(4) == 0 {
				pc = s.pcs[rng.IntN(i)]
			}
			s.pcs = append(s.pcs, pc|rng.Uint64N(2)<<40)
		}
		s.lost &= 1<<len(s.pcs) - 1
		list = append(list, s)
	}
	return list
}

// name is what a report calls an address.
func (s *siteStack) name(i int) string {
	if s.lost>>i&1 != 0 {
		return fmt.Sprintf("?%x", s.pcs[i]&(1<<31-1))
	}
	return fmt.Sprintf("0x%x", s.pcs[i])
}

// sumsOf adds up by name what call sites hold.
func sumsOf(list []siteStack) map[string]*Row {
	rows := map[string]*Row{}
	for _, s := range list {
		done := map[string]bool{}
		for i := range s.pcs {
			name := s.name(i)
			if done[name] {
				continue
			}
			done[name] = true
			if rows[name] == nil {
				rows[name] = &Row{Site: Site{Func: name}}
			}
			rows[name].Cum.Add(s.v)
			if i == 0 {
				rows[name].Flat.Add(s.v)
			}
		}
	}
	return rows
}

// Sites that several goroutines add to hold what the stacks of the last era add up to.
func TestSites(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for _, c := range []struct{ stacks, addrs, eras int }{{0, 1, 1}, {1, 1, 1}, {300, 20, 3}, {3000, 300, 1}, {9000, 100_000, 1}, {3000, 100_000, 4}} {
		t.Run(fmt.Sprintf("%d stacks, %d addresses, %d eras", c.stacks, c.addrs, c.eras), func(t *testing.T) {
			var s Sites
			adders := make([]SiteAdder, 3)
			var list []siteStack
			for era := 1; era <= c.eras; era++ {
				list = randomStacks(rng, c.stacks, c.addrs)
				var running sync.WaitGroup
				for w := range adders {
					running.Go(func() {
						a := &adders[w]
						for i, st := range list {
							if i%3 != w {
								continue
							}
							keys, lost, _ := a.AppendStack([]SiteKey{1, 2}, st.pcs, st.lost)
							a.Add(&s, uint32(era), keys[2:], lost, st.v)
						}
						a.Flush(&s)
					})
				}
				running.Wait()
			}
			var late SiteAdder
			for _, st := range list {
				keys, lost, _ := late.AppendStack(nil, st.pcs, st.lost)
				late.Add(&s, uint32(c.eras-1), keys, lost, st.v)
			}
			late.Flush(&s)
			want := sumsOf(list)
			got := s.Top(uint32(c.eras), TopOptions{})
			if len(got.Rows) != len(want) || got.Sites != len(want) {
				t.Fatalf("%d rows of %d sites, want %d", len(got.Rows), got.Sites, len(want))
			}
			if all := s.Top(uint32(c.eras), TopOptions{N: math.MaxInt}); !slices.Equal(all.Rows, got.Rows) {
				t.Errorf("as many rows as an int has: %d, want %d", len(all.Rows), len(got.Rows))
			}
			for _, r := range got.Rows {
				if w := want[r.Func]; w == nil || *w != r {
					t.Fatalf("%+v, want %+v", r, w)
				}
			}
			// Fewer rows are the first of all.
			for _, o := range []TopOptions{{N: 7}, {N: 7, Cum: true}, {N: 1000, Weight: Count}, {N: 3, Cum: true, Weight: Count}} {
				all := o
				all.N = 0
				first, whole := s.Top(uint32(c.eras), o).Rows, s.Top(uint32(c.eras), all).Rows
				if !slices.Equal(first, whole[:min(o.N, len(whole))]) {
					t.Errorf("%+v: the rows are not the first of all", o)
				}
				if !slices.IsSortedFunc(whole, func(a, b Row) int {
					x, y := o.Weight.Of(a.Flat), o.Weight.Of(b.Flat)
					if o.Cum {
						x, y = o.Weight.Of(a.Cum), o.Weight.Of(b.Cum)
					}
					return -cmpUint(x, y)
				}) {
					t.Errorf("%+v: not in order", o)
				}
			}
			if n := s.Len(); n > 2*len(want)+1 {
				t.Errorf("Len %d of %d call sites", n, len(want))
			}
		})
	}
}

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Sums saturate, and stacks past the limit are a call site.
func TestSitesAtTheirLimits(t *testing.T) {
	s := Sites{Other: Value{30, 2}, Total: Value{100, 5}, Stacks: 3}
	var a SiteAdder
	keys, lost, _ := a.AppendStack(nil, []uint64{0, 1<<64 - 1}, 0)
	a.Add(&s, 1, keys, lost, Value{math.MaxUint64, 1})
	a.Add(&s, 1, keys[:1], lost, Value{5, 1})
	a.Flush(&s)
	got := s.Top(1, TopOptions{N: 3, Cum: true})
	want := []Row{
		{Site{Func: "0x0"}, Value{math.MaxUint64, 2}, Value{math.MaxUint64, 2}},
		{Site{Func: "0xffffffffffffffff"}, Value{}, Value{math.MaxUint64, 1}},
		{Site{Func: Other}, Value{30, 2}, Value{30, 2}},
	}
	if !slices.Equal(got.Rows, want) || got.Total != s.Total || got.Stacks != 3 || got.Sites != 3 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if v := (Value{1 << 40, 3}).Times(1 << 24); v != (Value{math.MaxUint64, 3 << 24}) {
		t.Errorf("Times: %v", v)
	}
}

// A hash distinguishes call paths by their addresses, their order, and what is lost.
func TestPathHashes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var a SiteAdder
	list := []siteStack{{pcs: nil}, {pcs: []uint64{0}}, {pcs: []uint64{0, 0}}, {pcs: []uint64{1, 2}}, {pcs: []uint64{2, 1}},
		{pcs: []uint64{1, 2}, lost: 1}, {pcs: []uint64{1, 2}, lost: 2}, {pcs: []uint64{1, 1<<31 + 2}, lost: 2}, {pcs: []uint64{1<<31 + 1, 2}, lost: 1}}
	list = append(list, randomStacks(rng, 3000, 10)...)
	seen := map[PathHash]string{}
	hashes := map[string]PathHash{}
	for range 2 {
		for _, s := range list {
			_, _, h := a.AppendStack(nil, s.pcs, s.lost)
			text := fmt.Sprint(s.pcs, s.lost)
			if was, ok := seen[h]; ok && was != text {
				t.Fatalf("one hash of %s and %s", was, text)
			}
			if was, ok := hashes[text]; ok && was != h {
				t.Fatalf("two hashes of %s", text)
			}
			seen[h], hashes[text] = text, h
		}
	}
}

// Keys are those of their addresses.
func TestSiteKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 2000 {
		addr := rng.Uint64() >> rng.IntN(64)
		if i < 3 {
			addr = []uint64{0, 1, 1<<64 - 1}[i]
		}
		if got := siteKey(addr).addr(); got != addr {
			t.Errorf("%#x, want %#x", got, addr)
		}
	}
}

// A PathSet knows which call paths it has met and in which era, up to its limit.
func TestPathSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, most := range []int{0, 1, 500, 1 << 20} {
		var s PathSet
		want := map[PathHash]uint32{}
		for n := range 40_000 {
			h := PathHash{rng.Uint64N(20_000) * 0x9e3779b97f4a7c15, rng.Uint32N(2)}
			era := uint32(1 + n/10_000)
			s.Expect(h)
			before, ok := s.Meet(h, era, most)
			if before != want[h] || ok != (want[h] != 0 || len(want) < most) {
				t.Fatalf("%v: %d, %v; want %d of %d", h, before, ok, want[h], len(want))
			}
			if ok {
				want[h] = era
			}
		}
		if s.Len() != len(want) {
			t.Errorf("%d call paths, want %d", s.Len(), len(want))
		}
	}
}

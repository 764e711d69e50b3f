package symbol

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// modelMap is a memory map as a list of mappings. The last mapping that holds an address
// counts.
type modelMap struct {
	list                []Mapping
	found, matched, cut int
}

func (m *modelMap) holder(addr uint64) *Mapping {
	for i := len(m.list) - 1; i >= 0; i-- {
		if m.list[i].Start <= addr && addr < m.list[i].End {
			return &m.list[i]
		}
	}
	return nil
}

// find compares what a space has at an address.
func (m *modelMap) find(t *testing.T, s *space, addr uint64) {
	t.Helper()
	got, want := s.find(addr), m.holder(addr)
	if (got == nil) != (want == nil) {
		t.Fatalf("%#x: %+v, want %+v", addr, got, want)
	}
	if got == nil {
		return
	}
	m.found++
	if got.Module != want.Module || addr-got.Start+got.Offset != addr-want.Start+want.Offset || got.Exec != want.Exec {
		t.Fatalf("%#x: %+v, want %+v", addr, got, want)
	}
}

// match compares which addresses with the low bits of addr a space has.
func (m *modelMap) match(t *testing.T, s *space, addr uint64) {
	t.Helper()
	var model []uint64
	for top := range uint64(32) {
		a := top<<31 | addr&low31Mask
		if h := m.holder(a); h != nil && h.Exec {
			model = append(model, a)
		}
	}
	matches, all := s.appendMatches(nil, addr)
	slices.Sort(matches)
	if all && !slices.Equal(matches, model) {
		t.Fatalf("low bits of %#x: %#x, want %#x", addr, matches, model)
	}
	for _, a := range matches {
		if !slices.Contains(model, a) {
			t.Fatalf("low bits of %#x: %#x is not executable", addr, a)
		}
	}
	if m.matched += len(matches); !all {
		m.cut++
	}
}

// Whatever is mapped over what, and however it is told, an address belongs to the
// last mapping that holds it, and the addresses with the same low bits are found.
func TestSpaceAgainstAList(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 2026))
	rounds := 40
	if full {
		rounds = 400
	}
	var model modelMap
	for range rounds {
		var tl timeline
		model.list = nil
		for range 1 + rng.IntN(700) {
			m := randomMapping(rng, fmt.Sprint(len(model.list)))
			if err := tl.add(m); err != nil {
				t.Fatal(err)
			}
			model.list = append(model.list, m)
			if rng.IntN(40) > 0 {
				continue
			}
			tl.settle()
			for range 30 {
				of := model.list[rng.IntN(len(model.list))]
				addr := of.Start + rng.Uint64N(of.End-of.Start+2) - 1
				model.find(t, &tl.space, addr)
				model.match(t, &tl.space, addr)
			}
			checkDisjoint(t, tl.list)
		}
	}
	t.Logf("%d addresses found, %d matches of low bits, %d lists cut short", model.found, model.matched, model.cut)
	if model.found < 10_000 || model.matched < 10_000 {
		t.Error("hardly anything was found")
	}
}

func randomMapping(rng *rand.Rand, name string) Mapping {
	start := uint64(1+rng.IntN(6))<<32 + uint64(rng.IntN(4))<<31 + uint64(rng.IntN(300))<<12
	m := Mapping{Start: start, End: start + uint64(rng.IntN(20))<<12, Exec: rng.IntN(3) > 0, Offset: rng.Uint64N(1 << 20),
		Module: &Module{Name: name}}
	if rng.IntN(200) == 0 {
		m.End = m.Start + 3<<31
	}
	return m
}

func checkDisjoint(t *testing.T, list []*Mapping) {
	t.Helper()
	last := uint64(0)
	for _, m := range list {
		if m.Start < last || m.Start >= m.End {
			t.Fatalf("mapping %+v begins before %#x, where the one before it ends", m, last)
		}
		last = m.End
	}
}

// A memory map that is told again, as before each dump, begins no generation: nothing has
// to be looked up again. Whatever makes an address resolve otherwise begins one.
func TestGeneration(t *testing.T) {
	path := buildC(t, strings.Fields("gcc -O0 -g -pie"), "prog.c", "other.c")
	p := process(t, path)
	f := p.Files()[0]
	tell := func(size uint64) {
		p.Map(nil)
		if err := p.Add(Mapping{Start: 0x1000, End: 0x1000 + size, Exec: true, Module: &Module{Name: "a", BuildID: "aa", Logged: true}}); err != nil {
			t.Fatal(err)
		}
	}
	base := Base{File: f, Bias: 0x10000, Exact: true, Votes: 10, InCode: 10, logP: -10}
	for _, step := range []struct {
		name    string
		do      func()
		changes bool
	}{
		{"nothing", func() {}, false},
		{"no map and no base", func() { p.Map(nil); p.SetBases(nil) }, false},
		{"a map", func() { tell(0x1000) }, true},
		{"the same map", func() { tell(0x1000) }, false},
		{"another map", func() { tell(0x2000) }, true},
		{"a snapshot", func() { p.Map([]Mapping{{Start: 0x1000, End: 0x3000}}) }, true},
		{"a snapshot again", func() { p.Map([]Mapping{{Start: 0x1000, End: 0x3000}}) }, false},
		{"no map", func() { p.Map(nil) }, true},
		{"a base", func() { p.SetBases([]Base{base}) }, true},
		{"the base again", func() { p.SetBases([]Base{base}) }, false},
		{"a base that is not sound", func() { p.SetBases([]Base{{File: f, Bias: 0x20000}}) }, true}, // no base now
		{"a base that is not sound again", func() { p.SetBases([]Base{{File: f, Bias: 0x30000}}) }, false},
		{"the word", func() { p.SetWord(f.Word, "test") }, true},
		{"the word again", func() { p.SetWord(f.Word, "test") }, false},
	} {
		before := p.Generation()
		step.do()
		if changed := p.Generation() != before; changed != step.changes {
			t.Errorf("%s: generation %d after %d, want a change: %v", step.name, p.Generation(), before, step.changes)
		}
	}
}

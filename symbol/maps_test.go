package symbol

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
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

// wrapped are the errors that were joined.
func wrapped(err error) []error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		return list.Unwrap()
	}
	return nil
}

// A memory map that is told again, as before each dump, begins no generation: nothing has
// to be looked up again. Whatever makes an address resolve otherwise begins one.
func TestGeneration(t *testing.T) {
	path := buildC(t, strings.Fields("gcc -O0 -g -pie"), "prog.c", "other.c")
	p := process(t, path)
	f := p.Files()[0]
	tell := func(size string) {
		for _, l := range []string{"{{{reset}}}", "{{{module:0:a:elf:aa}}}", "{{{mmap:0x1000:" + size + ":load:0:rx:0}}}"} {
			if err := p.Markup([]byte(l)); err != nil {
				t.Fatal(err)
			}
		}
	}
	base := Base{File: f, Bias: 0x10000, Exact: true, Votes: 10, InCode: 10, logP: -10}
	for _, step := range []struct {
		name    string
		do      func()
		changes bool
	}{
		{"nothing", func() {}, false},
		{"text", func() { p.Markup([]byte("some text { with }}} braces\n")) }, false},
		{"a reset of nothing", func() { p.Reset(); p.Markup([]byte("{{{reset}}}")) }, false},
		{"a map", func() { tell("0x1000") }, true},
		{"the same map", func() { tell("0x1000") }, false},
		{"another map", func() { tell("0x2000") }, true},
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

// Reset is the zero value: a log that says no more than that something began does
// not keep bases from being used.
func TestResetIsTheZeroValue(t *testing.T) {
	p := process(t)
	if err := p.Markup([]byte("{{{reset}}}")); err != nil || p.Mapped() {
		t.Errorf("after a reset: mapped %v, %v, want no map", p.Mapped(), err)
	}
	p.Map([]Mapping{{Start: 0x1000, End: 0x2000}})
	if !p.Mapped() {
		t.Error("no map after Map")
	}
	p.Reset()
	if p.Mapped() {
		t.Error("a map after Reset")
	}
}

// Logs whose maps grow, come out of order or begin anew all the time take time in
// proportion to their length, and mappings have a limit.
func TestMapsInLinearTime(t *testing.T) {
	const module = "{{{module:0:a:elf:aa}}}\n"
	rng := rand.New(rand.NewPCG(9, 2026))
	for _, c := range []struct {
		name  string
		lines int
		line  func(i int) string
		fails bool
	}{
		{"mappings with a record after each", 20_000, func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:0x1000:load:0:rx:0}}}", 0x1000_0000+i<<12)
		}, false},
		{"mappings out of order", 60_000, func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:0x1000:load:0:rx:0}}}", rng.Uint64N(1<<36)<<12)
		}, false},
		{"one mapping over and over", 100_000, func(int) string { return "{{{mmap:0x1000:0x1000:load:0:rx:0}}}" }, false},
		{"a reset each time", 100_000, func(int) string {
			return "{{{reset}}}" + module + "{{{mmap:0x1000:0x1000:load:0:rx:0}}}"
		}, false},
		{"more mappings than a process has", 150_000, func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:0x800:load:0:rx:0}}}", 0x1000_0000+i<<12)
		}, true},
	} {
		p := process(t)
		failed := 0
		write := func(text string) {
			for _, err := range wrapped(p.Markup([]byte(text))) {
				if failed++; !strings.Contains(err.Error(), "65,536") {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
		write(module)
		if !full && !c.fails {
			c.lines /= 4
		}
		start := time.Now()
		var tenth time.Duration // for the first of ten parts
		for i := range c.lines {
			if i == c.lines/10 {
				tenth = time.Since(start)
			}
			write(c.line(i) + "\n")
			p.Locate(uint64(i))
		}
		took := time.Since(start)
		t.Logf("%s: %d lines in %v, %d refused", c.name, c.lines, took, failed)
		// On a slow machine, the first part is slow as well; without proportion, it takes a hundredth.
		limit := max(50*tenth, 2*time.Second+time.Duration(c.lines)*100*time.Microsecond)
		if took > limit && !testing.Short() { // with a race detector, which is run -short, time says nothing
			t.Errorf("%s: %v for %d lines, expected at most %v", c.name, took, c.lines, limit)
		}
		if (failed > 0) != c.fails {
			t.Errorf("%s: %d elements refused", c.name, failed)
		}
		if n := len(p.locations); n > minCached {
			t.Errorf("%s: %d locations are kept", c.name, n)
		}
	}
}

// Elements come in pieces, as a log is read.
func TestMarkupInPieces(t *testing.T) {
	const log = "x {{{reset}}} {{{module:0:a:elf:aa}}}\n{{ {{{mmap:0x1000:0x2000:load:0:rx:0}}} y {{{mmap:0x9000:\n0x1000:load:0:rx:0}}}\n{{{mmap:zz:0:load:0:rx:0}}}\n"
	for size := 1; size < len(log); size++ {
		p := process(t)
		bad := 0
		for piece := range slices.Chunk([]byte(log), size) {
			bad += len(wrapped(p.Markup(piece)))
		}
		if s := &p.maps.space; len(p.maps.list) != 1 || s.find(0x1000) == nil || s.find(0x9000) != nil || bad != 1 {
			t.Errorf("in pieces of %d bytes: %+v, %d bad, want the mapping at 0x1000 alone", size, s, bad)
		}
	}
}

// Mappings without a byte are none.
func TestSetOfEmptyMappings(t *testing.T) {
	p := process(t)
	p.Map([]Mapping{{Start: 0x1000, End: 0x1000}})
	if p.Mapped() || p.MapWord() != 0 {
		t.Errorf("mapped %v, %d bits", p.Mapped(), p.MapWord())
	}
}

package symbol

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever is mapped over what, and however it is told, an address belongs to the
// last mapping that holds it, and the addresses with the same low bits are found.
func TestSpaceAgainstAList(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 2026))
	found, matched, cut := 0, 0, 0
	rounds := 40
	if full {
		rounds = 400
	}
	for range rounds {
		var tl Timeline
		var list []Mapping // the model: all mappings in order
		for range 1 + rng.IntN(700) {
			start := uint64(1+rng.IntN(6))<<32 + uint64(rng.IntN(4))<<31 + uint64(rng.IntN(300))<<12
			m := Mapping{Start: start, End: start + uint64(rng.IntN(20))<<12, Exec: rng.IntN(3) > 0, Offset: rng.Uint64N(1 << 20),
				Module: &Module{Name: fmt.Sprint(len(list))}}
			if rng.IntN(200) == 0 {
				m.End = m.Start + 3<<31
			}
			if err := tl.Map(m); err != nil {
				t.Fatal(err)
			}
			list = append(list, m)
			if rng.IntN(40) > 0 {
				continue
			}
			s := tl.Space()
			holder := func(addr uint64) *Mapping {
				for i := len(list) - 1; i >= 0; i-- {
					if list[i].Start <= addr && addr < list[i].End {
						return &list[i]
					}
				}
				return nil
			}
			for range 30 {
				of := list[rng.IntN(len(list))]
				addr := of.Start + rng.Uint64N(of.End-of.Start+2) - 1
				got, want := s.Find(addr), holder(addr)
				if (got == nil) != (want == nil) {
					t.Fatalf("%#x: %+v, want %+v", addr, got, want)
				}
				if got != nil {
					found++
					if got.Module != want.Module || addr-got.Start+got.Offset != addr-want.Start+want.Offset || got.Exec != want.Exec {
						t.Fatalf("%#x: %+v, want %+v", addr, got, want)
					}
				}
				var model []uint64 // addresses of the window that are executable
				for top := range uint64(32) {
					a := top<<31 | addr&low31Mask
					if m := holder(a); m != nil && m.Exec {
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
				matched += len(matches)
				if !all {
					cut++
				}
			}
			last := uint64(0)
			for _, m := range s.Mappings() {
				if m.Start < last || m.Start >= m.End {
					t.Fatalf("mapping %+v begins before %#x, where the one before it ends", m, last)
				}
				last = m.End
			}
		}
	}
	t.Logf("%d addresses found, %d matches of low bits, %d lists cut short", found, matched, cut)
	if found < 10_000 || matched < 10_000 {
		t.Error("hardly anything was found")
	}
}

// What is told again, as before each dump, is the same space: nothing has to be
// looked up again.
func TestSpaceToldAgain(t *testing.T) {
	var tl Timeline
	tell := func(size string) *Space {
		for _, l := range []string{"{{{reset}}}", "{{{module:0:a:elf:aa}}}", "{{{mmap:0x1000:" + size + ":load:0:rx:0}}}"} {
			if err := tl.Markup([]byte(l)); err != nil {
				t.Fatal(err)
			}
		}
		return tl.Space()
	}
	a, b, c := tell("0x1000"), tell("0x1000"), tell("0x2000")
	if a != b || a == c || a.ID == c.ID {
		t.Errorf("spaces %p, %p and %p, want the first two to be one", a, b, c)
	}
}

// Reset is the zero value: a log that says no more than that something began does
// not keep bases from being used.
func TestResetIsTheZeroValue(t *testing.T) {
	var p Process
	if err := p.Maps.Markup([]byte("{{{reset}}}")); err != nil || p.Maps.Space() != nil {
		t.Errorf("after a reset: %v, %v, want no space", p.Maps.Space(), err)
	}
	p.Maps.Set([]Mapping{{Start: 0x1000, End: 0x2000}})
	if p.Maps.Space() == nil {
		t.Error("no space after Set")
	}
	p.Reset()
	if p.Maps.Space() != nil {
		t.Error("a space after Reset")
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
		var p Process
		failed := 0
		w := MarkupWriter{Timeline: &p.Maps, Bad: func(err error) {
			if failed++; !strings.Contains(err.Error(), "65,536") {
				t.Errorf("%s: %v", c.name, err)
			}
		}}
		w.Write([]byte(module))
		if !full && !c.fails {
			c.lines /= 4
		}
		start := time.Now()
		var tenth time.Duration // for the first of ten parts
		for i := range c.lines {
			if i == c.lines/10 {
				tenth = time.Since(start)
			}
			w.Write([]byte(c.line(i) + "\n"))
			p.Files.Locate(p.Maps.Space(), uint64(i))
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
		if n := len(p.Files.locations); n > maxCached {
			t.Errorf("%s: %d locations are kept", c.name, n)
		}
	}
}

// Elements come in pieces, as a log is read.
func TestMarkupWriterInPieces(t *testing.T) {
	const log = "x {{{reset}}} {{{module:0:a:elf:aa}}}\n{{ {{{mmap:0x1000:0x2000:load:0:rx:0}}} y {{{mmap:0x9000:\n0x1000:load:0:rx:0}}}\n{{{mmap:zz:0:load:0:rx:0}}}\n"
	for size := 1; size < len(log); size++ {
		var tl Timeline
		bad := 0
		w := MarkupWriter{Timeline: &tl, Bad: func(error) { bad++ }}
		for p := []byte(log); len(p) > 0; p = p[min(size, len(p)):] {
			if n, err := w.Write(p[:min(size, len(p))]); err != nil || n != min(size, len(p)) {
				t.Fatal(n, err)
			}
		}
		if s := tl.Space(); s == nil || len(s.Mappings()) != 1 || s.Find(0x1000) == nil || s.Find(0x9000) != nil || bad != 1 {
			t.Errorf("in pieces of %d bytes: %+v, %d bad, want the mapping at 0x1000 alone", size, s, bad)
		}
	}
}

// Mappings without a byte are none.
func TestSetOfEmptyMappings(t *testing.T) {
	var tl Timeline
	tl.Set([]Mapping{{Start: 0x1000, End: 0x1000}})
	if s := tl.Space(); s != nil || tl.Word() != 0 {
		t.Errorf("%+v, %d bits", s, tl.Word())
	}
}

func TestMarkupNames(t *testing.T) {
	for text, want := range map[string]string{
		"/lib/libc.so.6":   "/lib/libc.so.6",
		"/a%3ab%7B%7d%25c": "/a:b{}%c",
		"/a%0a%1B%7F%00":   "/a%0a%1B%7F%00",
		"/a%":              "/a%",
		"/a%2":             "/a%2",
		"/a%zz%+1":         "/a%zz%+1",
		"/%c3%A4":          "/\u00e4",
	} {
		var tl Timeline
		err := tl.Markup([]byte("{{{module:0x0a:" + text + ":elf:}}} {{{mmap:0x1000:010:load:10:rx:0}}}"))
		if m := tl.Space().Find(0x1009); err != nil || m == nil || m.Module.Name != want {
			t.Errorf("%s: %+v, %v, want %q", text, m, err, want)
		}
	}
	var tl Timeline
	if err := tl.Markup([]byte("{{{module:1_0:x:elf:}}}")); err == nil {
		t.Error("1_0 is taken for a number")
	}
}

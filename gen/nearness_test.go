package gen_test

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/corpus"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// shape holds the properties in which stacks are compared.
type shape struct {
	stacks, frames int
	paths          map[string]int // by addresses
	depth          [codec.MaxDepth + 1]float64
	near           [65]float64 // width of the difference to the nearest of 8 frames before
	size           [65]float64 // width of sizes
	blobBits       int
}

func (s *shape) add(pcs []uint64, size uint64, m codec.Machine) {
	if s.paths == nil {
		s.paths = map[string]int{}
	}
	s.stacks++
	s.frames += len(pcs)
	s.paths[fmt.Sprint(pcs)]++
	s.depth[len(pcs)]++
	s.size[bits.Len64(size)]++
	for n := 1; n < len(pcs); n++ {
		nearest := ^uint64(0)
		for _, base := range pcs[max(0, n-8):n] {
			nearest = min(nearest, pcs[n]-base, base-pcs[n])
		}
		s.near[bits.Len64(nearest)]++
	}
	st := codec.Stack{PCs: pcs, Size: size}
	b, err := codec.Encoder{Machine: m}.Bits(&st)
	if err != nil {
		panic(err)
	}
	s.blobBits += b
}

// overlap returns the common part of two histograms, 0 to 1.
func overlap(a, b []float64) float64 {
	var sumA, sumB, common float64
	for i := range a {
		sumA += a[i]
		sumB += b[i]
	}
	for i := range a {
		common += min(a[i]/sumA, b[i]/sumB)
	}
	return common
}

// pairs are captures and their models.
var pairs = []struct {
	capture, model string
	pre, post      int
}{
	{"perl", "x86_64-pie", 2, 1},
	{"git00", "x86_64-pie", 0, 0},
	{"cc1", "x86_64-nopie", 2, 1},
	{"i386sql", "i386-pie", 2, 1},
}

// programs is the number of programs of a model that are combined; a single program has only
// one of many memory layouts.
const programs = 16

func ofCapture(name string, m codec.Machine) *shape {
	var s shape
	for _, a := range corpus.Truth(name) {
		s.add(a.PCs, a.Size, m)
	}
	return &s
}

// ofModel returns the shape of a model's stacks. It counts call paths only in the first program.
func ofModel(m gen.Model, pre, post, stacks int) (s *shape, paths int) {
	s = &shape{}
	for seed := range uint64(programs) {
		p := m.Program(seed)
		p.Pre, p.Post = pre, post
		for range stacks {
			var st codec.Stack
			p.Next(&st)
			s.add(st.PCs, st.Size, m.Machine)
		}
		if seed == 0 {
			paths = len(s.paths)
		}
	}
	return s, paths
}

// nearness returns the table, and a message for each model that is too different.
func nearness() (table string, faults []string) {
	var b strings.Builder
	b.WriteString("| capture | model | depth, mean | bits per frame | call paths of 2,000 | depths in common | near widths in common | size widths in common |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range pairs {
		m, _ := gen.ModelByName(p.model)
		c := ofCapture(p.capture, m.Machine)
		g, paths := ofModel(m, p.pre, p.post, c.stacks)
		perFrame := func(s *shape) float64 { return float64(s.blobBits) / float64(s.frames) }
		depth, near, size := overlap(c.depth[:], g.depth[:]), overlap(c.near[:], g.near[:]), overlap(c.size[:], g.size[:])
		fmt.Fprintf(&b, "| %s | %s, SNIP %d/%d | %.1f : %.1f | %.1f : %.1f | %d : %d | %.0f %% | %.0f %% | %.0f %% |\n",
			p.capture, p.model, p.pre, p.post,
			float64(c.frames)/float64(c.stacks), float64(g.frames)/float64(g.stacks),
			perFrame(c), perFrame(g), len(c.paths), paths, 100*depth, 100*near, 100*size)
		if ratio := perFrame(g) / perFrame(c); ratio < 0.85 || ratio > 1.15 {
			faults = append(faults, fmt.Sprintf("%s: bits per frame off by a factor of %.2f", p.capture, ratio))
		}
		if near < 0.5 {
			faults = append(faults, fmt.Sprintf("%s: only %.0f %% of near widths in common", p.capture, 100*near))
		}
	}
	b.WriteString("\n| capture | capture | depths in common | near widths in common | size widths in common |\n")
	b.WriteString("| --- | --- | --- | --- | --- |\n")
	for _, p := range [][2]string{{"perl", "git00"}, {"perl", "cc1"}, {"git00", "cc1"}} {
		x, y := ofCapture(p[0], codec.MachineWrap64), ofCapture(p[1], codec.MachineWrap64)
		fmt.Fprintf(&b, "| %s | %s | %.0f %% | %.0f %% | %.0f %% |\n", p[0], p[1], 100*overlap(x.depth[:], y.depth[:]),
			100*overlap(x.near[:], y.near[:]), 100*overlap(x.size[:], y.size[:]))
	}
	return b.String(), faults
}

func modelTable() string {
	var b strings.Builder
	b.WriteString("| model | word | machine | what it is |\n| --- | --- | --- | --- |\n")
	for _, m := range gen.Models() {
		fmt.Fprintf(&b, "| %s | %d | %v | %s |\n", m.Name, m.Word, m.Machine, m.About)
	}
	return b.String()
}

// The models are as near to the captures as stated in FIGURES.md, and within the limits.
func TestModelsAreNearCaptures(t *testing.T) {
	near, faults := nearness()
	for _, f := range faults {
		t.Error(f)
	}
	figures.Check(t, "../FIGURES.md", "models", modelTable())
	figures.Check(t, "../FIGURES.md", "nearness", near)
}

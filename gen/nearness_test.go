package gen_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/corpus"
	"github.com/lwsbt/lwsbt/gen"
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

// ofModel returns the shape of a model's stacks.
func ofModel(m gen.Model, pre, post, stacks int) *shape {
	s := &shape{}
	for seed := range uint64(programs) {
		p := m.Program(seed)
		p.Pre, p.Post = pre, post
		for range stacks {
			var st codec.Stack
			p.Next(&st)
			s.add(st.PCs, st.Size, m.Machine)
		}
	}
	return s
}

// The models are as near to the captures of real programs as tests need: bits per frame within 15 %, and half of the
// widths of the differences to the nearest of the 8 frames before.
func TestModelsAreNearCaptures(t *testing.T) {
	for _, p := range pairs {
		m, _ := gen.ModelByName(p.model)
		c := ofCapture(p.capture, m.Machine)
		g := ofModel(m, p.pre, p.post, c.stacks)
		perFrame := func(s *shape) float64 { return float64(s.blobBits) / float64(s.frames) }
		if ratio := perFrame(g) / perFrame(c); ratio < 0.85 || ratio > 1.15 {
			t.Errorf("%s: bits per frame off by a factor of %.2f", p.capture, ratio)
		}
		if near := overlap(c.near[:], g.near[:]); near < 0.5 {
			t.Errorf("%s: only %.0f %% of near widths in common", p.capture, 100*near)
		}
	}
}

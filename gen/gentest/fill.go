package gentest

import (
	fuzz "github.com/google/gofuzz"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
)

// Fill fills the values that pointers point to from the bytes of a fuzzer. A
// [codec.Stack] gets up to 32 frames, some of them near each other; machines, searches
// and models are valid; gofuzz fills all other types. The result depends only on data.
func Fill(data []byte, pointers ...any) {
	f := fuzz.NewFromGoFuzz(data).NilChance(0).NumElements(0, 40).Funcs(
		func(m *codec.Machine, c fuzz.Continue) {
			*m = codec.Machines()[c.Intn(6)]
		},
		func(h *codec.Search, c fuzz.Continue) {
			*h = codec.Search(c.Intn(2))
		},
		func(m *gen.Model, c fuzz.Continue) {
			models := gen.Models()
			*m = models[c.Intn(len(models))]
		},
		fillStack,
	)
	for _, p := range pointers {
		f.Fuzz(p)
	}
}

func fillStack(s *codec.Stack, c fuzz.Continue) {
	*s = codec.Stack{Size: c.Uint64() >> c.Intn(64), PCs: make([]uint64, c.Intn(codec.MaxDepth+1))}
	width := 1 + c.Intn(64) // most frames differ by at most so many bits
	for n := range s.PCs {
		pc := c.Uint64()
		switch {
		case n == 0 || pc&7 == 0:
			s.PCs[n] = pc >> c.Intn(64)
		default:
			back := min(n, 1+int(pc>>3&7))
			s.PCs[n] = s.PCs[n-back] + pc>>(64-width) - uint64(pc>>6&1)<<(width-1)
		}
	}
}

// FitTo truncates the values of a stack to the word of m.
func FitTo(s *codec.Stack, m codec.Machine) {
	if m.Word() == 64 {
		return
	}
	for n := range s.PCs {
		s.PCs[n] &= 1<<32 - 1
	}
	s.Size &= 1<<32 - 1
}

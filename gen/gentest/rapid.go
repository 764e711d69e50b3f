package gentest

import (
	"math"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
)

// Machine generates any of the six machines.
func Machine() *rapid.Generator[codec.Machine] {
	return rapid.SampledFrom(codec.Machines())
}

// Search generates either search.
func Search() *rapid.Generator[codec.Search] {
	return rapid.SampledFrom([]codec.Search{codec.SearchLws, codec.SearchBest})
}

// Value generates a number that fits a word of 32 or 64 bits. Every width is equally
// likely, and values next to a power of 2 are frequent.
func Value(word int) *rapid.Generator[uint64] {
	top := uint64(math.MaxUint64) >> (64 - word)
	return rapid.Custom(func(t *rapid.T) uint64 {
		width := rapid.IntRange(1, word).Draw(t, "width")
		least := uint64(1) << (width - 1)
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return least
		case 1:
			return (least<<1 - 1) & top
		}
		return least | rapid.Uint64Range(0, least-1).Draw(t, "rest")
	})
}

// Stack generates a stack that fits a word, with random numbers or from a model.
func Stack(word int) *rapid.Generator[codec.Stack] {
	return rapid.OneOf(Numbers(word, codec.MaxDepth), Modelled(word))
}

// Numbers generates a stack of up to depth frames. Each frame is any value, or near one
// of the nine frames before it.
func Numbers(word, depth int) *rapid.Generator[codec.Stack] {
	top := uint64(math.MaxUint64) >> (64 - word)
	return rapid.Custom(func(t *rapid.T) codec.Stack {
		var s codec.Stack
		for n := range rapid.IntRange(0, depth).Draw(t, "depth") {
			pc := Value(word).Draw(t, "address")
			if n > 0 && rapid.IntRange(0, 3).Draw(t, "near") > 0 {
				base := s.PCs[n-rapid.IntRange(1, min(n, 9)).Draw(t, "back")]
				d := pc >> rapid.IntRange(0, word-1).Draw(t, "shift")
				pc = base + d
				if rapid.Bool().Draw(t, "below") {
					pc = base - d
				}
			}
			s.PCs = append(s.PCs, pc&top)
		}
		s.Size = Value(word).Draw(t, "size")
		return s
	})
}

// Modelled generates a stack of any model whose addresses fit a word.
func Modelled(word int) *rapid.Generator[codec.Stack] {
	var fit []gen.Model
	for _, m := range gen.Models() {
		if m.Word <= word {
			fit = append(fit, m)
		}
	}
	return rapid.Custom(func(t *rapid.T) codec.Stack {
		m := fit[rapid.IntRange(0, len(fit)-1).Draw(t, "model")]
		p := m.Program(rapid.Uint64Range(0, 1<<20).Draw(t, "seed"))
		p.Pre = rapid.IntRange(0, 3).Draw(t, "pre")
		p.Post = rapid.IntRange(0, 2).Draw(t, "post")
		return p.Stacks(1)[0]
	})
}

// Blob generates a blob of any machine and search.
func Blob() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		m := Machine().Draw(t, "machine")
		s := Stack(m.Word()).Draw(t, "stack")
		blob, err := codec.Encoder{Machine: m, Search: Search().Draw(t, "search")}.AppendBlob(nil, &s, nil)
		if err != nil {
			t.Fatalf("generator: %v", err)
		}
		return blob
	})
}

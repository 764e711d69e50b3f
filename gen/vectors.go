package gen

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
)

// NamedStack is a stack to record vectors from. Its ID never changes.
type NamedStack struct {
	ID    string
	Stack codec.Stack
}

// VectorStacks returns the stacks from which ref-c/vectors are recorded: stacks of each
// model whose addresses fit the word, 32 or 64 bits, and stacks at the limits of the
// format. The limits are boundary values, every width of delta, ties between bases, the
// best base at frame 0 and 8 and 9 frames back, every depth, every width of size, and
// random values. The seed changes the values but not the IDs.
func VectorStacks(word int, seed uint64) []NamedStack {
	if word != 32 && word != 64 {
		panic(fmt.Sprintf("gen: a word of %d bits, expected 32 or 64", word))
	}
	v := vectorStacks{word: word, seed: seed, max: math.MaxUint64 >> (64 - word)}
	for _, m := range Models() {
		v.model(m)
	}
	v.boundary()
	v.deltaWidths()
	v.ties()
	v.baseFrame0()
	v.backs()
	v.depths()
	v.sizes()
	v.noise()
	return v.all
}

type vectorStacks struct {
	word int
	seed uint64
	max  uint64 // largest value of the word
	all  []NamedStack
}

func (v *vectorStacks) add(id string, size uint64, pcs ...uint64) {
	for i := range pcs {
		pcs[i] &= v.max
	}
	v.all = append(v.all, NamedStack{id, codec.Stack{PCs: pcs, Size: size & v.max}})
}

func (v *vectorStacks) rng(label string) *rng {
	return newRNG(v.seed, fmt.Sprint(label, "/", v.word))
}

// model adds every ninth stack of a program, captured with 0 to 3 innermost and 0 to 2
// outermost frames left out. At a word of 64 bits it adds only a few stacks of 32-bit
// models, as examples of small addresses.
func (v *vectorStacks) model(m Model) {
	n := 10
	if m.Word > v.word {
		return
	} else if m.Word < v.word {
		n = 3
	}
	p := m.Program(v.seed)
	p.fresh = true
	for i := range n {
		p.Pre, p.Post = 2, 1
		if i >= 3 {
			p.Pre, p.Post = i%4, i/4
		}
		s := p.Stacks(9)[8]
		v.add(fmt.Sprintf("%s/%04d", m.Name, i), s.Size, s.PCs...)
	}
}

// boundary adds the values near each power of 2, alone and next to each other.
func (v *vectorStacks) boundary() {
	for n := range v.word {
		at := uint64(1) << n
		v.add(fmt.Sprintf("boundary/literal-%02d", n), at-1, at)
	}
	for n := 0; n < v.word; n += 3 {
		at := uint64(1) << n
		v.add(fmt.Sprintf("boundary/about-%02d", n), at, at-1, at, at+1, at-1, -at)
	}
	v.add("boundary/zero", 0, 0)
	v.add("boundary/zeros", 0, 0, 0, 0, 0)
	v.add("boundary/max", v.max, v.max)
	v.add("boundary/max-zero", 1, v.max, 0, v.max, 0, v.max)
	v.add("boundary/half", 1<<31, 1<<(v.word-1), 1<<(v.word-1)-1, 1<<(v.word-1), 0)
}

// deltaWidths adds, for each width, frames that far above and below a base that is not
// frame 0.
func (v *vectorStacks) deltaWidths() {
	r := v.rng("delta-width")
	for n := 1; n <= v.word; n++ {
		base := r.width(v.word)
		d := r.width(n)
		if n == 1 {
			d = 1
		}
		if base < d {
			base, d = d, base // both then have the top bit of the word
		}
		v.add(fmt.Sprintf("delta-width/%02d", n), r.width(1+r.below(16)), 1, base, base-d, base, base+d)
	}
}

// ties adds frames with two equally near bases: two equal bases, or one on either side.
func (v *vectorStacks) ties() {
	r := v.rng("tie")
	for i := range 12 {
		base, d := r.width(v.word-4), r.width(1+2*i)
		id := func(what string) string { return fmt.Sprintf("tie/%s-%02d", what, i) }
		v.add(id("sides"), 40, 3, base-d, base+d, base)
		v.add(id("same"), 24, 7, base, base, base, base+d, base, base+d)
	}
	base := r.width(v.word - 1)
	v.add("tie/frame-0-and-1", 8, base, base, base+9)
	v.add("tie/frame-0-and-1-sides", 8, base, base+18, base+9)
	v.add("tie/all-equal", 8, base, base, base, base, base, base, base, base, base, base)
}

// baseFrame0 adds stacks in which frame 0 is the nearest base: alone, and with a
// farther base that also gives a short delta.
func (v *vectorStacks) baseFrame0() {
	r := v.rng("base-frame-0")
	for i := range 8 {
		base, d := r.width(v.word-2), r.width(4+2*i)
		far := base + 1<<(v.word/2)
		v.add(fmt.Sprintf("base-frame-0/only-%02d", i), 16, base, base+d)
		v.add(fmt.Sprintf("base-frame-0/nearest-%02d", i), 16, base, far, base-d, far+d, base+d)
	}
}

// backs adds stacks whose last frame has a near base 1 to 10 frames back. All other
// frames are far from it and from each other, and at least one frame precedes the base.
func (v *vectorStacks) backs() {
	r := v.rng("back")
	for back := 1; back <= 10; back++ {
		for i := range 2 {
			pcs := make([]uint64, 12)
			for n := range pcs {
				pcs[n] = uint64(n+1)<<(v.word-5) ^ r.width(v.word-6)
			}
			pcs[11] = pcs[11-back] + r.width(5)
			if i == 1 {
				pcs[11] = pcs[11-back] - r.width(12)
			}
			v.add(fmt.Sprintf("back-%d/%d", back, i), uint64(back), pcs...)
		}
	}
}

// depths adds every depth twice: with realistic addresses, and with as few bits as
// possible.
func (v *vectorStacks) depths() {
	r := v.rng("depth")
	for depth := range codec.MaxDepth + 1 {
		base := r.width(min(v.word, 40) - 1)
		pcs := make([]uint64, depth)
		for n := range pcs {
			pcs[n] = base + r.width(6+r.below(14))
		}
		v.add(fmt.Sprintf("depth/%02d", depth), r.width(1+r.below(20)), pcs...)
	}
	for _, depth := range []int{0, 1, 31, 32} {
		v.add(fmt.Sprintf("depth/least-%02d", depth), 0, make([]uint64, depth)...)
	}
	for _, depth := range []int{31, 32} { // the longest blobs of search best
		pcs := make([]uint64, depth)
		for n := range pcs {
			pcs[n] = bits.Reverse64(uint64(n))>>(64-v.word) | 1<<(v.word-1)
		}
		v.add(fmt.Sprintf("depth/most-%02d", depth), v.max, pcs...)
	}
	pcs := make([]uint64, codec.MaxDepth) // search lws takes deltas that are one bit longer than the literals
	for n := range pcs {
		pcs[n] = 1<<(v.word-1) + uint64(n)<<(v.word-6)
	}
	v.add("depth/longest-lws", v.max, pcs...)
}

// sizes adds each width of size, so that blobs end at every bit of a byte.
func (v *vectorStacks) sizes() {
	r := v.rng("size")
	for n := 1; n <= v.word; n++ {
		v.add(fmt.Sprintf("size/%02d", n), r.width(n), 0x406651, 0x406852)
	}
}

// noise adds random values.
func (v *vectorStacks) noise() {
	r := v.rng("noise")
	for i := range 20 {
		pcs := make([]uint64, 1+r.below(codec.MaxDepth))
		for n := range pcs {
			pcs[n] = r.width(1 + r.below(v.word))
		}
		v.add(fmt.Sprintf("noise/%02d", i), r.width(1+r.below(v.word)), pcs...)
	}
}

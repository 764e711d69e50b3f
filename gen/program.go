package gen

import (
	"slices"
	"strconv"

	"github.com/lwsbt/lwsbt/codec"
)

// Program is a synthetic program of a model: modules at addresses, functions in them,
// calls between the functions. It allocates while it walks up and down its call graph,
// so that a stack shares its outer frames with the next, and popular paths repeat.
//
// Pre and Post select the captured part of a stack:
//
//	allocator's frames │ the path, innermost first │ start of the program
//	└─Pre──┘                                                     └─Post─┘
type Program struct {
	Pre, Post int // frames left out at either end: SNIP_PRE and SNIP_POST (BT-CAP-2)

	model   Model
	rng     *rng
	seed    uint64
	modules []module
	bodies  map[int][]site // calls of a function, a cache
	inner   []uint64       // frames of the allocator, innermost first
	outer   []uint64       // frames of the program's start, innermost first
	path    []site         // calls from main on
	structs []uint64       // sizes of this program's objects
	again   [][]site       // earlier paths, to be repeated
	fresh   bool           // do not repeat paths
}

// module is code at an address. A function begins every stride bytes. Functions are
// numbered across all modules.
type module struct {
	base  uint64
	first int // number of its first function
	count int
}

// site is a call: its return address, and the number of the called function.
type site struct {
	pc     uint64
	callee int
}

const (
	page     = 4096
	stride   = 512 // bytes from one function to the next
	maxSites = 12  // most calls of one function
	maxAgain = 256 // paths remembered
)

// Program returns the program for seed. It captures with the defaults of lws: it leaves
// out the 2 innermost frames and the outermost.
func (m Model) Program(seed uint64) *Program {
	p := &Program{Pre: 2, Post: 1, model: m, seed: seed,
		rng: newRNG(seed, m.Name), bodies: map[int][]site{}}
	for _, r := range []region{m.app, m.lib} {
		if r.text > 0 {
			p.load(r)
		}
	}
	lib := len(p.modules) - 1
	p.inner = p.wrapper(lib)
	p.outer = append(p.startup(lib, m.start[0]), p.startup(0, m.start[1])...)
	for range 24 {
		p.structs = append(p.structs, uint64(8*(1+p.rng.spread(40))))
	}
	return p
}

// load adds a module.
func (p *Program) load(r region) {
	m := module{base: r.lo, count: r.text / stride}
	if pages := int((r.hi - r.lo) / page); pages > 0 {
		m.base += page * uint64(p.rng.below(pages))
	}
	if n := len(p.modules); n > 0 {
		m.first = p.modules[n-1].first + p.modules[n-1].count
	}
	p.modules = append(p.modules, m)
}

// wrapper returns the frames of the allocator: three functions near each other.
func (p *Program) wrapper(mod int) []uint64 {
	m := p.modules[mod]
	fn := p.rng.below(m.count - 3)
	return []uint64{p.returnIn(p.rng, m, fn+2), p.returnIn(p.rng, m, fn), p.returnIn(p.rng, m, fn)}
}

// startup returns the frames that call main: n frames of consecutive functions.
func (p *Program) startup(mod, n int) []uint64 {
	var pcs []uint64
	m := p.modules[mod]
	fn := p.rng.below(m.count - n)
	for i := range n {
		pcs = append(pcs, p.returnIn(p.rng, m, fn+i))
	}
	return pcs
}

// returnIn returns a random return address in function fn of a module, with the bits that it
// has in a register.
func (p *Program) returnIn(r *rng, m module, fn int) uint64 {
	off := uint64(fn*stride + 4 + r.below(stride-4))
	pc := m.base + off&^(p.model.step-1) | p.model.low
	if p.model.window {
		pc = pc&(1<<30-1) | windowBits(r)<<30
	}
	return pc
}

// windowBits returns the number of registers by which a call rotates the register window, in
// units of 4. It is usually 2.
func windowBits(r *rng) uint64 {
	switch r.below(16) {
	case 0:
		return 1
	case 1:
		return 3
	}
	return 2
}

// moduleOf returns the index of the module of a function.
func (p *Program) moduleOf(fn int) int {
	if len(p.modules) > 1 && fn >= p.modules[1].first {
		return 1
	}
	return 0
}

// sites returns the calls of function fn. They depend only on the seed and on fn. Most
// calls are to nearby functions, a few to fn itself. Some calls go from the program to
// the library, none from the library to the program.
func (p *Program) sites(fn int) []site {
	if s, ok := p.bodies[fn]; ok {
		return s
	}
	r := newRNG(p.seed, p.model.Name+"/function/"+strconv.Itoa(fn))
	mod := p.moduleOf(fn)
	m := p.modules[mod]
	var s []site
	for range 2 + r.below(maxSites-1) {
		far := 1 + r.spread(m.count-1)
		if r.chance(50) {
			far = m.count - far
		}
		if r.chance(3) {
			far = 0
		}
		to := (fn - m.first + far) % m.count
		callee := m.first + to
		if mod == 0 && len(p.modules) > 1 && r.chance(2) {
			lib := p.modules[1]
			callee = lib.first + r.below(lib.count)
		}
		s = append(s, site{p.returnIn(r, m, fn-m.first), callee})
	}
	p.bodies[fn] = s
	return s
}

// Next sets s to the next allocation of the program. It reuses the array of s.PCs.
func (p *Program) Next(s *codec.Stack) {
	if len(p.again) > 0 && !p.fresh && p.rng.chance(90) {
		p.path = append(p.path[:0], p.again[p.rng.spread(len(p.again))]...)
	} else {
		p.walk()
		if len(p.again) < maxAgain {
			p.again = append(p.again, slices.Clone(p.path))
		}
	}

	s.PCs = append(s.PCs[:0], p.inner[min(p.Pre, len(p.inner)):]...)
	for _, c := range slices.Backward(p.path) {
		s.PCs = append(s.PCs, c.pc)
	}
	s.PCs = append(s.PCs, p.outer...)
	s.PCs = s.PCs[:min(len(s.PCs), codec.MaxDepth)]
	if len(s.PCs) > p.Post {
		s.PCs = s.PCs[:len(s.PCs)-p.Post]
	}
	s.Size = p.size(p.path[len(p.path)-1].pc)
	s.Marks = codec.Marks{}
}

// walk returns from some calls, and makes calls until the stack has a random depth in
// the model's range.
func (p *Program) walk() {
	lo, hi := p.model.depth[0], p.model.depth[1]
	depth := lo + (p.rng.below(hi-lo+1)+p.rng.below(hi-lo+1)+p.rng.below(hi-lo+1))/3
	if len(p.path) > 0 {
		keep := len(p.path) - 1 - p.rng.halving(len(p.path)) - p.rng.halving(len(p.path))
		p.path = p.path[:min(max(0, keep), depth-1)]
	}
	for len(p.path) < depth {
		fn := 0
		if n := len(p.path); n > 0 {
			fn = p.path[n-1].callee
		}
		sites := p.sites(fn)
		p.path = append(p.path, sites[p.rng.halving(len(sites))])
	}
}

// Stacks returns the next n allocations, each with a separate array.
func (p *Program) Stacks(n int) []codec.Stack {
	stacks := make([]codec.Stack, n)
	for i := range stacks {
		p.Next(&stacks[i])
	}
	return stacks
}

// size returns the size requested by the call that returns to pc. Most calls always allocate an
// object of the same size; the others allocate strings, buffers or arrays.
func (p *Program) size(pc uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	kind := pc * odd >> 56 // always the same for a call
	switch {
	case kind < 150:
		return p.structs[kind%uint64(len(p.structs))]
	case kind < 210:
		return uint64(2 + p.rng.spread(80))
	case kind < 235:
		return 256 << p.rng.halving(9)
	case kind < 250:
		return p.structs[kind%uint64(len(p.structs))] * uint64(1+p.rng.spread(64))
	}
	return p.rng.width(8 + p.rng.below(15))
}

// Scatter sets s to a stack of depth frames with random addresses in the code of all
// modules. It reuses the array of s.PCs. No real program has such stacks: they do not
// repeat, and the offsets in a module cannot be predicted.
func (p *Program) Scatter(s *codec.Stack, depth int) {
	s.PCs = s.PCs[:0]
	for range depth {
		m := p.modules[p.rng.below(len(p.modules))]
		s.PCs = append(s.PCs, p.returnIn(p.rng, m, p.rng.below(m.count)))
	}
	s.Size = p.structs[p.rng.below(len(p.structs))]
	s.Marks = codec.Marks{}
}

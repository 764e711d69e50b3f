package core

// Pointers finds the pointers to the blocks of a heap. An aligned word counts as a pointer if it
// holds the address of any byte of a block.
type Pointers struct {
	g           *graph
	roots, heap []span
}

// Pointers returns the pointers to the blocks of h. from is as for [Image.FindLeaks].
func (m *Image) Pointers(h *Heap, from Roots) *Pointers {
	p := &Pointers{g: newGraph(m, h)}
	p.roots, p.heap = m.rootSpans(h, p.g.used, from)
	return p
}

// Roots calls visit for each pointer outside of blocks: in data, stacks and other memory of the
// program. loose reports whether the pointer is in heap memory that is in no block.
func (p *Pointers) Roots(visit func(at uint64, block int, loose bool)) {
	for _, s := range p.roots {
		p.g.pointersAt(s, func(at uint64, block int) { visit(at, block, false) })
	}
	for _, s := range p.heap {
		p.g.pointersAt(s, func(at uint64, block int) { visit(at, block, true) })
	}
}

// In calls visit for each pointer in a block.
func (p *Pointers) In(block int, visit func(at uint64, to int)) {
	p.g.pointersAt(p.g.content(block), visit)
}

// Block returns the block that holds an address.
func (p *Pointers) Block(addr uint64) (block int, ok bool) { return p.g.find(addr) }

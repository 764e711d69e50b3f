package core

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// maxOwners limits the number of lists that carving follows.
const maxOwners = 64

// scan calls visit for every address in writable memory that may be a node: it is aligned, a
// length precedes it, and its pointers are plausible.
func (f *finder) scan(visit func(n node)) {
	segs := f.m.Segments()
	if len(segs) == 0 {
		return
	}
	all := span{segs[0].Addr, segs[len(segs)-1].Addr + uint64(len(segs[len(segs)-1].Data)) - 1}
	for i := range segs {
		s := &segs[i]
		if s.ELF || !s.Write {
			continue
		}
		for off, b := range s.extents() {
			f.scanBytes(b, s.Addr+uint64(off), all, visit)
		}
	}
}

// scanBytes is scan for the bytes b at addr. all is the range from the first to the
// last address of the image.
func (f *finder) scanBytes(b []byte, addr uint64, all span, visit func(n node)) {
	size, order := int(f.ptr), f.m.Order
	link := func(v uint64) bool { return v&(f.ptr-1) == 0 && (v == 0 || v >= all.start && v <= all.end) }
	// The first aligned address with two bytes before it.
	at := int(-addr & (f.ptr - 1))
	for at < 2 {
		at += size
	}
	for ; at+3*size <= len(b); at += size {
		if b[at-1]|b[at-2] == 0 { // no length: this check excludes most of memory
			continue
		}
		owner := uintOf(b[at+2*size:][:size], order)
		if owner == 0 || !link(owner) {
			continue
		}
		n := node{addr + uint64(at), uintOf(b[at:][:size], order), uintOf(b[at+size:][:size], order), owner, true}
		if link(n.prev) && link(n.next) && int(binary.BigEndian.Uint16(b[at-2:])) >= 4 {
			visit(n)
		}
	}
}

// claim counts the nodes that point to one owner and follow a valid blob.
type claim struct {
	linked int // nodes with a neighbour, on at least one side, that points back and names the same owner
	alone  int // other nodes that no neighbour contradicts
	// lost holds the addresses of overwritten neighbours of the nodes counted in alone, each
	// with the sides from which links lead to it. Two nodes that lead to one address, one
	// from each side, are linked, too.
	lost map[uint64]uint8
}

// maxLost limits the number of addresses in lost, over all claims.
const maxLost = 1 << 16

// carveOwners finds owners by their blocks, the owner with the most blocks first.
func (f *finder) carveOwners() []Owner {
	claims := f.claimsOf()
	addrs := slices.Sorted(maps.Keys(claims))
	slices.SortStableFunc(addrs, func(a, b uint64) int { return cmp.Compare(claims[b].linked, claims[a].linked) })
	var list []Owner
	for _, addr := range addrs {
		o, ok := f.readOwner(addr)
		if !ok || !f.claimed(o, claims[addr]) || f.m.Find(uint64(o.Count)) != nil && o.Count > MaxBlocks { // a pointer is no count
			continue
		}
		if len(list) == maxOwners {
			f.h.notes.add("more than %d lists: the others are left out", maxOwners)
			break
		}
		o.Carved = true
		list = append(list, o)
	}
	return list
}

// claimsOf returns the claims of all candidates for blocks, by owner.
func (f *finder) claimsOf() map[uint64]*claim {
	claims := map[uint64]*claim{}
	left := maxLost
	f.scan(func(n node) {
		c := claims[n.owner]
		if c == nil && len(claims) == 1<<16 || !f.decodes(n.addr) || !f.plausible(&f.scratch) {
			return
		}
		if c == nil {
			c = &claim{lost: map[uint64]uint8{}}
			claims[n.owner] = c
		}
		switch prev, next := f.beside(&n, true), f.beside(&n, false); {
		case prev == contradicts || next == contradicts:
		case prev == confirms || next == confirms:
			c.linked++
		default:
			c.alone++
			left -= c.leads(n.prev, 1, left) + c.leads(n.next, 2, left)
		}
	})
	return claims
}

// leads records that a node links to an address from one side (1 prev, 2 next). It adds
// at most left addresses, and returns how many it added, 0 or 1.
func (c *claim) leads(at uint64, side uint8, left int) (added int) {
	had, seen := c.lost[at]
	if at == 0 || !seen && left <= 0 {
		return 0
	}
	if !seen {
		added = 1
	}
	if c.lost[at] = had | side; had|side == 3 && had != 3 {
		c.linked++
	}
	return added
}

// claimed reports whether enough blocks point to an owner to accept it.
func (f *finder) claimed(o Owner, c *claim) bool {
	// Other lists of the library have nodes, too, but a valid blob rarely precedes them.
	total := f.length(o)
	if c.linked > 0 && c.linked*5 >= total*4 && (total > 0 || c.linked >= 3) || c.linked >= 3 && c.linked*10 >= total {
		return true
	}
	n := c.linked + c.alone
	if n < 3 || n*10 < total {
		return false
	}
	return o.Device || int64(o.Count) >= int64(n) && f.ownsBlocks(o)
}

// opinion is the evidence that a neighbour gives about a node.
type opinion uint8

const (
	silent      opinion = iota // the neighbour was overwritten
	confirms                   // it points back and names the same owner
	contradicts                // it points to another node, which points back to it
)

// beside returns the opinion of the neighbour of n on one side or, at an end of the list, of
// the owner.
func (f *finder) beside(n *node, back bool) opinion {
	at := n.toward(back)
	if at == 0 {
		o, ok := f.readOwner(n.owner)
		end := o.Tail
		if back {
			end = o.Head
		}
		switch {
		case !ok:
		case end == n.addr:
			return confirms
		case f.names(end, n.owner) && f.towards(end, back) == 0:
			return contradicts
		}
		return silent
	}
	if !f.names(at, n.owner) {
		return silent
	}
	other := f.towards(at, !back)
	if other == n.addr {
		return confirms
	}
	if f.names(other, n.owner) && f.towards(other, back) == at {
		return contradicts
	}
	return silent
}

// names reports whether a node at addr points to owner.
func (f *finder) names(addr, owner uint64) bool {
	n, ok := f.readNode(addr)
	return ok && n.owner == owner
}

// towards returns the prev (if back) or next link of the node at addr.
func (f *finder) towards(addr uint64, back bool) uint64 {
	n, _ := f.readNode(addr)
	return n.toward(back)
}

// length returns the number of nodes from the head of a list to the first broken link.
func (f *finder) length(o Owner) int {
	total, prev := 0, uint64(0)
	for at := o.Head; at != 0 && total < MaxBlocks; total++ {
		n, ok := f.readNode(at)
		if !ok || n.prev != prev || n.owner != o.Addr {
			break
		}
		prev, at = at, n.next
	}
	return total
}

// plausible reports whether the addresses of a stack may be return addresses: at least half
// of those whose code is known follow a call.
func (f *finder) plausible(s *codec.Stack) bool {
	known, wrong := f.countCalls(s)
	return wrong == 0 || wrong <= known/2
}

// countCalls returns how many addresses of a stack have known code, and how many of these do
// not follow a call. It ignores lossy addresses.
func (f *finder) countCalls(s *codec.Stack) (known, wrong int) {
	if f.follows == nil {
		return 0, 0
	}
	for i, pc := range s.PCs {
		if s.Marks.Lossy>>i&1 != 0 {
			continue
		}
		if k, ok := f.follows(pc); k {
			known++
			if !ok {
				wrong++
			}
		}
	}
	return known, wrong
}

// rest is the state of carveRest: candidates for further blocks of a list.
type rest struct {
	found  map[uint64]*node
	addrs  []uint64            // keys of found, sorted
	beside map[uint64][]uint64 // by address, the nodes of found that link to it
	loose  map[link]bool       // where a chain ends
	seen   int                 // number of links of finder.broken that were processed
}

// carveRest finds blocks of the list that no intact chain of links leads to. Such a block
// points to the owner of the list and has a valid blob. In addition, a neighbour must confirm
// it: the neighbour points back, or it was overwritten and another link leads to it. Once
// neighbours confirm no more blocks, carveRest also accepts blocks whose neighbours were both
// overwritten.
func (f *finder) carveRest() {
	r := rest{found: map[uint64]*node{}, loose: map[link]bool{}}
	f.scan(func(n node) {
		if n.owner == f.o.Addr && f.nodes[n.addr] == nil && len(r.found) < MaxBlocks && f.decodes(n.addr) {
			r.found[n.addr] = &n
		}
	})
	if len(r.found) == 0 {
		return
	}
	r.addrs = slices.Sorted(maps.Keys(r.found))
	f.pointing = make(map[link]bool, 2*len(f.nodes))
	for _, n := range f.nodes {
		f.points(n)
	}
	defer func() { f.pointing = nil }()
	r.beside = make(map[uint64][]uint64, 2*len(r.found))
	for _, addr := range r.addrs {
		for _, at := range []uint64{r.found[addr].prev, r.found[addr].next} {
			if at != 0 {
				r.beside[at] = append(r.beside[at], addr)
			}
		}
	}
	agreed := func(n *node) bool {
		return f.agrees(n, r.found, r.loose, true) || f.agrees(n, r.found, r.loose, false)
	}
	for todo := r.addrs; len(todo) > 0 && !f.full; {
		if todo = f.accept(&r, todo, agreed); len(todo) == 0 {
			todo = f.accept(&r, r.addrs, f.uncontradicted)
		}
	}
	if left := len(r.addrs) - f.countNodes(r.addrs); left > 0 && !f.full {
		f.h.notes.add("%d places look like blocks of the list at %#x, but no other block points to them: not accepted", left, f.o.Addr)
	}
}

// accept accepts the nodes of todo for which is returns true. It returns the nodes next to
// links found broken in the process; these may be blocks, too.
func (f *finder) accept(r *rest, todo []uint64, is func(*node) bool) (next []uint64) {
	for ; r.seen < len(f.broken); r.seen++ {
		r.loose[link{f.broken[r.seen].from, 0, f.broken[r.seen].back}] = true
	}
	for _, addr := range todo {
		if n := r.found[addr]; f.nodes[addr] == nil && !f.full && is(n) {
			f.believe(*n)
			f.walk()
		}
	}
	for _, l := range f.broken[r.seen:] {
		next = append(append(next, r.beside[l.from]...), r.beside[l.to]...)
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// countNodes returns how many of addrs are accepted nodes.
func (f *finder) countNodes(addrs []uint64) (n int) {
	for _, addr := range addrs {
		if f.nodes[addr] != nil {
			n++
		}
	}
	return n
}

// uncontradicted reports whether to accept, without confirmation, a carved node whose
// neighbours were overwritten: its stack is plausible, and no other block claims its place in
// the list. (Mirrored memory may be in an image twice.)
func (f *finder) uncontradicted(n *node) bool {
	if f.beside(n, true) == contradicts || f.beside(n, false) == contradicts ||
		f.pointing[link{0, n.prev, true}] && n.prev != 0 || f.pointing[link{0, n.next, false}] && n.next != 0 {
		return false
	}
	return f.decodes(n.addr) && f.plausible(&f.scratch)
}

// agrees reports whether the neighbour of a carved node on one side confirms that it is
// a node.
func (f *finder) agrees(n *node, found map[uint64]*node, loose map[link]bool, back bool) bool {
	at := n.toward(back)
	if at == 0 {
		return f.end(back) == n.addr
	}
	if o := f.nodes[at]; o != nil { // a block; its own link may be lost
		return o.toward(!back) == n.addr || loose[link{at, 0, !back}] && !f.pointing[link{0, at, back}]
	}
	if o := found[at]; o != nil && o.toward(!back) == n.addr {
		return true
	}
	// The neighbour was overwritten, a link leads to it from its other side, and no
	// link leads to it from this side. (Mirrored memory may be in an image twice.)
	return f.claims[at] && !f.pointing[link{0, at, back}]
}

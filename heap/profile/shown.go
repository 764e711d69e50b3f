package profile

import (
	"iter"
	"slices"

	"github.com/lwsbt/lwsbt/symbol"
)

// shownPaths decides which call paths the view shows.
type shownPaths struct {
	*names
	known []uint8 // by node: flags of its addresses, and isKnown
}

const isKnown = 1 << 7

func (s *shownPaths) shows(path uint32) bool {
	f := &s.view.Filter
	if f.Ignore == nil && f.Suppress == nil && f.Focus == nil {
		return true
	}
	node, tail := s.in.stack(path)
	flags := s.flags(node)
	for _, addr := range tail {
		flags |= s.shown[addr].flags
	}
	return flags&isIgnored == 0 && (f.Focus == nil || flags&isFocused != 0)
}

// flags returns the flags of the addresses of a node and its parents.
func (s *shownPaths) flags(node uint32) uint8 {
	if n := int(node) + 1; n > len(s.known) {
		s.known = slices.Grow(s.known, n-len(s.known))[:n]
	}
	var chain []uint32
	for ; node != 0 && s.known[node] == 0; node = s.in.nodes.at(int(node)).parent {
		chain = append(chain, node)
	}
	flags := s.known[node]
	for _, node := range slices.Backward(chain) {
		flags |= isKnown | s.shown[s.in.nodes.at(int(node)).value].flags
		s.known[node] = flags
	}
	return flags
}

// stack returns the numbers of a path's sites, innermost first, and reports whether the view
// shows the path at all.
func (n *names) stack(path uint32) (stack []uint32, shown bool) {
	if !(&shownPaths{names: n}).shows(path) {
		return nil, false
	}
	var buf [1]uint32
	for _, addr := range n.in.append(nil, path) {
		stack = append(stack, n.list(&buf, addr)...)
	}
	from := 0
	if n.view.Fold {
		if slices.ContainsFunc(stack, plain) {
			stack = withoutStart(stack)
		}
		from = max(0, slices.IndexFunc(stack, kept))
	}
	unmark(stack)
	return stack[from:], true
}

// folded returns the addresses of a path, innermost first, without those that the view leaves out at its
// ends.
func (n *names) folded(path []uint32) []uint32 {
	if !n.view.Fold {
		return path
	}
	var buf [1]uint32
	without := func(mark uint32) func(addr uint32) bool {
		return func(addr uint32) bool {
			return slices.ContainsFunc(n.list(&buf, addr), func(site uint32) bool { return site&mark == 0 })
		}
	}
	if slices.ContainsFunc(path, without(allocates|starts)) {
		named := without(starts)
		for !named(path[len(path)-1]) {
			path = path[:len(path)-1]
		}
	}
	return path[max(0, slices.IndexFunc(path, without(allocates))):]
}

// kept reports whether the function of a site is no allocator.
func kept(site uint32) bool { return site&allocates == 0 }

// plain reports whether a site has neither mark.
func plain(site uint32) bool { return site&(allocates|starts) == 0 }

// withoutStart returns the sites without those with starts at the outer end.
func withoutStart(stack []uint32) []uint32 {
	for len(stack) > 0 && stack[len(stack)-1]&starts != 0 {
		stack = stack[:len(stack)-1]
	}
	return stack
}

// Stacks returns the allocations of the last dump whose call paths the view shows, and then those that
// were freed (see [Dump.Freed]), with the addresses of the path, innermost first. The view leaves
// out addresses at the ends of a path, or of which it hides all frames. The slice is valid until the
// next allocation.
func (p *Profile) Stacks() iter.Seq2[Allocation, []symbol.Addr] {
	return func(yield func(Allocation, []symbol.Addr) bool) {
		d, _ := p.last()
		n := p.names()
		paths := shownPaths{names: n}
		var numbers []uint32
		var addrs []symbol.Addr
		for a := range d.all() {
			if !paths.shows(a.id) {
				continue
			}
			numbers, addrs = a.appendNumbers(numbers[:0]), addrs[:0]
			for _, addr := range n.folded(numbers) {
				if !n.hidden(addr) {
					addrs = append(addrs, *n.in.addrs.at(int(addr)))
				}
			}
			if !yield(a, addrs) {
				return
			}
		}
	}
}

// Frames returns the frames of an address as the view shows them, innermost first.
func (p *Profile) Frames(a symbol.Addr) []symbol.Frame {
	n := p.names()
	frames, _, _ := n.view.Filter.Frames(nil, a)
	n.asked.Lock()
	defer n.asked.Unlock()
	for i := range frames {
		f := &frames[i]
		f.Name, f.File = n.function(f.Name).name, n.file(f.File)
	}
	return frames
}

// hidden reports whether the view shows no frame of an address.
func (n *names) hidden(addr uint32) bool {
	s := n.shown[addr]
	return s.flags&isList != 0 && len(n.lists[s.site]) == 0
}

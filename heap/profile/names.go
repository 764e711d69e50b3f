package profile

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/lwsbt/lwsbt/symbol"
)

// names numbers the call sites of dumps, as a view shows them. An address of which
// nothing is known is a site with the number of the address. The number of any other
// site is the number of addresses plus its index in named.
type names struct {
	view    *View
	in      *paths
	shown   []shown // by number of the address
	lists   [][]uint32
	named   []Site
	numbers map[Site]uint32
	funcs   map[string]function // by name
	asked   sync.Mutex          // of Profile.Frames, which adds to funcs
	same    bool                // each address is the site with its number
	builds  *builds             // nil if no program has several builds
}

// function is how the view treats a function.
type function struct {
	name string // as shown
	mark uint32 // allocates, starts, or 0
}

// shown is how an address appears: as one site, or as a list.
type shown struct {
	site  uint32 // number of the site, or index in lists
	flags uint8
}

const (
	isList uint8 = 1 << iota
	isFocused
	isIgnored
	isNameless
)

// allocates marks the number of a site in shown and lists: the function is an allocator, which
// [View].Fold leaves out at the inner end of a path.
const allocates = 1 << 31

// starts marks the number of a site likewise: it is the start of a program, or an address without a name,
// which [View].Fold leaves out at the outer end of a path.
const starts = 1 << 30

func newNames(dumps []*Dump, v View) *names {
	n := &names{view: &v, numbers: map[Site]uint32{}, funcs: map[string]function{}}
	n.in, _ = common(dumps)
	addrs := 0
	for _, d := range dumps {
		if d.Len() > 0 {
			addrs = max(addrs, d.addrs)
		}
	}
	if n.in != nil && !v.Filter.any() {
		if last := n.in.names.Load(); last != nil && *last.view == v && len(last.shown) == addrs {
			return last
		}
		defer n.in.names.Store(n)
	}
	n.shown = make([]shown, addrs)
	n.same = n.in == nil || v.Filter.Focus == nil // which may leave out paths
	used := usedAddrs(dumps, addrs, v.Filter.any())
	n.alignBuilds(addrs)
	for i := range n.shown {
		if used == nil || used[i] {
			n.shown[i] = n.look(i)
			n.same = n.same && n.shown[i].site == uint32(i) && n.shown[i].flags&^isNameless == 0
		}
	}
	return n
}

// alignBuilds compares the builds of a program by name, unless the view shows addresses.
func (n *names) alignBuilds(addrs int) {
	if n.view.By == ByModule {
		return
	}
	var list []*symbol.Addr
	for i := range addrs {
		if a := n.in.addrs.at(i); programModule(a) != nil {
			list = append(list, a)
		}
	}
	if len(list) > 0 {
		n.builds = newBuilds(list)
	}
}

// usedAddrs reports by address which addresses are in call paths of the dumps. If needed is
// false, it returns nil, which means all addresses.
func usedAddrs(dumps []*Dump, addrs int, needed bool) []bool {
	if !needed {
		return nil
	}
	used := make([]bool, addrs)
	var seen []bool // by node
	add := func(in *paths, ids []uint32) {
		for _, id := range ids {
			node, tail := in.stack(id)
			for _, addr := range tail {
				used[addr] = true
			}
			if n := int(node) + 1; n > len(seen) {
				seen = slices.Grow(seen, n-len(seen))[:n]
			}
			for ; node != 0 && !seen[node]; node = in.nodes.at(int(node)).parent {
				seen[node], used[in.nodes.at(int(node)).value] = true, true
			}
		}
	}
	known := map[any]bool{} // tables
	for _, d := range dumps {
		if d == nil || d.in == nil {
			continue
		}
		for t := d.live; t != nil && !known[t]; t = t.from {
			known[t] = true
			add(d.in, t.ids)
		}
		for t := d.more; t != nil && !known[t]; t = t.from { // those of paths that hold nothing now
			known[t] = true
			add(d.in, t.ids)
		}
	}
	return used
}

// look finds the sites of an address.
func (n *names) look(number int) (s shown) {
	a := n.in.addrs.at(number)
	v := n.view
	unnamed := a.State != symbol.Inferred && (a.Location == nil || a.Location.Module == nil && len(a.Location.Frames) == 0) && v.By != ByModule
	if unnamed && v.Fold && a.State == symbol.Exact {
		s.flags = isNameless
	}
	if unnamed && !v.Filter.any() {
		s.site = uint32(number)
		return s
	}
	frames, ignored, focused := v.Filter.Frames(nil, *a)
	if focused {
		s.flags |= isFocused
	}
	if ignored {
		s.flags |= isIgnored
	}
	if unnamed && len(frames) == 1 {
		s.site = uint32(number)
		return s
	}
	list := n.sitesOf(frames, a)
	if len(list) == 1 {
		s.site = list[0]
		return s
	}
	s.flags |= isList
	s.site = uint32(len(n.lists))
	n.lists = append(n.lists, list)
	return s
}

// sitesOf returns the numbers of the sites of frames of an address.
func (n *names) sitesOf(frames []symbol.Frame, a *symbol.Addr) (list []uint32) {
	frames = n.builds.outer(frames, a)
	merge := n.view.By == ByModule // inlined calls of one file are one site
	for i := range frames {
		f := n.builds.frame(frames[i], a)
		site, mark := n.site(&f, a), n.function(f.Name).mark
		if last := len(list) - 1; merge && last >= 0 && list[last]&^(allocates|starts) == site {
			list[last] &= site | mark
			continue
		}
		list = append(list, site|mark)
	}
	return list
}

// function returns how the view treats the function with a name.
func (n *names) function(name string) function {
	if !n.view.Fold && !strings.ContainsAny(name, "<(") {
		return function{name: name}
	}
	if strings.HasPrefix(name, "0x") { // an address without a name
		return function{name: name, mark: starts}
	}
	f, known := n.funcs[name]
	if known {
		return f
	}
	f.name = shorten(name)
	switch {
	case !n.view.Fold:
	case Allocator(name):
		f.mark = allocates
	case startsProgram(name):
		f.mark = starts
	}
	n.funcs[name] = f
	return f
}

// site returns the number of a frame's site.
func (n *names) site(f *symbol.Frame, a *symbol.Addr) uint32 {
	module := ""
	if l := a.Location; l != nil && l.Module != nil {
		module = base(l.Module.Name)
	}
	var s Site
	switch n.view.By {
	case ByFunction:
		s = Site{Func: n.function(f.Name).name}
	case ByModule:
		s = Site{Module: cmp.Or(module, "(unknown module)")}
	default:
		s = Site{Func: n.function(f.Name).name, File: n.file(f.File), Line: f.Line}
		if n.view.Modules {
			s.Module = module
		}
	}
	number, known := n.numbers[s]
	if !known {
		number = uint32(len(n.shown) + len(n.named))
		n.named = append(n.named, s)
		n.numbers[s] = number
	}
	return number
}

func (n *names) file(path string) string {
	if n.view.Basenames {
		return base(path)
	}
	return path
}

// count returns the number of sites.
func (n *names) count() int { return len(n.shown) + len(n.named) }

// siteAt returns a site by its number.
func (n *names) siteAt(number uint32) Site {
	if i := int(number) - len(n.shown); i >= 0 {
		return n.named[i]
	}
	return Site{Func: addrName(*n.in.addrs.at(int(number)))}
}

// sites returns the sites of a stack.
func (n *names) sites(stack []uint32) []Site {
	list := make([]Site, len(stack))
	for i, s := range stack {
		list[i] = n.siteAt(s)
	}
	return list
}

// list returns the numbers of the sites of an address, innermost first, with allocates and starts. The
// caller must not change it.
func (n *names) list(buf *[1]uint32, addr uint32) []uint32 {
	s := n.shown[addr]
	if s.flags&isList != 0 {
		return n.lists[s.site]
	}
	buf[0] = s.site
	if s.flags&isNameless != 0 {
		buf[0] |= starts
	}
	return buf[:]
}

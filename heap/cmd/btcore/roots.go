package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/graph"
)

// rootNames names the memory outside of the heap.
type rootNames struct {
	in     *input
	list   []namedRange // by address, disjoint
	others map[string]*graph.Root
}

type namedRange struct {
	start, end uint64
	root       *graph.Root
}

// threadLocal is the number of bytes on either side of a thread pointer that are named as the
// thread's variables.
const threadLocal = 4096

func (in *input) rootNames() *rootNames {
	r := &rootNames{in: in, others: map[string]*graph.Root{}}
	for f := range in.loaded {
		list, _ := in.Variables(f.path, f.bias) // a file may have no symbols
		slices.SortStableFunc(list, func(a, b core.Symbol) int { return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Size, a.Size)) })
		end := uint64(0)
		for _, s := range list {
			if s.Size == 0 || s.Addr < end || s.Addr+s.Size < s.Addr {
				continue // an alias
			}
			end = s.Addr + s.Size
			r.list = append(r.list, namedRange{s.Addr, end, &graph.Root{Name: s.Name}})
		}
	}
	slices.SortFunc(r.list, func(a, b namedRange) int { return cmp.Compare(a.start, b.start) })
	return r
}

// at returns the root at an address.
func (r *rootNames) at(addr uint64) *graph.Root {
	i := sort.Search(len(r.list), func(i int) bool { return r.list[i].start > addr }) - 1
	if i >= 0 && addr < r.list[i].end {
		return r.list[i].root
	}
	for i := range r.in.Threads {
		if t := &r.in.Threads[i]; t.TLS > threadLocal && addr-(t.TLS-threadLocal) < 2*threadLocal {
			return r.other(fmt.Sprintf("thread-local variables of thread %d", t.ID), false)
		}
	}
	for f := range r.in.loaded {
		for _, m := range r.in.writable(f) {
			if addr >= m.Start && addr < m.End {
				return r.other("data of "+filepath.Base(f.path), false)
			}
		}
	}
	m := r.in.MapAt(addr)
	if m == nil {
		return r.other("RAM outside of the data", true)
	}
	for i := range r.in.Threads {
		if t := &r.in.Threads[i]; t.SP >= m.Start && t.SP < m.End {
			return r.other(fmt.Sprintf("stack of thread %d", t.ID), true)
		}
	}
	if m.File != "" {
		return r.other("data of "+filepath.Base(m.File), false)
	}
	return r.other(fmt.Sprintf("memory mapped at %#x", m.Start), false)
}

func (r *rootNames) other(name string, local bool) *graph.Root {
	x := r.others[name]
	if x == nil {
		x = &graph.Root{Name: name, Local: local}
		r.others[name] = x
	}
	return x
}

// place names an address in a root: the variable, and the offset in it.
func (r *rootNames) place(addr uint64) string {
	root := r.at(addr)
	i := sort.Search(len(r.list), func(i int) bool { return r.list[i].start > addr }) - 1
	if i >= 0 && addr < r.list[i].end && addr > r.list[i].start {
		return fmt.Sprintf("%s +%d", root.Name, addr-r.list[i].start)
	}
	return root.Name
}

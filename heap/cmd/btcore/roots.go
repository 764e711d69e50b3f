package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/graph"
	"github.com/lwsbt/lwsbt/symbol"
)

// rootNames names the memory outside of the heap.
type rootNames struct {
	in        *input
	demangler symbol.Demangler
	variables []namedRange           // by address, disjoint
	tls       []namedRange           // thread-local variables, by address
	data      []namedRange           // data and bss of files, by address
	stacks    map[uint64]*graph.Root // by the start of their maps
	others    map[string]*graph.Root
}

type namedRange struct {
	start, end uint64
	root       *graph.Root
}

// threadLocal is the number of bytes on either side of a thread pointer that are named as the
// thread's variables.
const threadLocal = 4096

func (in *input) rootNames() *rootNames {
	r := &rootNames{in: in, stacks: map[uint64]*graph.Root{}, others: map[string]*graph.Root{}}
	for f := range in.loaded {
		r.addVariables(f)
		list, err := in.WritableRanges(f.path, f.bias)
		if err != nil {
			in.note("%v", err)
		}
		root := r.other("data of "+filepath.Base(f.path), false)
		for _, m := range list {
			r.data = append(r.data, namedRange{m.Start, m.End, root})
		}
	}
	for i := range in.Threads {
		t := &in.Threads[i]
		if t.TLS > threadLocal && t.TLS+threadLocal > t.TLS {
			root := &graph.Root{Name: fmt.Sprintf("thread-local variables of thread %d", t.ID)}
			r.tls = append(r.tls, namedRange{t.TLS - threadLocal, t.TLS + threadLocal, root})
		}
		if m := in.MapAt(t.SP); m != nil && r.stacks[m.Start] == nil {
			r.stacks[m.Start] = &graph.Root{Name: fmt.Sprintf("stack of thread %d", t.ID), Local: true}
		}
	}
	for _, list := range [][]namedRange{r.variables, r.tls, r.data} {
		slices.SortStableFunc(list, func(a, b namedRange) int { return cmp.Compare(a.start, b.start) })
	}
	return r
}

// addVariables adds the variables of a file.
func (r *rootNames) addVariables(f *elfFile) {
	list, _ := r.in.Variables(f.path, f.bias) // a file may have no symbols
	slices.SortStableFunc(list, func(a, b core.Symbol) int { return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Size, a.Size)) })
	end := uint64(0)
	for _, s := range list {
		if s.Size == 0 || s.Addr < end || s.Addr+s.Size < s.Addr {
			continue // an alias
		}
		end = s.Addr + s.Size
		r.variables = append(r.variables, namedRange{s.Addr, end, &graph.Root{Name: r.demangler.Demangle(s.Name)}})
	}
}

// find returns the last range of a list that begins at or before an address, if it holds it.
func find(list []namedRange, addr uint64) *namedRange {
	i := sort.Search(len(list), func(i int) bool { return list[i].start > addr }) - 1
	if i >= 0 && addr < list[i].end {
		return &list[i]
	}
	return nil
}

// at returns the root at an address.
func (r *rootNames) at(addr uint64) *graph.Root {
	for _, list := range [][]namedRange{r.variables, r.tls, r.data} {
		if x := find(list, addr); x != nil {
			return x.root
		}
	}
	m := r.in.MapAt(addr)
	switch {
	case m == nil:
		return r.other("RAM outside of the data", true)
	case r.stacks[m.Start] != nil:
		return r.stacks[m.Start]
	case m.File != "":
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
	if x := find(r.variables, addr); x != nil && addr > x.start {
		return fmt.Sprintf("%s +%d", x.root.Name, addr-x.start)
	}
	return r.at(addr).Name
}

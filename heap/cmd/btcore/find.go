package main

import (
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/alloc"
	"github.com/lwsbt/lwsbt/heap/core/tasks"
	"github.com/lwsbt/lwsbt/heap/core/types"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// knownOwners are names of variables that may hold the list: that of lws's alloc.c, and
// a name that programs commonly use.
var knownOwners = []string{"active", "lwsbt_heap"}

// wrapped is the name of the struct lwsbt_heap in device/adapters/wrap.c.
const wrapped = "lwsbt_wrapped"

// findHeap finds the list of blocks, or those of an allocator. A list that a symbol leads to comes first, then the
// allocators; memory is searched for blocks with --carve, or if a list that a symbol names was overwritten.
func (o *heapOptions) findHeap(in *input, search core.Search) (*core.Heap, error) {
	search.Named = !o.carve
	h, err := in.FindHeap(search)
	switch {
	case err == nil && h.Owners[0].Carved && !o.carve && len(search.Typed) == 0:
		if foreign, err := o.findForeign(in, nil); err == nil && len(unproven(o.arenas)) == 0 {
			return foreign, nil
		}
		o.arenas = nil
		return h, nil
	case !errors.Is(err, core.ErrNoHeap):
		return h, err
	case len(search.Typed) > 0:
		x := search.Typed[0]
		return nil, cli.Usagef("the list of blocks is in %s at %#x, which is not in this image", x.Name, x.Addr)
	}
	if !search.Strict && !o.carve {
		if h, err := o.findForeign(in, nil); !errors.Is(err, alloc.ErrNone) {
			return h, err
		}
	}
	return nil, cli.Usagef("no heap in this image: no list of libwebsockets or device/, and no heap of %s%s", strings.Join(alloc.Names(), ", "), in.hint())
}

// manyBlocks is the number of blocks from which on memory matters more than time.
const manyBlocks = 1 << 20

// findForeign finds the blocks in the structures of allocators.
func (o *heapOptions) findForeign(in *input, kinds []alloc.Kind) (*core.Heap, error) {
	arenas, err := in.findArenas(kinds)
	if err != nil {
		return nil, err
	}
	o.arenas = arenas
	if len(unproven(arenas)) > 0 || slices.ContainsFunc(arenas, func(h *alloc.Heap) bool { return len(h.Damage) > 0 }) {
		if err := in.noteStopped(); err != nil {
			return nil, err
		}
	}
	if n := unproven(arenas); len(n) > 0 && o.only != "" && o.only != "damaged" {
		return nil, cli.Usagef("--only %s: %s", o.only, n[0])
	}
	blocks := 0
	for _, a := range arenas {
		blocks += len(a.Blocks)
	}
	if blocks >= manyBlocks {
		in.Release()
		debug.SetGCPercent(5)
	}
	for _, name := range in.unread() {
		if slices.ContainsFunc(arenas, func(h *alloc.Heap) bool { return strings.HasPrefix(strings.ToLower(name), h.Kind.String()+" ") }) {
			continue
		}
		in.note("the program has %s, too, which btcore does not read: its blocks are missing", name)
	}
	h := alloc.Core(&in.Image, arenas)
	for _, a := range arenas {
		a.Drop()
	}
	if blocks >= manyBlocks {
		debug.FreeOSMemory()
	}
	return h, nil
}

// search returns the candidates for the list of blocks, from --owner and from the
// symbols of the files.
func (o *heapOptions) search(in *input) (s core.Search, err error) {
	if o.carve {
		return s, nil
	}
	names := knownOwners
	if len(o.owner) > 0 {
		s.Strict = true
		names = nil
		for _, a := range o.owner {
			if addr, err := strconv.ParseUint(a, 0, 64); err == nil {
				s.Owners = append(s.Owners, core.Symbol{Addr: addr})
			} else {
				names = append(names, a)
			}
		}
	}
	for f := range in.loaded {
		if len(names) == 0 {
			break
		}
		list, err := in.Variables(f.path, f.bias, names...)
		if err != nil && f.own && len(o.owner) == 0 {
			in.note("%v", err)
		}
		s.Owners = append(s.Owners, list...)
		if !s.Strict {
			s.Typed = append(s.Typed, in.typed(f, wrapped, "lwsbt_heap")...)
			in.dropCounted(f, &s)
		}
	}
	for _, n := range names {
		if s.Strict && !slices.ContainsFunc(s.Owners, func(x core.Symbol) bool { return x.Name == n }) {
			return s, cli.Usagef("--owner %s: no variable of this name%s", n, in.hint())
		}
	}
	return s, nil
}

// dropCounted removes the heaps from search whose blocks a struct lwsbt_profile counts by call path: they are in no list.
func (in *input) dropCounted(f *elfFile, s *core.Search) {
	for _, p := range in.typed(f, "lwsbt_wrapped_profile", "lwsbt_profile") {
		if heap, _ := in.Pointer(p.Addr); heap != 0 {
			counted := func(x core.Symbol) bool { return x.Addr == heap }
			s.Owners, s.Typed = slices.DeleteFunc(s.Owners, counted), slices.DeleteFunc(s.Typed, counted)
			in.note("%s counts blocks by call path: its log has the table", cli.Printable(p.Name))
		}
	}
}

// typed returns the variables of a file with a struct of device/: that of wrap.c by its name, others by debug information.
func (in *input) typed(f *elfFile, name, tag string) []core.Symbol {
	list, _ := in.Variables(f.path, f.bias, name) // a file may have no symbols
	more, err := types.Holding(f.path, tag)
	if err != nil {
		in.note("%v", err)
	}
	for _, v := range more {
		list = append(list, core.Symbol{Name: v.Name, File: f.path, Addr: in.fit(v.Addr + f.bias)})
	}
	return list
}

// hint returns which flags might help where nothing was found.
func (in *input) hint() string {
	symbols := false
	for f := range in.loaded {
		_, err := in.Variables(f.path, f.bias, "main")
		symbols = symbols || err == nil
	}
	switch {
	case len(in.files) == 0:
		return "; -e FILE names the program, --owner its list; --carve searches memory for blocks"
	case len(in.Maps) > 0:
		return in.unreadHint() + "; --owner names the list, --carve searches memory for blocks"
	case !symbols:
		return "; heaps of freertos, newlib and picolibc need an ELF file with symbols"
	}
	return in.unreadHint() + "; is it the program of this image? --owner names its list"
}

// roots returns the data and bss of the program's files, and the variables of its
// allocator.
func (in *input) roots() (r core.Roots) {
	for f := range in.loaded {
		more, err := in.WritableRanges(f.path, f.bias)
		if err != nil {
			in.note("%v", err)
		}
		r.Data = append(r.Data, more...)
		sections, err := in.WritableSections(f.path, f.bias)
		if err != nil {
			in.note("%v", err)
		}
		r.Sections = append(r.Sections, sections...)
		list, _ := in.Variables(f.path, f.bias, core.AllocatorData...) // a file may have none
		r.Allocator = append(r.Allocator, list...)
	}
	return r
}

// findLeaks finds the leaked blocks. What is below the stack pointers of tasks is old, and so is the whole stack of one that
// was deleted, which the kernel frees.
func (in *input) findLeaks(h *core.Heap) *core.Leaks {
	from := in.roots()
	for f := range in.loaded {
		if len(in.Maps) > 0 { // a process
			break
		}
		list, err := tasks.Find(&in.Image, f.path, f.bias)
		if err != nil {
			continue
		}
		for _, t := range list.Tasks {
			if i, ok := in.BlockAt(h, t.Low); ok && t.State == "deleted" {
				t.Top = max(t.Top, h.Blocks[i].Addr+h.Blocks[i].Size)
			}
			if t.Low != 0 && t.Low < t.Top {
				from.Unused = append(from.Unused, core.Map{Start: t.Low, End: t.Top})
			}
		}
	}
	return in.FindLeaks(h, from)
}

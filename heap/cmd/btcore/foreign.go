package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/alloc"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// allocators checks the value of --allocator.
func allocators(name string) ([]alloc.Kind, error) {
	if name == "" {
		return nil, nil
	}
	k, ok := alloc.ParseKind(name)
	if !ok {
		return nil, cli.BadArgsf("--allocator %q: expected %s", name, strings.Join(alloc.Names(), ", "))
	}
	return []alloc.Kind{k}, nil
}

// findArenas finds the heaps of allocators.
func (in *input) findArenas(only []alloc.Kind) ([]*alloc.Heap, error) {
	p := alloc.Program{Variables: func(names ...string) (list []core.Symbol) {
		for f := range in.loaded {
			more, _ := in.Variables(f.path, f.bias, names...) // a file may have no symbols
			list = append(list, more...)
		}
		slices.SortStableFunc(list, func(a, b core.Symbol) int { return slices.Index(names, a.Name) - slices.Index(names, b.Name) })
		return list
	}, Data: in.roots().Data}
	heaps, err := alloc.Find(&in.Image, p, only...)
	var missing *alloc.MissingError
	var mismatch *alloc.MismatchError
	switch {
	case errors.As(err, &missing):
		in.note("%v%s", err, in.ranges())
		return nil, cli.Exit(cli.Short)
	case errors.As(err, &mismatch):
		in.note("%v", err)
		return nil, cli.Exit(cli.Short)
	}
	return heaps, err
}

// ranges returns the memory of the image as text, "" if it has many parts.
func (in *input) ranges() string {
	var list []string
	segs := in.Segments()
	for i := range segs {
		if s := &segs[i]; !s.ELF {
			list = append(list, fmt.Sprintf("%#x to %#x", s.Addr, s.End()))
		}
	}
	if len(list) == 0 || len(list) > 4 {
		return ""
	}
	return "; it has " + strings.Join(list, ", ")
}

// unproven returns the failed checks of heaps.
func unproven(heaps []*alloc.Heap) (list []string) {
	for _, h := range heaps {
		for _, p := range h.Proof {
			switch {
			case p.Want == p.Got:
			case p.Want == 1 && p.Got == 0:
				list = append(list, fmt.Sprintf("%s is unproven: this is not so: %s", h.Name, p.Check))
			default:
				list = append(list, fmt.Sprintf("%s is unproven: %s: expected %#x, found %#x", h.Name, p.Check, p.Want, p.Got))
			}
		}
	}
	return list
}

// describe prints what was found in each arena.
func describe(c *cobra.Command, heaps []*alloc.Heap) {
	for _, h := range heaps {
		used, bytes := h.Count(alloc.Used)
		free, holes := h.Count(alloc.Free)
		if used+free == 0 && h.Proven() && len(heaps) > 1 {
			continue
		}
		say(c, fmt.Sprintf("%s at %#x: %s in %s, %s free in %s, the largest %s", h.Name, h.Addr,
			cli.Count(bytes, "byte"), cli.Count(used, "block"), cli.Count(holes, "byte"), cli.Count(free, "hole"), cli.Number(h.Largest())))
		if h.Proven() && len(h.Proof) > 0 && len(h.Damage) == 0 {
			var checks []string
			for _, p := range h.Proof {
				checks = append(checks, p.Check)
			}
			say(c, "proven: "+strings.Join(checks, "; "))
		}
	}
}

// allocatorFunctions matches the functions that change the structures of allocators.
var allocatorFunctions = regexp.MustCompile(`^(__libc_|_int_|__|_)?(malloc|free|calloc|realloc|memalign|cfree)(_r|_consolidate)?$|` +
	`^(pvPortMalloc|vPortFree|prvInsertBlockIntoFreeList|unlink_chunk|sysmalloc|systrim|malloc_consolidate|alloc_slot|alloc_group|nontrivial_free)|` +
	`^(tcache_|tlsf_|multi_heap_|mm_malloc|mm_free|_tx_byte_|sys_heap_|chunk_|free_chunk)`)

// noteStopped adds a note for each thread that stopped in a function of an allocator: its structures may be between two
// states then.
func (in *input) noteStopped() error {
	names, err := in.symbols()
	if err != nil {
		return err
	}
	defer names.Close()
	for i := range in.Threads {
		t := &in.Threads[i]
		for _, a := range names.Resolve(nil, &codec.Stack{PCs: []uint64{t.PC + 1}}, nil) { // an address before the next one
			for _, f := range a.Frames() {
				if allocatorFunctions.MatchString(f.Name) {
					in.note("thread %d stopped in %s: what looks like damage may be a change that was not finished", t.ID, f.Name)
				}
			}
		}
	}
	return nil
}

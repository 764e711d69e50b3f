package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/cli"
)

// unreadAllocators are allocators that btcore does not read, by a function that only they have, at an address of its own.
var unreadAllocators = map[string]string{
	"mallctlbymib": "jemalloc", "je_mallctlbymib": "jemalloc", "mi_version": "mimalloc", "tc_malloc_stats": "tcmalloc", "tc_malloc_size": "tcmalloc", "TCMallocInternalMalloc": "tcmalloc",
	"h_malloc": "hardened_malloc", "__scudo_print_stats": "scudo", "rpmalloc": "rpmalloc", "GC_malloc": "the collector of Boehm",
	"rt_system_heap_init": "RT-Thread", "o1heapAllocate": "o1heap",
}

// unread returns the allocators in the program and its libraries that btcore does not read, each with its file. A library has the
// name of its allocator.
func (in *input) unread() (list []string) {
	seen := map[string]bool{}
	for f := range in.loaded {
		base := filepath.Base(f.path)
		found := map[string]bool{}
		if file := f.open(); f.own && file != nil {
			for _, x := range file.Functions() {
				found[unreadAllocators[x.Name]] = true
			}
		}
		for _, name := range unreadAllocators {
			if !seen[name] && (found[name] || !f.own && strings.Contains(base, "lib"+name)) {
				seen[name] = true
				list = append(list, fmt.Sprintf("%s (%s)", name, cli.Printable(base)))
			}
		}
	}
	slices.Sort(list)
	return list
}

// unreadHint says which allocator has the heap, if it is one that btcore does not read.
func (in *input) unreadHint() string {
	if list := in.unread(); len(list) > 0 {
		return "; the program has " + strings.Join(list, ", ") + ", which btcore does not read"
	}
	return ""
}

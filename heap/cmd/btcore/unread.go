package main

import (
	"bytes"
	"debug/elf"
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
	"__asan_init": "asan", "__hwasan_init": "hwasan", "__tsan_init": "tsan", "__msan_init": "msan", "__lsan_do_leak_check": "lsan",
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

// keepers are functions that give the kernel an address to keep, which no memory of the program needs to have then.
var keepers = []string{"epoll_ctl", "timer_create", "io_submit", "io_uring_submit", "mq_notify"}

// passed says by which functions the program gives addresses to the kernel, if blocks look leaked.
func (in *input) passed(leaked int) (lines []string) {
	var used []string
	for f := range in.loaded {
		if f.own && leaked > 0 {
			used = append(used, imports(f.path, keepers)...)
		}
	}
	if len(used) > 0 {
		lines = append(lines, fmt.Sprintf("the program calls %s: a block whose address only the kernel has looks leaked", strings.Join(used, ", ")))
	}
	return lines
}

// imports returns those of the names that a file has for the dynamic linker.
func imports(path string, names []string) (list []string) {
	defer func() {
		_ = recover() // a panic of debug/elf: the file is malformed
	}()
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	s := f.Section(".dynstr")
	if s == nil {
		return nil
	}
	b, _ := s.Data() // what cannot be read has no names
	for _, name := range names {
		if bytes.Contains(b, []byte("\x00"+name+"\x00")) {
			list = append(list, name)
		}
	}
	return list
}

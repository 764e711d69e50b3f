//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The example of the article on tracking modules: at address X there is B, then
// nothing, then D; B comes back at Y. Every address is of its true module, in
// events and in the dump at the end, when none of them is loaded any more.
func TestModulesComeAndGo(t *testing.T) {
	library := buildLibrary(t, "gcc")
	program := compile(t, "gcc", "xy.c", "-O2")
	b := compile(t, "gcc", "module.c", "-O2", "-fPIC", "-shared", "-DFN=of_b")
	d := compile(t, "gcc", "module.c", "-O2", "-fPIC", "-shared", "-DFN=of_d")
	tables := map[string]functions{"of_b": readFunctions(t, b), "of_d": readFunctions(t, d)}
	files := map[string]string{"of_b": b, "of_d": d}
	for _, times := range []int{1, 40} {
		rec, out, errs := record(t, library, []string{"LWSBT_EVENTS=1", "LWSBT_CHECK=1"}, "", program, b, d, fmt.Sprint(times))
		if !strings.Contains(errs, "differed=0 ") {
			t.Error(errs)
		}
		type use struct{ fn, at, addr string }
		var uses []use
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			uses = append(uses, use{f[0], f[1], f[2]})
		}
		if len(uses) != 3*times {
			t.Fatalf("%d allocations:\n%s", len(uses), out)
		}
		if x, y := uses[0].at, uses[2].at; uses[1].at != x || y == x {
			t.Skipf("this kernel does not load D where B was: %s", out)
		}
		blocks := map[string][]string{}
		for _, block := range rec.last(t).blocks {
			blocks[fmt.Sprintf("%#x", block.addr)] = block.stack
		}
		events := map[string][]string{}
		for _, e := range rec.events {
			if e.size == 1111 || e.size == 2222 || e.size == 3333 {
				events[fmt.Sprintf("%#x", e.addr)] = e.stack
			}
		}
		for i, u := range uses {
			for kind, stack := range map[string][]string{"dump": blocks[u.addr], "event": events[u.addr]} {
				if len(stack) < 3 {
					t.Fatalf("%s: block %d at %s has the stack %v", kind, i, u.addr, stack)
				}
				if name := tables[u.fn].name(stack[0], files[u.fn]); name != u.fn {
					t.Errorf("%s: block %d by %s, want %s", kind, i, stack[0], u.fn)
				}
				if !strings.HasPrefix(stack[1], filepath.Base(program)+"+") {
					t.Errorf("%s: block %d called from %s, want %s", kind, i, stack[1], program)
				}
			}
		}
		// B, D, B: each load and unload is seen, and has a time.
		if rec.loads < 5*times {
			t.Errorf("%d changes of modules seen, want %d or more", rec.loads, 5*times)
		}
	}
}

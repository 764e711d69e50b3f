package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestTypes compares the types of blocks with those that testdata/typed.c prints: at least 99.5 % of the types are
// right, and at least 80 % of the structs have one.
func TestTypes(t *testing.T) {
	for _, c := range []struct{ compiler, flags string }{{"gcc", "-O2"}, {"gcc", "-O0"}, {"gcc", "-Os -gdwarf-4"}, {"clang", "-O2"}} {
		t.Run(c.compiler+" "+c.flags, func(t *testing.T) {
			if c.flags != "-O2" || c.compiler != "gcc" {
				cmdtest.Long(t)
			}
			cmdtest.Need(t, c.compiler, "gdb")
			core, exe, out := deadOf(t, c.compiler, "testdata/typed.c", strings.Fields(c.flags)...)
			truth := map[uint64]string{}
			for _, line := range strings.Split(out, "\n") {
				if rest, ok := strings.CutPrefix(line, "type "); ok {
					addr, name, _ := strings.Cut(rest, " ")
					var a uint64
					fmt.Sscanf(addr, "%x", &a)
					truth[a] = name
				}
			}
			in := input{elf: []string{exe}}
			defer in.close()
			if err := in.load([]string{core}); err != nil {
				t.Fatal(err)
			}
			o := heapOptions{leaks: true}
			h, _, err := o.find(&in)
			if err != nil {
				t.Fatal(err)
			}
			names := in.types(h)
			structs, right, wrong := 0, 0, map[string]int{}
			for i := range h.Blocks {
				want, known := truth[h.Blocks[i].Addr]
				if !known {
					t.Fatalf("the program has no block at %#x", h.Blocks[i].Addr)
				}
				if want != "-" {
					structs++
				}
				switch {
				case names[i] == want:
					right++
				case names[i] != "":
					wrong[want+" is called "+names[i]]++
				case want != "-":
					wrong["(no type: "+want+")"]++
				}
			}
			errors := 0
			for k, n := range wrong {
				t.Logf("%5d %s", n, k)
				if !strings.HasPrefix(k, "(") {
					errors += n
				}
			}
			t.Logf("%d blocks, %d structs: %d right, %d wrong", len(h.Blocks), structs, right, errors)
			if len(h.Blocks) != len(truth) || structs < 2000 || right < structs*8/10 || errors*200 > right+errors {
				t.Errorf("%d of %d blocks, %d structs: %d right, %d wrong", len(h.Blocks), len(truth), structs, right, errors)
			}
		})
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
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
			truth := truthOf(out)
			h, names := typesOf(t, core, exe)
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

// truthOf returns the types of blocks that a program prints, by address.
func truthOf(out string) map[uint64]string {
	truth := map[uint64]string{}
	for _, line := range strings.Split(out, "\n") {
		if rest, ok := strings.CutPrefix(line, "type "); ok {
			addr, name, _ := strings.Cut(rest, " ")
			var a uint64
			fmt.Sscanf(addr, "%x", &a)
			truth[a] = name
		}
	}
	return truth
}

// typesOf returns the blocks of a core file with their types.
func typesOf(t *testing.T, file, exe string) (*core.Heap, []string) {
	t.Helper()
	in := input{elf: []string{exe}}
	t.Cleanup(in.close)
	if err := in.load([]string{file}); err != nil {
		t.Fatal(err)
	}
	o := heapOptions{leaks: true}
	h, _, err := o.find(&in)
	if err != nil {
		t.Fatal(err)
	}
	return h, in.types(h).names
}

// TestFirstWords compares the names of blocks by their first word with what testdata/classes.cc, with its library, and
// testdata/objects.c print: at least 99.5 % of the names are right, and at least 90 % of the objects have one.
func TestFirstWords(t *testing.T) {
	as := map[string]string{ // in the symbol table
		"Hidden":             "(anonymous namespace)::Hidden",
		"std::ostringstream": "std::__cxx11::basic_ostringstream<char, std::char_traits<char>, std::allocator<char> >",
	}
	for _, c := range []struct {
		compiler, program, flags string
		exact                    int // percent of the objects whose class is the name, not only the beginning
		full                     bool
	}{
		{"g++", "classes.cc", "-O0", 0, false},
		{"g++", "classes.cc", "-O2 -g", 70, false},
		{"g++", "classes.cc", "-O0 -g", 70, true},
		{"g++", "classes.cc", "-O2 -no-pie -fno-rtti -gdwarf-4", 70, true},
		{"clang++", "classes.cc", "-O2 -g", 70, true},
		{"gcc", "objects.c", "-O0", 100, false},
		{"gcc", "objects.c", "-O2 -g", 100, false},
		{"gcc", "objects.c", "-O2 -no-pie", 100, true},
		{"clang", "objects.c", "-O2", 100, true},
	} {
		t.Run(c.compiler+" "+c.program+" "+c.flags, func(t *testing.T) {
			if c.full {
				cmdtest.Long(t)
			}
			cmdtest.Need(t, c.compiler, "gdb")
			core, exe, out := firstWords(t, c.compiler, c.program, strings.Fields(c.flags)...)
			truth := truthOf(out)
			h, names := typesOf(t, core, exe)
			objects, right, begins, errors, wrong := 0, 0, 0, 0, map[string]int{}
			for _, want := range truth {
				if want != "-" && want != "" {
					objects++
				}
			}
			for i := range h.Blocks {
				want := truth[h.Blocks[i].Addr] // "" for those of libraries
				if x := as[want]; x != "" {
					want = x
				}
				switch {
				case names[i] == "":
					wrong["(no name: "+want+")"]++
				case strings.TrimPrefix(names[i], "begins with ") == strings.TrimPrefix(want, "begins with ") && strings.HasPrefix(names[i], "begins with "):
					begins++
				case names[i] == want:
					right++
				default:
					errors++
					wrong[want+" is called "+names[i]]++
				}
			}
			for k, n := range wrong {
				t.Logf("%5d %s", n, k)
			}
			t.Logf("%d blocks, %d objects: %d right, and %d that begin with a class; %d wrong", len(h.Blocks), objects, right, begins, errors)
			if right < objects*c.exact/100 {
				t.Errorf("%d of %d objects have their own class", right, objects)
			}
			if len(h.Blocks) < len(truth) || objects < 1000 || right+begins < objects*99/100 || errors*200 > right+begins+errors {
				t.Errorf("%d of %d blocks, %d objects: %d and %d right, %d wrong", len(h.Blocks), len(truth), objects, right, begins, errors)
			}
		})
	}
}

// firstWords has gdb write a core file of a program in testdata, and returns its output, too. A C++ program has a
// library of its header.
func firstWords(t *testing.T, compiler, program string, flags ...string) (core, exe, out string) {
	t.Helper()
	dir := t.TempDir()
	exe, core = filepath.Join(dir, "app"), filepath.Join(dir, "core")
	args := append([]string{"-o", exe, filepath.Join("testdata", program)}, flags...)
	if header, ok := strings.CutSuffix(program, ".cc"); ok {
		library := filepath.Join(dir, "libclasses.so")
		tool(t, compiler, "-shared", "-fPIC", "-O2", "-Wl,--build-id", "-DLIBRARY", "-x", "c++", filepath.Join("testdata", header+".h"), "-o", library)
		args = append(args, library)
	}
	tool(t, compiler, args...)
	truth := filepath.Join(dir, "truth.txt")
	said := tool(t, "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break stop", "-ex", "run > "+truth, "-ex", "generate-core-file "+core, exe)
	text, err := os.ReadFile(truth)
	if _, e := os.Stat(core); err != nil || e != nil {
		t.Skipf("gdb cannot make core files here: %s", said)
	}
	return core, exe, string(text)
}

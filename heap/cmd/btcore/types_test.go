package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/types"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestTypes compares the types of blocks with those that testdata/typed.c prints: at least 99.5 % of the types are
// right, and at least 60 % of the structs have one, in a heap of device/.
func TestTypes(t *testing.T) {
	for _, c := range []struct{ compiler, flags string }{{"gcc", "-O2"}, {"clang", "-O2"}} {
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
				case names.At(i) == want:
					right++
				case names.At(i) != "":
					wrong[want+" is called "+names.At(i)]++
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
			if len(h.Blocks) != len(truth) || structs < 2000 || right < structs*6/10 || errors*200 > right+errors {
				t.Errorf("%d of %d blocks, %d structs: %d right, %d wrong", len(h.Blocks), len(truth), structs, right, errors)
			}
		})
	}
}

// TestReached compares the types of blocks that typed pointers reach, in a heap of glibc, with those that the programs
// print: at least 99.5 % of the types are right.
func TestReached(t *testing.T) {
	for _, c := range []struct {
		program, flags string
		least          int // types that are right, percent of all
		full           bool
	}{
		{"reached.c", "-O0 -g", 55, true},
		{"reached.c", "-O2 -g", 55, false},
		{"typed.c", "-O0 -g -DPLAIN", 60, true},
		{"typed.c", "-O2 -g -DPLAIN", 60, false},
	} {
		t.Run(c.program+" "+c.flags, func(t *testing.T) {
			if c.full {
				cmdtest.Long(t)
			}
			cmdtest.Need(t, "gcc", "gdb")
			core, exe, out := firstWords(t, "gcc", c.program, strings.Fields(c.flags)...)
			truth := truthOf(out)
			h, names := typesOf(t, core, exe)
			structs, right, errors, wrong := 0, 0, 0, map[string]int{}
			for _, want := range truth {
				if want != "-" {
					structs++
				}
			}
			for i := range h.Blocks {
				want := truth[h.Blocks[i].Addr]
				switch {
				case names.At(i) == "":
					wrong["(no type: "+want+")"]++
				case names.At(i) == want:
					right++
				default:
					errors++
					wrong[want+" is called "+names.At(i)]++
				}
			}
			for k, n := range wrong {
				t.Logf("%5d %s", n, k)
			}
			t.Logf("%d blocks, %d structs: %d right, %d wrong", len(h.Blocks), structs, right, errors)
			if structs < 1000 || right < structs*c.least/100 || errors*200 > right+errors {
				t.Errorf("%d blocks, %d structs: %d right, %d wrong", len(h.Blocks), structs, right, errors)
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
func typesOf(t *testing.T, file, exe string) (*core.Heap, *types.Names) {
	t.Helper()
	in := input{elf: []string{exe}}
	t.Cleanup(in.close)
	if err := in.load([]string{file}); err != nil {
		t.Fatal(err)
	}
	o := heapOptions{leaks: true}
	h, err := o.find(&in)
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
		{"g++", "classes.cc", "-O0", 0, true},
		{"g++", "classes.cc", "-O2 -g", 70, false},
		{"g++", "classes.cc", "-O0 -g", 70, true},
		{"g++", "classes.cc", "-O2 -no-pie -fno-rtti -gdwarf-4", 70, true},
		{"clang++", "classes.cc", "-O2 -g", 70, true},
		{"gcc", "objects.c", "-O0", 100, true},
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
				case names.At(i) == "":
					wrong["(no name: "+want+")"]++
				case strings.TrimPrefix(names.At(i), "begins with ") == strings.TrimPrefix(want, "begins with ") && strings.HasPrefix(names.At(i), "begins with "):
					begins++
				case names.At(i) == want:
					right++
				default:
					errors++
					wrong[want+" is called "+names.At(i)]++
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

// TestByType compares the sums of types with what testdata/objects.c prints: 400 objects of each of three tables, and 8
// leaked ones of the first.
func TestByType(t *testing.T) {
	cmdtest.Need(t, "gcc", "gdb")
	core, exe, _ := firstWords(t, "gcc", "objects.c", "-O1")
	sums := func(args ...string) map[string]int {
		code, out, errs := execute(slices.Concat([]string{"heap", core, "-e", exe, "--by", "type", "--json"}, args)...)
		var list []typeSum
		if err := json.Unmarshal([]byte(out), &list); err != nil || code != cli.OK {
			t.Fatalf("exit code %d, %v: %s", code, err, errs)
		}
		got := map[string]int{}
		for i, s := range list {
			got[s.Type] = s.Blocks
			if i+1 < len(list) && (s.Type == "" || list[i+1].Type != "" && s.Bytes < list[i+1].Bytes) {
				t.Errorf("not by size: %v", list)
			}
		}
		return got
	}
	got := sums()
	if len(got) != 4 || got["object of uart_ops"] != 408 || got["object of disk_ops"] != 400 || got["object of net_ops"] != 400 || got[""] < 2000 {
		t.Errorf("%v", got)
	}
	leaked := sums("--only", "leaked")
	if n := leaked["object of uart_ops"]; n < 6 || n > 8 || len(leaked) != 1 { // old words of the stack may hold some
		t.Errorf("leaked: %v", leaked)
	}
	code, out, _ := execute("heap", core, "-e", exe, "--leaks")
	if want := fmt.Sprintf("\n    %d × object of uart_ops\n", leaked["object of uart_ops"]); code != cli.OK || !strings.Contains(out, want) {
		t.Errorf("--leaks: exit code %d, no %q in\n%s", code, want, out)
	}
	code, out, _ = execute("heap", core, "-e", exe, "--by", "type")
	if lines := strings.Split(out, "\n"); code != cli.OK || len(lines) != 7 || !strings.HasSuffix(lines[2], "  object of disk_ops") || !strings.HasSuffix(lines[5], "  not known") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for _, c := range []struct{ args, want string }{
		{"--by size", `--by "size": expected type`},
		{"--by type --leaks", "--by: not with --leaks or --damage"},
		{"--json", "--json: expected --by type"},
	} {
		if code, _, errs := execute(append([]string{"heap", core}, strings.Fields(c.args)...)...); code != cli.Usage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q; want %q", c.args, code, errs, c.want)
		}
	}
}

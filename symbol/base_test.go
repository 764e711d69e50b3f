package symbol

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// trueStacks builds testdata/src/stacks.c and its library, runs it, and returns
// both files, where each was loaded, and the stacks it printed.
func trueStacks(t testing.TB, cc, emulator, opt string) (app, lib *File, appBase, libBase uint64, stacks [][]uint64) {
	t.Helper()
	tool(t, cc)
	src := source(t, "stacks.c")
	flags := []string{cc, "-g", opt, "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"}
	with := func(args ...string) []string { return append(append([]string{}, flags...), args...) }
	dir := onceBuilt(t, "stacks "+cc+opt, func(dir string) (string, error) {
		_, err := runIn(dir, with("-DLIB", "-DNAME(x)=lib_##x", "-fPIC", "-shared", "-o", "libstacks.so", src)...)
		if err == nil {
			_, err = runIn(dir, with("-DNAME(x)=app_##x", "-fPIE", "-pie", "-o", "app", src, "-L.", "-lstacks", "-Wl,-rpath,"+dir)...)
		}
		return dir, err
	})
	cmd := []string{filepath.Join(dir, "app")}
	if emulator != "" {
		prefix := "/usr/" + strings.TrimSuffix(cc, "-gcc")
		if _, err := os.Stat(prefix); err != nil {
			t.Skipf("no C library for %s in %s", cc, prefix)
		}
		cmd = append([]string{tool(t, emulator), "-L", prefix}, cmd...)
	}
	lines := bufio.NewScanner(strings.NewReader(run(t, dir, cmd...)))
	var mainAt, enterAt uint64
	if !lines.Scan() {
		t.Fatal("the program printed nothing")
	}
	if _, err := fmt.Sscanf(lines.Text(), "%x %x", &mainAt, &enterAt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		var pcs []uint64
		for f := range strings.FieldsSeq(lines.Text()) {
			var pc uint64
			if _, err := fmt.Sscanf(f, "%x", &pc); err != nil {
				t.Fatal(err)
			}
			pcs = append(pcs, pc)
		}
		stacks = append(stacks, pcs)
	}
	app, lib = open(t, filepath.Join(dir, "app")), open(t, filepath.Join(dir, "libstacks.so"))
	return app, lib, mainAt - symbolAddr(t, app, "main"), enterAt - symbolAddr(t, lib, "enter"), stacks
}

func symbolAddr(t testing.TB, f *File, name string) uint64 {
	t.Helper()
	for _, s := range f.Functions() {
		if s.Name == name {
			return s.Addr
		}
	}
	t.Fatalf("%s has no symbol %s", f.Path, name)
	return 0
}

var baseTargets = []struct{ name, cc, emulator, opt string }{
	{"x86-64-gcc-O2", "gcc", "", "-O2"},
	{"x86-64-gcc-Os", "gcc", "", "-Os"},
	{"x86-64-clang-O2", "clang", "", "-O2"},
	{"aarch64-gcc-O2", "aarch64-linux-gnu-gcc", "qemu-aarch64", "-O2"},
	{"aarch64-gcc-O0", "aarch64-linux-gnu-gcc", "qemu-aarch64", "-O0"},
}

// By the ELF files alone: each program's and library's base is found, and of the
// addresses that a lossy encoder wrote, each is recovered as the file's own, or said
// to be lost; none is wrong.
func TestBaseByELFAlone(t *testing.T) {
	for i, c := range baseTargets {
		t.Run(c.name, func(t *testing.T) {
			if i > 0 && !full {
				t.Skip("LWSBT_FULL is not set")
			}
			t.Parallel()
			app, lib, appBase, libBase, stacks := trueStacks(t, c.cc, c.emulator, c.opt)
			truth := map[*File]uint64{app: appBase, lib: libBase}
			if appBase>>31 == 0 || libBase>>31 == 0 {
				truth = moveUp(stacks, truth)
			}
			var p Process
			p.added = []*object{{FileSpec: FileSpec{Path: app.Path}, file: app}, {FileSpec: FileSpec{Path: lib.Path}, file: lib}}
			bases := sound(p.Files(), lossyAddrs(t, stacks))
			for _, b := range bases {
				t.Logf("%v; chance 10^%.0f", b, b.logP)
				if want := truth[b.File] & low31Mask; b.Bias != want {
					t.Errorf("%s: base %#x, want %#x", b.File.Path, b.Bias, want)
				}
				if b.Exact {
					t.Errorf("%s: upper bits of the base cannot be known", b.File.Path)
				}
			}
			if len(bases) != 2 {
				t.Fatalf("%d bases, want 2", len(bases))
			}
			p.SetBases(bases)
			right, lost := 0, 0
			for _, pcs := range stacks {
				r, l := checkOwn(t, &p, truth, pcs)
				right, lost = right+r, lost+l
			}
			t.Logf("%d frames right, %d lost (the C library's)", right, lost)
			if right < 1000 {
				t.Errorf("only %d frames were inferred", right)
			}
		})
	}
}

// moveUp puts stacks where a real kernel loads programs, and returns the bases there. An
// emulator may load them low; it is the low 31 bits that count.
func moveUp(stacks [][]uint64, bases map[*File]uint64) map[*File]uint64 {
	const high = 0x55_1234 << 28
	for _, pcs := range stacks {
		for i := range pcs {
			pcs[i] += high
		}
	}
	moved := map[*File]uint64{}
	for f, base := range bases {
		moved[f] = base + high
	}
	return moved
}

// lossyAddrs returns the addresses of stacks as a lossy encoder writes them, each once.
func lossyAddrs(t *testing.T, stacks [][]uint64) (all []ReturnAddr) {
	seen := map[ReturnAddr]bool{}
	for _, pcs := range stacks {
		s, _ := lossy(t, codec.MachineWrap64, pcs)
		for i, pc := range s.PCs {
			if k := (ReturnAddr{pc, s.Marks.Lossy>>i&1 == 1}); !seen[k] {
				seen[k] = true
				all = append(all, k)
			}
		}
	}
	return all
}

// checkOwn resolves a stack that a lossy encoder wrote, and returns how many addresses
// were recovered and how many are lost.
func checkOwn(t *testing.T, p *Process, truth map[*File]uint64, pcs []uint64) (right, lost int) {
	t.Helper()
	s, blob := lossy(t, codec.MachineWrap64, pcs)
	for i, a := range p.Resolve(nil, s, blob) {
		switch {
		case a.State == Lost:
			lost++
			for f, base := range truth {
				if f.loaded(pcs[i] - base) {
					t.Errorf("%#x is in %s and lost", pcs[i], f.Path)
				}
			}
		case a.State == Inferred && a.Location.Own == pcs[i]-truth[a.Location.Module.File]:
			right++
		default:
			t.Fatalf("%#x: %v %v, wrong", pcs[i], a.State, a)
		}
	}
	return right, lost
}

// sound is the bases that are inferred and sound.
func sound(files []*File, seen []ReturnAddr) []Base {
	return slices.DeleteFunc(InferBases(files, seen), func(b Base) bool { return !b.Sound() })
}

// A dump of another program gives no base; nor do a few addresses.
func TestNoBaseIsInvented(t *testing.T) {
	t.Parallel()
	app, lib, _, _, stacks := trueStacks(t, "gcc", "", "-O2")
	var mine []ReturnAddr
	for _, pcs := range stacks {
		for _, pc := range pcs {
			mine = append(mine, ReturnAddr{pc, true})
		}
	}
	other := open(t, buildC(t, strings.Fields("g++ -g -O2"), "prog.cc"))
	if b := sound([]*File{other}, mine); len(b) > 0 {
		t.Errorf("a base for a program that did not run: %v", b)
	}
	for n := range 4 {
		if b := sound([]*File{app, lib}, distinct(mine)[:n]); len(b) > 0 {
			t.Errorf("a base from %d addresses: %v", n, b)
		}
	}
	// Addresses that are nowhere near: shifted by a byte, none follows a call.
	for i := range mine {
		mine[i].PC++
	}
	if b := sound([]*File{app, lib}, mine); len(b) > 0 {
		t.Errorf("a base from addresses that follow no call: %v", b)
	}
}

// An intact dump of a position-independent program tells the exact base.
func TestExactBase(t *testing.T) {
	t.Parallel()
	app, lib, appBase, libBase, stacks := trueStacks(t, "gcc", "", "-O2")
	var all []ReturnAddr
	for _, pcs := range stacks {
		for _, pc := range pcs {
			all = append(all, ReturnAddr{pc, false})
		}
	}
	found := sound([]*File{app, lib}, all)
	if len(found) != 2 {
		t.Fatalf("%d bases, want 2", len(found))
	}
	for _, b := range found {
		want := map[*File]uint64{app: appBase, lib: libBase}[b.File]
		if !b.Exact || b.Bias != want {
			t.Errorf("%s: base %#x, exact %v, want %#x", b.File.Path, b.Bias, b.Exact, want)
		}
	}
}

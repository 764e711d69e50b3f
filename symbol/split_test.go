package symbol

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// buildSplit compiles programs of testdata/src with -gsplit-dwarf in dir, and returns the program and its .dwo files.
func buildSplit(t testing.TB, cc, srcs string) (prog string, dwos []string) {
	t.Helper()
	args := append(strings.Fields(cc), "-gsplit-dwarf")
	tool(t, args[0])
	dir := t.TempDir()
	prog = filepath.Join(dir, "prog")
	link := []string{args[0], "-o", prog}
	for _, src := range strings.Fields(srcs) {
		object := src + ".o"
		run(t, dir, append(slices.Clone(args), "-c", "-o", object, source(t, src))...)
		link = append(link, object)
	}
	run(t, dir, link...)
	dwos, _ = filepath.Glob(filepath.Join(dir, "*.dwo"))
	if len(dwos) != len(strings.Fields(srcs)) {
		t.Fatalf("%s: files of split units: %v", cc, dwos)
	}
	return prog, dwos
}

// framesOf returns the frames at every step-th address of a program's code, and the note of what is missing.
func framesOf(t testing.TB, path string, step uint64) (all [][]gnuFrame, note string) {
	t.Helper()
	f, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, pc := range textAddrs(f, step) {
		frames, err := f.Lookup(nil, pc)
		if err != nil {
			t.Fatalf("%#x: %v", pc, err)
		}
		all = append(all, asGNU(frames))
	}
	return all, f.SplitNote()
}

func inlinedIn(all [][]gnuFrame) (n int) {
	for _, frames := range all {
		n += len(frames) - 1
	}
	return n
}

// TestSplit compares programs whose functions are in files beside their objects with addr2line and llvm-symbolizer; then the
// same program, in another directory, with its package, with its files, without them, and with those of another build.
func TestSplit(t *testing.T) {
	for _, v := range []struct {
		light        bool
		cc, srcs, pk string
		step         uint64
	}{
		{true, "gcc -O2 -gdwarf-5", "prog.c other.c", "llvm-dwp", 1},
		{true, "gcc -O2 -gdwarf-4", "prog.c other.c", "dwp", 1},
		{true, "clang -O2 -gdwarf-5", "prog.c other.c", "llvm-dwp", 1},
		{false, "clang -O2 -gdwarf-4", "prog.c other.c", "llvm-dwp", 1},
		{false, "gcc -O0 -gdwarf-4 -gz", "prog.c other.c", "dwp", 1},
		{true, "g++ -O2 -gdwarf-5", "prog.cc", "llvm-dwp", 5},
		{false, "g++ -O2 -gdwarf-4 -ffunction-sections", "prog.cc", "dwp", 5},
		{true, "clang++ -O2 -gdwarf-5 -fdebug-types-section", "prog.cc", "llvm-dwp", 5},
		{false, "clang++ -O2 -gdwarf-4", "prog.cc", "dwp", 5},
	} {
		if !v.light && !full {
			continue
		}
		t.Run(v.cc, func(t *testing.T) {
			t.Parallel()
			prog, dwos := buildSplit(t, v.cc, v.srcs)
			compareGNU(t, prog, v.step)
			want, note := framesOf(t, prog, v.step)
			if inlined := inlinedIn(want); note != "" || inlined < 50 {
				t.Fatalf("%d inlined calls; note: %s", inlined, note)
			}
			other, others := buildSplit(t, v.cc+" -fno-inline", v.srcs)
			dir := t.TempDir()
			moved := filepath.Join(dir, "prog")
			copyTo(t, prog, moved)
			check := func(what, missing string) {
				t.Helper()
				got, note := framesOf(t, moved, v.step)
				switch {
				case missing == "" && (note != "" || !slices.EqualFunc(got, want, slices.Equal)):
					t.Errorf("%s: other frames than with the files beside the objects; note: %s", what, note)
				case missing != "" && (inlinedIn(got) > 0 || !strings.Contains(note, missing)):
					t.Errorf("%s: %d inlined calls; note: %s, expected %q", what, inlinedIn(got), note, missing)
				}
				p := process(t, moved)
				p.at(p.Files()[0].text[0].addr + 100)
				for _, fn := range p.Files()[0].Functions() {
					p.at(fn.Addr + 1)
				}
				if notes := strings.Join(allNotes(p), "\n"); !strings.Contains(notes, note) {
					t.Errorf("%s: notes: %s, expected %q", what, notes, note)
				}
			}
			run(t, filepath.Dir(prog), tool(t, v.pk), "-e", prog, "-o", moved+".dwp")
			for _, dwo := range dwos {
				remove(t, dwo)
			}
			check("package", "")
			run(t, filepath.Dir(other), tool(t, v.pk), "-e", other, "-o", moved+".dwp")
			check("package of another build", "prog.dwp: no unit with the id 0x")
			remove(t, moved+".dwp")
			check("nothing", "no file "+filepath.Dir(prog)+string(filepath.Separator))
			for i := range dwos {
				copyTo(t, others[i], filepath.Join(dir, filepath.Base(dwos[i])))
			}
			check("another build", ".dwo: of another build")
		})
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func copyTo(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, data)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedSplit changes bytes of the files of split units and of a package, and cuts them: nothing panics, and a file that
// was cut is named.
func TestDamagedSplit(t *testing.T) {
	prog, dwos := buildSplit(t, "gcc -O2 -gdwarf-5", "prog.c other.c")
	dir := filepath.Dir(prog)
	run(t, dir, tool(t, "llvm-dwp"), "-e", prog, "-o", "package")
	runs := 300
	if full {
		runs = 3000
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range runs {
		path := append(dwos, filepath.Join(dir, "package"))[i%3]
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(whole)
		if i%3 == 2 {
			path = prog + ".dwp"
		}
		for range 1 + r.IntN(8) {
			bad[r.IntN(len(bad))] = byte(r.Uint32())
		}
		cut := i%7 == 0
		if cut {
			bad = bad[:r.IntN(len(bad)-64)]
		}
		write(t, path, bad)
		f, err := Open(prog, nil)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, pc := range textAddrs(f, 97) {
			frames, err := f.Lookup(nil, pc)
			if said += f.SplitNote(); err != nil {
				said += err.Error()
			}
			if len(frames) > 257 {
				t.Errorf("%s, run %d: %d frames at %#x", path, i, len(frames), pc)
			}
		}
		f.Close()
		if i%3 == 2 {
			remove(t, path) // the files are there
		} else if write(t, path, whole); cut && !strings.Contains(said, path) {
			t.Errorf("%s of %d bytes: %q", path, len(bad), said)
		}
	}
}

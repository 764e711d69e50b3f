package symbol

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type fileRange struct{ low, high uint64 }

// A malformed file causes an error or missing symbols, but no panic, not even a recovered
// one, and no endless loop.
func TestMalformedFiles(t *testing.T) {
	for i, dwarf := range []string{"-gdwarf-2", "-gdwarf-4", "-gdwarf-5"} {
		if dwarf == "-gdwarf-2" && !full {
			continue
		}
		t.Run(dwarf, func(t *testing.T) {
			t.Parallel()
			testMalformed(t, dwarf, rand.New(rand.NewPCG(1, uint64(2026+i))))
		})
	}
}

// placesToDamage returns where headers, debug sections and symbols are in a file.
func placesToDamage(t *testing.T, path string, size uint64) []fileRange {
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	places := []fileRange{{0, 64}, {size - 40*64, size}}
	for _, s := range e.Sections {
		if strings.HasPrefix(s.Name, ".debug_") || strings.Contains(s.Name, "sym") || s.Type == elf.SHT_NOTE {
			places = append(places, fileRange{s.Offset, s.Offset + s.FileSize})
		}
	}
	return places
}

// damage changes some bytes in some of the places of a file.
func damage(rng *rand.Rand, file []byte, places []fileRange) {
	for range 1 + rng.IntN(4) {
		p := places[rng.IntN(len(places))]
		at := p.low + rng.Uint64N(p.high-p.low)
		switch rng.IntN(3) {
		case 0:
			file[at] ^= 1 << rng.IntN(8)
		case 1:
			file[at] = byte(rng.Uint32())
		default:
			for i := at; i < min(at+8, p.high); i++ {
				file[i] = []byte{0, 0xff, 0x7f, 0x80}[rng.IntN(4)]
			}
		}
	}
}

func testMalformed(t *testing.T, dwarf string, rng *rand.Rand) {
	whole := buildC(t, []string{"gcc", "-O2", dwarf}, "prog.c", "other.c")
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	places := placesToDamage(t, whole, uint64(len(good)))
	pcs := textAddrs(open(t, whole), 7)
	path := filepath.Join(t.TempDir(), "bad")
	refused, failed, fine := 0, 0, 0
	start := time.Now()
	mutations := 150
	if full {
		mutations = 600
	}
	for n := range mutations {
		bad := append([]byte(nil), good...)
		if n%10 == 0 {
			bad = bad[:rng.IntN(len(bad))]
		} else {
			damage(rng, bad, places)
		}
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path, nil)
		check := func(what string, err error) {
			if err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Fatalf("%s, mutation %d: %s: a panic was caught: %v", dwarf, n, what, err)
			}
		}
		check("open", err)
		if err != nil {
			refused++
			continue
		}
		bad = nil
		errs := 0
		for _, pc := range pcs {
			_, err := f.Lookup(nil, pc)
			check("lookup", err)
			if err != nil {
				errs++
			}
			f.FollowsCall(pc)
		}
		if strings.Contains(f.Why(), "runtime error") {
			t.Fatalf("%s, mutation %d: a panic was caught: %s", dwarf, n, f.Why())
		}
		f.calls()
		f.Close()
		if errs > 0 || f.Why() != "" {
			failed++
		} else {
			fine++
		}
	}
	t.Logf("%s: %d refused, %d with errors, %d without, in %v", dwarf, refused, failed, fine, time.Since(start))
	if refused == 0 || failed == 0 || fine == 0 {
		t.Error("one of the three never happened")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	object := filepath.Join(dir, "object.o")
	tool(t, "gcc")
	run(t, dir, "gcc", "-c", "-o", object, source(t, "other.c"))
	for path, want := range map[string]string{
		filepath.Join(dir, "none"):    "no such file",
		write("empty", ""):            "an empty file",
		dir:                           "not a regular file",
		write("text", "hello, world"): `starts with "hell"`,
		write("short", "\x7fELF"):     "malformed ELF",
		object:                        "relocatable object",
	} {
		f, err := Open(path, nil)
		if err == nil {
			f.Close()
			t.Errorf("%s: no error", path)
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %q, want one that names the file and has %q", path, err, want)
		}
	}
}

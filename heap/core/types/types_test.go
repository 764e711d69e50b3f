package types

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

const program = `
struct inner { int a; char *text[2]; };
struct item { struct item *next; union { char *p; long n; } u; struct inner in; };
struct item *head;
struct table { struct item *items[4]; } table;
int main(void) { return !head; }
`

// compiled compiles the program.
func compiled(t *testing.T) (exe string) {
	t.Helper()
	cmdtest.Need(t, "gcc")
	dir := t.TempDir()
	exe = filepath.Join(dir, "app")
	src := filepath.Join(dir, "app.c")
	if err := os.WriteFile(src, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O2", "-o", exe, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return exe
}

func TestFits(t *testing.T) {
	s := &Struct{Name: "struct s", Size: 24, pointers: []pointer{{off: 0}, {off: 16}}}
	memory := func(addr uint64) bool { return addr >= 0x1000 && addr < 0x2000 }
	for _, c := range []struct {
		words []uint64
		want  bool
	}{
		{[]uint64{0, 7, 0}, true},
		{[]uint64{0x1008, 7, 0x1ff8}, true},
		{[]uint64{0x1008, 7, 0x2000}, false},
		{[]uint64{0x6161616161616161, 7, 0}, false},
		{[]uint64{0x1008, 7}, false}, // not in the image
	} {
		got := s.Fits(func(off uint64) (uint64, bool) {
			if off/8 >= uint64(len(c.words)) {
				return 0, false
			}
			return c.words[off/8], true
		}, memory)
		if got != c.want {
			t.Errorf("%#x: %v", c.words, got)
		}
	}
}

// TestDamaged overwrites debug information: Read returns an error, or what it could read, soon.
func TestDamaged(t *testing.T) {
	exe := compiled(t)
	whole, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	random := rand.New(rand.NewPCG(1, 2))
	start, bad, named := cmdtest.ProcessorTime(), 0, 0
	blocks := Blocks{Len: 1, At: func(int) Block { return Block{Addr: 0x1000, Size: 40} }, Find: func(uint64) (int, bool) { return 0, true }}
	memory := Memory{Pointer: func(uint64) (uint64, bool) { return 0x1000, true }, Has: func(uint64) bool { return true }, Place: func(addr uint64) uint64 { return addr }}
	for range 400 {
		data := append([]byte(nil), whole...)
		for _, name := range []string{".debug_info", ".debug_abbrev"} {
			s := f.Section(name)
			for range 1 + random.IntN(4) {
				data[s.Offset+random.Uint64N(s.Size)] = byte(random.Uint32())
			}
		}
		name := filepath.Join(t.TempDir(), "app")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := Read(name)
		if err != nil {
			bad++
			continue
		}
		err = info.Reached(blocks, memory, func(int, string) { named++ })
		if err != nil {
			bad++
		}
	}
	if d := cmdtest.ProcessorTime() - start; d > 30*time.Second || bad == 0 || named == 0 {
		t.Errorf("%d errors, %d names, %v", bad, named, d)
	}
	if info, err := Read("/proc/self/cmdline"); err == nil {
		t.Errorf("no ELF file: %+v", info)
	}
}

package types

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

const program = `
typedef unsigned long size;
extern void *malloc(size);
struct inner { int a; char *text[2]; };
struct item { struct item *next; union { char *p; long n; } u; struct inner in; };
typedef struct { int number; struct item *item; } entry;
struct same { long a[2]; };
__attribute__((noinline)) void *get(size n) { return malloc(n); }
static inline __attribute__((always_inline)) struct item *new_item(void) { struct item *i = get(sizeof *i); i->next = 0; return i; }
__attribute__((noinline)) struct item *one(void) { return new_item(); }
__attribute__((noinline)) void *two(int k) { entry *e = get(sizeof *e); e->number = k; return e; }
__attribute__((noinline)) void *both(void) { entry *e = get(16); struct same *s = get(16); e->number = s->a[0]; return s; }
struct open { struct item *item; long length; char text[]; };
struct head { long words[5]; };
__attribute__((noinline)) void *wrap(size n) { struct head *h = get(n); h->words[0] = n; return h + 1; }
__attribute__((noinline)) struct open *opened(size n) { struct open *o = get(sizeof *o + n); struct head *h = get(sizeof *h); o->length = n; h->words[1] = n; return o; }
__attribute__((noinline)) char *text(size n) { char *p = get(n); *p = 1; return p; }
int main(void) { struct item *i = one(); void *e = two(1); return i->next == e || both() == text(40) || wrap(9) == opened(4); }
`

// compiled compiles the program, and returns the addresses of its functions.
func compiled(t *testing.T, flags ...string) (exe string, functions map[string]uint64) {
	t.Helper()
	cmdtest.Need(t, "gcc")
	dir := t.TempDir()
	exe = filepath.Join(dir, "app")
	src := filepath.Join(dir, "app.c")
	if err := os.WriteFile(src, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", append([]string{"-g", "-O2", "-o", exe, src}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	functions = map[string]uint64{}
	for _, s := range list {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			functions[s.Name] = s.Value
		}
	}
	return exe, functions
}

func TestStruct(t *testing.T) {
	for flags, in := range map[string]uint64{"-O2": 5, "-O0": 10, "-gdwarf-4": 5} { // in: behind the first instructions
		exe, at := compiled(t, strings.Fields(flags)...)
		info, err := Read(exe)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			stack string
			size  uint64
			want  string
		}{
			{"one", 40, "struct item"},
			{"one", 41, ""},
			{"get one", 40, "struct item"}, // get returns void *
			{"two", 16, "entry"},
			{"get two", 16, "entry"},
			{"both", 16, ""}, // entry or struct same
			{"get text main", 40, ""},
			{"get", 40, ""},
			{"wrap", 40, ""}, // a variable of the allocator
			{"wrap one", 40, "struct item"},
			{"opened", 16, ""},
			{"opened", 40, ""}, // struct head, or struct open with a text of 24 bytes
			{"", 40, ""},
			{"nowhere one", 40, ""},
		} {
			var pcs []uint64
			for _, f := range strings.Fields(c.stack) {
				pcs = append(pcs, at[f]+in)
			}
			got := ""
			s := info.Struct(c.size, pcs)
			if s != nil {
				got = s.Name
			}
			if got != c.want {
				t.Errorf("%s: %q, %d bytes: %q, want %q", flags, c.stack, c.size, got, c.want)
			}
			if got == "struct item" && len(s.pointers) != 3 { // next and two texts, not the union
				t.Errorf("%s: pointers of struct item: %v", flags, s.pointers)
			}
		}
	}
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
	exe, at := compiled(t)
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
	start, bad := cmdtest.ProcessorTime(), 0
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
		for _, pc := range at {
			info.Struct(40, []uint64{pc + 5})
		}
	}
	if d := cmdtest.ProcessorTime() - start; d > 30*time.Second || bad == 0 {
		t.Errorf("%d errors, %v", bad, d)
	}
	if info, err := Read("/proc/self/cmdline"); err == nil {
		t.Errorf("no ELF file: %+v", info)
	}
}

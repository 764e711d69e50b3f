package alloc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// oddCase is a case of testdata/odd.c.
type oddCase struct {
	name   string
	env    string
	others int // blocks of the C library
}

// coreOf compiles odd.c for a case, and has the kernel write a core file, or qemu.
func coreOf(t *testing.T, compiler, qemu string, c oddCase, flags ...string) *stopped {
	t.Helper()
	cmdtest.Need(t, compiler, "bash")
	dir := t.TempDir()
	s := &stopped{exe: filepath.Join(dir, "app"), regs: true}
	name, _, _ := strings.Cut(c.name, " ")
	tool(t, dir, append([]string{compiler, "-g", "-O1", "-pthread", "-DABORT", "-DCASE=" + name, "-o", s.exe, source(t, "odd.c")}, flags...)...)
	cmd := exec.Command("bash", "-c", "echo 0x3f > /proc/self/coredump_filter; ulimit -c unlimited; exec "+qemu+" ./app")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), strings.Fields(c.env)...)
	out, _ := cmd.CombinedOutput() // it aborts
	pattern := "core*"
	if qemu != "" {
		cmdtest.Need(t, qemu)
		pattern = "qemu_app_*.core"
	}
	list, _ := filepath.Glob(filepath.Join(dir, pattern))
	if len(list) != 1 {
		t.Skipf("no core file is written here: %s", out)
	}
	s.core = list[0]
	return s
}

// TestOddHeaps compares the blocks and leaks of programs that use malloc in unusual ways.
func TestOddHeaps(t *testing.T) {
	for _, c := range []oddCase{
		{"own_sbrk", "", 0},
		{"no_sbrk", "", 0},
		{"aligned", "", 0},
		{"trimmed", "", 0},
		{"cached", "", 0},
		{"real_time", "", 0},
		{"ended", "", 20},
		{"child", "", 20},
		{"heaps", "", 20},
		{"elsewhere", "", 20},
		{"arrays", "", 0},
		{"cached tunables", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0", 0},
		{"heaps hugetlb2", "GLIBC_TUNABLES=glibc.malloc.hugetlb=2", 20},
		{"aligned threshold", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4096", 0},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			if c.name != "own_sbrk" && c.name != "aligned" {
				cmdtest.Long(t)
			}
			p := coreOf(t, "gcc", "", c)
			p.leaks(t, p.compare(t, c.others, Glibc))
		})
	}
	for _, x := range []struct {
		triple, qemu string
		cases        []string
	}{
		{"i686-linux-gnu", "qemu-i386", []string{"own_sbrk", "no_sbrk", "aligned", "real_time", "arrays"}},
		{"mips-linux-gnu", "qemu-mips", []string{"no_sbrk", "real_time", "arrays"}},
	} {
		for _, name := range x.cases {
			t.Run(name+"-"+x.triple, func(t *testing.T) {
				cmdtest.Long(t)
				c := oddCase{name, "", 6}
				p := coreOf(t, x.triple+"-gcc", x.qemu, c, "-static")
				p.leaks(t, p.compare(t, c.others, Glibc))
			})
		}
	}
}

// TestOddMusl is TestOddHeaps for musl.
func TestOddMusl(t *testing.T) {
	cmdtest.Long(t)
	for _, name := range []string{"no_sbrk", "aligned", "trimmed", "cached", "ended", "child", "heaps", "elsewhere", "arrays"} {
		t.Run(name, func(t *testing.T) {
			c := oddCase{name, "", 20}
			p := coreOf(t, "musl-gcc", "", c, "-Wno-implicit-function-declaration")
			p.leaks(t, p.compare(t, c.others, MuslNG))
		})
	}
}

// TestOddJemalloc is TestOddHeaps for jemalloc.
func TestOddJemalloc(t *testing.T) {
	for _, name := range []string{"own_sbrk", "no_sbrk", "aligned", "cached", "ended", "single", "child", "heaps", "elsewhere", "arrays"} {
		t.Run(name, func(t *testing.T) {
			if name != "aligned" && name != "single" {
				cmdtest.Long(t)
			}
			p := coreOf(t, "gcc", "", oddCase{name, "", 40}, jemallocLibrary(t))
			p.leaks(t, p.compare(t, 40, JeMalloc))
		})
	}
}

// jemallocLibrary returns the path of jemalloc's library.
func jemallocLibrary(t *testing.T) string {
	list, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
	if len(list) == 0 {
		t.Skip("libjemalloc2 is not installed")
	}
	return list[0]
}

// TestOddFirmware is TestOddHeaps for firmware.
func TestOddFirmware(t *testing.T) {
	cmdtest.Long(t)
	for _, x := range []struct {
		kind  Kind
		board string
		flags []string
	}{
		{Newlib, "cortex-m3", nil},
		{NewlibNano, "cortex-m3", []string{"--specs=nano.specs"}},
		{Picolibc, "riscv32", nil},
	} {
		for _, name := range []string{"usual", "own_sbrk", "aligned", "resized", "freed", "arrays", "tagged", "tasks"} {
			t.Run(x.kind.String()+"/"+name, func(t *testing.T) {
				flags := append([]string{"-g", "-Os", "-Wno-implicit-function-declaration", "-DCASE=" + name, source(t, "oddfw.c"), source(t, "bare.c")}, x.flags...)
				exe, ram, addr := cmdtest.Board(t, x.board, source(t, "../../../cmd/btcore/testdata/firmware"), flags...)
				p := &stopped{exe: exe, ram: map[uint64]string{addr: ram}}
				switch {
				case name == "own_sbrk" && x.kind != Newlib: // these do not mark memory that is not theirs
					p.careful(t, x.kind)
				case name == "aligned" && x.kind == NewlibNano: // padding before a block may look like its content
					p.careful(t, x.kind)
				default:
					p.leaks(t, p.compare(t, 0, x.kind))
				}
			})
		}
	}
}

// TestTwoHeaps compares the blocks of firmware with the heap of FreeRTOS and that of newlib, whose blocks point to each
// other; link-time optimization renames the variables.
func TestTwoHeaps(t *testing.T) {
	cmdtest.Long(t)
	for _, extra := range [][]string{nil, {"--specs=nano.specs"}, {"-flto", "-flto-partition=max"}} {
		flags := append([]string{"-g", "-Os", "-Wno-implicit-function-declaration", "-DFREERTOS", "-DCASE=usual", "-I", source(t, "freertos"),
			source(t, "freertos/setup.c"), freeRTOSSource(t, "heap_4"), source(t, "oddfw.c"), source(t, "bare.c")}, extra...)
		exe, ram, addr := cmdtest.Board(t, "cortex-m3", source(t, "../../../cmd/btcore/testdata/firmware"), flags...)
		p := &stopped{exe: exe, ram: map[uint64]string{addr: ram}}
		heaps := p.compare(t, 0)
		if len(heaps) != 2 {
			t.Errorf("%v: %d heaps", extra, len(heaps))
		}
		p.leaks(t, heaps)
	}
}

// careful checks that no block is reported as a leak that is none, or that the heap is unproven.
func (s *stopped) careful(t *testing.T, kind Kind) {
	t.Helper()
	m, p := s.open(t)
	heaps, err := Find(m, p, kind)
	if err != nil {
		t.Fatal(err)
	}
	if !heaps[0].Proven() {
		t.Logf("unproven: %+v", heaps[0].Proof)
		return
	}
	h := Core(m, heaps)
	found := 0
	for i, r := range m.FindLeaks(h, core.Roots{Data: p.Data}).Reach {
		b := &h.Blocks[i]
		for _, x := range s.readTruth(t) {
			if x.addr < b.Addr || x.addr-b.Addr >= b.Size {
				continue
			}
			if found++; r == core.Leaked && !x.leaked {
				t.Errorf("the block at %#x is not leaked", x.addr)
			}
		}
	}
	if found != len(s.truth) {
		t.Errorf("%d of %d blocks", found, len(s.truth))
	}
}

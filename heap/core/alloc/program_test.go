package alloc

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// stopped is the image of testdata/model.c at its end.
type stopped struct {
	exe   string
	core  string            // or
	ram   map[uint64]string // file by address, or
	image *saved
	regs  bool // the image has registers
	truth []truth
}

// truth is a block that the program has allocated.
type truth struct {
	addr, size uint64
	leaked     bool
	before     bool // the program has only an address that is a few bytes in front of it
}

// tool runs a program.
func tool(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		if bytes.Contains(out, []byte("specs")) {
			t.Skipf("no C library for %s: %s", argv[0], out)
		}
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// source returns the absolute path of a file of testdata.
func source(t *testing.T, name string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// native compiles model.c for this machine, and has gdb write a core file at its end.
func native(t *testing.T, compiler string, flags ...string) *stopped {
	t.Helper()
	return nativeOf(t, compiler, "model.c", flags...)
}

// nativeOf is like native, for another program.
func nativeOf(t *testing.T, compiler, program string, flags ...string) *stopped {
	t.Helper()
	cmdtest.Need(t, compiler, "gdb")
	dir := t.TempDir()
	s := &stopped{exe: filepath.Join(dir, "app"), core: filepath.Join(dir, "core"), regs: true}
	argv := append([]string{compiler, "-g", "-O2", "-o", s.exe, source(t, program)}, flags...)
	tool(t, dir, argv...)
	out := tool(t, dir, "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break stop", "-ex", "run",
		"-ex", "generate-core-file "+s.core, s.exe)
	if _, err := os.Stat(s.core); err != nil {
		t.Skipf("gdb cannot make core files here: %s", out)
	}
	return s
}

// aborted compiles a program for this machine, which aborts; the kernel writes a core file. gdb 13 loses what is
// behind the guard pages of threads' stacks since glibc 2.42.
func aborted(t *testing.T, program string, flags ...string) *stopped {
	t.Helper()
	cmdtest.Need(t, "gcc", "bash")
	dir := t.TempDir()
	s := &stopped{exe: filepath.Join(dir, "app"), regs: true}
	tool(t, dir, append([]string{"gcc", "-g", "-O2", "-DABORT", "-o", s.exe, source(t, program)}, flags...)...)
	c := exec.Command("bash", "-c", "ulimit -c unlimited; exec ./app")
	c.Dir = dir
	out, _ := c.CombinedOutput() // it aborts
	list, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(list) != 1 {
		t.Skipf("the kernel writes no core file here: %s", out)
	}
	s.core = list[0]
	return s
}

// guest compiles model.c for another machine, where it aborts under qemu, which writes a core file.
func guest(t *testing.T, triple, qemu string, flags ...string) *stopped {
	t.Helper()
	cmdtest.Need(t, triple+"-gcc", qemu, "bash")
	dir := t.TempDir()
	s := &stopped{exe: filepath.Join(dir, "app"), regs: true}
	tool(t, dir, append([]string{triple + "-gcc", "-g", "-O2", "-static", "-DABORT", "-o", s.exe, source(t, "model.c")}, flags...)...)
	c := exec.Command("bash", "-c", "ulimit -c unlimited; exec "+qemu+" ./app")
	c.Dir = dir
	out, _ := c.CombinedOutput() // it aborts
	list, _ := filepath.Glob(filepath.Join(dir, "qemu_app_*.core"))
	if len(list) != 1 {
		t.Skipf("%s writes no core file here: %s", qemu, out)
	}
	s.core = list[0]
	return s
}

// firmware runs model.c on a board without an operating system.
func firmware(t *testing.T, board string, flags ...string) *stopped {
	t.Helper()
	flags = append([]string{"-g", "-Os", "-DBARE", source(t, "model.c"), source(t, "bare.c")}, flags...)
	exe, ram, addr := cmdtest.Board(t, board, source(t, "../../../cmd/btcore/testdata/firmware"), flags...)
	return &stopped{exe: exe, ram: map[uint64]string{addr: ram}}
}

// open opens the image. Patches are bytes that replace those at an address.
func (s *stopped) open(t testing.TB, patches ...patch) (*core.Image, Program) {
	t.Helper()
	m := &core.Image{}
	t.Cleanup(m.Close)
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for _, p := range patches {
		name := filepath.Join(t.TempDir(), "patch")
		check(os.WriteFile(name, p.bytes, 0o600))
		check(m.AddRAM(p.addr, name))
	}
	if s.image != nil {
		return m, s.image.open(t, m)
	}
	if s.core != "" {
		check(m.AddFile(s.core))
	}
	for addr, file := range s.ram {
		check(m.AddRAM(addr, file))
	}
	check(m.Describe(s.exe))
	bias := uint64(0)
	for _, x := range m.Modules() {
		if filepath.Base(x.Path) == filepath.Base(s.exe) {
			bias = x.Bias
		}
	}
	check(m.AddELF(s.exe, bias))
	data, err := m.WritableRanges(s.exe, bias)
	check(err)
	return m, Program{Data: data, Variables: func(names ...string) []core.Symbol {
		list, err := m.Variables(s.exe, bias, names...)
		check(err)
		return list
	}}
}

type patch struct {
	addr  uint64
	bytes []byte
}

// readTruth reads the table of the program.
func (s *stopped) readTruth(t *testing.T) []truth {
	t.Helper()
	if s.truth != nil {
		return s.truth
	}
	m, p := s.open(t)
	word := uint64(m.PointerSize())
	value := func(name string) (addr, v uint64) {
		list := p.Variables(name)
		if len(list) != 1 {
			t.Fatalf("%d variables %s", len(list), name)
		}
		v, ok := m.Pointer(list[0].Addr)
		if !ok {
			t.Fatalf("%s is not in the image", name)
		}
		return list[0].Addr, v
	}
	_, n := value("truth_count")
	if _, failed := value("failed"); failed > 0 || n < 100 {
		t.Fatalf("the program has %d blocks, and %d allocations failed", n, failed)
	}
	at, _ := value("truth")
	for i := range n {
		var x [3]uint64
		for j := range x {
			x[j], _ = m.Pointer(at + (3*i+uint64(j))*word)
		}
		if m.Word == 32 {
			x[0] |= 0xffffffff << 32
		}
		s.truth = append(s.truth, truth{^x[0], x[1], x[2] == 1, x[2] == 2})
	}
	slices.SortFunc(s.truth, func(a, b truth) int { return int(int64(a.addr - b.addr)) })
	return s.truth
}

// compare compares the used blocks with those of the program. others is the number of blocks that
// the C library may have. It returns the heaps.
func (s *stopped) compare(t *testing.T, others int, kinds ...Kind) []*Heap {
	t.Helper()
	want := s.readTruth(t)
	m, p := s.open(t)
	heaps, err := Find(m, p, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	used := map[uint64]*Block{}
	for _, h := range heaps {
		for _, x := range h.Proof {
			if x.Want != x.Got {
				t.Errorf("%s: %s: want %#x, got %#x", h.Name, x.Check, x.Want, x.Got)
			}
		}
		if len(h.Proof) < 2 {
			t.Errorf("%s: %d checks", h.Name, len(h.Proof))
		}
		for _, d := range h.Damage {
			t.Errorf("%s: damage at %#x: %s", h.Name, d.Addr, d.What)
		}
		for i := range h.Blocks {
			if b := &h.Blocks[i]; b.State == Used {
				used[b.Addr] = b
			}
		}
	}
	found := 0
	for _, x := range want {
		b := used[x.addr]
		if b == nil {
			t.Errorf("missed: a block of %d bytes at %#x", x.size, x.addr)
			continue
		}
		found++
		if x.size > b.Size || heaps[0].Kind == MuslNG && b.Unused > 0 && b.Size-uint64(b.Unused) != x.size {
			t.Errorf("block at %#x: %d usable bytes, %d unused; the program requested %d", x.addr, b.Size, b.Unused, x.size)
		}
		delete(used, x.addr)
	}
	if len(used) > others {
		t.Errorf("%d blocks that the program does not have, up to %d expected", len(used), others)
		n := 0
		for a, b := range used {
			if n++; n <= 5 {
				t.Logf("  %#x, %d bytes", a, b.Size)
			}
		}
	}
	t.Logf("%d of %d blocks, %d others", found, len(want), len(used))
	return heaps
}

// leaks compares the leaks with those of the program. One that is not found must be held by an old word.
func (s *stopped) leaks(t *testing.T, heaps []*Heap) {
	t.Helper()
	m, p := s.open(t)
	h := Core(m, heaps)
	l := m.FindLeaks(h, core.Roots{Data: p.Data})
	old := s.old(t, m, h, p)
	var n, found, before int
	for i, r := range l.Reach {
		at := h.Blocks[i].Addr
		x, known := s.at(at)
		switch {
		case known && x.addr == at && x.before && r == core.Uncertain:
			before++
		case known && x.addr == at && !x.leaked && r == core.Leaked:
			t.Errorf("the block at %#x is not leaked", at)
		case known && x.addr == at && x.leaked && r == core.Leaked:
			n, found = n+1, found+1
		case known && x.addr == at && x.leaked:
			if n++; s.beside(x) {
				t.Logf("the leak at %#x: reach %d; an array whose indexes begin with 1 is behind it", at, r)
			} else if old[at] == 0 {
				t.Errorf("the leak at %#x is not found, and no old word holds it", at)
			} else {
				t.Logf("the leak at %#x: reach %d; the old word at %#x", at, r, old[at])
			}
		}
	}
	if n < 10 {
		t.Fatalf("the program has %d leaks", n)
	}
	t.Logf("%d of %d leaks found; of %d blocks a pointer in front of them is known", found, n, before)
}

// beside reports whether an address in front of a block, which is all that the program has of it, may be in block x.
func (s *stopped) beside(x truth) bool {
	i := sort.Search(len(s.truth), func(i int) bool { return s.truth[i].addr > x.addr })
	return i < len(s.truth) && s.truth[i].before && s.truth[i].addr-x.addr-x.size < 32
}

// at returns the program's block that begins at an address or is the last one before it.
func (s *stopped) at(addr uint64) (truth, bool) {
	i := sort.Search(len(s.truth), func(i int) bool { return s.truth[i].addr > addr }) - 1
	if i < 0 {
		return truth{}, false
	}
	return s.truth[i], true
}

// old returns the leaked blocks that old words hold, or any words with an address close in front of them, by the program's own table: words of writable memory that are neither
// in data nor all bytes of which the program requested, or registers. It has the address of the word, 1 for a register.
func (s *stopped) old(t *testing.T, m *core.Image, h *core.Heap, p Program) map[uint64]uint64 {
	t.Helper()
	s.readTruth(t)
	word := uint64(m.PointerSize())
	held, edges := map[uint64]uint64{}, map[uint64][]uint64{}
	target := func(v uint64) (truth, bool) { // with the bytes behind it that the allocator may have added, and its end
		if i, ok := m.BlockAt(h, v); ok {
			v = h.Blocks[i].Addr
		} else if i, ok := m.BlockAt(h, v-1); ok {
			v = h.Blocks[i].Addr
		}
		x, ok := s.at(v)
		return x, ok && x.leaked && v == x.addr
	}
	var todo []uint64
	hold := func(addr, by uint64) {
		if held[addr] == 0 {
			held[addr] = by
			todo = append(todo, addr)
		}
	}
	for _, th := range m.Threads {
		for _, v := range th.Values {
			if x, ok := target(v); ok {
				hold(x.addr, 1)
			}
		}
	}
	for i := range m.Segments() {
		seg := &m.Segments()[i]
		if !seg.Write || seg.ELF {
			continue
		}
		for at := up(seg.Addr, word); at+word <= seg.End(); at += word {
			v, ok := m.Pointer(at)
			if x, known := s.at(v + 16); known && x.leaked && v < x.addr { // as of an array whose indexes begin with 1
				hold(x.addr, at)
			}
			x, leaked := target(v)
			if !ok || !leaked || slices.ContainsFunc(p.Data, func(r core.Map) bool { return at >= r.Start && at < r.End }) && !inHeap(h, at) {
				continue
			}
			switch from, ok := s.at(at); {
			case !ok || at+word > from.addr+from.size:
				hold(x.addr, at)
			case from.leaked:
				edges[from.addr] = append(edges[from.addr], x.addr)
			default:
				t.Errorf("the block at %#x is leaked, but the program's word at %#x holds %#x", x.addr, at, v)
			}
		}
	}
	for ; len(todo) > 0; todo = todo[1:] {
		for _, to := range edges[todo[0]] {
			hold(to, held[todo[0]])
		}
	}
	return held
}

// inHeap reports whether an address is in the memory of allocators, which may be in data.
func inHeap(h *core.Heap, at uint64) bool {
	return len(h.Blocks) > 0 && at >= h.Blocks[0].Addr && at < h.Blocks[len(h.Blocks)-1].Addr+h.Blocks[len(h.Blocks)-1].Size
}

// freeRTOSSource returns the path of an allocator of FreeRTOS.
func freeRTOSSource(t *testing.T, name string) string {
	return ofOthers(t, "FREERTOS_KERNEL", "portable/MemMang/"+name+".c")
}

// ofOthers returns the path of a source file of another project, whose clone a variable names.
func ofOthers(t *testing.T, variable, name string) string {
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("no %s: set %s to the clone that has it", name, variable)
	}
	p := filepath.Join(dir, name)
	if _, err := os.Stat(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// system is an allocator on a machine.
type system struct {
	name   string
	kind   Kind
	others int // blocks of the C library
	run    func(t *testing.T) *stopped
}

func systems() []system {
	rtos := func(heap, board string, flags ...string) func(*testing.T) *stopped {
		return func(t *testing.T) *stopped {
			flags := append([]string{"-DFREERTOS", "-DOTHER", "-D" + strings.ToUpper(heap), "-I", source(t, "freertos"),
				source(t, "freertos/setup.c"), freeRTOSSource(t, heap)}, flags...)
			if board == "" {
				return native(t, "gcc", flags...)
			}
			return firmware(t, board, append(flags, "-DMOST=150")...)
		}
	}
	board := func(name string, flags ...string) func(*testing.T) *stopped {
		return func(t *testing.T) *stopped { return firmware(t, name, flags...) }
	}
	zephyr := func(board string, flags ...string) func(*testing.T) *stopped {
		return func(t *testing.T) *stopped {
			flags := append([]string{"-DSYSTEM", "-DOTHER", "-I", source(t, "zephyr"), source(t, "zephyr/setup.c"),
				ofOthers(t, "ZEPHYR_BASE", "lib/heap/heap.c")}, flags...)
			if board == "" {
				return native(t, "gcc", flags...)
			}
			return firmware(t, board, append(flags, "-DMOST=150")...)
		}
	}
	other := func(program string, flags ...string) func(*testing.T) *stopped {
		return func(t *testing.T) *stopped {
			linker := ofOthers(t, "GLIBC", "ld-linux-x86-64.so.2")
			return aborted(t, program, append(flags, "-Wl,--dynamic-linker="+linker+",-rpath,"+filepath.Dir(linker))...)
		}
	}
	return []system{
		{"glibc-other", Glibc, 0, other("model.c")},
		{"glibc-other-threads", Glibc, 40, other("threads.c", "-pthread")},
		{"jemalloc", JeMalloc, 2, func(t *testing.T) *stopped { return aborted(t, "model.c", jemallocLibrary(t)) }},
		{"jemalloc-threads", JeMalloc, 40, func(t *testing.T) *stopped { return aborted(t, "threads.c", "-pthread", jemallocLibrary(t)) }},
		{"zephyr", SysHeap, 0, zephyr("")},
		{"zephyr-stats", SysHeap, 0, zephyr("", "-DCONFIG_SYS_HEAP_RUNTIME_STATS")},
		{"zephyr-cortex-m3", SysHeap, 0, zephyr("cortex-m3")},
		{"zephyr-cortex-m3-stats", SysHeap, 0, zephyr("cortex-m3", "-DCONFIG_SYS_HEAP_RUNTIME_STATS")},
		{"zephyr-riscv32-big", SysHeap, 0, zephyr("riscv32", "-DCONFIG_SYS_HEAP_BIG_ONLY=1")},
		{"heap_4", FreeRTOS, 0, rtos("heap_4", "")},
		{"heap_4-protected", FreeRTOS, 0, rtos("heap_4", "", "-DconfigENABLE_HEAP_PROTECTOR=1")},
		{"heap_4-align32", FreeRTOS, 0, rtos("heap_4", "", "-DALIGNMENT=32")},
		{"heap_5", FreeRTOS, 0, rtos("heap_5", "")},
		{"heap_2", FreeRTOS, 0, rtos("heap_2", "")},
		{"heap_4-cortex-m3", FreeRTOS, 0, rtos("heap_4", "cortex-m3")},
		{"heap_4-riscv32", FreeRTOS, 0, rtos("heap_4", "riscv32", "-DALIGNMENT=16")},
		{"heap_4-align4", FreeRTOS, 0, rtos("heap_4", "cortex-m3", "-DALIGNMENT=4")},
		{"heap_5-align4", FreeRTOS, 0, rtos("heap_5", "cortex-m3", "-DALIGNMENT=4")},
		{"heap_5-align16", FreeRTOS, 0, rtos("heap_5", "cortex-m3", "-DALIGNMENT=16")},
		{"heap_2-align4", FreeRTOS, 0, rtos("heap_2", "cortex-m3", "-DALIGNMENT=4")},
		{"heap_5-cortex-m3", FreeRTOS, 0, rtos("heap_5", "cortex-m3")},
		{"newlib", Newlib, 0, board("cortex-m3")},
		{"newlib-nano", NewlibNano, 0, board("cortex-m3", "--specs=nano.specs")},
		{"picolibc", Picolibc, 0, board("riscv32")},
		{"glibc", Glibc, 0, func(t *testing.T) *stopped { return native(t, "gcc") }},
		{"glibc-threads", Glibc, 40, func(t *testing.T) *stopped { return nativeOf(t, "gcc", "threads.c", "-pthread") }},
		{"musl-threads", MuslNG, 40, func(t *testing.T) *stopped { return nativeOf(t, "musl-gcc", "threads.c", "-pthread") }},
		{"glibc-static", Glibc, 6, func(t *testing.T) *stopped { return native(t, "gcc", "-static") }},
		{"glibc-i386", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "i686-linux-gnu", "qemu-i386") }},
		{"glibc-armhf", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "arm-linux-gnueabihf", "qemu-arm") }},
		{"glibc-aarch64", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "aarch64-linux-gnu", "qemu-aarch64") }},
		{"glibc-riscv64", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "riscv64-linux-gnu", "qemu-riscv64") }},
		{"glibc-mips", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "mips-linux-gnu", "qemu-mips") }},
		{"glibc-mipsel", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "mipsel-linux-gnu", "qemu-mipsel") }},
		{"glibc-ppc", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "powerpc-linux-gnu", "qemu-ppc") }},
		{"glibc-s390x", Glibc, 6, func(t *testing.T) *stopped { return guest(t, "s390x-linux-gnu", "qemu-s390x") }},
		{"musl", MuslNG, 0, func(t *testing.T) *stopped { return native(t, "musl-gcc", "-static") }},
		{"musl-shared", MuslNG, 0, func(t *testing.T) *stopped { return native(t, "musl-gcc") }},
	}
}

// quick are the systems of the short test.
var quick = []string{"newlib-nano", "picolibc", "glibc"}

// TestBlocks compares the blocks of each allocator with those of a program that keeps a table, and
// the leaks.
func TestBlocks(t *testing.T) {
	for _, s := range systems() {
		t.Run(s.name, func(t *testing.T) {
			if !slices.Contains(quick, s.name) {
				cmdtest.Long(t)
			}
			p := s.run(t)
			p.leaks(t, p.compare(t, s.others, s.kind))
		})
	}
}

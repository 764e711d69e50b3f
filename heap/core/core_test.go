package core

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// run runs a program in dir and returns what it printed.
func run(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// testdata returns the path of a file in testdata.
func testdata(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// gdbCore runs a program up to a function and has gdb write its core file.
func gdbCore(t testing.TB, exe, function, arguments string, more ...string) (path, out string) {
	t.Helper()
	dir := filepath.Dir(exe)
	path = filepath.Join(dir, "gdb.core")
	args := []string{"-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break " + function, "-ex", "run " + arguments,
		"-ex", "generate-core-file " + path}
	for _, m := range more {
		args = append(args, "-ex", m)
	}
	out = run(t, dir, "gdb", append(args, exe)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("gdb cannot make core files here: %s", out)
	}
	return path, out
}

// TestGDBCore compares registers, maps and memory with what gdb prints.
func TestGDBCore(t *testing.T) {
	for _, arch := range []struct {
		cc    string
		word  int
		names map[string]int // gdb's names → DWARF numbers
	}{
		{"gcc", 64, map[string]int{"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8, "r9": 9,
			"r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15, "rip": 16}},
		{"i686-linux-gnu-gcc", 32, map[string]int{"eax": 0, "ecx": 1, "edx": 2, "ebx": 3, "esp": 4, "ebp": 5, "esi": 6, "edi": 7, "eip": 8}},
	} {
		t.Run(arch.cc, func(t *testing.T) {
			cmdtest.Need(t, "gdb")
			cmdtest.NeedToRun(t, arch.cc)
			dir := t.TempDir()
			exe := filepath.Join(dir, "stop")
			args := []string{"-g", "-O1", "-o", exe, testdata(t, "stop.c")}
			if arch.word == 32 {
				args = append(args, "-static")
			}
			run(t, dir, arch.cc, args...)
			core, out := gdbCore(t, exe, "stop", "", "info registers", "print/x (long)&marker", "print/x (long)p", "print/x (long)&constant")

			var m Image
			defer m.Close()
			if err := m.AddFile(core); err != nil {
				t.Fatal(err)
			}
			if m.Word != arch.word || len(m.Threads) != 1 {
				t.Fatalf("%d bits, %d threads", m.Word, len(m.Threads))
			}
			th, compared := m.Threads[0], 0
			for _, line := range strings.Split(out, "\n") {
				f := strings.Fields(line)
				if len(f) < 2 {
					continue
				}
				if reg, ok := arch.names[f[0]]; ok {
					want, err := strconv.ParseUint(f[1], 0, 64)
					if err != nil {
						t.Fatal(err)
					}
					if got, ok := th.Regs[reg]; !ok || got != want {
						t.Errorf("%s: %#x, gdb says %#x", f[0], got, want)
					}
					compared++
				}
			}
			if compared != len(arch.names) || len(th.Regs) != len(arch.names) {
				t.Errorf("%d registers compared, expected %d, read %d", compared, len(arch.names), len(th.Regs))
			}
			if th.PC != th.Regs[arch.names["rip"]+arch.names["eip"]] || th.SP != th.Regs[arch.names["rsp"]+arch.names["esp"]] {
				t.Errorf("pc %#x, sp %#x", th.PC, th.SP)
			}
			// gdb's core file does not contain constants: they are in the mapped file.
			bias := uint64(0)
			if arch.word == 64 {
				i := slices.IndexFunc(m.Maps, func(r Map) bool { return r.File == exe && r.Offset == 0 })
				bias = m.Maps[i].Start
			}
			if err := m.AddELF(exe, bias); err != nil {
				t.Fatal(err)
			}
			printed := regexp.MustCompile(`(?m)^\$\d+ = (0x[0-9a-f]+)`).FindAllStringSubmatch(out, -1)
			if len(printed) != 3 {
				t.Fatalf("gdb printed %q", out)
			}
			for i, want := range []string{"marker-0123456789", "marker-0123456789", "constant in the executable file"} {
				addr, _ := strconv.ParseUint(printed[i][1], 0, 64)
				b, ok := m.Bytes(addr, uint64(len(want)))
				if !ok || string(b) != want {
					t.Errorf("at %#x: %q %v, want %q", addr, b, ok, want)
				}
			}
			if m.Program != "stop" || m.PID == 0 {
				t.Errorf("program %q, process %d", m.Program, m.PID)
			}
			code := m.MapAt(th.PC)
			if code == nil || !code.Exec || code.File != exe {
				t.Errorf("map of pc: %+v", code)
			}
			if stack := m.MapAt(th.SP); stack == nil || !stack.Write || stack.File != "" {
				t.Errorf("map of sp: %+v", stack)
			}
			if page := m.Auxv[6]; page != 4096 {
				t.Errorf("page size %d", page)
			}
			if notes := m.Notes(); len(notes) > 0 {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// guests lists the machines for which qemu's user emulation writes core files.
var guests = []struct{ triple, qemu string }{
	{"mips-linux-gnu", "qemu-mips"},
	{"mipsel-linux-gnu", "qemu-mipsel"},
	{"powerpc-linux-gnu", "qemu-ppc"},
	{"s390x-linux-gnu", "qemu-s390x"},
	{"arm-linux-gnueabihf", "qemu-arm"},
	{"aarch64-linux-gnu", "qemu-aarch64"},
}

// guestCore compiles a program, crashes it under qemu and returns its core file.
func guestCore(t testing.TB, triple, qemu, arguments string, cc ...string) (core, exe string) {
	t.Helper()
	cmdtest.Need(t, triple+"-gcc", qemu, "sh")
	dir := t.TempDir()
	exe = filepath.Join(dir, "guest")
	run(t, dir, triple+"-gcc", append([]string{"-static", "-o", exe}, cc...)...)
	// Ignore the exit status of the shell: only the core file matters.
	out, _ := exec.Command("sh", "-c", fmt.Sprintf("cd %s && ulimit -c unlimited && %s ./guest %s", dir, qemu, arguments)).CombinedOutput()
	list, _ := filepath.Glob(filepath.Join(dir, "qemu_guest*.core"))
	if len(list) != 1 {
		t.Skipf("%s writes no core file here: %s", qemu, out)
	}
	os.Remove(filepath.Join(dir, "core")) // the core file of qemu itself is large
	return list[0], exe
}

// TestGuestCore reads core files of both byte orders. The program counter must be in abort(),
// and the data of the program at the addresses of its symbols.
func TestGuestCore(t *testing.T) {
	for _, g := range guests {
		t.Run(g.triple, func(t *testing.T) {
			slow(t, g.triple)
			core, exe := guestCore(t, g.triple, g.qemu, "", "-g", "-O1", testdata(t, "stop.c"))
			var m Image
			defer m.Close()
			if err := m.AddFile(core); err != nil {
				t.Fatal(err)
			}
			if err := m.AddELF(exe, 0); err != nil {
				t.Fatal(err)
			}
			f, err := elf.Open(exe)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if m.Order != f.ByteOrder || m.Machine != f.Machine || (m.Word == 64) != (f.Class == elf.ELFCLASS64) {
				t.Errorf("%d bits, %v, %v", m.Word, m.Order, m.Machine)
			}
			syms, err := f.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Threads) == 0 {
				t.Fatal("no thread")
			}
			th, seen := m.Threads[0], 0
			for _, s := range syms {
				want := map[string]string{"marker": "marker-0123456789", "constant": "constant in the executable file"}[s.Name]
				if want != "" {
					if b, ok := m.Bytes(s.Value, uint64(len(want))); !ok || string(b) != want {
						t.Errorf("%s: %q %v", s.Name, b, ok)
					}
					seen++
				}
				if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= th.PC && th.PC < s.Value+s.Size {
					t.Logf("pc is in %s", s.Name)
					seen++
				}
			}
			if seen < 3 {
				t.Errorf("pc %#x and symbols: %d of 3 found", th.PC, seen)
			}
			stack := m.MapAt(th.SP)
			if stack == nil || !stack.Write {
				t.Errorf("sp %#x is in %+v", th.SP, stack)
			}
			if th.Signal != 6 {
				t.Errorf("signal %d, expected 6", th.Signal)
			}
		})
	}
}

// TestHexFiles compares Intel HEX and S-records from objcopy with their input, at
// addresses above 64 KB and 16 MB.
func TestHexFiles(t *testing.T) {
	cmdtest.Need(t, "objcopy")
	dir := t.TempDir()
	raw := make([]byte, 70000)
	for i := range raw {
		raw[i] = byte(i * i >> 3)
	}
	bin := filepath.Join(dir, "ram.bin")
	if err := os.WriteFile(bin, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"ihex", "srec"} {
		for _, addr := range []uint64{0, 0xff80, 0x20000000, 0x2000fff3} {
			out := filepath.Join(dir, format)
			run(t, dir, "objcopy", "-I", "binary", "-O", format, fmt.Sprintf("--change-addresses=%d", addr), bin, out)
			var m Image
			if err := m.AddFile(out); err != nil {
				t.Fatal(err)
			}
			if b, ok := m.Bytes(addr, uint64(len(raw))); !ok || !bytes.Equal(b, raw) {
				t.Errorf("%s at %#x: bytes differ", format, addr)
			}
			if n := m.Notes(); len(n) > 0 {
				t.Errorf("%s at %#x: %q", format, addr, n)
			}
			m.Close()
		}
	}
}

func TestBadRecords(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"checksum", ":0400000001020304F2\n:0400040005060708DF\n:00000001FF\n", "2: checksum 0xdf, expected 0xde"},
		{"cut line", ":0400000001020304F2\n:04000400050607\n:00000001FF\n", "2: 7 bytes, expected 9"},
		{"no end", ":0400000001020304F2\n", "no end-of-file record"},
		{"other text", ":0400000001020304F2\nhello, reader\n:00000001FF\n", "2: not an Intel HEX record"},
		{"digits", ":0400000001020304F2\n:04000400050607zzDF\n:00000001FF\n", "2: encoding/hex"},
		{"record type", ":0400000001020304F2\n:00000009F7\n:00000001FF\n", "2: record type 9"},
		{"S checksum", "S107000001020304EE\nS107000405060708DF\nS9030000FC\n", "2: checksum 0xdf, expected 0xda"},
		{"S no end", "S107000001020304EE\n", "no S7, S8 or S9 record"},
		{"S type", "S107000001020304EE\nS407000001020304EE\nS9030000FC\n", "2: record type S4"},
	} {
		var m Image
		err := m.AddFile(write(t, "bad.hex", []byte(c.text)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		notes := strings.Join(m.Notes(), "\n")
		if !strings.Contains(notes, c.want) {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.want)
		}
		m.Close()
	}
}

// TestPacked reads files compressed with gzip, zstd and xz, complete and truncated.
func TestPacked(t *testing.T) {
	dir := t.TempDir()
	raw := bytes.Repeat([]byte("0123456789abcdef"), 30000)
	copy(raw[100000:], make([]byte, 200000)) // a hole
	bin := filepath.Join(dir, "ram.bin")
	if err := os.WriteFile(bin, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"gzip", "zstd", "xz"} {
		t.Run(tool, func(t *testing.T) {
			cmdtest.Need(t, tool)
			cmd := exec.Command(tool, "-c", bin)
			packed, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var m Image
			if err := m.AddRAM(0x1000, write(t, "ram."+tool, packed)); err != nil {
				t.Fatal(err)
			}
			if b, ok := m.Bytes(0x1000, uint64(len(raw))); !ok || !bytes.Equal(b, raw) {
				t.Error("bytes differ")
			}
			m.Close()
			var cut Image
			err = cut.AddRAM(0x1000, write(t, "cut."+tool, packed[:len(packed)-9]))
			if err == nil && len(cut.Notes()) == 0 {
				t.Error("a cut file is accepted silently")
			}
			cut.Close()
		})
	}
}

func TestRefused(t *testing.T) {
	elfOf := func(class, order byte) []byte {
		b := make([]byte, 64)
		copy(b, elf.ELFMAG)
		b[4], b[5] = class, order
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "empty"},
		{"text", []byte("nothing of the kind"), "not a core file"},
		{"class", elfOf(3, 1), "ELF class 3"},
		{"order", elfOf(1, 7), "byte order 7"},
		{"no core", elfOf(2, 1), "expected a core file"},
		{"header cut", elfOf(2, 1)[:30], "cut"},
		{"kdump", []byte("KDUMP   and so on"), "without -z"},
	} {
		var m Image
		err := m.AddFile(write(t, "bad", c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		m.Close()
	}
}

package crash

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/decompress"
)

// sample returns a file of testdata, decompressed.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	b, err = io.ReadAll(decompress.NewReader(decompress.FormatOf(b), bytes.NewReader(b)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dumps are the dumps in testdata, with what they hold.
var dumps = []struct {
	file, format   string
	threads        int
	memory, pieces uint64 // bytes and pieces
	core           bool
}{
	{"all.log.xz", "Zephyr", 1, 65536, 1, false},
	{"stacks.log.xz", "Zephyr", 6, 800, 6, false},
	{"zephyr-x86.log", "Zephyr", 1, 96 + 1024, 2, false},
	{"zephyr-m3.log.xz", "Zephyr", 1, 0x3f88, 1, false},
	{"rv.log.xz", "Zephyr", 1, 46424, 1, false},
	{"catcher.log.xz", "CrashCatcher", 1, 65536 + 20, 2, false},
	{"nuttx.log.xz", "NuttX", 0, 0, 0, true},
	{"md.dmp.xz", "Breakpad or Crashpad (minidump)", 4, 0, 0, false},
	{"breakpad.dmp.xz", "Breakpad or Crashpad (minidump)", 1, 0, 0, false},
	{"esp32.b64", "ESP-IDF", 0, 0, 0, true},
	{"esp32_bin.b64", "ESP-IDF", 5, 0, 0, false},
	{"esp32s3_bin.b64", "ESP-IDF", 8, 0, 0, false},
	{"esp32c3.b64", "ESP-IDF", 0, 0, 0, true},
	{"esp32c6.b64", "ESP-IDF", 0, 0, 0, true},
}

func TestRead(t *testing.T) {
	for _, c := range dumps {
		t.Run(c.file, func(t *testing.T) {
			d, err := Read(sample(t, c.file))
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Damage) > 0 {
				t.Errorf("damage: %q", d.Damage)
			}
			total := uint64(0)
			for _, m := range d.Memory {
				total += uint64(len(m.Data))
			}
			if d.Format != c.format || len(d.Threads) != c.threads || (d.Core != nil) != c.core || len(d.About) == 0 {
				t.Errorf("%s, %d threads, core %t: %q", d.Format, len(d.Threads), d.Core != nil, d.About)
			}
			if c.pieces > 0 && (total != c.memory || uint64(len(d.Memory)) != c.pieces) {
				t.Errorf("%d bytes in %d pieces, want %d in %d", total, len(d.Memory), c.memory, c.pieces)
			}
			if c.threads > 0 && !d.Threads[0].Crashed {
				t.Error("the first thread did not crash")
			}
		})
	}
}

// TestZephyrOfX86 compares the log in Zephyr's documentation with the registers that it has there, of gdb, and the return
// addresses of gdb's backtrace, to which frame pointers lead.
func TestZephyrOfX86(t *testing.T) {
	d, err := Read(sample(t, "zephyr-x86.log"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]uint64{0: 0, 1: 0x119d74, 2: 0x3f8, 3: 0, 4: 0x119d00, 5: 0x119d10, 6: 0, 7: 0x101aa7, 8: 0x100459}
	if x := d.Threads[0]; x.PC != 0x100459 || !reflect.DeepEqual(x.Regs, want) {
		t.Errorf("registers %#x, PC %#x", x.Regs, x.PC)
	}
	stack := []uint64{d.Threads[0].PC}
	for fp := want[5]; len(stack) < 4; {
		w := words(d.read(fp, 8), 4)
		fp, stack = w[0], append(stack, w[1])
	}
	if want := []uint64{0x100459, 0x100477, 0x100492, 0x1004c8}; !slices.Equal(stack, want) {
		t.Errorf("stack %#x, want %#x", stack, want)
	}
}

// TestZephyrOnM3 compares the log of a Zephyr 2.7 in qemu with what its fault handler printed before the dump, and the stack
// pointer that gdb had below the frame of the exception. Where its log cuts strings, what was cut is left out.
func TestZephyrOnM3(t *testing.T) {
	b := sample(t, "zephyr-m3.log.xz")
	d, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]uint64{0: 0xfffffff1, 1: 0, 2: 0x200006f8, 3: 1, 12: 0x100, 13: 0x20001070, 14: 0x40f}
	if x := d.Threads[0]; x.PC != 0x3e6 || x.Status != 0x21000000 || !reflect.DeepEqual(x.Regs, want) {
		t.Errorf("registers %#x, PC %#x", x.Regs, x.PC)
	}
	cut := regexp.MustCompile(`(#CD:[0-9a-f]{31})[0-9a-f]+`).ReplaceAll(b, []byte("$1~"))
	if d, err := Read(cut); err == nil || d != nil || !strings.Contains(err.Error(), "hexadecimal digits, expected an even number") {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestTruncated cuts each dump: what is left is read, and what is missing is said.
func TestTruncated(t *testing.T) {
	for _, c := range dumps {
		t.Run(c.file, func(t *testing.T) {
			b := sample(t, c.file)
			step := max(1, len(b)/500)
			for n := len(b) - len(b)%step; n > 0; n -= step {
				d, err := Read(b[:n])
				if err == nil && len(d.Damage) == 0 && !sameDump(b[:n], b) { // what follows the dump is no loss
					t.Fatalf("%d of %d bytes: neither an error nor damage", n, len(b))
				}
			}
		})
	}
}

// TestChecksums flips a bit in each part of dumps with a checksum.
func TestChecksums(t *testing.T) {
	for _, file := range []string{"esp32.b64", "esp32c6.b64", "esp32_bin.b64", "stacks.log.xz"} {
		b := sample(t, file)
		for n := 0; n < len(b); n += 1 + len(b)/300 {
			x := slices.Clone(b)
			if x[n] <= ' ' || x[n] == '=' {
				continue
			}
			if x[n] ^= 1; strings.HasSuffix(file, ".xz") && strings.HasPrefix(file, "stacks") && !isHex(x[n]) {
				continue
			}
			d, err := Read(x)
			if err == nil && len(d.Damage) == 0 && !sameDump(x, b) {
				t.Errorf("%s: bit 0 of byte %d of %d: no damage", file, n, len(b))
			}
		}
	}
}

// sameDump reports whether two files hold the same dump: not all of a file is covered by its checksum.
func sameDump(a, b []byte) bool {
	x, err1 := Read(a)
	y, err2 := Read(b)
	return err1 == nil && err2 == nil && reflect.DeepEqual(x.Memory, y.Memory) && reflect.DeepEqual(x.Threads, y.Threads) && bytes.Equal(x.Core, y.Core)
}

// TestLostLines leaves out lines of a log whose lines are numbered: all memory but theirs is as it was.
func TestLostLines(t *testing.T) {
	log := sample(t, "all.log.xz")
	whole, err := Read(log)
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.SplitAfter(log, []byte{'\n'})
	for n := 3; n < len(all)-2; n += 97 {
		d, err := Read(bytes.Join(slices.Concat(all[:n], all[n+1:]), nil))
		if n < 6 && err != nil && strings.Contains(err.Error(), "header") {
			continue // that of the only block of memory was lost
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Damage) == 0 {
			t.Errorf("line %d lost: no damage", n+1)
		}
		lost := 65536
		for _, m := range d.Memory {
			lost -= len(m.Data)
			if !bytes.Equal(m.Data, whole.read(m.Addr, uint64(len(m.Data)))) {
				t.Errorf("line %d lost: memory at %#x is not what it was", n+1, m.Addr)
			}
		}
		if n > 4 && lost != lineBytes {
			t.Errorf("line %d lost: %d bytes missing, want %d", n+1, lost, lineBytes)
		}
	}
}

// TestBreakpad reads a minidump of Breakpad's own tests, of a program that divided by zero (signal 8 at its instruction). The values
// of its environment were overwritten.
func TestBreakpad(t *testing.T) {
	d, err := Read(sample(t, "breakpad.dmp.xz"))
	if err != nil {
		t.Fatal(err)
	}
	about := strings.Join(d.About, "\n")
	if x := d.Threads[0]; x.Signal != 8 || x.PC != 0x401f27 || !strings.Contains(about, "signal 0x8 at address 0x401f27") {
		t.Errorf("signal %d, PC %#x: %s", x.Signal, x.PC, about)
	}
	if !strings.Contains(about, "variables of the process's environment, which may be secrets: AUTO_PROXY, ") {
		t.Errorf("no environment: %s", about)
	}
	if len(d.Modules) < 5 || !strings.HasSuffix(d.Modules[0].Path, "/breakpad_test/driver") {
		t.Errorf("modules %v", d.Modules)
	}
}

// TestEnvironment finds the environment of a process, and no other text.
func TestEnvironment(t *testing.T) {
	for text, want := range map[string]string{
		"x\x00HOME=/root\x00TOKEN=x\x00PATH=/bin\x00\x00": "HOME PATH TOKEN",
		"a=1\x00b=2\x00":                    "",
		"HOME=/root\x00\x00\x00TOKEN=1\x00": "",
		"==\x00==\x00==\x00==\x00":          "",
	} {
		if got := strings.Join(environment([]Memory{{0, []byte(text)}}), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNoDump(t *testing.T) {
	for _, b := range []string{"", "x", "ZV", "hello\nworld\n", "AAAA\nAAAA\n", strings.Repeat("\x00", 100)} {
		if _, err := Read([]byte(b)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, want ErrFormat", b, err)
		}
	}
}

// fuzz tries a reader on damaged dumps whose file begins with a prefix. It may not panic, and a dump may take only a small
// multiple of its file.
func fuzz(f *testing.F, prefix string, read func(b []byte, d *Dump) error) {
	for _, c := range dumps {
		if b := sample(f, c.file); strings.HasPrefix(c.file, prefix) {
			f.Add(b[:min(len(b), 1<<14)])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDump(b)
		if read(b, d) != nil {
			return
		}
		total := len(d.Core)
		for _, m := range d.Memory {
			total += len(m.Data)
		}
		if total > maxRatio*len(b)+2*maxLost || len(d.Damage) > maxSentences {
			t.Errorf("%d bytes of memory and %d sentences from a file of %d bytes", total, len(d.Damage), len(b))
		}
	})
}

func FuzzZephyr(f *testing.F)        { fuzz(f, "", readZephyr) }
func FuzzZephyrLog(f *testing.F)     { fuzz(f, "stacks", readZephyrLog) }
func FuzzESP(f *testing.F)           { fuzz(f, "esp", readESPLog) }
func FuzzESPBinary(f *testing.F)     { fuzz(f, "", readESP) }
func FuzzNuttX(f *testing.F)         { fuzz(f, "nuttx", readNuttXLog) }
func FuzzLZF(f *testing.F)           { fuzz(f, "", readNuttX) }
func FuzzCatcher(f *testing.F)       { fuzz(f, "catcher", readCatcherLog) }
func FuzzCatcherBinary(f *testing.F) { fuzz(f, "", readCatcher) }
func FuzzMinidump(f *testing.F)      { fuzz(f, "md", readMinidump) }

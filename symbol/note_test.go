package symbol

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// noteSource is a note section as firmware has it: the assembler pads and the linker resolves.
const noteSource = `
	.globl _start
	.text
_start:	.zero 64
end:
	.section .note.lwsbt,"",%note
	.macro note type, from, to
	.4byte 6, \to - \from, \type
	.asciz "lwsbt"
	.balign 4
	.endm
	note 1, a, b
a:	.4byte 2, 2
	WORD _start, end, 0x20000000, 0x20000800
b:	note 9, c, d
c:	.byte 1, 2, 3
d:	.balign 4
	note 2, e, f
e:	.ascii "v1.2-7"
f:	.balign 4
	note 3, g, h
g:	WORD 0x20001000, 0x20010000
h:
`

// assembled links source with a compiler for 32 or 64 bits, and opens the result.
func assembled(t *testing.T, source string, word int) *File {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.elf")
	source = strings.ReplaceAll(source, "WORD", map[int]string{32: ".4byte", 64: ".8byte"}[word])
	if err := os.WriteFile(in, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	emulation := map[int]string{32: "elf_i386", 64: "elf_x86_64"}[word]
	for _, args := range [][]string{{"as", "--" + map[int]string{32: "32", 64: "64"}[word], "-o", out + ".o", in}, {"ld", "-m", emulation, "-Ttext=0x1000000", "-o", out, out + ".o"}} {
		if b, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, b)
		}
	}
	f, err := Open(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// The note of an ELF file says where the code is; without it, the program headers and the
// machine do. (BT-NOTE-1, BT-CODE-3)
func TestLayout(t *testing.T) {
	for _, word := range []int{32, 64} {
		l, err := assembled(t, noteSource, word).Layout()
		if err != nil {
			t.Fatal(err)
		}
		if want := []codec.Range{{Start: 0x1000000, Length: 64}, {Start: 0x20000000, Length: 0x800}}; !slices.Equal(l.Code, want) || l.Shift != 2 {
			t.Errorf("%d bits: code %#x, shift %d", word, l.Code, l.Shift)
		}
		if want := []codec.Range{{Start: 0x20001000, Length: 0xf000}}; !slices.Equal(l.Heap, want) || l.Firmware != "v1.2-7" {
			t.Errorf("%d bits: heap %#x, firmware %q", word, l.Heap, l.Firmware)
		}
	}
	for _, c := range []struct {
		machine elf.Machine
		entry   uint32
		shift   int
	}{{elf.EM_ARM, 0x8001, 1}, {elf.EM_ARM, 0x8000, 2}, {elf.EM_RISCV, 0x8000, 1}, {elf.EM_MIPS, 0x8000, 2}, {elf.EM_386, 0x8000, 0}, {elf.EM_XTENSA, 0x8000, 0}} {
		f, err := Open(tinyELF(t, c.machine, c.entry, []byte{1, 2, 3, 4}, "f"), nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := f.Layout()
		if want := []codec.Range{{Start: uint64(c.entry), Length: 4}}; err != nil || !slices.Equal(l.Code, want) || l.Shift != c.shift {
			t.Errorf("%v, entry %#x: %+v, %v, want shift %d", c.machine, c.entry, l, err, c.shift)
		}
		f.Close()
	}
}

// A malformed note section is an error, and the program headers count.
func TestMalformedLayout(t *testing.T) {
	for name, note := range map[string]string{
		"cut head":        ".4byte 6, 8",
		"cut descriptor":  ".4byte 6, 400, 1\n.asciz \"lwsbt\"\n.balign 4\n.4byte 1",
		"long name":       ".4byte 0xffffffff, 8, 1\n.asciz \"lwsbt\"",
		"shift 5":         ".4byte 6, 16, 1\n.asciz \"lwsbt\"\n.balign 4\n.4byte 5, 1, 16, 32",
		"count 2, one":    ".4byte 6, 16, 1\n.asciz \"lwsbt\"\n.balign 4\n.4byte 1, 2, 16, 32",
		"end below start": ".4byte 6, 16, 1\n.asciz \"lwsbt\"\n.balign 4\n.4byte 1, 1, 32, 16",
		"half a range":    ".4byte 6, 12, 1\n.asciz \"lwsbt\"\n.balign 4\n.4byte 1, 1, 32",
	} {
		f := assembled(t, ".globl _start\n_start: .zero 64\n.section .note.lwsbt,\"\",%note\n"+note+"\n", 32)
		l, err := f.Layout()
		if err == nil || len(l.Code) != 1 || l.Code[0].Start != 0x1000000 {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

package crash

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"strings"
)

// A dump of Zephyr (include/zephyr/debug/coredump.h): a header, then blocks, all numbers little-endian.
//
//	header  "ZE", version u16, target u16, log2 of the bits of an address u8, flags u8 (1: a checksum follows), reason u32
//	A       version u16, length u16: registers
//	T       version u16, length u16: struct _kernel; version 0x4254: tasks, as device/ writes them
//	M       version u16, start, end: memory
//	F       version u16, length u16, CPU u32, thread: registers of another CPU
//	C       version u16, CRC-32 of all before
const (
	zephyrHeader = 12
	taskTable    = 0x4254
)

// zephyrTargets are the machines by the target of the header.
var zephyrTargets = []elf.Machine{0, elf.EM_386, elf.EM_X86_64, elf.EM_ARM, elf.EM_RISCV, elf.EM_XTENSA, elf.EM_AARCH64}

// zephyr reads the blocks of a dump.
type zephyr struct {
	d     *Dump
	all   []byte
	at    int      // offset of the current block
	holes [][2]int // bytes of all that were lost, sorted
	tasks []byte
	crc   bool // a checksum was there
}

func readZephyr(b []byte, d *Dump) error { return (&zephyr{d: d, all: b}).read() }

func (z *zephyr) read() error {
	d, b := z.d, z.all
	d.Format = "Zephyr"
	if len(b) < zephyrHeader || b[0] != 'Z' || b[1] != 'E' {
		return fmt.Errorf("no header in %d bytes, expected ZE and %d bytes", len(b), zephyrHeader)
	}
	target := int(le.Uint16(b[4:]))
	if target == 0 || target >= len(zephyrTargets) || b[6] != 5 && b[6] != 6 {
		return fmt.Errorf("target %d with addresses of 2^%d bits, expected 1 to %d, 2^5 or 2^6", target, b[6], len(zephyrTargets)-1)
	}
	d.Machine, d.Word = zephyrTargets[target], 1<<b[6]
	d.about("Zephyr dump version %d, %v, reason %d%s", le.Uint16(b[2:]), d.Machine, le.Uint32(b[8:]), zephyrReason(le.Uint32(b[8:])))
	for z.at = zephyrHeader; z.at < len(b); {
		n, err := z.block(b[z.at:])
		if errors.Is(err, errLost) {
			if n = bytes.Index(b[z.at+1:], []byte{'M', 1, 0}) + 1; n > 0 {
				z.at += n
				continue
			}
		}
		if err != nil {
			d.damaged("the dump ends early: at byte %d of %d, %v", z.at, len(b), err)
			break
		}
		z.at += n
	}
	if b[7]&1 != 0 && !z.crc {
		d.damaged("the header promises a checksum (block C), which is missing")
	}
	z.taskTable()
	for i := range d.Threads {
		d.skipFrame(&d.Threads[i])
	}
	if len(d.Threads)+len(d.Memory) == 0 {
		return fmt.Errorf("neither registers nor memory in %d bytes: %s", len(b), strings.Join(d.Damage, "; "))
	}
	return nil
}

// skipFrame corrects the stack pointer of a Cortex-M in dumps of older versions, such as 2.7: it is that of the frame that the
// processor pushed at the fault, which has the registers of the dump.
func (d *Dump) skipFrame(t *Thread) {
	f, ok := Interrupted(Thread{}, t.Regs[13], false, d.read)
	if !ok || d.Machine != elf.EM_ARM || f.PC != t.PC || f.Status != t.Status {
		return
	}
	for r, v := range f.Regs {
		if r != 13 && t.Regs[r] != v {
			return
		}
	}
	t.Regs[13] = f.Regs[13]
}

// zephyrReason returns the name of a reason (include/zephyr/fatal_types.h).
func zephyrReason(n uint32) string {
	names := []string{"CPU exception", "unhandled interrupt", "stack overflow", "kernel oops", "kernel panic"}
	if n < uint32(len(names)) {
		return " (" + names[n] + ")"
	}
	return ""
}

// errLost is returned for a block whose header was in a lost line.
var errLost = errors.New("the header of a block was lost")

// block reads a block and returns its size.
func (z *zephyr) block(b []byte) (size int, err error) {
	word := z.d.Word / 8
	head := map[byte]int{'A': 5, 'T': 5, 'F': 9 + word, 'M': 3 + 2*word, 'C': 7}[b[0]]
	switch {
	case len(z.lost(z.at, 1)) > 0:
		return 0, errLost
	case head == 0:
		return 0, fmt.Errorf("a block of unknown type 0x%02x", b[0])
	case len(b) < head:
		return 0, fmt.Errorf("block %c has %d bytes, expected a header of %d", b[0], len(b), head)
	case len(z.lost(z.at, head)) > 0:
		return 0, errLost
	}
	version := le.Uint16(b[1:])
	switch b[0] {
	case 'M':
		w := words(b[3:head], word)
		return z.memory(b, head, w[0], w[1])
	case 'C':
		z.crc = true
		if sum, want := crc32.ChecksumIEEE(z.all[:z.at]), le.Uint32(b[3:]); sum != want {
			z.d.damaged("checksum of %d bytes is 0x%08x, expected 0x%08x: the dump is damaged", z.at, sum, want)
		}
		return head, nil
	}
	size = head + int(le.Uint16(b[3:]))
	if len(b) < size {
		return 0, fmt.Errorf("block %c has %d bytes, expected %d", b[0], len(b), size)
	}
	data := b[head:size]
	switch {
	case len(z.lost(z.at, size)) > 0:
		z.d.damaged("block %c at byte %d was lost in part: left out", b[0], z.at)
	case b[0] == 'T' && version == taskTable:
		z.tasks = data
	case b[0] == 'A':
		z.thread(Thread{Crashed: true}, version, data)
	case b[0] == 'F':
		z.thread(Thread{ID: words(b[9:], word)[0], Name: fmt.Sprintf("CPU %d", le.Uint32(b[5:]))}, version, data)
	}
	return size, nil
}

func (z *zephyr) thread(t Thread, version uint16, data []byte) {
	if !zephyrRegs(z.d, &t, version, data) {
		z.d.damaged("registers of %v in version %d, %d bytes: not known, left out", z.d.Machine, version, len(data))
		return
	}
	z.d.addThread(t)
}

// memory reads a block of memory.
func (z *zephyr) memory(b []byte, head int, from, to uint64) (size int, err error) {
	if to < from {
		return 0, fmt.Errorf("memory from %#x to %#x", from, to)
	}
	have := min(to-from, uint64(len(b)-head))
	at := uint64(0) // what follows was not added
	for _, h := range z.lost(z.at+head, int(have)) {
		start, end := uint64(max(0, h[0]-z.at-head)), uint64(max(0, h[1]-z.at-head))
		if start > at {
			z.d.add(from+at, b[head:][at:start])
		}
		at = min(end, have)
	}
	z.d.add(from+at, b[head:][at:have])
	if have < to-from {
		return 0, fmt.Errorf("memory from %#x has %d bytes, expected %d", from, have, to-from)
	}
	return head + int(have), nil
}

// lost returns the holes that overlap n bytes from an offset.
func (z *zephyr) lost(at, n int) [][2]int {
	from := sort.Search(len(z.holes), func(i int) bool { return z.holes[i][1] > at })
	to := sort.Search(len(z.holes), func(i int) bool { return z.holes[i][0] >= at+n })
	return z.holes[from:max(from, to)]
}

// zephyrRegs reads the registers of block A (arch/*/core/coredump.c), and reports whether it knows them.
func zephyrRegs(d *Dump, t *Thread, version uint16, b []byte) bool {
	w := words(b, d.Word/8)
	switch {
	case d.Machine == elf.EM_386 && len(w) >= 13: // vector, code, eax, ecx, edx, ebx, esp, ebp, esi, edi, eip
		t.set(w[2:], seq(0, 8)...)
		t.set(w[10:], 8)
		t.PC = w[10]
	case d.Machine == elf.EM_ARM && len(w) >= 9: // r0-r3, r12, lr, pc, xPSR, sp; from version 2 on r4-r11
		t.set(w, 0, 1, 2, 3, 12, 14)
		t.PC, t.Status = w[6], w[7]
		t.set(w[8:], 13)
		if version >= 2 {
			t.set(w[9:], seq(4, 11)...)
		}
	case d.Machine == elf.EM_RISCV && version > 2 && len(w) >= 33: // x0-x31, pc
		t.set(w, seq(0, 31)...)
		t.PC = w[32]
	default:
		return false
	}
	return true
}

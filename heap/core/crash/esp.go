package crash

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"hash/crc32"
)

// A dump of ESP-IDF (components/espcoredump): length u32, version u32, further words, then the data and a checksum over all
// before. Version is chip << 16 | major << 8 | minor. With major 0 the data is tasks and segments, with 1 an ELF core file.
const espMinimum = 24

// espLayout has the sizes of the header and the checksum in bytes: 4 for CRC-32, 32 for SHA-256.
type espLayout struct{ header, sum int }

var espLayouts = map[uint16]espLayout{
	0x0001: {16, 4}, 0x0002: {20, 4}, 0x0003: {24, 4},
	0x0100: {20, 4}, 0x0101: {20, 32}, 0x0102: {24, 4}, 0x0103: {24, 32}, 0x0104: {12, 32},
}

// espChips are the chips by number (esp_chip_id_t); those with false have RISC-V.
var espChips = map[uint16]struct {
	name   string
	xtensa bool
}{
	0: {"ESP32", true}, 2: {"ESP32-S2", true}, 9: {"ESP32-S3", true}, 5: {"ESP32-C3", false}, 12: {"ESP32-C2", false},
	13: {"ESP32-C6", false}, 16: {"ESP32-H2", false}, 18: {"ESP32-P4", false}, 20: {"ESP32-C61", false}, 23: {"ESP32-C5", false},
}

// espLayoutOf returns the layout of a dump, and whether its header is one: its version and chip are known.
func espLayoutOf(b []byte) (l espLayout, ok bool) {
	if len(b) < espMinimum {
		return l, false
	}
	l, ok = espLayouts[le.Uint16(b[4:])]
	_, chip := espChips[le.Uint16(b[6:])]
	return l, ok && chip && int64(le.Uint32(b)) > int64(l.header+l.sum)
}

func isESP(b []byte) bool {
	l, ok := espLayoutOf(b)
	if !ok {
		return false
	}
	if b[5] == 1 { // an ELF file follows
		return len(b) > l.header+4 && string(b[l.header:][:4]) == elf.ELFMAG
	}
	tasks, tcb := le.Uint32(b[8:]), le.Uint32(b[12:])
	return tasks > 0 && tasks < 1000 && tcb >= 16 && tcb < 1<<16
}

func readESP(b []byte, d *Dump) error {
	d.Format = "ESP-IDF"
	l, ok := espLayoutOf(b)
	if !ok {
		return fmt.Errorf("no header in %d bytes, expected a length and a version", len(b))
	}
	chip := espChips[le.Uint16(b[6:])]
	d.Machine, d.Word = elf.EM_RISCV, 32
	if chip.xtensa {
		d.Machine = elf.EM_XTENSA
	}
	d.about("ESP-IDF dump version %d.%d of an %s", b[5], b[4], chip.name)
	total := int64(le.Uint32(b))
	data := b[min(l.header, len(b)):]
	if total > int64(len(b)) {
		d.damaged("the dump ends early: %d bytes, expected %d; its checksum is missing", len(b), total)
	} else {
		b = b[:total]
		data = b[l.header : int(total)-l.sum]
		d.checkESP(b, l.sum)
	}
	if b[5] == 1 {
		d.Core = data
		return nil
	}
	return d.espTasks(b, data)
}

// checkESP compares the checksum at the end of b.
func (d *Dump) checkESP(b []byte, size int) {
	body, want := b[:len(b)-size], b[len(b)-size:]
	if size == 4 {
		if sum := crc32.ChecksumIEEE(body); sum != le.Uint32(want) {
			d.damaged("checksum 0x%08x, expected 0x%08x: the dump is damaged", sum, le.Uint32(want))
		}
		return
	}
	if sum := sha256.Sum256(body); string(sum[:]) != string(want) {
		d.damaged("SHA-256 begins %x, expected %x: the dump is damaged", sum[:4], want[:4])
	}
}

// espTasks reads the binary form: for each task the address of its control block, the top and end of its stack, the control
// block, and the stack, on which the registers are. Segments follow: address, size, bytes. Entries are aligned to 4 bytes.
func (d *Dump) espTasks(all, b []byte) error {
	tasks, tcb, segments := int(le.Uint32(all[8:])), uint64(le.Uint32(all[12:])), uint32(0)
	if all[4] != 1 {
		segments = le.Uint32(all[16:])
	}
	for i := range tasks {
		if len(b) < 12 {
			d.damaged("the dump ends early: %d of %d tasks are there", i, tasks)
			return nil
		}
		addr, top, end := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
		low, size := min(top, end), uint64(max(top, end)-min(top, end))
		if uint64(len(b)) < 12+tcb+size {
			d.damaged("the dump ends early: task %d of %d has %d bytes, expected %d", i+1, tasks, len(b), 12+tcb+size)
			return nil
		}
		stack := b[12+tcb:][:size]
		d.add(uint64(addr), b[12:12+tcb])
		d.add(uint64(low), stack)
		t := Thread{ID: uint64(addr), Crashed: i == 0}
		if espRegs(d.Machine, &t, words(stack[:min(len(stack), 32*4)], 4)) {
			d.addThread(t)
		} else {
			d.damaged("task %d at %#x: %d bytes of stack, too few for registers", i+1, addr, size)
		}
		b = b[min(uint64(len(b)), (12+tcb+size+3)&^3):]
	}
	for i := range segments {
		if len(b) < 8 {
			d.damaged("the dump ends early: %d of %d segments are there", i, segments)
			break
		}
		size := uint64(le.Uint32(b[4:]))
		have := min(size, uint64(len(b)-8))
		d.add(uint64(le.Uint32(b)), b[8:8+have])
		if have < size {
			d.damaged("the dump ends early: segment %d of %d has %d bytes, expected %d", i+1, segments, have, size)
		}
		b = b[8+have:]
	}
	return nil
}

// espRegs reads the registers at the top of a stack. On Xtensa the first word is not 0 after an exception.
func espRegs(m elf.Machine, t *Thread, w []uint64) bool {
	switch {
	case m == elf.EM_RISCV && len(w) >= 32: // pc, x1-x31
		t.PC = w[0]
		t.set(w[1:], seq(1, 31)...)
	case m == elf.EM_XTENSA && len(w) >= 25 && w[0] != 0: // exit, pc, ps, a0-a15
		t.PC = w[1]
		t.set(w[3:], seq(0, 15)...)
	case m == elf.EM_XTENSA && len(w) >= 25: // 0, pc, ps, -, a0-a3
		t.PC = w[1]
		t.set(w[4:], seq(0, 3)...)
	default:
		return false
	}
	return true
}

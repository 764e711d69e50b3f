// Package crash reads the crash dumps that firmware and crash reporters write:
// bytes in; memory, registers and threads out.
//
//	serial log ─lines→ bytes ─┐
//	flash image, file        ─┴→ Read → Dump: memory, threads, modules
//	                                    or the ELF core file inside
//
// It knows those of Zephyr, ESP-IDF, NuttX and CrashCatcher, and minidumps of Breakpad and Crashpad.
//
// Dumps are not trusted. Every size is checked against the bytes that are there, so that a Dump takes no more than
// a small multiple of its file. No input makes the package panic.
package crash

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrFormat is returned for a file that is no crash dump.
var ErrFormat = errors.New("not a crash dump")

// Memory is memory with known bytes.
type Memory struct {
	Addr uint64
	Data []byte // may be a part of the file
}

// Thread is a thread or task.
type Thread struct {
	ID      uint64 // the kernel's number, or the address of the task's control block
	Name    string // "" if not known
	Signal  int    // that stopped the thread, 0 if not known
	Crashed bool
	PC      uint64
	Status  uint64 // xPSR or CPSR of Arm, else 0
	// Regs are the registers by DWARF number. Registers that the dump lacks are not in it.
	Regs map[int]uint64
}

// Module is a file that was mapped.
type Module struct {
	Base, Size uint64
	Path       string
	BuildID    string // hexadecimal
}

// Dump is a crash dump.
type Dump struct {
	Format  string // name of the system
	Machine elf.Machine
	Word    int // 32 or 64 bits
	Memory  []Memory
	Threads []Thread // the crashed one first
	Modules []Module
	// Core is the ELF core file in a dump of NuttX, and in those of ESP-IDF from version 1.0 on. Memory and Threads are
	// empty then.
	Core []byte
	// About has what the dump says of itself, one sentence each.
	About []string
	// Damage has what is missing or wrong, and where.
	Damage []string

	left int // bytes of memory that may be added
}

// maxSentences limits About and Damage.
const maxSentences = 100

func (d *Dump) about(format string, args ...any) {
	if len(d.About) < maxSentences {
		d.About = append(d.About, fmt.Sprintf(format, args...))
	}
}

func (d *Dump) damaged(format string, args ...any) {
	if len(d.Damage) < maxSentences {
		d.Damage = append(d.Damage, fmt.Sprintf(format, args...))
	}
}

// Limits on the number of pieces of memory and of threads, and on the bytes of memory for each byte of the file: pieces of a
// minidump may share bytes.
const (
	maxMemory  = 1 << 16
	maxThreads = 1 << 14
	maxShared  = 4
)

func (d *Dump) add(addr uint64, data []byte) {
	switch {
	case len(data) == 0:
	case len(d.Memory) == maxMemory || len(data) > d.left:
		d.damaged("memory at %#x is left out: more than %d pieces, or pieces that share bytes", addr, maxMemory)
	default:
		d.left -= len(data)
		d.Memory = append(d.Memory, Memory{addr, data})
	}
}

func (d *Dump) addThread(t Thread) {
	if len(d.Threads) < maxThreads {
		d.Threads = append(d.Threads, t)
	}
}

// read returns n bytes at addr, nil if no piece of memory has all of them.
func (d *Dump) read(addr, n uint64) []byte {
	for i := range d.Memory {
		m := &d.Memory[i]
		if at := addr - m.Addr; addr >= m.Addr && at <= uint64(len(m.Data)) && uint64(len(m.Data))-at >= n {
			return m.Data[at:][:n]
		}
	}
	return nil
}

// formats are the dumps that begin with a signature, and the readers of serial logs.
var formats = []struct {
	is   func(b []byte) bool
	read func(b []byte, d *Dump) error
}{
	{begins("ZE"), readZephyr},
	{begins("cC\x03"), readCatcher},
	{begins("MDMP"), readMinidump},
	{isLZF, readNuttX},
	{contains(zephyrBegin), readZephyrLog},
	{contains(nuttxBegin), readNuttXLog},
	{contains(espBegin), readESPLog},
	{isCatcherLog, readCatcherLog},
	{isESP, readESP},
	{isESPBase64, readESPLog},
}

func begins(s string) func([]byte) bool {
	return func(b []byte) bool { return bytes.HasPrefix(b, []byte(s)) }
}

func contains(s string) func([]byte) bool {
	return func(b []byte) bool { return bytes.Contains(b, []byte(s)) }
}

// Read reads a crash dump. It returns [ErrFormat] if b is none, and another error if nothing in it can be read.
func Read(b []byte) (*Dump, error) {
	for _, f := range formats {
		if !f.is(b) {
			continue
		}
		d := newDump(b)
		if err := f.read(b, d); err != nil {
			return nil, fmt.Errorf("a dump of %s: %w", d.Format, err)
		}
		return d, nil
	}
	return nil, ErrFormat
}

// newDump returns an empty dump for a file.
func newDump(b []byte) *Dump { return &Dump{left: maxLost + maxShared*len(b)} }

var le = binary.LittleEndian

// words returns the words of size bytes in b.
func words(b []byte, size int) []uint64 {
	w := make([]uint64, 0, len(b)/size)
	for ; len(b) >= size; b = b[size:] {
		if size == 8 {
			w = append(w, le.Uint64(b))
		} else {
			w = append(w, uint64(le.Uint32(b)))
		}
	}
	return w
}

// set sets registers to the words of w.
func (t *Thread) set(w []uint64, regs ...int) {
	if t.Regs == nil {
		t.Regs = map[int]uint64{}
	}
	for i, r := range regs {
		if i < len(w) {
			t.Regs[r] = w[i]
		}
	}
}

// seq returns the numbers from first to last.
func seq(first, last int) (list []int) {
	for i := first; i <= last; i++ {
		list = append(list, i)
	}
	return list
}

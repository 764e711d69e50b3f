package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"github.com/lwsbt/lwsbt/symbol/arch"
)

// follows reports whether the instruction before ra is a call.
func (w *walker) follows(ra uint64) bool {
	a := w.arch
	pc := a.addr(ra)
	if pc == 0 || pc != a.mask(pc) || a.machine == elf.EM_MIPS && ra&3 != 0 {
		return false
	}
	m := w.module(pc - 1)
	if m == nil {
		return false
	}
	c := arch.Code{Bytes: m.before(pc-m.Bias, arch.MaxCall), Addr: pc - m.Bias, Word: int(a.word) * 8,
		Big: a.order == binary.BigEndian, Thumb: a.machine == elf.EM_ARM && ra&1 != 0, Text: m.inText}
	return len(c.Bytes) > 0 && a.calls.FollowsCall(&c)
}

// before returns up to n bytes of code that end before pc.
func (o *Object) before(pc uint64, n uint64) []byte {
	for _, t := range o.text {
		if t.low < pc && pc <= t.high {
			n = min(n, pc-t.low)
			return o.bytes(pc-n, int(n))
		}
	}
	return nil
}

// Holds reports whether code of a module is at pc.
func (u *Unwinder) Holds(pc uint64) bool { return u.module(pc) != nil }

func (u *Unwinder) module(pc uint64) *Module {
	for _, m := range u.Modules {
		if m.holds(pc) {
			return m
		}
	}
	return nil
}

// onStack reports whether addr may be on the thread's stack.
func (w *walker) onStack(addr uint64) bool {
	return addr >= w.low && addr-w.low < maxStack
}

// number reads an unsigned number of 1, 2, 4 or 8 bytes.
func (w *walker) number(addr uint64, size int) (uint64, bool) {
	var b [8]byte
	if size != 1 && size != 2 && size != 4 && size != 8 || w.Memory.Read(b[:size], addr) != size {
		return 0, false
	}
	c := cursor{b: b[:], order: w.arch.order}
	return c.uint(size), true
}

// word reads an address.
func (w *walker) word(addr uint64) (uint64, bool) { return w.number(addr, int(w.arch.word)) }

// wordAt reads an address from the stack.
func (w *walker) wordAt(addr uint64) (uint64, bool) {
	if !w.onStack(addr) {
		return 0, false
	}
	return w.word(addr)
}

// decode decodes the instruction at pc, an address in the file.
func (w *walker) decode(m *Module, pc uint64, thumb bool) (*inst, bool) {
	code := m.code(pc)
	if len(code) == 0 || w.arch.decode == nil {
		return nil, false
	}
	w.inst = inst{ops: w.inst.ops[:0]}
	at := pc + m.Bias
	if thumb {
		at |= 1
	}
	ok := w.arch.decode(w.arch, code, at, &w.inst)
	return &w.inst, ok && w.inst.size > 0
}

// maxCode is the length of the longest instruction in bytes.
const maxCode = 16

// code returns up to 16 bytes of code of the file at pc.
func (o *Object) code(pc uint64) []byte {
	if !o.inText(pc) {
		return nil
	}
	b, at := o.page(pc)
	if b == nil {
		return nil
	}
	b = b[pc-at:]
	if len(b) < maxCode {
		if next, _ := o.page(pc + maxCode); next != nil {
			b = append(slices.Clip(b), next[:maxCode]...)
		}
	}
	return b[:min(len(b), maxCode)]
}

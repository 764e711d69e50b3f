package unwind

import (
	"bytes"
	"debug/elf"
	_ "embed"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/heap/core/crash"
)

// sigframe describes one kind of signal frame: the trampoline that a handler returns to, and
// the location of the interrupted registers.
type sigframe struct {
	code [][]byte // instructions; the trampoline may be stopped at any of them
	// at is the offset of the machine context from the stack pointer. If pointer is true, it
	// is the offset of a pointer, and the context begins bytes after the pointer's target.
	at      uint64
	pointer bool
	then    uint64
	pc      uint64         // offset in the context
	size    uint64         // size of a register in the context
	regs    map[int]uint64 // DWARF number → offset
	thumb   uint64         // offset of CPSR, 0 if none
}

//go:embed tables/signals.txt
var signalText string

// sigframes returns the signal frames of Linux on a machine, those of the table signals.txt.
func (a *machine) sigframes() (list []sigframe) {
	for line := range strings.Lines(signalText) {
		f := strings.Fields(line)
		if f[0] != a.name || f[1] != strconv.FormatUint(a.word, 10) {
			continue
		}
		at, then, pointer := strings.Cut(f[4], "+")
		s := sigframe{at: offset(at), pointer: pointer, then: offset(then), pc: offset(f[5]), thumb: offset(f[6]), size: offset(f[7]), regs: map[int]uint64{}}
		for text := range strings.SplitSeq(f[3], "/") {
			code, _ := hex.DecodeString(text)
			if a.code.Uint16([]byte{1, 0}) == 1 {
				for unit := range slices.Chunk(code, int(offset(f[2]))) {
					slices.Reverse(unit)
				}
			}
			s.code = append(s.code, code)
		}
		n := offset(f[8])
		for _, regs := range f[9:] {
			first, last, many := strings.Cut(regs, "-")
			if !many {
				last = first
			}
			for r := offset(first); r <= offset(last); r++ {
				if regs != "." {
					s.regs[int(r)] = n
				}
				n += s.size
			}
		}
		list = append(list, s)
	}
	return list
}

// offset parses a number, 0 if it is none.
func offset(s string) uint64 {
	v, _ := strconv.ParseUint(s, 10, 64)
	return v
}

// memoryCode returns up to n bytes of code at pc, from a file if possible, else from
// memory.
func (w *walker) memoryCode(pc uint64, n int) []byte {
	if m := w.module(pc); m != nil {
		b := m.code(pc - m.Bias)
		return b[:min(n, len(b))]
	}
	b := make([]byte, n)
	got := w.Memory.Read(b, pc)
	return b[:max(0, min(got, n))]
}

// trampolineAt returns the kind of signal frame whose trampoline is at pc, and if inside, also in which pc is at a later
// instruction; n is the number of instructions before pc.
func (w *walker) trampolineAt(pc uint64, inside bool) (f *sigframe, n int) {
	if !w.trampolines {
		w.trampolines, w.frames = true, w.arch.sigframes()
	}
	for i := range w.frames {
		f := &w.frames[i]
		at := w.arch.addr(pc)
		for n, c := range f.code {
			if n > 0 && !inside {
				break
			}
			if bytes.HasPrefix(w.memoryCode(at, maxCode), bytes.Join(f.code, nil)) {
				return f, n
			}
			at -= uint64(len(c))
		}
	}
	return nil, 0
}

func (w *walker) isTrampoline(pc uint64) bool {
	f, _ := w.trampolineAt(pc, false)
	return w.excReturn(pc) || f != nil
}

// excReturn reports whether pc is an EXC_RETURN, the return address of an exception
// handler on a Cortex-M. It returns false for 0xffffffff, the value of lr after a reset.
func (w *walker) excReturn(pc uint64) bool {
	return w.arch.machine == elf.EM_ARM && pc&0xffffff82 == 0xffffff80
}

// stepException returns the registers that a Cortex-M pushed at an exception: r0 to r3,
// r12, lr, pc, xPSR, then floating-point registers. The other registers are unchanged.
// The stack of a thread (PSP) is only known if it is the current one.
//
//	EXC_RETURN   1111 1111 1111 1111 1111 1111 1 ... F ... S 0 E
//	             F: 0 with floating point, S: 1 on PSP, E: 0 in the non-secure state
func (w *walker) stepException(pc, sp uint64, regs *Regs) (out Regs, ok bool) {
	if pc&4 != 0 {
		psp, known := w.start.Get(armPSP) // handlers do not change it
		if !known {
			return out, false
		}
		sp = psp
	}
	frame, ok := crash.Interrupted(crash.Thread{}, sp, pc&0x10 == 0, func(addr, n uint64) []byte {
		b := make([]byte, n)
		return b[:w.Memory.Read(b, addr)]
	})
	if !ok { // not Thumb: not the frame of a Cortex-M
		return out, false
	}
	out = *regs
	for r, v := range frame.Regs {
		out.Set(r, w.arch.mask(v))
	}
	out.PC = frame.PC | 1
	return out, true
}

// stepSignal returns the interrupted registers, if pc is in the trampoline of a signal
// handler.
func (w *walker) stepSignal(pc, sp uint64, regs *Regs) (out Regs, ok bool) {
	a := w.arch
	if w.excReturn(pc) {
		return w.stepException(pc, sp, regs)
	}
	f, n := w.trampolineAt(pc, true)
	if f == nil {
		return out, false
	}
	if n > 0 && len(f.code) == 3 {
		sp -= a.word // the POP of i386
	}
	at := a.mask(sp + f.at)
	if f.pointer {
		v, ok := w.word(at)
		if !ok {
			return out, false
		}
		at = v + f.then
	}
	pc, ok = w.number(a.mask(at+f.pc), int(f.size))
	if !ok {
		return out, false
	}
	for r, off := range f.regs {
		if v, ok := w.number(a.mask(at+off), int(f.size)); ok {
			out.Set(r, a.mask(v))
		}
	}
	if f.thumb != 0 {
		if cpsr, ok := w.number(a.mask(at+f.thumb), 4); ok && cpsr&0x20 != 0 {
			pc |= 1
		}
	}
	out.PC = a.mask(pc)
	_, ok = out.Get(a.sp)
	return out, ok
}

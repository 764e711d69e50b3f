package unwind

import (
	"debug/elf"
	"encoding/binary"
)

const elfMIPS = elf.EM_MIPS

// How is the way a frame was found.
type How uint8

const (
	HowRegisters    How = iota // the thread's registers
	HowSignal                  // registers that the kernel saved for a signal handler
	HowCFI                     // .debug_frame or .eh_frame
	HowExidx                   // .ARM.exidx
	HowPrologue                // code from the function's start
	HowEpilogue                // code up to a return
	HowFramePointer            // the frame pointer that the function sets
	HowScan                    // a word of the stack that follows a call: a guess
)

var howNames = [...]string{"registers", "signal", "cfi", "exidx", "prologue", "epilogue", "frame-pointer", "scan"}

// String returns the name of the way a frame was found.
func (h How) String() string {
	if int(h) < len(howNames) {
		return howNames[h]
	}
	return "?"
}

// Frame is one function on the stack.
type Frame struct {
	PC     uint64 // the next instruction; of all but the first a return address
	SP     uint64
	How    How
	Signal bool    // interrupted by a signal: PC is no return address
	Module *Module // nil if no module holds PC
}

// Lookup returns the address by which to name the frame: inside the call, not
// behind it.
func (f *Frame) Lookup() uint64 {
	pc := f.PC
	if f.Module != nil {
		pc = f.Module.Object.arch.addr(pc)
	}
	if f.How == HowRegisters || f.Signal || pc == 0 {
		return pc
	}
	return pc - 1
}

// Module is an object at the place where it is loaded.
type Module struct {
	*Object
	Bias uint64 // address in memory minus address in the file
}

func (m *Module) holds(pc uint64) bool { return m.inText(pc - m.Bias) }

// Memory reads the image: it fills b from addr on and returns how many bytes of
// it, from the first on, are known.
type Memory interface {
	Read(b []byte, addr uint64) int
}

// Unwinder walks the stacks of one image. It is for one goroutine at a time.
type Unwinder struct {
	Memory  Memory
	Modules []*Module
	// NoTables leaves unwind tables unused, NoScan the scan for return addresses.
	NoTables, NoScan bool
	// MaxFrames bounds a stack, 0: 1024.
	MaxFrames int
	// Exhausted reports that the stacks took more time than those of an image may: the
	// last ones end early.
	Exhausted bool

	pops map[uint64]int64
	used int // of maxWalks
}

// walker is the walk of one stack.
type walker struct {
	*Unwinder
	arch  *machine
	low   uint64 // of the stack: below it nothing is read
	left  int    // instructions that may still be followed
	thumb bool
	inst  inst

	trampolines bool // frames is filled in
	frames      []sigframe
}

// maxWalk bounds the instructions, of the machine and of call frame information,
// that are followed for one stack, maxWalks those for all stacks of an image. Stacks of
// programs as compilers make them need 2,000 to 30,000 each without tables, a few with them.
const (
	maxWalk  = 1 << 20
	maxWalks = 8 << 20
)

// spend takes n from what is left of both, and reports whether it was there.
func (w *walker) spend(n int) bool {
	w.left -= n
	w.used += n
	if w.used > maxWalks {
		w.Exhausted = true
	}
	return w.left >= 0 && !w.Exhausted
}

// maxStack bounds the bytes of one stack.
const maxStack = 64 << 20

// Walk returns the frames of the thread with the given registers, the innermost
// first; the first is regs itself.
func (u *Unwinder) Walk(machine elf.Machine, class elf.Class, order binary.ByteOrder, regs Regs) []Frame {
	a := archOf(machine, class, order)
	if a == nil {
		return nil
	}
	if u.pops == nil {
		u.pops = map[uint64]int64{}
	}
	w := &walker{Unwinder: u, arch: a, left: maxWalk}
	w.low, _ = regs.Get(a.sp)
	limit := u.MaxFrames
	if limit <= 0 {
		limit = 1024
	}
	sp, _ := regs.Get(a.sp)
	frames := []Frame{{PC: regs.PC, SP: sp, How: HowRegisters, Module: w.module(a.addr(regs.PC))}}
	cur := frames[0]
	for len(frames) < limit && w.spend(10) {
		next, how, ok := w.step(&cur, &regs)
		if !ok || next.PC == 0 {
			break
		}
		sp, _ := next.Get(a.sp)
		if sp < cur.SP && how != HowSignal || sp == cur.SP && next.PC == cur.PC ||
			sp == cur.SP && len(frames) > 2 && frames[len(frames)-2].SP == sp {
			break
		}
		if how == HowSignal { // cur is the trampoline: the kernel's registers replace what led to it
			w.low = min(w.low, sp)
		}
		cur = Frame{PC: next.PC, SP: sp, How: how, Signal: how == HowSignal, Module: w.module(a.addr(next.PC))}
		if cur.Module == nil && !w.isTrampoline(next.PC) {
			break
		}
		if a.ra >= 0 && how != HowSignal {
			next.Forget(a.ra) // the call changed it
		}
		frames = append(frames, cur)
		regs = next
	}
	return frames
}

// step finds the caller of cur.
func (w *walker) step(cur *Frame, regs *Regs) (Regs, How, bool) {
	a := w.arch
	if out, ok := w.stepSignal(a.addr(cur.PC), cur.SP, regs); ok {
		return out, HowSignal, true
	}
	m := cur.Module
	if m == nil {
		return w.lost(cur, regs)
	}
	w.thumb = a.machine == elf.EM_ARM && cur.PC&1 != 0
	pc := a.addr(cur.PC) - m.Bias
	look := pc
	if cur.How != HowRegisters && !cur.Signal && look > 0 {
		look--
	}
	if !w.NoTables && m.exidx.data != nil && (cur.How == HowRegisters || cur.Signal) && m.debug.find(look) == nil {
		// EHABI's tables hold at calls only; this frame is stopped anywhere.
		if out, how, sure := w.stepCode(m, cur, pc, look, regs); sure >= fits {
			return out, how, true
		}
	}
	if !w.NoTables {
		if out, how, done, ok := w.stepTables(m, look, regs); done {
			return out, how, false
		} else if ok {
			return out, how, true
		}
	}
	if start, _, ok := m.startOf(look); ok && m.entry != 0 && start == a.addr(m.entry) && look-start < 256 {
		return Regs{}, 0, false
	}
	if out, how, sure := w.stepCode(m, cur, pc, look, regs); sure > unfit {
		return out, how, true
	}
	if out, ok := w.stepFramePointer(m, pc, regs); ok {
		return out, HowFramePointer, true
	}
	if w.NoScan {
		return Regs{}, 0, false
	}
	out, ok := w.scan(m, look, regs)
	return out, HowScan, ok
}

// stepTables tries the unwind tables.
func (w *walker) stepTables(m *Module, look uint64, regs *Regs) (out Regs, how How, done, ok bool) {
	for _, t := range []*frameTable{m.debug, m.eh} {
		if f := t.find(look); f != nil {
			at := look
			if p := w.arch.addr(regs.PC) - m.Bias; f.cie.signal {
				at = p
			}
			out, done, ok := w.stepCFI(f, regs, 0, at)
			if ok {
				return out, HowCFI, done, !done
			}
		}
	}
	if m.exidx.data != nil {
		if out, ok := w.stepExidx(m, look, regs); ok && (w.follows(out.PC) || w.isTrampoline(out.PC)) {
			return out, HowExidx, false, true
		}
	}
	return out, 0, false, false
}

// verdict says how well a return address fits.
type verdict int

const (
	unfit  verdict = iota
	weak           // follows a call of another function: fits if that one jumped here
	fits           // follows a call of something
	strong         // follows a call of this very function
)

// judge reports how well ra fits as return address of the function at start.
func (w *walker) judge(m *Module, start uint64, known bool, ra uint64) verdict {
	if !w.follows(ra) {
		if w.isTrampoline(ra) {
			return fits
		}
		return unfit
	}
	target, ok := w.callTarget(ra)
	switch {
	case !ok:
		return fits
	case known && w.arch.addr(target) == start+m.Bias:
		return strong
	}
	if t := w.module(w.arch.addr(target)); t != nil && t.inPLT(w.arch.addr(target)-t.Bias) {
		return fits
	}
	if !known {
		return fits
	}
	return weak
}

// believe is judge for a caller found in the code. A return address that is still in
// its register may be left there by a call that has returned.
func (w *walker) believe(m *Module, cur *Frame, start uint64, known bool, look uint64, out *Regs) verdict {
	v := w.judge(m, start, known, out.PC)
	sp, _ := out.Get(w.arch.sp)
	if w.arch.ra < 0 || sp != cur.SP || v == strong || !known {
		return v
	}
	if _, direct := w.callTarget(out.PC); direct && v == weak {
		return unfit
	}
	ra := w.arch.addr(out.PC) - m.Bias
	if s, _, ok := m.startOf(ra - 1); ok && s == start && m.inText(ra-1) {
		return unfit
	}
	return v
}

// stepCode finds the caller by reading the function's code, and how sure that is.
func (w *walker) stepCode(m *Module, cur *Frame, pc, look uint64, regs *Regs) (Regs, How, verdict) {
	m.findStarts()
	a := w.arch
	start, end, known := m.startOf(look)
	var byStart Regs
	startVerdict := unfit
	if known {
		if s, guessed, ok := w.prologue(m, start, end, pc, span{}); ok {
			if out, ok := w.callerOf(s, regs); ok {
				byStart = out
				startVerdict = w.believe(m, cur, start, known, look, &out)
				if startVerdict == strong {
					return out, HowPrologue, strong
				}
				if out.PC == 0 && m.symbols {
					return out, HowPrologue, strong // the outermost frame of a thread
				}
				if guessed && !m.symbols {
					startVerdict = min(startVerdict, weak)
				}
			}
		}
	}
	var best Regs
	bestVerdict := unfit
	agreed, tries := false, 0
	w.epilogue(m, pc, regs, func(out Regs) bool {
		v := w.believe(m, cur, start, known, look, &out)
		sp, _ := out.Get(a.sp)
		if sp < cur.SP {
			return false
		}
		if v > bestVerdict {
			best, bestVerdict = out, v
		}
		sp2, _ := byStart.Get(a.sp)
		agreed = agreed || startVerdict > unfit && sp == sp2 && out.PC == byStart.PC
		tries++
		return v >= fits || agreed || tries >= 8
	})
	switch {
	case agreed && (startVerdict == strong || bestVerdict == strong):
		merge(&byStart, &best)
		return byStart, HowPrologue, max(startVerdict, fits)
	case bestVerdict == strong:
		return best, HowEpilogue, strong
	}
	if out, ok := w.stepEarlier(m, start, end, pc, known, regs); ok {
		return out, HowPrologue, strong
	}
	// Nothing names the function that we are in. What is seldom run may stand
	// apart from it, and what stands behind a call that does not return is of
	// another function.
	if out, v := w.stepPart(m, pc, look, regs); v == strong || bestVerdict == unfit && startVerdict == unfit {
		return out, HowPrologue, v
	}
	switch {
	case agreed:
		merge(&byStart, &best)
		return byStart, HowPrologue, max(startVerdict, fits)
	case startVerdict >= bestVerdict && startVerdict > unfit:
		return byStart, HowPrologue, startVerdict
	case m.symbols && startVerdict > unfit:
		return byStart, HowPrologue, startVerdict
	case bestVerdict > unfit:
		return best, HowEpilogue, bestVerdict
	}
	return Regs{}, 0, unfit
}

// stepEarlier tries the functions that begin before start, which may be none: a byte
// that looks like a call names it.
func (w *walker) stepEarlier(m *Module, start, end, pc uint64, known bool, regs *Regs) (out Regs, ok bool) {
	for n := 0; known && !m.symbols && n < 4 && start > 0; n++ {
		if start, _, known = m.startOf(start - 1); !known {
			break
		}
		s, guessed, ok := w.prologue(m, start, end, pc, span{})
		if !ok || guessed {
			continue
		}
		if out, ok := w.callerOf(s, regs); ok && w.judge(m, start, true, out.PC) == strong {
			return out, true
		}
	}
	return out, false
}

// maxPart is how far before an address the part of a function that it is in may
// begin, in bytes; maxParts how many are tried.
const (
	maxPart  = 4096
	maxParts = 16
)

// stepPart finds the caller where compilers moved what is seldom run out of the
// function, as calls that do not return: by the jump that leads to it.
func (w *walker) stepPart(m *Module, pc, look uint64, regs *Regs) (Regs, verdict) {
	for _, j := range m.jumpsTo(look-min(look, maxPart), look, maxParts) {
		start, end, ok := m.startOf(j.from)
		if !ok || start <= look && look < end && !m.symbols {
			continue
		}
		s, guessed, ok := w.prologue(m, start, end, pc, span{j.to, look + 1})
		if !ok || guessed {
			continue
		}
		if out, ok := w.callerOf(s, regs); ok {
			if v := w.judge(m, start, true, out.PC); v > weak {
				return out, v
			}
		}
	}
	return Regs{}, unfit
}

// merge adds to r what only s knows.
func merge(r, s *Regs) {
	for n := range maxReg {
		if _, ok := r.Get(n); !ok {
			if v, ok := s.Get(n); ok {
				r.Set(n, v)
			}
		}
	}
}

package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"
)

const elfMIPS = elf.EM_MIPS

// How identifies the rule by which a frame was found.
type How uint8

const (
	HowRegisters How = iota // the thread's registers
	HowSignal               // registers that the kernel saved for a signal handler
	HowCFI                  // .debug_frame or .eh_frame
	HowExidx                // .ARM.exidx
	HowPrologue             // code from the function's start
	HowEpilogue             // code up to a return
	HowWindow               // registers that Xtensa's windows stored on the stack
	HowScan                 // a word of the stack that follows a call: a guess
)

var howNames = [...]string{"registers", "signal", "cfi", "exidx", "prologue", "epilogue", "window", "scan"}

// String returns the name of h.
func (h How) String() string {
	if int(h) < len(howNames) {
		return howNames[h]
	}
	return "?"
}

// Frame is one function on the stack.
type Frame struct {
	PC     uint64 // the next instruction; a return address except in the first frame
	SP     uint64
	How    How
	Signal bool    // interrupted by a signal: PC is not a return address
	Module *Module // nil if no module holds PC

	// Trampoline reports whether a signal handler returns to this frame, code of the C
	// library or the kernel that often has no symbol.
	Trampoline bool
}

// Lookup returns the address to symbolize for the frame: inside the call, not after it.
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

// Module is an object at its load address.
type Module struct {
	*Object
	Bias uint64 // address in memory minus address in the file
}

func (m *Module) holds(pc uint64) bool { return m.inText(pc - m.Bias) }

// Memory reads the image. Read copies memory that begins at addr into b, up to the first
// unknown byte, and returns the number of bytes copied.
type Memory interface {
	Read(b []byte, addr uint64) int
}

// Unwinder walks the stacks of one image. It must not be used by several goroutines at
// once.
type Unwinder struct {
	Memory  Memory
	Modules []*Module
	// NoTables disables unwind tables, NoScan the scan for return addresses.
	NoTables, NoScan bool
	// MaxFrames limits the number of frames of a stack; 0 means 1024.
	MaxFrames int
	// Exhausted reports whether the limit on work for an image was exceeded; the last stacks
	// then end early.
	Exhausted bool
	// Beyond is where the last stack walked goes on, in code of no module; 0 if it ends.
	Beyond uint64

	pops      map[uint64]int64
	prologues map[path]reached
	confirmed map[place]bool
	used      int // work so far; at most maxWalks
}

// walker is the walk of one stack.
type walker struct {
	*Unwinder
	arch   *machine
	low    uint64 // lowest address of the stack that is read
	passed []span // parts of stacks that were already walked
	left   int    // remaining instructions for this stack
	steps  int    // remaining instructions for the next caller
	thumb  bool
	inst   inst
	start  Regs // of the thread

	trampolines bool // frames is filled in
	frames      []sigframe
}

// maxWalk limits the number of instructions, of the machine and of call frame information,
// that are followed for one stack; maxWalks limits their number for all stacks of an image.
// A stack of a compiled program needs 2,000 to 30,000 without tables, and a few with tables.
const (
	maxWalk  = 1 << 20
	maxWalks = 8 << 20
)

// spend subtracts n from both limits, and reports whether they allow it.
func (w *walker) spend(n int) bool {
	w.left -= n
	w.used += n
	if w.used > maxWalks || w.left < 0 {
		w.Exhausted = true
	}
	return w.left >= 0 && w.used <= maxWalks
}

// maxStack is the size of the largest stack, in bytes.
const maxStack = 64 << 20

// Walk returns the frames of the thread with the given registers, innermost first. The
// first frame has the program counter of regs.
func (u *Unwinder) Walk(machine elf.Machine, class elf.Class, order binary.ByteOrder, regs Regs) []Frame {
	u.Beyond = 0
	a := archOf(machine, class, order)
	if a == nil {
		return nil
	}
	if u.pops == nil {
		u.pops, u.prologues, u.confirmed = map[uint64]int64{}, map[path]reached{}, map[place]bool{}
	}
	w := &walker{Unwinder: u, arch: a, left: maxWalk}
	w.low, _ = regs.Get(a.sp)
	w.start = regs
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
		if how == HowSignal && !w.interrupted(cur.SP, sp) {
			break
		}
		frames[len(frames)-1].Trampoline = how == HowSignal
		cur = Frame{PC: next.PC, SP: sp, How: how, Signal: how == HowSignal, Module: w.module(a.addr(next.PC))}
		if before := w.module(a.addr(next.PC) - 1); how != HowSignal && before != nil {
			cur.Module = before // a call that does not return may be the last instruction
		}
		if cur.Module == nil && how != HowWindow && !w.isTrampoline(next.PC) { // windows need no code
			w.Beyond = a.addr(next.PC)
			break
		}
		if how != HowSignal && how != HowWindow && w.setUp(&cur) {
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

// setUp reports whether the return address of a frame is one that was put on a new stack: the start of a function
// that no call precedes, such as that for tasks that return, or for contexts of makecontext.
func (w *walker) setUp(f *Frame) bool {
	pc := w.arch.addr(f.PC)
	m := w.module(pc)
	return m != nil && m.begins(pc-m.Bias) && len(m.before(pc-m.Bias, 1)) > 0 && !w.follows(f.PC) && !w.isTrampoline(f.PC)
}

// interrupted continues the walk on the stack that a signal or an exception interrupted.
// from is the stack pointer at the handler's trampoline, sp the stack pointer of the
// interrupted code. The handler may run on a separate stack anywhere in memory. So that no
// stack is walked twice, interrupted returns false if the walk has already passed sp.
func (w *walker) interrupted(from, sp uint64) bool {
	if !w.stackAt(sp) {
		return false
	}
	w.passed = append(w.passed, span{w.low, max(from, w.low) + 1})
	if slices.ContainsFunc(w.passed, func(s span) bool { return s.holds(sp) }) {
		return false
	}
	w.low = sp
	return true
}

// maxGuard is the most bytes that an overflowing stack pointer is below the stack: the gap that
// Linux keeps free below a stack, and as much for a large frame.
const maxGuard = 2 << 20

// stackAt reports whether sp is on a stack, or below one that overflowed.
func (w *walker) stackAt(sp uint64) bool {
	const page = 4096
	if _, mapped := w.word(sp); mapped {
		return true
	}
	for at := sp&^(page-1) + page; at > sp && at-sp < maxGuard; at += page {
		if _, mapped := w.word(at); mapped {
			return true
		}
	}
	return false
}

// step finds the caller of cur.
func (w *walker) step(cur *Frame, regs *Regs) (Regs, How, bool) {
	a := w.arch
	if out, ok := w.stepSignal(a.addr(cur.PC), cur.SP, regs); ok {
		return out, HowSignal, true
	}
	if a.machine == elf.EM_XTENSA {
		out, ok := w.stepWindow(regs)
		return out, HowWindow, ok
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
		// The tables of EHABI are valid only at calls; this frame is stopped at any
		// instruction.
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

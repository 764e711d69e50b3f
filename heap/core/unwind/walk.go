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
	HowRegisters    How = iota // the thread's registers
	HowSignal                  // registers that the kernel saved for a signal handler
	HowCFI                     // .debug_frame or .eh_frame
	HowExidx                   // .ARM.exidx
	HowPrologue                // code from the function's start
	HowEpilogue                // code up to a return
	HowFramePointer            // the frame pointer that the function sets
	HowWindow                  // registers that Xtensa's windows stored on the stack
	HowScan                    // a word of the stack that follows a call: a guess
)

var howNames = [...]string{"registers", "signal", "cfi", "exidx", "prologue", "epilogue", "frame-pointer", "window", "scan"}

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

// setUp reports whether the return address of a frame is one that a kernel put on a new stack: the start of a function,
// such as that for tasks that return, which no call precedes.
func (w *walker) setUp(f *Frame) bool {
	pc := w.arch.addr(f.PC)
	m := w.module(pc)
	return m != nil && m.isStart(pc-m.Bias) && len(m.before(pc-m.Bias, 1)) > 0 && !w.follows(f.PC) && !w.isTrampoline(f.PC)
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

// verdict rates a return address.
type verdict int

const (
	unfit  verdict = iota
	weak           // follows a call of another function, which may have jumped to this one
	fits           // follows a call with an unknown target
	strong         // follows a call of this function
)

// judge returns a verdict on ra as the return address of the function at start.
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

// believe returns the verdict on a caller found by reading code. It is like judge, but also
// considers that a return address in a register may be left over from an earlier call.
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

// candidate is a possible caller, and how well it fits.
type candidate struct {
	regs Regs
	fit  verdict
}

// stepCode finds the caller by reading the function's code, and returns how well it fits.
func (w *walker) stepCode(m *Module, cur *Frame, pc, look uint64, regs *Regs) (Regs, How, verdict) {
	m.findStarts()
	start, end, known := m.startOf(look)
	f := function{m: m, start: start, end: end, known: known}
	byStart, exact := w.byStart(&f, cur, pc, look, regs)
	outermost := exact && byStart.regs.PC == 0 && m.symbols
	if byStart.fit == strong || exact && byStart.fit == fits && w.confirmed[place{m, pc}] {
		return byStart.regs, HowPrologue, byStart.fit
	}
	byEnd, both := candidate{}, false
	if !outermost {
		byEnd, both = w.byEnd(&f, cur, pc, look, regs, &byStart)
	}
	switch {
	case both && byEnd.fit == strong:
		merge(&byStart.regs, &byEnd.regs)
		return byStart.regs, HowPrologue, strong
	case byEnd.fit == strong:
		return byEnd.regs, HowEpilogue, strong
	}
	w.steps = maxSteps
	if out, ok := w.stepEarlier(m, start, end, pc, known, regs); ok {
		return out, HowPrologue, strong
	}
	// No direct call leads to this function's start. Compilers move cold code out of a
	// function; code after a noreturn call may belong to the next function.
	if out, v := w.stepPart(m, pc, look, regs); v == strong || v > unfit && !outermost && byEnd.fit == unfit && byStart.fit == unfit {
		return out, HowPrologue, v
	}
	switch {
	case outermost: // the outermost frame of a thread has no caller
		return byStart.regs, HowPrologue, strong
	case both:
		if same := !merge(&byStart.regs, &byEnd.regs); same && exact {
			w.confirm(place{m, pc})
		}
		return byStart.regs, HowPrologue, max(byStart.fit, fits)
	case byStart.fit > unfit && (m.symbols || byStart.fit >= byEnd.fit):
		return byStart.regs, HowPrologue, byStart.fit
	case byEnd.fit > unfit:
		return byEnd.regs, HowEpilogue, byEnd.fit
	}
	return Regs{}, 0, unfit
}

// function is the function of a frame; known reports whether its start is known.
type function struct {
	m          *Module
	start, end uint64
	known      bool
}

// byStart returns the caller according to the code from the start of the function to
// pc. exact reports whether known branches lead to pc.
func (w *walker) byStart(f *function, cur *Frame, pc, look uint64, regs *Regs) (c candidate, exact bool) {
	if !f.known {
		return c, false
	}
	w.steps = maxSteps
	s, guessed, ok := w.prologue(f.m, f.start, f.end, pc, span{})
	if !ok {
		return c, false
	}
	if c.regs, ok = w.callerOf(s, regs); !ok {
		return candidate{}, false
	}
	c.fit = w.believe(f.m, cur, f.start, f.known, look, &c.regs)
	switch a := w.arch; {
	case guessed && !f.m.symbols && c.fit != strong:
		c.fit = min(c.fit, weak)
	case c.fit == unfit && !guessed && f.m.symbols && a.ra >= 0 && s.get(a.ra) == (value{baseReg + a.ra, 0}) && w.follows(c.regs.PC):
		c.fit = weak // no call changed the register: another function jumped to this one
	}
	return c, !guessed
}

// maxTries is the most returns that are tried without a fit.
const maxTries = 8

// byEnd returns the caller according to the code from pc to a return. both reports whether
// that is also the caller in byStart.
func (w *walker) byEnd(f *function, cur *Frame, pc, look uint64, regs *Regs, byStart *candidate) (best candidate, both bool) {
	sp1, _ := byStart.regs.Get(w.arch.sp)
	tries := 0
	w.steps = maxSteps
	w.epilogue(f.m, pc, regs, func(out Regs) bool {
		v := w.believe(f.m, cur, f.start, f.known, look, &out)
		sp, _ := out.Get(w.arch.sp)
		if sp < cur.SP {
			return false
		}
		if v > best.fit {
			best = candidate{out, v}
		}
		both = both || byStart.fit > unfit && sp == sp1 && out.PC == byStart.regs.PC
		tries++
		return v >= fits || both || tries >= maxTries
	})
	return best, both
}

// place is an address in the code of a module.
type place struct {
	m  *Module
	pc uint64
}

// maxPlaces is the size of the caches.
const maxPlaces = 4096

// confirm records that the prologue and the epilogue lead to the same caller at a place.
func (w *walker) confirm(p place) {
	if len(w.confirmed) >= maxPlaces {
		clear(w.confirmed)
	}
	w.confirmed[p] = true
}

// stepEarlier tries the function starts before start, because start may be wrong: it may come
// from bytes that look like a call.
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

// maxPart is the greatest distance in bytes from the start of a moved part of a function to
// an address in it; maxParts limits the number of parts to try.
const (
	maxPart  = 4096
	maxParts = 16
)

// stepPart finds the caller of cold code that the compiler moved out of its function, by
// following the jump from the function to the cold code.
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

// merge adds the registers that only s knows to r, and reports whether there were any.
func merge(r, s *Regs) (added bool) {
	for n := range maxReg {
		if _, ok := r.Get(n); ok {
			continue
		}
		if v, ok := s.Get(n); ok {
			r.Set(n, v)
			added = true
		}
	}
	return added
}

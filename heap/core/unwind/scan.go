package unwind

// maxScan limits the number of words of the stack that are searched for one frame.
const maxScan = 512

// scan finds a return address on the stack: the first word that follows a call of this
// function, else the first that follows a call with an unknown target.
func (w *walker) scan(m *Module, look uint64, regs *Regs) (out Regs, ok bool) {
	a := w.arch
	sp, known := regs.Get(a.sp)
	if !known {
		return out, false
	}
	start, _, knownStart := uint64(0), uint64(0), false
	if m != nil {
		start, _, knownStart = m.startOf(look)
	}
	best := unfit
	for i := range uint64(maxScan) {
		at := a.mask(sp + i*a.word)
		v, have := w.wordAt(at)
		if !have {
			break
		}
		if w.module(a.addr(v)) == nil {
			continue
		}
		if !w.spend(10) {
			break
		}
		if !w.follows(v) {
			continue
		}
		verdict := fits
		if m != nil {
			verdict = w.judge(m, start, knownStart, v)
		}
		if verdict > best {
			best = verdict
			out = Regs{PC: v}
			out.Set(a.sp, at+a.word)
		}
		if best == strong {
			break
		}
	}
	return out, best >= fits
}

// calls reports whether the instruction before ra is a direct call of an address, which may be data.
func (w *walker) calls(ra, addr uint64) bool {
	target, ok := w.callTarget(ra)
	return ok && w.arch.addr(target) == addr
}

// lost finds the caller if the program counter is in no module, such as after a call of a
// wrong address. It assumes that the return address is where a call instruction puts it.
func (w *walker) lost(cur *Frame, regs *Regs) (Regs, How, bool) {
	a := w.arch
	if cur.How != HowRegisters && !cur.Signal {
		return Regs{}, 0, false
	}
	out := *regs
	if a.ra >= 0 {
		ra, ok := regs.Get(a.ra)
		if !ok || !w.follows(ra) {
			return Regs{}, 0, false
		}
		out.PC = a.codePtr(ra)
		return out, HowPrologue, true
	}
	if ra, ok := w.wordAt(cur.SP); ok && (w.follows(ra) || w.calls(ra, a.addr(cur.PC))) {
		out.PC = ra
		out.Set(a.sp, cur.SP+a.word)
		return out, HowPrologue, true
	}
	if w.NoScan {
		return Regs{}, 0, false
	}
	out, ok := w.scan(nil, 0, regs)
	return out, HowScan, ok
}

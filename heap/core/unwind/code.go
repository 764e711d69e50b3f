package unwind

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

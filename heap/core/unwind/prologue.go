package unwind

import "slices"

// maxSteps limits the number of instructions that are followed to find one caller, in all
// attempts together.
const maxSteps = 60000

// block is an address at which a path continues, with the state there.
type block struct {
	pc    uint64
	cost  int
	state *state
	tail  bool // a tail call, not an address
}

// fork returns a copy of s whose cells can be appended to.
func (s *state) fork() *state {
	s.cells = s.cells[:len(s.cells):len(s.cells)]
	c := *s
	return &c
}

// prologue follows the code from the start of the function to pc, and returns the state at
// pc, relative to the register values at entry. guessed reports that no known branch leads
// to pc, so that a jump with unknown targets is assumed to. part is a part of the function
// that the compiler moved elsewhere, or empty.
func (w *walker) prologue(m *Module, start, end, pc uint64, part span) (at *state, guessed, ok bool) {
	key := path{m, start, end, pc, part, w.thumb}
	if r, seen := w.prologues[key]; seen {
		return r.at, r.guessed, r.ok && w.spend(1)
	}
	at, guessed, ok = w.follow(&follower{path: key})
	if len(w.prologues) >= maxPlaces {
		clear(w.prologues)
	}
	if !w.Exhausted {
		w.prologues[key] = reached{at, guessed, ok}
	}
	return at, guessed, ok
}

// path identifies a walk from the start of a function to pc.
type path struct {
	m              *Module
	start, end, pc uint64
	part           span
	thumb          bool
}

// reached is the cached result for a path. The state must not be changed.
type reached struct {
	at          *state
	guessed, ok bool
}

// follower follows code from the start of a function.
type follower struct {
	path
	w      *walker
	run    runner
	todo   []block
	seen   map[uint64]bool
	table  *state    // state at a jump through a register
	behind addresses // instructions after jumps and returns, up to pc
	out    bool      // the limit on instructions was reached

	// after, if not nil, is called with the state after each call, and the number of calls since the
	// last jump.
	after func(at uint64, s *state, calls int)
}

// follow is prologue without the cache, for the path in f.
func (w *walker) follow(f *follower) (at *state, guessed, ok bool) {
	f.w, f.run, f.seen = w, runner{w: w, word: w.arch.word}, map[uint64]bool{}
	first := &state{}
	for r := range first.regs {
		first.regs[r] = value{baseReg + r, 0}
	}
	if w.arch.machine == elfMIPS { // position-independent code is called through r25
		first.regs[25] = value{baseConst, f.start + f.m.Bias}
	}
	f.todo = []block{{pc: f.start, state: first}}
	for !f.out {
		if len(f.todo) == 0 {
			// All known branches were followed. Assume that a jump table leads to code after
			// some jump, with the state at the jump through the table.
			next := f.behind.next(f.seen)
			if next == 0 || f.table == nil || f.after != nil && f.table.get(w.arch.sp) == (value{baseReg + w.arch.sp, 0}) {
				break // with the stack pointer of its start, the jump is most likely to another function
			}
			guessed = true
			f.todo = append(f.todo, block{pc: next, state: f.table.fork()})
		}
		b := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		if s := f.branch(b.pc, b.state); s != nil {
			return s, guessed, true
		}
	}
	return nil, guessed, false
}

// inside reports whether an address is in the function. For rules, so is code elsewhere that it jumps
// to, if no function starts there.
func (f *follower) inside(at uint64) bool {
	return at >= f.start && at < f.end || f.part.holds(at) || f.after != nil && f.m.inText(at) && !f.m.isStart(at) && !f.m.inPLT(at)
}

// branch follows code from an address, and returns the state at pc if it reaches pc, else nil.
func (f *follower) branch(at uint64, s *state) *state {
	it, calls := 0, 0
	for f.inside(at) || at == f.pc {
		if at == f.pc {
			return s
		}
		if f.seen[at] {
			return nil
		}
		if f.w.steps--; f.w.steps < 0 || !f.w.spend(1) {
			f.out = true
			return nil
		}
		f.seen[at] = true
		d, ok := f.w.do(&f.run, f.m, s, at, &it)
		if !ok {
			return nil
		}
		if d.slot == f.pc && d.slot != 0 {
			return s
		}
		f.leave(&d, s)
		if f.after != nil && d.flow == flowCall {
			f.after(at+d.size, s, calls)
			calls++
		}
		if d.before != nil {
			s = d.before
		}
		if at += d.size; d.ends() {
			if at <= f.pc {
				f.behind.push(at)
			}
			return nil
		}
	}
	return nil
}

// leave adds the targets of an instruction, except the next instruction, to todo.
func (f *follower) leave(d *done, s *state) {
	if d.flow == flowIndirect && d.dest.base == baseConst {
		d.flow, d.target, d.known = flowJump, d.dest.off-f.m.Bias, true
	}
	switch d.flow {
	case flowJump:
		if d.known && f.inside(d.target) && !f.seen[d.target] {
			next := s
			if d.cond {
				next = s.fork()
			}
			f.todo = append(f.todo, block{pc: d.target, state: next})
		}
	case flowCall:
		f.w.call(&f.run, s, f.m, d.target, d.known)
	case flowIndirect:
		if f.table == nil || !d.cond {
			f.table = s.fork()
		}
	}
}

// addresses is a sorted list of addresses.
type addresses []uint64

func (a *addresses) push(x uint64) {
	at, _ := slices.BinarySearch(*a, x)
	*a = slices.Insert(*a, at, x)
}

// next removes and returns the highest address that is not in seen, 0 if there is none.
func (a *addresses) next(seen map[uint64]bool) uint64 {
	for n := len(*a) - 1; n >= 0; n-- {
		x := (*a)[n]
		if *a = (*a)[:n]; !seen[x] {
			return x
		}
	}
	return 0
}

// call applies the effect of a called function to s.
func (w *walker) call(run *runner, s *state, m *Module, target uint64, known bool) {
	run.afterCall(s)
	if w.arch.name == "i386" && known {
		if n := w.calleePops(m, target); n > 0 {
			v := s.get(w.arch.sp)
			if v.base != 0 {
				v.off += uint64(n)
				s.put(w.arch.sp, run.mask(v))
			}
		}
	}
}

// calleePops returns the number of bytes of arguments that a function pops, according to its
// first return instruction.
func (w *walker) calleePops(m *Module, target uint64) int64 {
	if n, ok := w.pops[target+m.Bias]; ok {
		return n
	}
	n := int64(0)
	todo, seen := []uint64{target}, map[uint64]bool{}
	for steps := 0; len(todo) > 0 && steps < 2000; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for !seen[at] && steps < 2000 {
			steps++
			seen[at] = true
			in, ok := w.decode(m, at, false)
			if !ok {
				break
			}
			if in.flow == flowReturn {
				n, todo, steps = in.pops, nil, 2000
				break
			}
			if in.flow == flowJump {
				todo = append(todo, in.target-m.Bias)
			}
			if in.flow == flowStop || in.flow == flowIndirect || in.flow == flowJump && !in.cond {
				break
			}
			at += uint64(in.size)
		}
	}
	if len(w.pops) < 1<<16 {
		w.pops[target+m.Bias] = n
	}
	return n
}

// callerOf returns the registers of the caller. s is the state relative to the start of the
// function.
func (w *walker) callerOf(s *state, regs *Regs) (out Regs, ok bool) {
	a := w.arch
	entry, ok := w.entryOf(s, regs)
	if !ok {
		return out, false
	}
	e := entryValues{w: w, s: s, regs: regs, at: w.savedAt(s, entry)}
	for _, r := range a.saved {
		if v, ok := e.initial(r); ok {
			out.Set(r, v)
		}
	}
	if a.ra < 0 {
		pc, ok := w.wordAt(entry)
		out.PC = a.mask(pc)
		out.Set(a.sp, a.mask(entry+a.word))
		return out, ok
	}
	pc, ok := e.initial(a.ra)
	out.PC = a.codePtr(pc)
	out.Set(a.sp, entry)
	return out, ok
}

// entryOf returns the stack pointer at the start of the function. It computes it from a known
// register whose distance to it is known.
func (w *walker) entryOf(s *state, regs *Regs) (entry uint64, ok bool) {
	a := w.arch
	sp, _ := regs.Get(a.sp)
	for _, r := range append([]int{a.sp, a.fp}, a.saved...) {
		v := s.get(r)
		have, known := regs.Get(r)
		if v.base == baseReg+a.sp && known {
			entry = a.mask(have - v.off)
			return entry, entry >= sp || w.onStack(entry)
		}
	}
	return 0, false
}

// savedAt returns, by register, the address at which the function saved the value that the
// register had at its start.
func (w *walker) savedAt(s *state, entry uint64) map[int]uint64 {
	at := map[int]uint64{}
	for _, c := range s.cells {
		r := c.v.base - baseReg
		if c.at.base != baseReg+w.arch.sp || c.v.base < baseReg || r >= maxReg || c.v.off != 0 || c.size != int(w.arch.word) {
			continue
		}
		if v, ok := s.lookup(c.at, c.size); ok && v == c.v {
			at[r] = w.arch.mask(entry + c.at.off)
		}
	}
	return at
}

// entryValues finds the values of registers at the start of the function.
type entryValues struct {
	w    *walker
	s    *state
	regs *Regs
	at   map[int]uint64 // result of savedAt
}

func (e *entryValues) initial(r int) (uint64, bool) {
	// Prefer the value in memory: the path that was followed may leave the register
	// unchanged, although the executed path changed it.
	sp, _ := e.regs.Get(e.w.arch.sp)
	if where, ok := e.at[r]; ok && where >= sp {
		if v, ok := e.w.wordAt(where); ok {
			return v, true
		}
	}
	was := value{baseReg + r, 0}
	if e.s.get(r) == was {
		if v, ok := e.regs.Get(r); ok {
			return v, true
		}
	}
	for other := range maxReg {
		if e.s.regs[other] == was {
			if v, ok := e.regs.Get(other); ok {
				return v, true
			}
		}
	}
	return 0, false
}

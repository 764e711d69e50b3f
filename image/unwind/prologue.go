package unwind

import "container/heap"

// maxSteps bounds the instructions that are followed to find one caller: from its start, to
// its end, and from the starts and parts of functions that it may be instead.
const maxSteps = 60000

// block is a place from which a path goes on.
type block struct {
	pc    uint64
	cost  int
	state *state
}

// fork returns a copy of s whose cells can be appended to.
func (s *state) fork() *state {
	s.cells = s.cells[:len(s.cells):len(s.cells)]
	c := *s
	return &c
}

// prologue follows the code from the function's start to pc and returns what it
// has done by then with the values at entry. guessed: it was not reached along
// known branches, but stands behind a jump whose targets are not known. part is
// code of the function that stands elsewhere, empty for none.
func (w *walker) prologue(m *Module, start, end, pc uint64, part span) (at *state, guessed, ok bool) {
	key := path{m, start, end, pc, part, w.thumb}
	if r, seen := w.prologues[key]; seen {
		return r.at, r.guessed, r.ok && w.spend(1)
	}
	at, guessed, ok = w.follow(m, start, end, pc, part)
	if len(w.prologues) >= maxPlaces {
		clear(w.prologues)
	}
	if !w.Exhausted {
		w.prologues[key] = reached{at, guessed, ok}
	}
	return at, guessed, ok
}

// path is the way from a function's start to pc.
type path struct {
	m              *Module
	start, end, pc uint64
	part           span
	thumb          bool
}

// reached is where a path led. The state must not be changed.
type reached struct {
	at          *state
	guessed, ok bool
}

// follow is prologue for a path that was not followed yet.
func (w *walker) follow(m *Module, start, end, pc uint64, part span) (at *state, guessed, ok bool) {
	run := runner{w: w, word: w.arch.word}
	first := &state{}
	for r := range first.regs {
		first.regs[r] = value{baseReg + r, 0}
	}
	if w.arch.machine == elfMIPS { // position-independent code is called through r25
		first.regs[25] = value{baseConst, start + m.Bias}
	}
	todo := []block{{pc: start, state: first}}
	seen := map[uint64]bool{}
	var table *state     // at a jump through a register
	var behind addresses // instructions up to pc behind jumps and returns
	for {
		if len(todo) == 0 {
			// The branches are exhausted: what stands behind a jump is reached by
			// a table, with the stack as it was at the jump.
			next := behind.next(seen)
			if next == 0 {
				return nil, guessed, false
			}
			from := table
			if from == nil {
				return nil, guessed, false
			}
			guessed = true
			todo = append(todo, block{pc: next, state: from.fork()})
		}
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		at, s := b.pc, b.state
		it := 0
		for at >= start && at < end || part.holds(at) || at == pc {
			if at == pc {
				return s, guessed, true
			}
			if seen[at] {
				break
			}
			if w.steps--; w.steps < 0 || !w.spend(1) {
				return nil, guessed, false
			}
			seen[at] = true
			in, ok := w.decode(m, at, w.thumb)
			if !ok {
				break
			}
			it = w.inIT(in, it)
			jump := in.flow
			size := uint64(in.size)
			target, known := in.target-m.Bias, in.known
			cond, reg, pops := in.cond, in.reg, in.pops
			var before *state // what the instruction would do, if it is conditional
			if jump == flowSyscall {
				if jump = flowNext; run.exits(s) {
					jump = flowStop
				}
			}
			if in.delay && (jump == flowJump || jump == flowIndirect || jump == flowReturn || jump == flowCall) {
				run.apply(s, in)
				if at+size == pc { // in the delay slot
					return s, guessed, true
				}
				slot, ok := w.decode(m, at+size, w.thumb)
				if ok {
					run.apply(s, slot)
					size += uint64(slot.size)
				}
			} else {
				if in.condOps {
					before = s.fork()
				}
				run.apply(s, in)
			}
			if jump == flowIndirect {
				if v := s.get(reg); v.base == baseConst {
					jump, target, known = flowJump, v.off-m.Bias, true
				}
			}
			switch jump {
			case flowJump:
				if known && (target >= start && target < end || part.holds(target)) && !seen[target] {
					next := s
					if cond {
						next = s.fork()
					}
					todo = append(todo, block{pc: target, state: next})
				}
			case flowCall:
				w.call(&run, s, m, target, known, pops)
			case flowIndirect:
				if table == nil || !cond {
					table = s.fork()
				}
			}
			if before != nil {
				s = before
			}
			at += size
			if jump != flowNext && jump != flowCall && !cond {
				if at <= pc {
					heap.Push(&behind, at)
				}
				break
			}
		}
	}
}

// addresses is a heap of addresses, the highest first.
type addresses []uint64

func (a addresses) Len() int           { return len(a) }
func (a addresses) Less(i, j int) bool { return a[i] > a[j] }
func (a addresses) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *addresses) Push(x any)        { *a = append(*a, x.(uint64)) }
func (a *addresses) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// next removes and returns the highest address that was not seen, 0 if there is none.
func (a *addresses) next(seen map[uint64]bool) uint64 {
	for len(*a) > 0 {
		if x := heap.Pop(a).(uint64); !seen[x] {
			return x
		}
	}
	return 0
}

// call does to s what a called function does.
func (w *walker) call(run *runner, s *state, m *Module, target uint64, known bool, _ int64) {
	run.afterCall(s, nil)
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

// calleePops returns how many bytes of arguments a function takes off the stack,
// from its first return.
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

// callerOf turns what the code did since the function's start into the registers
// of the caller.
func (w *walker) callerOf(s *state, regs *Regs) (out Regs, ok bool) {
	a := w.arch
	spBase := baseReg + a.sp
	entry, found := uint64(0), false
	try := func(r int) {
		if v := s.get(r); !found && v.base == spBase {
			if have, known := regs.Get(r); known {
				entry, found = a.mask(have-v.off), true
			}
		}
	}
	try(a.sp)
	try(a.fp)
	for _, r := range a.saved {
		try(r)
	}
	if !found {
		return out, false
	}
	sp, _ := regs.Get(a.sp)
	if entry < sp && !w.onStack(entry) {
		return out, false
	}
	// where initial values are now
	at := map[int]uint64{}
	for _, c := range s.cells {
		if c.at.base != spBase {
			continue
		}
		r := c.v.base - baseReg
		if c.v.base >= baseReg && r < maxReg && c.v.off == 0 && c.size == int(a.word) {
			if v, ok := s.lookup(c.at, c.size); ok && v == c.v {
				at[r] = a.mask(entry + c.at.off)
			}
		}
	}
	initial := func(r int) (uint64, bool) {
		// Memory first: the register may have been left alone on the path that was
		// followed, and changed on the one that was taken.
		if where, ok := at[r]; ok && where >= sp {
			if v, ok := w.wordAt(where); ok {
				return v, true
			}
		}
		if s.get(r) == (value{baseReg + r, 0}) {
			if v, ok := regs.Get(r); ok {
				return v, true
			}
		}
		for other := range maxReg {
			if s.regs[other] == (value{baseReg + r, 0}) {
				if v, ok := regs.Get(other); ok {
					return v, true
				}
			}
		}
		return 0, false
	}
	for _, r := range a.saved {
		if v, ok := initial(r); ok {
			out.Set(r, v)
		}
	}
	if a.ra < 0 {
		pc, ok := w.wordAt(entry)
		if !ok {
			return out, false
		}
		out.PC = a.mask(pc)
		out.Set(a.sp, a.mask(entry+a.word))
		return out, true
	}
	pc, ok := initial(a.ra)
	if !ok {
		return out, false
	}
	out.PC = a.codePtr(pc)
	out.Set(a.sp, entry)
	return out, true
}

package unwind

import "slices"

// paths are paths to continue, those with the lowest cost last.
type paths []block

func (p *paths) push(b block) {
	at, _ := slices.BinarySearchFunc(*p, b.cost, func(x block, cost int) int { return cost - x.cost })
	*p = slices.Insert(*p, at, b)
}

func (p *paths) pop() (b block) {
	last := len(*p) - 1
	b, *p = (*p)[last], (*p)[:last]
	return b
}

// Costs of continuing a path, in instructions: after a call, which may not return, and after
// a jump through a register, if it is treated as a tail call.
const (
	costCall = 40
	costTail = 2000
)

// maxBranches limits the size of a heap of paths, maxReturns the number of returns to try.
const (
	maxBranches = 4096
	maxReturns  = 16
)

// leaver follows code to returns.
type leaver struct {
	w       *walker
	m       *Module
	pc      uint64
	run     runner
	todo    paths
	seen    map[uint64]bool
	try     func(Regs) bool
	returns int
	stop    bool
}

// epilogue follows the code from pc to returns, and calls try with the registers after each
// return, until try returns true. It steps over calls, and tries paths with fewer calls first.
func (w *walker) epilogue(m *Module, pc uint64, regs *Regs, try func(Regs) bool) {
	l := leaver{w: w, m: m, pc: pc, run: runner{w: w, word: w.arch.word}, seen: map[uint64]bool{}, try: try}
	s := &state{}
	for r := range s.regs {
		if v, ok := regs.Get(r); ok {
			s.regs[r] = value{baseConst, v}
		}
	}
	for l.todo = (paths{{pc: pc, state: s}}); len(l.todo) > 0 && !l.stop; {
		b := l.todo.pop()
		if b.tail {
			if out, ok := w.returned(&l.run, b.state, w.arch.ra, 0); ok && try(out) {
				return
			}
			continue
		}
		l.branch(b)
	}
}

// branch follows the code of one path.
func (l *leaver) branch(b block) {
	at, s, cost, it := b.pc, b.state, b.cost, 0
	for !l.seen[at] && !l.stop {
		if l.w.steps--; l.w.steps < 0 || len(l.todo) > maxBranches || !l.w.spend(1) {
			l.stop = true
			return
		}
		l.seen[at] = true
		d, ok := l.w.do(&l.run, l.m, s, at, &it)
		if !ok {
			return
		}
		cost += 1 + l.leave(&d, s, cost+1)
		if d.flow == flowCall && l.m.isStart(at+d.size) { // the call is the function's last instruction
			d.flow = flowStop
		}
		if d.before != nil {
			s = d.before
		}
		at += d.size
		if d.ends() || d.flow == flowNext && l.m.isStart(at) && at != l.pc { // padding after a call that does not return
			return
		}
		if len(l.todo) > 0 && d.flow != flowNext {
			l.todo.push(block{pc: at, cost: cost, state: s})
			return
		}
	}
}

// leave adds the targets of an instruction, except the next instruction, to the heap. It
// returns the additional cost of continuing with the next instruction.
func (l *leaver) leave(d *done, s *state, cost int) (more int) {
	a := l.w.arch
	if at := a.addr(d.dest.off) - l.m.Bias; d.flow == flowIndirect && d.dest.base == baseConst && l.m.inText(at) {
		d.flow, d.target, d.known = flowJump, at, true
	}
	switch d.flow {
	case flowReturn:
		if out, ok := l.w.returned(&l.run, s, d.reg, d.pops); ok {
			l.returns++
			l.stop = l.try(out) || l.returns > maxReturns
		}
	case flowIndirect:
		// A tail call: the callee returns to the caller of this function.
		if cost < costTail {
			t := s.fork()
			if out, ok := l.w.returned(&l.run, t, a.ra, 0); ok && l.w.follows(out.PC) {
				l.todo.push(block{tail: true, cost: cost + costTail, state: t})
			}
		}
	case flowJump:
		if d.known && !l.seen[d.target] {
			next := s
			if d.cond {
				next = s.fork()
			}
			l.todo.push(block{pc: d.target, cost: cost, state: next})
		}
	case flowCall:
		l.w.call(&l.run, s, l.m, d.target, d.known)
		return costCall
	}
	return 0
}

// returned returns the registers after a return.
func (w *walker) returned(run *runner, s *state, reg int, pops int64) (out Regs, ok bool) {
	a := w.arch
	sp := s.get(a.sp)
	if sp.base != baseConst {
		return out, false
	}
	pc := s.get(reg)
	if reg < 0 {
		pc = run.read(s, sp, int(a.word))
		sp = run.mask(value{baseConst, sp.off + a.word + uint64(pops)})
	}
	if pc.base != baseConst {
		return out, false
	}
	for _, r := range a.saved {
		if v := s.get(r); v.base == baseConst {
			out.Set(r, v.off)
		}
	}
	out.Set(a.sp, sp.off)
	out.PC = a.codePtr(pc.off)
	return out, true
}

package unwind

import "container/heap"

// paths is a heap of places to go on from, the cheapest first.
type paths []block

func (p paths) Len() int           { return len(p) }
func (p paths) Less(i, j int) bool { return p[i].cost < p[j].cost }
func (p paths) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *paths) Push(x any)        { *p = append(*p, x.(block)) }
func (p *paths) Pop() any {
	last := len(*p) - 1
	b := (*p)[last]
	*p = (*p)[:last]
	return b
}

// Costs of going on, in instructions: behind a call, since it may not return, and
// of taking a jump through a register for a call in tail position.
const (
	costCall = 40
	costTail = 2000
)

// epilogue follows the code from pc to a return and gives the registers after it
// to try, which reports whether to stop. Calls are passed over. Of all paths the one with
// the fewest calls comes first.
func (w *walker) epilogue(m *Module, pc uint64, regs *Regs, try func(Regs) bool) {
	a := w.arch
	run := runner{w: w, word: a.word}
	s := &state{}
	for r := range s.regs {
		if v, ok := regs.Get(r); ok {
			s.regs[r] = value{baseConst, v}
		}
	}
	todo := paths{{pc: pc, state: s}}
	seen := map[uint64]bool{}
	returns := 0
	for len(todo) > 0 {
		b := heap.Pop(&todo).(block)
		at, s, cost := b.pc, b.state, b.cost
		thumb, it := w.thumb, 0
		for !seen[at] {
			if w.steps--; w.steps < 0 || len(todo) > 4096 || !w.spend(1) {
				return
			}
			seen[at] = true
			in, ok := w.decode(m, at, thumb)
			if !ok {
				break
			}
			cost++
			it = w.inIT(in, it)
			jump, size := in.flow, uint64(in.size)
			target, known := in.target-m.Bias, in.known
			cond, reg, pops := in.cond, in.reg, in.pops
			if jump == flowSyscall {
				if jump = flowNext; run.exits(s) {
					jump = flowStop
				}
			}
			var before *state // the instruction, if it is conditional
			if in.condOps {
				before = s.fork()
			}
			run.apply(s, in)
			if in.delay && jump != flowNext {
				dest := s.get(reg) // read before the delay slot
				if slot, ok := w.decode(m, at+size, thumb); ok {
					run.apply(s, slot)
					size += uint64(slot.size)
				}
				if jump == flowIndirect || jump == flowReturn {
					s.put(reg, dest)
				}
			}
			if jump == flowIndirect || jump == flowReturn && reg >= 0 {
				if v := s.get(reg); v.base == baseConst && m.inText(a.addr(v.off)-m.Bias) && jump == flowIndirect {
					jump, target, known = flowJump, a.addr(v.off)-m.Bias, true
				}
			}
			switch jump {
			case flowReturn:
				if out, ok := w.returned(&run, s, reg, pops); ok {
					if returns++; try(out) || returns > 16 {
						return
					}
				}
			case flowIndirect:
				// A call in tail position: what it calls returns to our caller.
				if cost < costTail {
					t := s.fork()
					if out, ok := w.returned(&run, t, a.ra, 0); ok && w.follows(out.PC) {
						heap.Push(&todo, block{pc: 0, cost: cost + costTail, state: t})
					}
				}
			case flowJump:
				if known && !seen[target] {
					next := s
					if cond {
						next = s.fork()
					}
					heap.Push(&todo, block{pc: target, cost: cost, state: next})
				}
			case flowCall:
				w.call(&run, s, m, target, known, pops)
				cost += costCall
				if m.isStart(at + size) { // the call is the function's last instruction
					jump = flowStop
				}
			}
			if before != nil {
				s = before
			}
			at += size
			if jump != flowNext && jump != flowCall && !cond {
				break
			}
			if jump == flowNext && m.isStart(at) && at != pc {
				break // padding behind a call that does not return
			}
			if len(todo) > 0 && jump != flowNext {
				heap.Push(&todo, block{pc: at, cost: cost, state: s})
				break
			}
		}
		if at == 0 && s != nil && cost >= costTail {
			if out, ok := w.returned(&run, s, a.ra, 0); ok && try(out) {
				return
			}
		}
	}
}

// returned returns the registers behind a return.
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

package unwind

// inst is the effect of one machine instruction on registers, stack and control flow.
type inst struct {
	size   int
	ops    []op
	flow   flow
	cond   bool   // may continue with the next instruction
	target uint64 // of a jump or call, if known
	known  bool   // whether target is known
	reg    int    // register with the target, of flowIndirect and flowReturn
	pops   int64  // bytes that a return pops besides the address
	delay  bool   // the next instruction is executed before the jump
	// condOps: if a conditional jump is not taken, ops are not executed either.
	condOps bool
	it      int // the next it instructions are conditional
}

func (in *inst) add(o op)            { in.ops = append(in.ops, o) }
func (in *inst) clear(r int)         { in.add(op{kind: opClear, dst: r}) }
func (in *inst) set(r int, v uint64) { in.add(op{kind: opConst, dst: r, imm: int64(v)}) }
func (in *inst) move(d, s int)       { in.add(op{kind: opAdd, dst: d, src: s}) }
func (in *inst) addImm(d, s int, imm int64) {
	in.add(op{kind: opAdd, dst: d, src: s, imm: imm})
}
func (in *inst) load(d, base int, off int64, size int) {
	in.add(op{kind: opLoad, dst: d, src: base, imm: off, size: size})
}
func (in *inst) store(s, base int, off int64, size int) {
	in.add(op{kind: opStore, dst: s, src: base, imm: off, size: size})
}
func (in *inst) jump(target uint64, cond bool) {
	in.flow, in.target, in.known, in.cond = flowJump, target, true, cond
}
func (in *inst) call(target uint64) { in.flow, in.target, in.known = flowCall, target, true }
func (in *inst) callReg()           { in.flow, in.known = flowCall, false }
func (in *inst) indirect(r int)     { in.flow, in.reg = flowIndirect, r }
func (in *inst) ret(r int)          { in.flow, in.reg = flowReturn, r }

type flow uint8

const (
	flowNext flow = iota
	flowJump
	flowCall
	flowIndirect // a jump through reg: a table, a tail call
	flowReturn   // to the address in reg; -1: to the address on the stack
	flowStop     // does not continue: a trap
	flowSyscall  // does not continue if it is an exit
)

type opKind uint8

const (
	opClear  opKind = iota // dst: unknown
	opConst                // dst = imm
	opAdd                  // dst = src + imm
	opAddReg               // dst = src + src2
	opSubReg               // dst = src - src2
	opAnd                  // dst = src & imm
	opOr                   // dst = src | imm
	opLoad                 // dst = size bytes at src + imm
	opStore                // size bytes at src + imm = dst
)

type op struct {
	kind      opKind
	dst       int
	src, src2 int
	imm       int64
	size      int
}

// noReg is the number of a register whose value is not tracked, zeroReg of one that always is 0.
const (
	noReg   = -1
	zeroReg = -2
)

// tempReg is a temporary register within one instruction.
const tempReg = maxReg - 1

// value is the content of a register, as an offset from a base.
type value struct {
	base int // 0: unknown; baseConst: the number off; else the value at entry of register base-baseReg, plus off
	off  uint64
}

const (
	baseConst  = 1
	baseReg    = 2
	baseReturn = baseReg + maxReg // the return address that a call put on the stack
)

// cell is a value stored in memory, at base + off.
type cell struct {
	at   value
	size int
	v    value
}

// state is what is known about registers and memory at one instruction of a path.
type state struct {
	regs  [maxReg]value
	cells []cell // the last write counts; shared between paths, append only
}

// maxCells limits the number of stores that one path records.
const maxCells = 512

func (s *state) get(r int) value {
	if r == zeroReg {
		return value{base: baseConst}
	}
	if r < 0 || r >= maxReg {
		return value{}
	}
	return s.regs[r]
}

func (s *state) put(r int, v value) {
	if r >= 0 && r < maxReg {
		s.regs[r] = v
	}
}

// lookup returns the value stored at an address, and whether there is one.
func (s *state) lookup(at value, size int) (value, bool) {
	for i := len(s.cells) - 1; i >= 0; i-- {
		c := &s.cells[i]
		if c.at.base != at.base {
			continue
		}
		if c.at.off == at.off && c.size == size {
			return c.v, true
		}
		if int64(c.at.off-at.off) < int64(size) && int64(at.off-c.at.off) < int64(c.size) {
			return value{}, true // overlaps
		}
	}
	return value{}, false
}

// runner executes instructions on states. The values at function entry are either all
// symbolic, to find out where a function saves them, or all real.
type runner struct {
	w    *walker
	word uint64
}

func (m *runner) mask(v value) value {
	v.off = m.w.arch.mask(v.off)
	return v
}

// apply executes the operations of one instruction.
func (m *runner) apply(s *state, in *inst) {
	for i := range in.ops {
		o := &in.ops[i]
		switch o.kind {
		case opClear:
			s.put(o.dst, value{})
		case opConst:
			s.put(o.dst, m.mask(value{baseConst, uint64(o.imm)}))
		case opAdd:
			v := s.get(o.src)
			if v.base != 0 {
				v.off += uint64(o.imm)
			}
			s.put(o.dst, m.mask(v))
		case opAddReg, opSubReg:
			a, b := s.get(o.src), s.get(o.src2)
			if o.kind == opAddReg && a.base == baseConst {
				a, b = b, a
			}
			switch {
			case a.base == 0 || b.base != baseConst:
				a = value{}
			case o.kind == opSubReg:
				a.off -= b.off
			default:
				a.off += b.off
			}
			s.put(o.dst, m.mask(a))
		case opAnd:
			s.put(o.dst, m.and(s.get(o.src), uint64(o.imm)))
		case opOr:
			v := s.get(o.src)
			if v.base == baseConst {
				v.off |= uint64(o.imm)
			} else {
				v = value{}
			}
			s.put(o.dst, m.mask(v))
		case opLoad:
			s.put(o.dst, m.read(s, m.at(s, o), o.size))
		case opStore:
			at := m.at(s, o)
			if at.base == 0 {
				continue
			}
			if len(s.cells) < maxCells {
				v := s.get(o.dst)
				s.cells = append(s.cells[:len(s.cells):len(s.cells)], cell{at, o.size, v})
			}
		}
	}
}

func (m *runner) at(s *state, o *op) value {
	at := s.get(o.src)
	if at.base == 0 {
		return at
	}
	at.off += uint64(o.imm)
	return m.mask(at)
}

// and executes opAnd. It leaves a symbolic stack pointer unchanged if the mask only aligns
// it to a word.
func (m *runner) and(v value, bits uint64) value {
	switch {
	case v.base == baseConst:
		v.off &= bits
		return m.mask(v)
	case v.base == baseReg+m.w.arch.sp && int64(bits) >= -int64(m.word) && int64(bits) < 0:
		return v
	}
	return value{}
}

// read returns a value from memory.
func (m *runner) read(s *state, at value, size int) value {
	if at.base == 0 {
		return value{}
	}
	if v, ok := s.lookup(at, size); ok {
		return v
	}
	if at.base == baseConst && m.w.onStack(at.off) {
		if v, ok := m.w.number(at.off, size); ok {
			return value{baseConst, v}
		}
	}
	a := m.w.arch
	if at.base == baseConst && size == 4 { // a literal among the code
		if b := m.w.memoryCode(at.off, 4); len(b) == 4 && m.w.module(at.off) != nil {
			return value{baseConst, uint64(a.order.Uint32(b))}
		}
	}
	if a.ra < 0 && at == (value{baseReg + a.sp, 0}) && size == int(m.word) {
		return value{baseReturn, 0}
	}
	return value{}
}

// afterCall forgets the registers that a called function may change.
func (m *runner) afterCall(s *state) {
	a := m.w.arch
	sp := s.regs[a.sp]
	var saved [maxReg]value
	for _, r := range a.saved {
		saved[r] = s.regs[r]
	}
	s.regs = saved
	s.regs[a.sp] = sp
}

// exits reports whether a system call ends the thread or the process, or returns
// from a signal handler.
func (m *runner) exits(s *state) bool {
	a := m.w.arch
	v := s.get(a.sysReg)
	if v.base != baseConst {
		return false
	}
	for _, n := range a.exits {
		if v.off == n {
			return true
		}
	}
	return false
}

// inIT marks in as conditional if it is one of the next n instructions after an IT of
// Thumb code, and returns the number of instructions that remain.
func (w *walker) inIT(in *inst, n int) int {
	if n > 0 {
		in.conditional()
		return n - 1
	}
	return in.it
}

// done is the effect of one instruction and its delay slot on a state.
type done struct {
	flow   flow
	size   uint64 // bytes, with the delay slot
	slot   uint64 // address of the delay slot, 0 if there is none
	target uint64 // address in the file
	known  bool   // whether target is known
	cond   bool   // may continue with the next instruction
	reg    int    // register of the target
	dest   value  // of reg, before the delay slot
	pops   int64
	before *state // state if the instruction is not executed; nil if it is unconditional
}

// ends reports whether execution cannot continue after the instruction.
func (d *done) ends() bool { return d.flow != flowNext && d.flow != flowCall && !d.cond }

// do executes the instruction of m at an address on s. it counts the remaining
// instructions of an IT block.
func (w *walker) do(run *runner, m *Module, s *state, at uint64, it *int) (d done, ok bool) {
	in, ok := w.decode(m, at, w.thumb)
	if !ok {
		return d, false
	}
	*it = w.inIT(in, *it)
	d = done{flow: in.flow, size: uint64(in.size), target: in.target - m.Bias, known: in.known, cond: in.cond, reg: in.reg, pops: in.pops}
	if d.flow == flowSyscall {
		if d.flow = flowNext; run.exits(s) {
			d.flow = flowStop
		}
	}
	delay := in.delay && d.flow != flowNext
	if in.condOps {
		d.before = s.fork()
	}
	run.apply(s, in)
	d.dest = s.get(d.reg)
	if !delay {
		return d, true
	}
	d.slot = at + d.size
	if slot, ok := w.decode(m, d.slot, w.thumb); ok {
		run.apply(s, slot)
		d.size += uint64(slot.size)
	}
	if d.flow == flowIndirect || d.flow == flowReturn {
		s.put(d.reg, d.dest)
	}
	return d, true
}

package unwind

import (
	"golang.org/x/arch/x86/x86asm"
)

// gprX86_64 are the DWARF numbers of registers in the order of their encoding. On i386, both are the same.
var gprX86_64 = [16]int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

// x86Groups are the general registers of one size in bytes, in the order of their encoding.
var x86Groups = []struct {
	first, last x86asm.Reg
	n, size     int // number of the first
}{
	{x86asm.RAX, x86asm.R15, 0, 8}, {x86asm.EAX, x86asm.R15L, 0, 4}, {x86asm.AX, x86asm.R15W, 0, 2},
	{x86asm.AL, x86asm.BL, 0, 1}, {x86asm.AH, x86asm.BH, 0, 1}, {x86asm.SPB, x86asm.R15B, 4, 1},
}

// gprX86 returns the DWARF number and the size in bytes of a general register, or noReg
// for another register.
func gprX86(a *machine, r x86asm.Reg) (n, size int) {
	for _, g := range x86Groups {
		if r < g.first || r > g.last {
			continue
		}
		n = g.n + int(r-g.first)
		if a.word == 8 {
			return gprX86_64[n], g.size
		}
		if n < 8 {
			return n, g.size
		}
	}
	return noReg, 0
}

// x86 is an instruction being decoded.
type x86 struct {
	*inst
	a    *machine
	x    x86asm.Inst
	next uint64
	w    int // size of a push in bytes
}

// decodeX86 decodes the instructions that change registers. For unknown instructions it
// clears the first operand.
func decodeX86(a *machine, code []byte, pc uint64, in *inst) bool {
	x, err := x86asm.Decode(code, int(a.word)*8)
	if err != nil {
		return false
	}
	in.size = x.Len
	d := &x86{inst: in, a: a, x: x, next: a.mask(pc + uint64(x.Len)), w: int(a.word)}
	if !d.control() && !d.stack() {
		d.compute()
	}
	return true
}

// reg returns operand i as a register.
func (d *x86) reg(i int) (n, size int) {
	if r, ok := d.x.Args[i].(x86asm.Reg); ok {
		return gprX86(d.a, r)
	}
	return noReg, 0
}

// mem returns operand i as an address relative to a register. known is false if it has
// an index or another segment.
func (d *x86) mem(i int) (base int, off int64, known, isMem bool) {
	m, ok := d.x.Args[i].(x86asm.Mem)
	if !ok {
		return noReg, 0, false, false
	}
	base, size := gprX86(d.a, m.Base)
	known = m.Index == 0 && m.Segment != x86asm.FS && m.Segment != x86asm.GS && size == d.w
	return base, m.Disp, known, true
}

// jumpTarget returns the target of a direct jump or call.
func (d *x86) jumpTarget() (uint64, bool) {
	if rel, ok := d.x.Args[0].(x86asm.Rel); ok {
		return d.a.mask(d.next + uint64(int64(rel))), true
	}
	return 0, false
}

// control decodes jumps, calls and returns.
func (d *x86) control() bool {
	switch op := d.x.Op; op {
	case x86asm.RET, x86asm.LRET:
		d.ret(-1)
		if imm, ok := d.x.Args[0].(x86asm.Imm); ok {
			d.pops = int64(imm) & 0xffff
			if d.w == 8 || d.pops%4 != 0 || d.pops > 1024 { // not written by a compiler: not code
				d.flow = flowStop
			}
		}
	case x86asm.CALL:
		if to, ok := d.jumpTarget(); ok {
			if to == d.next { // reads the program counter
				d.addImm(d.a.sp, d.a.sp, -int64(d.w))
				d.store(noReg, d.a.sp, 0, d.w)
				return true
			}
			d.call(to)
			return true
		}
		d.callReg()
	case x86asm.JMP:
		if to, ok := d.jumpTarget(); ok {
			d.jump(to, false)
			return true
		}
		d.indirect(noReg)
		if r, size := d.reg(0); size == d.w {
			d.inst.reg = r
		}
	case x86asm.HLT, x86asm.UD1, x86asm.UD2, x86asm.INTO, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
		d.flow = flowStop
	case x86asm.INT:
		if imm, ok := d.x.Args[0].(x86asm.Imm); ok && imm == 0x80 {
			d.flow = flowSyscall
			d.clear(0)
			return true
		}
		d.flow = flowStop
	case x86asm.SYSCALL:
		d.flow = flowSyscall
		d.clear(0)
		d.clear(2)
		d.clear(11)
	case x86asm.SYSENTER:
		d.clear(0)
	default:
		to, ok := d.jumpTarget()
		if !ok {
			return false
		}
		d.jump(to, true) // Jcc, LOOP, JCXZ, XBEGIN
	}
	return true
}

// push stores a register, or a value that is not tracked.
func (d *x86) push(r int) {
	d.addImm(d.a.sp, d.a.sp, -int64(d.w))
	d.store(r, d.a.sp, 0, d.w)
}

// stack decodes instructions that change the stack pointer as a side effect.
func (d *x86) stack() bool {
	sp, w := d.a.sp, d.w
	r, size := d.reg(0)
	if size != w {
		r = noReg
	}
	switch d.x.Op {
	case x86asm.PUSH:
		if r == sp { // PUSH stores the old value
			d.move(tempReg, sp)
			r = tempReg
		}
		d.push(r)
	case x86asm.POP:
		d.load(tempReg, sp, 0, w)
		d.addImm(sp, sp, int64(w))
		d.move(r, tempReg)
	case x86asm.PUSHF, x86asm.PUSHFD, x86asm.PUSHFQ:
		d.push(noReg)
	case x86asm.POPF, x86asm.POPFD, x86asm.POPFQ:
		d.addImm(sp, sp, int64(w))
	case x86asm.LEAVE:
		d.move(sp, d.a.fp)
		d.load(d.a.fp, sp, 0, w)
		d.addImm(sp, sp, int64(w))
	default:
		return false
	}
	return true
}

// operands are the first two operands of an instruction whose first operand is not in
// memory.
type operands struct {
	dst, src      int // noReg if not a register
	size, srcSize int // bytes
	whole         bool
	imm           int64
	isImm         bool
}

// x86Writes lists the instructions whose effect is not just to overwrite their first operand.
// A function returns whether it decoded the instruction completely.
var x86Writes = map[x86asm.Op]func(d *x86, o *operands) bool{
	x86asm.CMP:        (*x86).nothing,
	x86asm.TEST:       (*x86).nothing,
	x86asm.BT:         (*x86).nothing,
	x86asm.NOP:        (*x86).nothing,
	x86asm.PAUSE:      (*x86).nothing,
	x86asm.PREFETCHT0: (*x86).nothing,
	x86asm.MOV:        (*x86).mov,
	x86asm.LEA:        (*x86).lea,
	x86asm.ADD:        func(d *x86, o *operands) bool { return d.sum(o, 1, opAddReg) },
	x86asm.SUB:        func(d *x86, o *operands) bool { return d.sum(o, -1, opSubReg) },
	x86asm.INC:        func(d *x86, o *operands) bool { return d.step(o, 1) },
	x86asm.DEC:        func(d *x86, o *operands) bool { return d.step(o, -1) },
	x86asm.AND: func(d *x86, o *operands) bool {
		if o.whole && o.isImm {
			d.add(op{kind: opAnd, dst: o.dst, src: o.dst, imm: o.imm})
		}
		return o.whole && o.isImm
	},
	x86asm.XOR: func(d *x86, o *operands) bool {
		zero := o.dst != noReg && o.dst == o.src && o.size >= 4
		if zero {
			d.set(o.dst, 0)
		}
		return zero
	},
	x86asm.XCHG: func(d *x86, o *operands) bool {
		if o.src != o.dst {
			d.clear(o.src)
		}
		return o.src == o.dst
	},
}

// compute decodes instructions that write to their first operand, and a few that write
// elsewhere.
func (d *x86) compute() {
	var o operands
	o.dst, o.size = d.reg(0)
	o.src, o.srcSize = d.reg(1)
	o.whole = o.size == d.w
	imm, isImm := d.x.Args[1].(x86asm.Imm)
	o.imm, o.isImm = int64(imm), isImm
	if base, off, known, isMem := d.mem(0); isMem {
		d.computeMem(base, off, known, o.src, o.srcSize)
		return
	}
	if do := x86Writes[d.x.Op]; do != nil && do(d, &o) {
		return
	}
	d.sideEffects()
	if o.dst != noReg {
		d.clear(o.dst)
	}
}

func (d *x86) nothing(*operands) bool { return true }

func (d *x86) mov(o *operands) bool {
	base, off, known, isMem := d.mem(1)
	switch {
	case o.dst == noReg:
	case o.isImm && o.size >= 4:
		v := uint64(o.imm)
		if o.size == 4 {
			v &= 0xffffffff
		}
		d.set(o.dst, v)
	case o.whole && o.src != noReg && o.srcSize == d.w:
		d.move(o.dst, o.src)
	case o.whole && isMem && known:
		d.load(o.dst, base, off, d.w)
	default:
		d.clear(o.dst)
	}
	return true
}

func (d *x86) lea(o *operands) bool {
	if o.dst == noReg || !o.whole {
		return false
	}
	base, off, known, _ := d.mem(1)
	if known {
		d.addImm(o.dst, base, off)
	}
	return known
}

// sum decodes ADD and SUB.
func (d *x86) sum(o *operands, sign int64, kind opKind) bool {
	switch {
	case o.whole && o.isImm:
		d.addImm(o.dst, o.dst, sign*o.imm)
	case o.whole && o.src != noReg && o.srcSize == d.w:
		d.add(op{kind: kind, dst: o.dst, src: o.dst, src2: o.src})
	default:
		return false
	}
	return true
}

func (d *x86) step(o *operands, by int64) bool {
	if o.whole {
		d.addImm(o.dst, o.dst, by)
	}
	return o.whole
}

// computeMem decodes instructions whose first operand is in memory.
func (d *x86) computeMem(base int, off int64, known bool, src, srcSize int) {
	switch d.x.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.NOP:
		return
	case x86asm.XCHG, x86asm.XADD:
		d.clear(src)
	}
	d.sideEffects()
	size := d.x.MemBytes
	if !known || size == 0 {
		return
	}
	if d.x.Op != x86asm.MOV || srcSize != d.w {
		src = noReg
	}
	d.store(src, base, off, size)
}

// x86Implied are the registers that instructions write without naming them, by the numbers of their encoding:
// 0 ax, 1 cx, 2 dx, 3 bx, 6 si, 7 di.
var x86Implied = map[x86asm.Op][]int{
	x86asm.CPUID: {0, 1, 2, 3}, x86asm.XGETBV: {0, 2}, x86asm.RDTSC: {0, 2}, x86asm.RDTSCP: {0, 1, 2},
	x86asm.MUL: {0, 2}, x86asm.DIV: {0, 2}, x86asm.IDIV: {0, 2}, x86asm.IMUL: {0, 2}, x86asm.CDQ: {2}, x86asm.CQO: {2}, x86asm.CWD: {2},
	x86asm.CMPXCHG: {0}, x86asm.CMPXCHG8B: {0, 2}, x86asm.CMPXCHG16B: {0, 2}, x86asm.CWDE: {0}, x86asm.CDQE: {0}, x86asm.CBW: {0},
	x86asm.MOVSB: {1, 6, 7}, x86asm.MOVSW: {1, 6, 7}, x86asm.MOVSD: {1, 6, 7}, x86asm.MOVSQ: {1, 6, 7},
	x86asm.CMPSB: {1, 6, 7}, x86asm.CMPSW: {1, 6, 7}, x86asm.CMPSD: {1, 6, 7}, x86asm.CMPSQ: {1, 6, 7},
	x86asm.STOSB: {1, 7}, x86asm.STOSW: {1, 7}, x86asm.STOSD: {1, 7}, x86asm.STOSQ: {1, 7},
	x86asm.SCASB: {1, 7}, x86asm.SCASW: {1, 7}, x86asm.SCASD: {1, 7}, x86asm.SCASQ: {1, 7},
	x86asm.LODSB: {0, 1, 6}, x86asm.LODSW: {0, 1, 6}, x86asm.LODSD: {0, 1, 6}, x86asm.LODSQ: {0, 1, 6},
}

// sideEffects clears the registers of x86Implied.
func (d *x86) sideEffects() {
	for _, r := range x86Implied[d.x.Op] {
		if d.w == 8 {
			r = gprX86_64[r]
		}
		d.clear(r)
	}
}

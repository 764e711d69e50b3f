package unwind

import (
	"golang.org/x/arch/x86/x86asm"
)

// gprX86_64 and gpr386 are the DWARF numbers of registers in the order of their encoding.
var (
	gprX86_64 = [16]int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}
	gpr386    = [8]int{0, 1, 2, 3, 4, 5, 6, 7}
)

// gprX86 returns the DWARF number and the size in bytes of a general register, or noReg
// for another register.
func gprX86(a *machine, r x86asm.Reg) (n, size int) {
	switch {
	case r >= x86asm.AL && r <= x86asm.BL:
		n, size = int(r-x86asm.AL), 1
	case r >= x86asm.AH && r <= x86asm.BH:
		n, size = int(r-x86asm.AH), 1
	case r >= x86asm.SPB && r <= x86asm.R15B:
		n, size = int(r-x86asm.SPB)+4, 1
	case r >= x86asm.AX && r <= x86asm.R15W:
		n, size = int(r-x86asm.AX), 2
	case r >= x86asm.EAX && r <= x86asm.R15L:
		n, size = int(r-x86asm.EAX), 4
	case r >= x86asm.RAX && r <= x86asm.R15:
		n, size = int(r-x86asm.RAX), 8
	default:
		return noReg, 0
	}
	if a.word == 8 {
		return gprX86_64[n], size
	}
	if n >= len(gpr386) {
		return noReg, 0
	}
	return gpr386[n], size
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

// stack decodes instructions that change the stack pointer as a side effect.
func (d *x86) stack() bool {
	sp, w := d.a.sp, d.w
	push := func(r int) {
		d.addImm(sp, sp, -int64(w))
		d.store(r, sp, 0, w)
	}
	switch d.x.Op {
	case x86asm.PUSH:
		r, size := d.reg(0)
		if d.x.DataSize == 16 {
			d.addImm(sp, sp, -2)
			d.store(noReg, sp, 0, 2)
			return true
		}
		if size != w {
			r = noReg
		}
		if r == sp { // PUSH stores the old value
			d.move(tempReg, sp)
			r = tempReg
		}
		push(r)
	case x86asm.POP:
		r, size := d.reg(0)
		if d.x.DataSize == 16 {
			d.addImm(sp, sp, 2)
			if r != noReg {
				d.clear(r)
			}
			return true
		}
		if size == w && r != sp {
			d.load(r, sp, 0, w)
		}
		if r == sp {
			d.load(sp, sp, 0, w)
			return true
		}
		d.addImm(sp, sp, int64(w))
	case x86asm.PUSHF, x86asm.PUSHFD, x86asm.PUSHFQ:
		push(noReg)
	case x86asm.POPF, x86asm.POPFD, x86asm.POPFQ:
		d.addImm(sp, sp, int64(w))
	case x86asm.PUSHA, x86asm.PUSHAD:
		for r := range 8 {
			push(r)
		}
	case x86asm.POPA, x86asm.POPAD:
		for r := 7; r >= 0; r-- {
			if r != sp {
				d.load(r, sp, 0, w)
			}
			d.addImm(sp, sp, int64(w))
		}
	case x86asm.LEAVE:
		d.move(sp, d.a.fp)
		d.load(d.a.fp, sp, 0, w)
		d.addImm(sp, sp, int64(w))
	case x86asm.ENTER:
		size, _ := d.x.Args[0].(x86asm.Imm)
		push(d.a.fp)
		d.move(d.a.fp, sp)
		d.addImm(sp, sp, -int64(size))
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
		if o.src != noReg && o.src != o.dst {
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
	if base, off, known, _ := d.mem(1); known {
		d.addImm(o.dst, base, off)
		return true
	}
	m, ok := d.x.Args[1].(x86asm.Mem)
	if !ok || m.Scale != 1 || m.Base == 0 {
		return false
	}
	b, bs := gprX86(d.a, m.Base)
	i, is := gprX86(d.a, m.Index)
	if bs != d.w || is != d.w {
		return false
	}
	d.add(op{kind: opAddReg, dst: o.dst, src: b, src2: i})
	d.addImm(o.dst, o.dst, m.Disp)
	return true
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
	case x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.NOP, x86asm.PREFETCHT0, x86asm.PREFETCHT1,
		x86asm.PREFETCHT2, x86asm.PREFETCHNTA, x86asm.PREFETCHW, x86asm.CLFLUSH:
		return
	case x86asm.XCHG, x86asm.XADD:
		if src != noReg {
			d.clear(src)
		}
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

// sideEffects clears registers that an instruction writes without naming them.
func (d *x86) sideEffects() {
	a, c, dx, b, si, di := 0, 2, 1, 3, 4, 5
	if d.w == 4 {
		c, dx, si, di = 1, 2, 6, 7
	}
	switch d.x.Op {
	case x86asm.CPUID:
		d.clear(a)
		d.clear(b)
		d.clear(c)
		d.clear(dx)
	case x86asm.MUL, x86asm.DIV, x86asm.IDIV, x86asm.IMUL, x86asm.CDQ, x86asm.CQO, x86asm.CWD,
		x86asm.RDTSC, x86asm.RDTSCP, x86asm.XGETBV, x86asm.CMPXCHG, x86asm.CMPXCHG8B, x86asm.CMPXCHG16B,
		x86asm.CWDE, x86asm.CDQE, x86asm.CBW:
		d.clear(a)
		d.clear(dx)
	case x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.STOSB, x86asm.STOSW, x86asm.STOSD,
		x86asm.STOSQ, x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ, x86asm.CMPSB, x86asm.CMPSW,
		x86asm.CMPSD, x86asm.CMPSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ:
		d.clear(c)
		d.clear(si)
		d.clear(di)
		d.clear(a)
	}
}

package unwind

import "encoding/binary"

// a64 is one instruction.
type a64 struct {
	in         *inst
	w          uint32
	pc         uint64
	rd, rn, rm int
}

// a64Pattern matches instructions whose bits in mask equal value.
type a64Pattern struct {
	mask, value uint32
	do          func(d *a64)
}

// decodeAArch64 decodes instructions that save, restore or move registers. Of other
// instructions it only finds the register that they write.
// golang.org/x/arch/arm64/arm64asm does not export the offsets of loads and stores.
func decodeAArch64(_ *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 4 || pc&3 != 0 {
		return false
	}
	w := binary.LittleEndian.Uint32(code)
	in.size = 4
	d := a64{in: in, w: w, pc: pc, rd: int(w & 31), rn: int(w >> 5 & 31), rm: int(w >> 16 & 31)}
	d.match(a64Ops)
	return true
}

// match applies the first pattern of a table that matches.
func (d *a64) match(table []a64Pattern) {
	for i := range table {
		if p := &table[i]; d.w&p.mask == p.value {
			p.do(d)
			return
		}
	}
}

func a64Nothing(*a64)  {}
func a64Writes(d *a64) { a64Clear(d.in, d.rd) }
func (d *a64) relative(shift, bits uint) uint64 {
	return d.pc + uint64(signed(int64(d.w>>shift&(1<<bits-1))<<2, int(bits)+2))
}

// a64Ops are the instructions, in the groups of the encoding.
var a64Ops = []a64Pattern{
	{0xfc000000, 0x14000000, func(d *a64) { d.in.jump(d.relative(0, 26), false) }}, // B
	{0xfc000000, 0x94000000, func(d *a64) { d.in.call(d.relative(0, 26)) }},        // BL
	{0xff000000, 0x54000000, func(d *a64) { d.in.jump(d.relative(5, 19), true) }},  // B.cond
	{0x7e000000, 0x34000000, func(d *a64) { d.in.jump(d.relative(5, 19), true) }},  // CBZ, CBNZ
	{0x7e000000, 0x36000000, func(d *a64) { d.in.jump(d.relative(5, 14), true) }},  // TBZ, TBNZ
	{0xfe000000, 0xd6000000, func(d *a64) { a64Branch(d.w, d.rn, d.in) }},
	{0xffe0001f, 0xd4000001, func(d *a64) { // SVC
		d.in.flow = flowSyscall
		d.in.clear(0)
	}},
	{0xff000000, 0xd4000000, func(d *a64) { d.in.flow = flowStop }}, // BRK, HLT
	{0xfff00000, 0xd5300000, a64Writes},                             // MRS
	{0xff000000, 0xd5000000, a64Nothing},                            // system; AUTIASP: codePtr always removes the signature
	{0x1f000000, 0x11000000, a64AddImm},
	{0x9f000000, 0x8b000000, func(d *a64) { a64AddReg(d.w, d.rd, d.rn, d.rm, d.in) }},
	{0xff80001f, 0x9200001f, func(d *a64) { // AND immediate to sp, to align it
		d.in.add(op{kind: opAnd, dst: 31, src: d.rn, imm: int64(a64Mask(d.w))})
	}},
	{0x7f800000, 0x72000000, a64Writes},                                     // ANDS immediate: 31 is the zero register
	{0x1f800000, 0x12000000, func(d *a64) { d.in.clear(d.rd) }},             // AND, ORR, EOR immediate: 31 is sp
	{0xffe0ffe0, 0xaa0003e0, a64MoveReg},                                    // MOV
	{0x1f000000, 0x0a000000, a64Writes},                                     // logical, shifted register
	{0x1f800000, 0x12800000, func(d *a64) { a64MoveWide(d.w, d.rd, d.in) }}, // MOVN, MOVZ, MOVK
	{0x1f000000, 0x10000000, a64Address},
	{0x0a000000, 0x08000000, a64Memory},
	{0x1c000000, 0x10000000, a64Writes}, // other data processing
	{0x0e000000, 0x0a000000, a64Writes},
	// SIMD and FP: some write a general register.
	{0x5f20fc00, 0x1e200000, a64Writes},
	{0xbfe0fc00, 0x0e003c00, a64Writes},
	{0xbfe0fc00, 0x0e002c00, a64Writes},
}

// a64AddImm is ADD and SUB immediate; register 31 is sp.
func a64AddImm(d *a64) {
	imm := int64(d.w >> 10 & 0xfff)
	if d.w>>22&1 == 1 {
		imm <<= 12
	}
	if d.w>>30&1 == 1 {
		imm = -imm
	}
	switch sets := d.w>>29&1 == 1; {
	case d.w>>31 == 1 && !(sets && d.rd == 31):
		d.in.addImm(d.rd, d.rn, imm)
	case d.rd != 31:
		d.in.clear(d.rd)
	}
}

// a64MoveReg is MOV between registers, where register 31 is the zero register.
func a64MoveReg(d *a64) {
	if d.rm != 31 && d.rd != 31 {
		d.in.move(d.rd, d.rm)
	} else {
		a64Writes(d)
	}
}

// a64Address is ADR and ADRP.
func a64Address(d *a64) {
	off := signed(int64(d.w>>5&0x7ffff)<<2|int64(d.w>>29&3), 21)
	if d.w>>31 == 1 {
		d.in.set(d.rd, d.pc&^0xfff+uint64(off<<12))
	} else {
		d.in.set(d.rd, d.pc+uint64(off))
	}
}

// a64Clear clears rd, unless it is the zero register.
func a64Clear(in *inst, rd int) {
	if rd != 31 {
		in.clear(rd)
	}
}

// a64Branch decodes branches to registers.
func a64Branch(w uint32, rn int, in *inst) {
	switch w >> 21 & 15 {
	case 0, 8: // BR, BRAA
		in.indirect(rn)
	case 1, 9:
		in.callReg()
	case 2: // RET, RETAA
		if rn == 31 {
			rn = 30
		}
		in.ret(rn)
	default:
		in.flow = flowStop
	}
}

func a64AddReg(w uint32, rd, rn, rm int, in *inst) {
	kind := opAddReg
	if w>>30&1 == 1 {
		kind = opSubReg
	}
	extended := w>>21&1 == 1
	shift := w >> 10 & 63
	if extended {
		shift = w >> 10 & 7
	}
	sets := w>>29&1 == 1
	switch {
	case sets && rd == 31: // CMP
	case !extended && (rd == 31 || rn == 31): // the zero register
		if rd != 31 {
			in.clear(rd)
		}
	case shift != 0 || rm == 31:
		in.clear(rd)
	default:
		in.add(op{kind: kind, dst: rd, src: rn, src2: rm})
	}
}

func a64MoveWide(w uint32, rd int, in *inst) {
	shift := w >> 21 & 3 * 16
	imm := uint64(w>>5&0xffff) << shift
	switch w >> 29 & 3 {
	case 0:
		imm = ^imm
		if w>>31 == 0 {
			imm &= 0xffffffff
		}
		in.set(rd, imm)
	case 2:
		in.set(rd, imm)
	case 3: // MOVK, after a MOVZ
		if shift == 0 {
			in.clear(rd)
			return
		}
		in.add(op{kind: opOr, dst: rd, src: rd, imm: int64(imm)})
	}
	if rd == 31 {
		in.ops = in.ops[:0]
	}
}

// a64Mask decodes the bit mask of a 64-bit logical immediate, or returns 0 for masks
// that do not occur with sp.
func a64Mask(w uint32) uint64 {
	n, r, s := w>>22&1, w>>16&63, w>>10&63
	if n != 1 || s == 63 {
		return 0
	}
	ones := uint64(1)<<(s+1) - 1
	return ones>>r | ones<<(64-r)
}

// a64Transfers are loads and stores.
var a64Transfers = []a64Pattern{
	{0x38000000, 0x28000000, a64Pair},
	{0x3b000000, 0x39000000, func(d *a64) { // unsigned offset
		if size := d.size(); d.w>>22 != 0x3e6 { // PRFM
			a64Access(d.in, d.loads(), d.vector(), d.rd, d.rn, int64(d.w>>10&0xfff)*int64(size), size)
		}
	}},
	{0x3b200000, 0x38000000, func(d *a64) { // unscaled, post, pre
		mode := d.w >> 10 & 3
		a64Indexed(d.in, d.rn, signed(int64(d.w>>12&511), 9), mode == 1, mode == 3, func(off int64) {
			a64Access(d.in, d.loads(), d.vector(), d.rd, d.rn, off, d.size())
		})
	}},
	{0x38000000, 0x38000000, func(d *a64) { // register offset, atomics
		if d.w>>22&3 != 0 && !d.vector() || d.w>>10&3 == 0 {
			a64Writes(d)
		}
	}},
	{0x3c000000, 0x18000000, a64Writes}, // literal
	{0x38000000, 0x18000000, a64Nothing},
	{0x3f000000, 0x08000000, func(d *a64) { // exclusive and ordered
		if d.w>>22&1 == 1 {
			a64Writes(d)
			if d.w>>21&1 == 1 {
				a64Clear(d.in, int(d.w>>10&31))
			}
		}
		a64Clear(d.in, d.rm) // status
	}},
	{0x048003e0, 0x048003e0, func(d *a64) { d.in.clear(d.rn) }}, // LD1, ST1 with write-back to sp
}

func a64Memory(d *a64) { d.match(a64Transfers) }

// vector reports whether the register of a load or store is a vector register, loads
// whether the instruction is a load.
func (d *a64) vector() bool { return d.w>>26&1 == 1 }
func (d *a64) loads() bool  { return d.w>>22&3 != 0 && !(d.vector() && d.w>>22&1 == 0) }

// size returns the number of bytes loaded or stored.
func (d *a64) size() int {
	if d.vector() && d.w>>23&1 == 1 {
		return 16
	}
	return 1 << (d.w >> 30)
}

// a64Pair is LDP and STP.
func a64Pair(d *a64) {
	size := 4 << (d.w >> 31)
	switch {
	case d.vector():
		size = 4 << (d.w >> 30)
	case d.w>>30 == 1: // LDPSW
		size = 4
	}
	mode := d.w >> 23 & 3
	a64Indexed(d.in, d.rn, signed(int64(d.w>>15&127), 7)*int64(size), mode == 1, mode == 3, func(off int64) {
		for i, r := range []int{d.rd, int(d.w >> 10 & 31)} {
			a64Access(d.in, d.w>>22&1 == 1, d.vector(), r, d.rn, off+int64(i*size), size)
		}
	})
}

// a64Indexed calls access for the address base+off, with write-back before (pre) or
// after (post) it, or none.
func a64Indexed(in *inst, rn int, off int64, post, pre bool, access func(off int64)) {
	switch {
	case post:
		access(0)
		in.addImm(rn, rn, off)
	case pre:
		in.addImm(rn, rn, off)
		access(0)
	default:
		access(off)
	}
}

func a64Access(in *inst, load, vector bool, rt, rn int, off int64, size int) {
	switch {
	case load && vector:
	case load && rt != 31 && size == 8:
		in.load(rt, rn, off, 8)
	case load:
		a64Clear(in, rt)
	case vector || size != 8 || rt == 31:
		in.store(noReg, rn, off, size)
	default:
		in.store(rt, rn, off, 8)
	}
}

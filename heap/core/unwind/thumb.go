package unwind

import mathbits "math/bits"

// decodeThumb decodes Thumb and Thumb-2.
func decodeThumb(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 2 {
		return false
	}
	h := uint32(a.code.Uint16(code))
	if h>>11 >= 0x1d {
		if len(code) < 4 {
			return false
		}
		in.size = 4
		thumbWide(a, h, uint32(a.code.Uint16(code[2:])), pc, in)
		return true
	}
	in.size = 2
	rd, rn := int(h&7), int(h>>3&7)
	switch h >> 12 {
	case 0, 1:
		thumbAdd3(h, rd, rn, in)
	case 2:
		if h>>11&1 == 0 {
			in.set(int(h>>8&7), uint64(h&0xff))
		}
	case 3:
		imm := int64(h & 0xff)
		if h>>11&1 == 1 {
			imm = -imm
		}
		in.addImm(int(h>>8&7), int(h>>8&7), imm)
	case 4:
		thumb4(h, pc, rd, rn, in)
	case 5: // register offset
		if h>>9&7 >= 3 {
			in.clear(rd)
		}
	case 6:
		off := int64(h>>6&31) * 4
		if h>>11&1 == 1 {
			in.load(rd, rn, off, 4)
		} else {
			in.store(rd, rn, off, 4)
		}
	case 7, 8:
		if h>>11&1 == 1 {
			in.clear(rd)
		} else if h>>12 == 7 {
			in.store(noReg, rn, int64(h>>6&31), 1)
		} else {
			in.store(noReg, rn, int64(h>>6&31)*2, 2)
		}
	case 9:
		if h>>11&1 == 1 {
			in.load(int(h>>8&7), armSP, int64(h&0xff)*4, 4)
		} else {
			in.store(int(h>>8&7), armSP, int64(h&0xff)*4, 4)
		}
	case 10:
		if h>>11&1 == 1 {
			in.addImm(int(h>>8&7), armSP, int64(h&0xff)*4)
		} else {
			in.set(int(h>>8&7), (pc+4)&^3+uint64(h&0xff)*4)
		}
	case 11:
		thumbMisc(h, pc, in)
	case 12:
		list, base := h&0xff, int(h>>8&7)
		load := h>>11&1 == 1
		armList(in, load, false, true, !load || list>>base&1 == 0, base, list)
	case 13:
		switch h >> 8 & 15 {
		case 14:
			in.flow = flowStop
		case 15:
			in.flow = flowSyscall
			in.clear(0)
		default:
			in.jump(pc+4+uint64(signed(int64(h&0xff)<<1, 9)), true)
		}
	case 14:
		in.jump(a.mask(pc+4+uint64(signed(int64(h&0x7ff)<<1, 12))), false)
	}
	return true
}

// thumbAdd3 decodes shifts, and additions of three operands.
func thumbAdd3(h uint32, rd, rn int, in *inst) {
	imm := int64(h >> 6 & 7)
	switch h >> 9 & 15 {
	case 12:
		in.add(op{kind: opAddReg, dst: rd, src: rn, src2: int(imm)})
	case 13:
		in.add(op{kind: opSubReg, dst: rd, src: rn, src2: int(imm)})
	case 14:
		in.addImm(rd, rn, imm)
	case 15:
		in.addImm(rd, rn, -imm)
	default:
		if h>>6 == 0 { // LSL by 0
			in.move(rd, rn)
		} else {
			in.clear(rd)
		}
	}
}

// thumb4 decodes data processing, operations on high registers, and LDR of a literal.
func thumb4(h uint32, pc uint64, rd, rn int, in *inst) {
	if h>>11&1 == 1 {
		in.set(tempReg, (pc+4)&^3)
		in.load(int(h>>8&7), tempReg, int64(h&0xff)*4, 4)
		return
	}
	if h>>10&1 == 0 {
		if n := h >> 6 & 15; n != 8 && n != 10 && n != 11 {
			in.clear(rd)
		}
		return
	}
	high, rm := int(h&7|h>>4&8), int(h>>3&15)
	switch h >> 8 & 3 {
	case 0:
		switch {
		case high == armPC:
			in.indirect(noReg)
		case rm == armPC:
			in.clear(high)
		default:
			in.add(op{kind: opAddReg, dst: high, src: high, src2: rm})
		}
	case 2:
		switch {
		case high == armPC:
			armTo(in, rm)
		case rm == armPC:
			in.set(high, pc+4)
		default:
			in.move(high, rm)
		}
	case 3:
		if h>>7&1 == 1 {
			in.callReg()
		} else {
			armTo(in, rm)
		}
	}
}

// thumbMisc decodes PUSH, POP, additions to sp, CBZ and IT.
func thumbMisc(h uint32, pc uint64, in *inst) {
	switch {
	case h>>8 == 0xb0:
		off := int64(h&0x7f) * 4
		if h>>7&1 == 1 {
			off = -off
		}
		in.addImm(armSP, armSP, off)
	case h>>9 == 0x5a: // PUSH
		armList(in, false, true, false, true, armSP, h&0xff|h>>8&1<<armLR)
	case h>>9 == 0x5e: // POP
		armList(in, true, false, true, true, armSP, h&0xff|h>>8&1<<armPC)
	case h&0xf500 == 0xb100: // CBZ, CBNZ
		in.jump(pc+4+uint64(h>>9&1<<6|h>>3&31<<1), true)
	case h>>8 == 0xbf && h&15 != 0: // IT
		in.it = 4 - mathbits.TrailingZeros32(h&15)
	case h>>8 == 0xbe:
		in.flow = flowStop // BKPT
	case h>>8 == 0xb2, h>>8 == 0xba:
		in.clear(int(h & 7))
	}
}

// thumbWide decodes instructions of 32 bits.
func thumbWide(a *machine, h, l uint32, pc uint64, in *inst) {
	rn, rd, rt := int(h&15), int(l>>8&15), int(l>>12&15)
	switch {
	case h>>9 == 0x74 && h>>6&1 == 0: // LDM, STM
		list := l
		if h>>4&1 == 0 {
			list &^= 1 << armPC
		}
		armList(in, h>>4&1 == 1, h>>8&1 == 1, h>>7&1 == 1, h>>5&1 == 1, rn, list)
	case h>>9 == 0x74:
		thumbDual(h, l, rn, in)
	case h>>9 == 0x75:
		thumbShifted(h, l, rn, rd, in)
	case h>>9 == 0x76: // coprocessor: VPUSH, VPOP
		armVector(h<<16|l, rn, in)
	case h>>8 == 0xee:
		if h>>4&1 == 1 && l&0x10 != 0 && rt != armPC {
			in.clear(rt)
		}
	case h>>11 == 0x1e && l>>15 == 1:
		thumbBranch(a, h, l, pc, in)
	case h>>11 == 0x1e:
		thumbImmediate(h, l, pc, rn, rd, in)
	case h>>9 == 0x7c:
		thumbLoadStore(h, l, pc, rn, rt, in)
	case h>>8 == 0xfb && h>>7&1 == 1: // long multiplications
		in.clear(rt)
		in.clear(rd)
	case h>>8 == 0xfa, h>>8 == 0xfb:
		in.clear(rd)
	}
}

// thumbDual decodes LDRD, STRD, exclusive accesses and table branches.
func thumbDual(h, l uint32, rn int, in *inst) {
	rt, rt2 := int(l>>12&15), int(l>>8&15)
	if h>>8&1 == 0 && h>>5&1 == 0 {
		switch {
		case h>>4&0xfff == 0xe8d && l>>5 == 0x780: // TBB, TBH
			in.indirect(noReg)
		case h>>4&1 == 1:
			in.clear(rt)
		default:
			in.clear(rt2)
			in.clear(int(l & 15))
		}
		return
	}
	off := int64(l&0xff) * 4
	if h>>7&1 == 0 {
		off = -off
	}
	at := int64(0)
	if h>>8&1 == 1 {
		at = off
	}
	for i, r := range []int{rt, rt2} {
		switch {
		case h>>4&1 == 1 && rn == armPC:
			in.clear(r)
		case h>>4&1 == 1:
			if i == 0 {
				in.move(tempReg, rn)
			}
			in.load(r, tempReg, at+int64(i)*4, 4)
		default:
			in.store(r, rn, at+int64(i)*4, 4)
		}
	}
	if h>>5&1 == 1 {
		in.addImm(rn, rn, off)
	}
}

// thumbShifted decodes data processing with a shifted register.
func thumbShifted(h, l uint32, rn, rd int, in *inst) {
	rm := int(l & 15)
	plain := l&0x70f0 == 0
	switch opcode := h >> 5 & 15; {
	case rd == armPC: // TST, CMP, …
	case opcode == 2 && rn == armPC && plain:
		in.move(rd, rm)
	case opcode == 8 && plain:
		in.add(op{kind: opAddReg, dst: rd, src: rn, src2: rm})
	case opcode == 13 && plain:
		in.add(op{kind: opSubReg, dst: rd, src: rn, src2: rm})
	default:
		in.clear(rd)
	}
}

// thumbBranch decodes branches, calls and the instructions that share their encoding space.
func thumbBranch(a *machine, h, l uint32, pc uint64, in *inst) {
	s := int64(h >> 10 & 1)
	j1, j2 := int64(l>>13&1), int64(l>>11&1)
	if l>>14&1 == 0 && l>>12&1 == 0 { // conditional, hints
		if h>>7&7 == 7 {
			switch {
			case h>>4&0x7f == 0x7f:
				in.flow = flowStop // UDF
			case h>>5 == 0x79f:
				in.clear(int(l >> 8 & 15)) // MRS
			}
			return
		}
		off := signed(s<<20|j2<<19|j1<<18|int64(h&0x3f)<<12|int64(l&0x7ff)<<1, 21)
		in.jump(a.mask(pc+4+uint64(off)), true)
		return
	}
	i1, i2 := 1^(j1^s), 1^(j2^s)
	off := signed(s<<24|i1<<23|i2<<22|int64(h&0x3ff)<<12|int64(l&0x7ff)<<1, 25)
	to := a.mask(pc + 4 + uint64(off))
	switch {
	case l>>14&1 == 0:
		in.jump(to, false)
	case l>>12&1 == 1:
		in.call(to | 1)
	default:
		in.call(to &^ 3) // BLX to ARM code
	}
}

// thumbConstant expands the immediate of data processing.
func thumbConstant(h, l uint32) uint64 {
	v := h>>10&1<<11 | l>>12&7<<8 | l&0xff
	b := v & 0xff
	switch v >> 8 {
	case 0:
		return uint64(b)
	case 1:
		return uint64(b<<16 | b)
	case 2:
		return uint64(b<<24 | b<<8)
	case 3:
		return uint64(b * 0x01010101)
	}
	return uint64(mathbits.RotateLeft32(0x80|v&0x7f, -int(v>>7)))
}

// thumbImmediate decodes data processing with an immediate.
func thumbImmediate(h, l uint32, pc uint64, rn, rd int, in *inst) {
	if h>>9&1 == 1 { // plain immediates
		imm := int64(h>>10&1<<11 | l>>12&7<<8 | l&0xff)
		switch h >> 4 & 31 {
		case 0, 10:
			if h>>4&31 == 10 {
				imm = -imm
			}
			if rn == armPC {
				in.set(rd, uint64(int64((pc+4)&^3)+imm))
			} else {
				in.addImm(rd, rn, imm)
			}
		case 4:
			in.set(rd, uint64(h&15<<12)|uint64(imm))
		case 12:
			in.add(op{kind: opAnd, dst: rd, src: rd, imm: 0xffff})
			in.add(op{kind: opOr, dst: rd, src: rd, imm: (int64(h&15<<12) | imm) << 16})
		default:
			in.clear(rd)
		}
		return
	}
	imm := thumbConstant(h, l)
	switch opcode := h >> 5 & 15; {
	case rd == armPC: // TST, CMP, …
	case opcode == 2 && rn == armPC:
		in.set(rd, imm)
	case opcode == 3 && rn == armPC:
		in.set(rd, ^imm)
	case opcode == 1:
		in.add(op{kind: opAnd, dst: rd, src: rn, imm: ^int64(imm)})
	case opcode == 8:
		in.addImm(rd, rn, int64(imm))
	case opcode == 13:
		in.addImm(rd, rn, -int64(imm))
	default:
		in.clear(rd)
	}
}

// thumbLoadStore decodes loads and stores of one register.
func thumbLoadStore(h, l uint32, pc uint64, rn, rt int, in *inst) {
	load := h>>4&1 == 1
	size := 1 << (h >> 5 & 3)
	if h>>8&1 == 1 { // signed
		if rt != armPC {
			in.clear(rt)
		}
		return
	}
	if size != 4 && rt == armPC { // PLD
		return
	}
	switch {
	case rn == armPC:
		off := int64(l & 0xfff)
		if h>>7&1 == 0 {
			off = -off
		}
		armAccess(in, load, true, true, false, rn, rt, off, size, (pc+4)&^3)
	case h>>7&1 == 1:
		armAccess(in, load, true, true, false, rn, rt, int64(l&0xfff), size, pc+4)
	case l>>11&1 == 1:
		off := int64(l & 0xff)
		if l>>9&1 == 0 {
			off = -off
		}
		armAccess(in, load, true, l>>10&1 == 1, l>>8&1 == 1, rn, rt, off, size, pc+4)
	default: // register offset
		armAccess(in, load, false, true, false, rn, rt, 0, size, pc+4)
	}
}

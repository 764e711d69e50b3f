package unwind

import "encoding/binary"

// decodeRISCV decodes RV32 and RV64 with the C extension.
func decodeRISCV(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 2 {
		return false
	}
	if h := binary.LittleEndian.Uint16(code); h&3 != 3 {
		in.size = 2
		return decodeRVC(a, uint32(h), pc, in)
	}
	if len(code) < 4 {
		return false
	}
	w := binary.LittleEndian.Uint32(code)
	in.size = 4
	rd, rs1, rs2 := int(w>>7&31), int(w>>15&31), int(w>>20&31)
	imm := int64(int32(w) >> 20)
	f3 := w >> 12 & 7
	switch w & 0x7f {
	case 0x13, 0x1b: // OP-IMM, OP-IMM-32
		if f3 == 0 && (w&0x7f == 0x13 || a.word == 4) {
			rvAdd(in, rd, rs1, imm)
			return true
		}
		if f3 == 0 { // ADDIW, in constants after LUI
			rvAdd(in, rd, rs1, imm)
			if rs1 == 2 || rs1 == 8 {
				in.clear(rd)
			}
			return true
		}
		if f3 == 7 {
			in.add(op{kind: opAnd, dst: rd, src: rs1, imm: imm})
			return true
		}
		rvClear(in, rd)
	case 0x37:
		rvSet(in, rd, uint64(int64(int32(w&0xfffff000))))
	case 0x17:
		rvSet(in, rd, pc+uint64(int64(int32(w&0xfffff000))))
	case 0x33, 0x3b:
		switch {
		case w&0x7f == 0x33 && f3 == 0 && w>>25 == 0 && rs2 == 0:
			in.move(rd, rs1)
		case w&0x7f == 0x33 && f3 == 0 && w>>25 == 0:
			rvAddReg(in, opAddReg, rd, rs1, rs2)
		case w&0x7f == 0x33 && f3 == 0 && w>>25 == 0x20:
			rvAddReg(in, opSubReg, rd, rs1, rs2)
		default:
			rvClear(in, rd)
		}
	case 0x03:
		rvLoad(a, in, rd, rs1, imm, 1<<(f3&3), f3)
	case 0x23:
		off := int64(int32(w)>>25<<5 | int32(w>>7&31))
		in.store(rvStored(a, rs2, 1<<(f3&3)), rs1, off, 1<<(f3&3))
	case 0x27: // FP stores
		off := int64(int32(w)>>25<<5 | int32(w>>7&31))
		in.store(noReg, rs1, off, 1<<(f3&3))
	case 0x6f:
		off := int64(int32(w)>>31)<<20 | int64(w>>12&0xff)<<12 | int64(w>>20&1)<<11 | int64(w>>21&0x3ff)<<1
		rvJump(in, rd, pc, a.mask(pc+uint64(off)))
	case 0x67:
		rvJumpReg(in, rd, rs1, imm, pc)
	case 0x63:
		off := int64(int32(w)>>31)<<12 | int64(w>>7&1)<<11 | int64(w>>25&0x3f)<<5 | int64(w>>8&15)<<1
		in.jump(a.mask(pc+uint64(off)), true)
	case 0x73:
		switch {
		case w == 0x73:
			in.flow = flowSyscall
			in.clear(10)
		case w>>20 == 0x302 || w>>20 == 0x102 || w>>20 == 1: // MRET, SRET, EBREAK
			in.flow = flowStop
		default:
			rvClear(in, rd)
		}
	case 0x2f: // atomics
		rvClear(in, rd)
	case 0x53: // FP: only some have an integer result
		if f := w >> 27; f == 0x14 || f == 0x18 || f == 0x1c {
			rvClear(in, rd)
		}
	}
	return true
}

func rvClear(in *inst, rd int) {
	if rd != 0 {
		in.clear(rd)
	}
}

func rvSet(in *inst, rd int, v uint64) {
	if rd != 0 {
		in.set(rd, v)
	}
}

func rvAdd(in *inst, rd, rs int, imm int64) {
	switch {
	case rd == 0:
	case rs == 0:
		in.set(rd, uint64(imm))
	default:
		in.addImm(rd, rs, imm)
	}
}

func rvAddReg(in *inst, kind opKind, rd, rs1, rs2 int) {
	if rd != 0 {
		in.add(op{kind: kind, dst: rd, src: rs1, src2: rs2})
	}
}

// rvStored returns rs if a store of size bytes stores the whole register, else noReg.
func rvStored(a *machine, rs, size int) int {
	if size != int(a.word) {
		return noReg
	}
	return rs
}

func rvLoad(a *machine, in *inst, rd, rs int, off int64, size int, f3 uint32) {
	switch {
	case rd == 0:
	case size == int(a.word) && f3 < 4:
		in.load(rd, rs, off, size)
	default:
		in.clear(rd)
	}
}

// rvJump is JAL, a call if it links to ra. With a link to t0 it calls the routines that
// save registers, which return through t0.
func rvJump(in *inst, rd int, pc, to uint64) {
	switch rd {
	case 1:
		in.call(to)
	case 0:
		in.jump(to, false)
	default:
		in.set(rd, pc+uint64(in.size))
		in.jump(to, false)
	}
}

func rvJumpReg(in *inst, rd, rs int, imm int64, pc uint64) {
	switch {
	case rd == 1:
		in.callReg()
	case rd == 0 && rs == 1 && imm == 0:
		in.ret(1)
	case rd == 0:
		in.addImm(tempReg, rs, imm)
		in.indirect(tempReg)
	default: // through t0, as in rvJump
		in.addImm(tempReg, rs, imm)
		in.set(rd, pc+uint64(in.size))
		in.indirect(tempReg)
	}
}

// bits returns bits from..from+n-1 of v, shifted to position to.
func bits(v uint32, from, n, to int) int64 { return int64(v>>from&(1<<n-1)) << to }

func signed(v int64, n int) int64 { return v << (64 - n) >> (64 - n) }

// decodeRVC decodes a compressed instruction.
func decodeRVC(a *machine, h uint32, pc uint64, in *inst) bool {
	rd, rs2 := int(h>>7&31), int(h>>2&31)
	rdp, rs2p := int(h>>7&7)+8, int(h>>2&7)+8
	w := int(a.word)
	imm6 := signed(bits(h, 12, 1, 5)|bits(h, 2, 5, 0), 6)
	switch h&3<<3 | h>>13 {
	case 0 << 3: // C.ADDI4SPN
		if h == 0 {
			return false
		}
		in.addImm(rs2p, 2, bits(h, 7, 4, 6)|bits(h, 11, 2, 4)|bits(h, 5, 1, 3)|bits(h, 6, 1, 2))
	case 0<<3 | 2: // C.LW
		off := bits(h, 10, 3, 3) | bits(h, 6, 1, 2) | bits(h, 5, 1, 6)
		rvLoad(a, in, rs2p, rdp, off, 4, 0)
	case 0<<3 | 3: // C.LD, on RV32 C.FLW
		if w == 8 {
			in.load(rs2p, rdp, bits(h, 10, 3, 3)|bits(h, 5, 2, 6), 8)
		}
	case 0<<3 | 6: // C.SW
		off := bits(h, 10, 3, 3) | bits(h, 6, 1, 2) | bits(h, 5, 1, 6)
		in.store(rvStored(a, rs2p, 4), rdp, off, 4)
	case 0<<3 | 7: // C.SD, on RV32 C.FSW
		if w == 8 {
			in.store(rs2p, rdp, bits(h, 10, 3, 3)|bits(h, 5, 2, 6), 8)
		} else {
			in.store(noReg, rdp, bits(h, 10, 3, 3)|bits(h, 6, 1, 2)|bits(h, 5, 1, 6), 4)
		}
	case 0<<3 | 5: // C.FSD
		in.store(noReg, rdp, bits(h, 10, 3, 3)|bits(h, 5, 2, 6), 8)
	case 1 << 3: // C.ADDI
		rvAdd(in, rd, rd, imm6)
	case 1<<3 | 1: // C.JAL of RV32, C.ADDIW
		if w == 4 {
			in.call(a.mask(pc + uint64(rvcJump(h))))
			return true
		}
		rvClear(in, rd)
	case 1<<3 | 2: // C.LI
		rvSet(in, rd, uint64(imm6))
	case 1<<3 | 3: // C.ADDI16SP, C.LUI
		if rd == 2 {
			in.addImm(2, 2, signed(bits(h, 12, 1, 9)|bits(h, 6, 1, 4)|bits(h, 5, 1, 6)|bits(h, 3, 2, 7)|bits(h, 2, 1, 5), 10))
		} else {
			rvSet(in, rd, uint64(imm6<<12))
		}
	case 1<<3 | 4:
		switch {
		case h>>10&3 == 2:
			in.add(op{kind: opAnd, dst: rdp, src: rdp, imm: imm6})
		case h>>10&7 == 3 && h>>5&3 == 0:
			rvAddReg(in, opSubReg, rdp, rdp, rs2p)
		default:
			in.clear(rdp)
		}
	case 1<<3 | 5:
		in.jump(a.mask(pc+uint64(rvcJump(h))), false)
	case 1<<3 | 6, 1<<3 | 7:
		off := signed(bits(h, 12, 1, 8)|bits(h, 10, 2, 3)|bits(h, 5, 2, 6)|bits(h, 3, 2, 1)|bits(h, 2, 1, 5), 9)
		in.jump(a.mask(pc+uint64(off)), true)
	case 2 << 3: // C.SLLI
		rvClear(in, rd)
	case 2<<3 | 2: // C.LWSP
		rvLoad(a, in, rd, 2, bits(h, 12, 1, 5)|bits(h, 4, 3, 2)|bits(h, 2, 2, 6), 4, 0)
	case 2<<3 | 3: // C.LDSP, on RV32 C.FLWSP
		if w == 8 && rd != 0 {
			in.load(rd, 2, bits(h, 12, 1, 5)|bits(h, 5, 2, 3)|bits(h, 2, 3, 6), 8)
		}
	case 2<<3 | 4:
		switch {
		case h&0x1000 == 0 && rs2 == 0:
			rvJumpReg(in, 0, rd, 0, pc)
		case h&0x1000 == 0:
			if rd != 0 {
				in.move(rd, rs2)
			}
		case rs2 == 0 && rd == 0:
			in.flow = flowStop // C.EBREAK
		case rs2 == 0:
			in.callReg()
		default:
			rvAddReg(in, opAddReg, rd, rd, rs2)
		}
	case 2<<3 | 6: // C.SWSP
		in.store(rvStored(a, rs2, 4), 2, bits(h, 9, 4, 2)|bits(h, 7, 2, 6), 4)
	case 2<<3 | 7: // C.SDSP, on RV32 C.FSWSP
		if w == 8 {
			in.store(rs2, 2, bits(h, 10, 3, 3)|bits(h, 7, 3, 6), 8)
		} else {
			in.store(noReg, 2, bits(h, 9, 4, 2)|bits(h, 7, 2, 6), 4)
		}
	case 2<<3 | 5: // C.FSDSP
		in.store(noReg, 2, bits(h, 10, 3, 3)|bits(h, 7, 3, 6), 8)
	}
	return true
}

// rvcJump returns the offset in C.J and C.JAL.
func rvcJump(h uint32) int64 {
	return signed(bits(h, 12, 1, 11)|bits(h, 11, 1, 4)|bits(h, 9, 2, 8)|bits(h, 8, 1, 10)|
		bits(h, 7, 1, 6)|bits(h, 6, 1, 7)|bits(h, 3, 3, 1)|bits(h, 2, 1, 5), 12)
}

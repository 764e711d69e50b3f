package unwind

// decodeMIPS knows MIPS I to MIPS64 release 2 and release 6; MIPS16 and microMIPS
// are not read.
func decodeMIPS(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 4 || pc&3 != 0 {
		return false
	}
	w := a.code.Uint32(code)
	in.size = 4
	rs, rt, rd := int(w>>21&31), int(w>>16&31), int(w>>11&31)
	imm := int64(int16(w))
	branch := a.mask(pc + 4 + uint64(imm<<2))
	switch w >> 26 {
	case 0:
		return mipsSpecial(w, rs, rt, rd, in)
	case 1: // REGIMM
		in.delay = true
		switch {
		case rt == 0x11 && rs == 0: // BAL
			if branch == a.mask(pc+8) { // to learn where it is
				in.delay = false
				in.set(31, pc+8)
				return true
			}
			in.call(branch)
		case rt == 0x10 || rt == 0x11:
			in.callReg()
		case rt < 4:
			in.jump(branch, true)
		default:
			in.delay = false // traps
		}
	case 2, 3:
		to := a.mask((pc+4)&^0xfffffff | uint64(w&0x3ffffff)<<2)
		in.delay = true
		if w>>26 == 2 {
			in.jump(to, false)
		} else {
			in.call(to)
		}
	case 4, 5, 6, 7, 0x14, 0x15, 0x16, 0x17:
		in.delay = true
		in.jump(branch, !(w>>26 == 4 && rs == 0 && rt == 0 || w>>26 == 4 && rs == rt))
	case 8, 9, 0x18, 0x19: // ADDI, ADDIU, DADDI, DADDIU
		mipsAdd(in, rt, rs, imm)
	case 0xf: // LUI
		if rt != 0 && rs == 0 {
			in.set(rt, uint64(imm<<16))
		}
	case 0xc:
		in.add(op{kind: opAnd, dst: rt, src: rs, imm: int64(uint16(imm))})
	case 0xd:
		if rs == 0 {
			in.set(rt, uint64(uint16(imm)))
		} else if rt != 0 {
			in.add(op{kind: opOr, dst: rt, src: rs, imm: int64(uint16(imm))})
		}
	case 0xa, 0xb, 0xe, 0x1a, 0x1b:
		mipsClear(in, rt)
	case 0x1c: // SPECIAL2: MUL, CLZ
		mipsClear(in, rd)
	case 0x1f: // SPECIAL3: SEB, WSBH, DSBH write rd; EXT, INS, where rd is a size, write rt
		if f := w & 0x3f; f == 0x20 || f == 0x24 {
			mipsClear(in, rd)
		} else {
			mipsClear(in, rt)
		}
	case 0x10, 0x11, 0x12: // coprocessors: moves to rt, branches
		if w>>21&31 == 8 && w>>26 == 0x11 {
			in.delay = true
			in.jump(branch, true)
		} else if rs <= 3 {
			mipsClear(in, rt)
		}
	case 0x20, 0x21, 0x22, 0x24, 0x25, 0x26, 0x27, 0x30, 0x34:
		mipsClear(in, rt)
	case 0x23:
		mipsLoad(a, in, rt, rs, imm, 4)
	case 0x37:
		mipsLoad(a, in, rt, rs, imm, 8)
	case 0x28, 0x38, 0x3c:
		in.store(noReg, rs, imm, 1)
		if w>>26 != 0x28 {
			mipsClear(in, rt) // SC
		}
	case 0x29:
		in.store(noReg, rs, imm, 2)
	case 0x2b:
		in.store(rvStored(a, rt, 4), rs, imm, 4)
	case 0x39: // SWC1
		in.store(noReg, rs, imm, 4)
	case 0x3f:
		in.store(rvStored(a, rt, 8), rs, imm, 8)
	case 0x3d: // SDC1
		in.store(noReg, rs, imm, 8)
	}
	return true
}

func mipsClear(in *inst, r int) {
	if r != 0 {
		in.clear(r)
	}
}

func mipsAdd(in *inst, rt, rs int, imm int64) { rvAdd(in, rt, rs, imm) }

func mipsLoad(a *machine, in *inst, rt, rs int, off int64, size int) {
	switch {
	case rt == 0:
	case size == int(a.word):
		in.load(rt, rs, off, size)
	default:
		in.clear(rt)
	}
}

// mipsSpecial decodes opcode 0.
func mipsSpecial(w uint32, rs, rt, rd int, in *inst) bool {
	switch w & 0x3f {
	case 8: // JR
		in.delay = true
		if rs == 31 {
			in.ret(31)
		} else {
			in.indirect(rs)
		}
	case 9: // JALR
		in.delay = true
		switch {
		case rd != 0:
			in.callReg()
		case rs == 31: // JR of release 6
			in.ret(31)
		default:
			in.indirect(rs)
		}
	case 0xc:
		in.flow = flowSyscall
		in.clear(2)
		in.clear(7)
	case 0xd:
		// BREAK: gcc puts it behind divisions too, where it is skipped
		in.flow = flowStop
	case 0x20, 0x21, 0x2c, 0x2d, 0x25: // ADD, ADDU, DADD, DADDU, OR
		switch {
		case rd == 0:
		case rt == 0 && rs == 0:
			in.set(rd, 0)
		case rt == 0:
			in.move(rd, rs)
		case rs == 0:
			in.move(rd, rt)
		case w&0x3f == 0x25:
			in.clear(rd)
		default:
			in.add(op{kind: opAddReg, dst: rd, src: rs, src2: rt})
		}
	case 0x22, 0x23, 0x2e, 0x2f:
		if rd != 0 {
			in.add(op{kind: opSubReg, dst: rd, src: rs, src2: rt})
		}
	case 0xf, 0x11, 0x13, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x36: // SYNC, MTHI, …, traps
		if w>>11&31 != 0 && w>>6&31 != 0 {
			mipsClear(in, rd) // MUL, DIV of release 6
		}
	default:
		mipsClear(in, rd)
	}
	return true
}

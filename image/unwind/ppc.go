package unwind

// DWARF numbers of PowerPC's link and count registers.
const (
	ppcLR  = 65
	ppcCTR = 66
)

// decodePPC knows 32-bit PowerPC.
func decodePPC(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 4 || pc&3 != 0 {
		return false
	}
	w := a.code.Uint32(code)
	in.size = 4
	rt, ra, rb := int(w>>21&31), int(w>>16&31), int(w>>11&31)
	imm := int64(int16(w))
	link := w&1 == 1
	switch w >> 26 {
	case 18, 16: // B, BC
		n, base := 26, pc
		off := signed(int64(w&0x3fffffc), 26)
		if w>>26 == 16 {
			n, off = 16, signed(int64(w&0xfffc), 16)
		}
		if w&2 != 0 {
			base = 0
		}
		to := a.mask(base + uint64(off))
		switch {
		case link && to == a.mask(pc+4): // to learn where it is
			in.set(ppcLR, pc+4)
		case link:
			in.call(to)
		default:
			in.jump(to, n == 16 && rt&20 != 20)
		}
	case 17:
		in.flow = flowSyscall
		in.clear(3)
	case 19:
		ppcBranchReg(w, rt, link, in)
	case 14, 15: // ADDI, ADDIS
		if w>>26 == 15 {
			imm <<= 16
		}
		if ra == 0 {
			in.set(rt, uint64(imm))
		} else {
			in.addImm(rt, ra, imm)
		}
	case 24: // ORI
		if rt == 0 && ra == 0 {
			return true
		}
		in.add(op{kind: opOr, dst: ra, src: rt, imm: int64(uint16(imm))})
	case 31:
		ppcExtended(a, w, rt, ra, rb, in)
	case 32, 33: // LWZ, LWZU
		ppcUpdate(in, w>>26 == 33, rt, ra, imm, false)
	case 36, 37: // STW, STWU
		ppcUpdate(in, w>>26 == 37, rt, ra, imm, true)
	case 34, 35, 40, 41, 42, 43:
		in.clear(rt)
	case 46: // LMW
		for r := rt; r < 32; r++ {
			if r != ra {
				in.load(r, ra, imm+int64(r-rt)*4, 4)
			}
		}
	case 47: // STMW
		for r := rt; r < 32; r++ {
			in.store(r, ra, imm+int64(r-rt)*4, 4)
		}
	case 38, 39:
		in.store(noReg, ra, imm, 1)
	case 44, 45:
		in.store(noReg, ra, imm, 2)
	case 52, 53:
		in.store(noReg, ra, imm, 4)
	case 54, 55:
		in.store(noReg, ra, imm, 8)
	case 7, 8, 12, 13:
		in.clear(rt)
	case 20, 21, 23, 25, 26, 27, 28, 29:
		in.clear(ra)
	case 3:
		if rt == 31 {
			in.flow = flowStop // TRAP
		}
	}
	return true
}

// ppcBranchReg decodes branches to LR and CTR.
func ppcBranchReg(w uint32, bo int, link bool, in *inst) {
	always := bo&20 == 20
	switch w >> 1 & 0x3ff {
	case 16:
		if link {
			in.callReg()
			return
		}
		in.ret(ppcLR)
	case 528:
		if link {
			in.callReg()
			return
		}
		in.indirect(ppcCTR)
	case 50: // RFI
		in.flow = flowStop
		return
	}
	in.cond = !always && in.flow != flowNext
}

func ppcUpdate(in *inst, update bool, rt, ra int, imm int64, store bool) {
	if ra == 0 {
		if !store {
			in.clear(rt)
		}
		return
	}
	if store {
		in.store(rt, ra, imm, 4)
	} else {
		in.load(rt, ra, imm, 4)
	}
	if update {
		in.addImm(ra, ra, imm)
	}
}

// ppcExtended decodes opcode 31.
func ppcExtended(a *machine, w uint32, rt, ra, rb int, in *inst) {
	switch w >> 1 & 0x3ff {
	case 444: // OR
		if rt == rb {
			in.move(ra, rt)
		} else {
			in.clear(ra)
		}
	case 266, 778: // ADD
		in.add(op{kind: opAddReg, dst: rt, src: ra, src2: rb})
	case 40: // SUBF
		in.add(op{kind: opSubReg, dst: rt, src: rb, src2: ra})
	case 339: // MFSPR
		switch w >> 11 & 0x3ff {
		case 8 << 5:
			in.move(rt, ppcLR)
		case 9 << 5:
			in.move(rt, ppcCTR)
		default:
			in.clear(rt)
		}
	case 467: // MTSPR
		switch w >> 11 & 0x3ff {
		case 8 << 5:
			in.move(ppcLR, rt)
		case 9 << 5:
			in.move(ppcCTR, rt)
		}
	case 183: // STWUX, of large frames
		in.add(op{kind: opAddReg, dst: tempReg, src: ra, src2: rb})
		in.store(rt, tempReg, 0, 4)
		in.move(ra, tempReg)
	case 151: // STWX
		in.add(op{kind: opAddReg, dst: tempReg, src: ra, src2: rb})
		in.store(rt, tempReg, 0, 4)
	case 0, 32, 4, 86, 54, 246, 278, 470, 982, 1014, 598, 854, 215, 247, 407, 439, 150, 663, 695, 727, 759, 983, 535, 567, 599, 631, 144, 512, 146, 918, 662: // no general register
	case 28, 60, 124, 284, 316, 412, 476, 26, 922, 954, 24, 536, 792, 824, 508: // result in ra
		in.clear(ra)
	default:
		in.clear(rt)
		if n := w >> 1 & 0x3ff; n == 55 || n == 119 || n == 311 || n == 375 { // with update
			in.clear(ra)
		}
	}
}

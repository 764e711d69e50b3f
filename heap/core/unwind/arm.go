package unwind

import mathbits "math/bits"

const (
	armSP = 13
	armLR = 14
	armPC = 15
	// armPSP is the register number used for the process stack pointer of a Cortex-M,
	// 92 as in AADWARF32.
	armPSP = 92
)

// decodeARM decodes ARM code, or Thumb code if bit 0 of pc is set.
func decodeARM(a *machine, code []byte, pc uint64, in *inst) bool {
	if pc&1 != 0 {
		return decodeThumb(a, code, pc&^1, in)
	}
	if len(code) < 4 || pc&3 != 0 {
		return false
	}
	w := a.code.Uint32(code)
	in.size = 4
	if w>>28 == 15 {
		if w>>25 == 0x7d { // BLX to Thumb code
			in.call(a.mask(pc+8+uint64(signed(int64(w&0xffffff)<<2, 26))|uint64(w>>23&2)) | 1)
		}
		return true
	}
	armAlways(a, w, pc, in)
	if w>>28 != 14 {
		in.conditional()
	}
	return true
}

// conditional marks an instruction that may not be executed.
func (in *inst) conditional() {
	switch in.flow {
	case flowNext:
		for i := range in.ops { // either value: unknown
			if o := &in.ops[i]; o.kind != opStore && o.dst != armSP {
				*o = op{kind: opClear, dst: o.dst}
			}
		}
	case flowCall, flowSyscall:
	case flowStop:
		in.flow = flowNext
	default:
		in.cond, in.condOps = true, true
	}
}

// armAlways decodes an ARM instruction, ignoring its condition.
func armAlways(a *machine, w uint32, pc uint64, in *inst) {
	rn, rd := int(w>>16&15), int(w>>12&15)
	switch w >> 25 & 7 {
	case 0, 1:
		armData(w, pc, rn, rd, in)
	case 2, 3:
		if w>>25&7 == 3 && w&0x10 != 0 { // media
			if w&0x0ff000f0 == 0x07f000f0 {
				in.flow = flowStop // UDF
			} else if rd != armPC && w>>24&15 != 7 || w>>23&7 != 0 {
				in.clear(rd)
			}
			if w>>24&15 == 7 {
				in.clear(rn)
			}
			return
		}
		armLoadStore(w, pc, rn, rd, in)
	case 4:
		armMultiple(w, rn, in)
	case 5:
		to := a.mask(pc + 8 + uint64(signed(int64(w&0xffffff)<<2, 26)))
		if w>>24&1 == 1 {
			in.call(to)
		} else {
			in.jump(to, false)
		}
	case 6:
		armVector(w, rn, in)
	case 7:
		switch {
		case w>>24&1 == 1:
			in.flow = flowSyscall
			in.clear(0)
		case w>>20&1 == 1 && w&0x10 != 0 && rd != armPC: // MRC, VMOV
			in.clear(rd)
		}
	}
}

// armVector decodes VPUSH, VPOP, VLDM and VSTM with write-back, and moves of two registers.
func armVector(w uint32, rn int, in *inst) {
	if w>>21&0x7f == 0x62 { // MRRC, VMOV
		if w>>20&1 == 1 {
			in.clear(int(w >> 12 & 15))
			in.clear(rn)
		}
		return
	}
	size := int64(w&0xff) * 4
	if w>>21&1 == 0 { // no write-back
		if w>>20&1 == 0 {
			if w>>23&1 == 0 {
				size = -size
			}
			in.store(noReg, rn, size, 8)
		}
		return
	}
	if w>>23&1 == 0 {
		size = -size
	}
	in.addImm(rn, rn, size)
}

// armImmediate returns the rotated constant of an instruction.
func armImmediate(w uint32) uint64 {
	return uint64(mathbits.RotateLeft32(w&0xff, -int(w>>8&15)*2))
}

// armData decodes data processing, multiplication and the instructions that share their
// encoding space.
func armData(w uint32, pc uint64, rn, rd int, in *inst) {
	immediate := w>>25&1 == 1
	rm := int(w & 15)
	switch {
	case w&0x0ffffff0 == 0x012fff10, w&0x0ffffff0 == 0x012fff20: // BX, BXJ
		armTo(in, rm)
		return
	case w&0x0ffffff0 == 0x012fff30:
		in.callReg()
		return
	case w&0x0ff00000 == 0x03000000: // MOVW
		in.set(rd, uint64(w>>4&0xf000|w&0xfff))
		return
	case w&0x0ff00000 == 0x03400000: // MOVT
		in.add(op{kind: opAnd, dst: rd, src: rd, imm: 0xffff})
		in.add(op{kind: opOr, dst: rd, src: rd, imm: int64(w>>4&0xf000|w&0xfff) << 16})
		return
	case !immediate && w&0x90 == 0x90:
		armExtra(w, rn, rd, in)
		return
	case w>>23&3 == 2 && w>>20&1 == 0: // MRS, MSR, CLZ, hints
		if w>>25&1 == 0 && rd != armPC && (w&0xf0 == 0 && w>>21&1 == 0 || w&0xf0 == 0x10) {
			in.clear(rd)
		}
		return
	}
	opcode := w >> 21 & 15
	plain := !immediate && w>>4&0xff == 0 // a register that is not shifted
	switch {
	case opcode >= 8 && opcode <= 11: // TST, TEQ, CMP, CMN
	case opcode == 13 && plain: // MOV
		switch {
		case rd == armPC:
			armTo(in, rm)
		case rm == armPC:
			in.set(rd, pc+8)
		default:
			in.move(rd, rm)
		}
	case opcode == 13 && immediate:
		in.set(rd, armImmediate(w))
	case opcode == 15 && immediate:
		in.set(rd, ^armImmediate(w))
	case (opcode == 2 || opcode == 4) && immediate && rd != armPC:
		imm := int64(armImmediate(w))
		if opcode == 2 {
			imm = -imm
		}
		if rn == armPC {
			in.set(rd, uint64(int64(pc)+8+imm))
		} else {
			in.addImm(rd, rn, imm)
		}
	case (opcode == 2 || opcode == 4) && plain && rd != armPC && rn != armPC && rm != armPC:
		kind := opSubReg
		if opcode == 4 {
			kind = opAddReg
		}
		in.add(op{kind: kind, dst: rd, src: rn, src2: rm})
	case opcode == 14 && immediate && rd != armPC: // BIC
		in.add(op{kind: opAnd, dst: rd, src: rn, imm: ^int64(armImmediate(w))})
	case rd == armPC:
		in.indirect(noReg)
	default:
		in.clear(rd)
	}
}

// armTo decodes a jump to a register. A jump to lr is a return.
func armTo(in *inst, r int) {
	if r == armLR {
		in.ret(r)
	} else {
		in.indirect(r)
	}
}

// armExtra decodes multiplications, halfword and doubleword transfers.
func armExtra(w uint32, rn, rd int, in *inst) {
	kind := w >> 5 & 3
	if kind == 0 { // MUL, SWP, LDREX
		in.clear(rd)
		if w>>24&1 == 0 {
			in.clear(rn)
		}
		return
	}
	off := int64(w>>4&0xf0 | w&15)
	if w>>23&1 == 0 {
		off = -off
	}
	known := w>>22&1 == 1
	pre, back := w>>24&1 == 1, w>>24&1 == 0 || w>>21&1 == 1
	load := w>>20&1 == 1 || kind == 2
	at := int64(0)
	if pre {
		at = off
	}
	switch {
	case load && w>>20&1 == 0: // LDRD
		if known {
			in.move(tempReg, rn)
			in.load(rd, tempReg, at, 4)
			in.load(rd+1, tempReg, at+4, 4)
		} else {
			in.clear(rd)
			in.clear(rd + 1)
		}
	case load:
		in.clear(rd)
	case kind == 3 && known: // STRD
		in.store(rd, rn, at, 4)
		in.store(rd+1, rn, at+4, 4)
	case kind == 1 && known:
		in.store(noReg, rn, at, 2)
	}
	if back {
		if known {
			in.addImm(rn, rn, off)
		} else {
			in.clear(rn)
		}
	}
}

// armLoadStore decodes LDR, STR, LDRB and STRB.
func armLoadStore(w uint32, pc uint64, rn, rd int, in *inst) {
	off := int64(w & 0xfff)
	if w>>23&1 == 0 {
		off = -off
	}
	known := w>>25&1 == 0
	pre, back := w>>24&1 == 1, w>>24&1 == 0 || w>>21&1 == 1
	size := 4
	if w>>22&1 == 1 {
		size = 1
	}
	armAccess(in, w>>20&1 == 1, known, pre, back, rn, rd, off, size, pc+8)
}

// armAccess decodes a load or store with write-back. pc is the value that register 15
// reads as.
func armAccess(in *inst, load, known, pre, back bool, rn, rd int, off int64, size int, pc uint64) {
	at := int64(0)
	if pre {
		at = off
	}
	base := rn
	if rn == armPC {
		in.set(tempReg, pc)
		base = tempReg
	}
	switch {
	case load && known && size == 4:
		in.move(tempReg, base)
		if back {
			in.addImm(rn, rn, off)
		}
		in.load(rd, tempReg, at, 4)
		if rd == armPC {
			if rn == armSP {
				in.ret(armPC)
			} else {
				in.indirect(armPC)
			}
		}
		return
	case load && rd == armPC:
		in.indirect(noReg)
	case load:
		in.clear(rd)
	case known && size == 4:
		in.store(rd, base, at, 4)
	case known:
		in.store(noReg, base, at, size)
	}
	if back {
		if known {
			in.addImm(rn, rn, off)
		} else {
			in.clear(rn)
		}
	}
}

// armMultiple decodes LDM and STM.
func armMultiple(w uint32, rn int, in *inst) {
	armList(in, w>>20&1 == 1, w>>24&1 == 1, w>>23&1 == 1, w>>21&1 == 1, rn, w&0xffff)
}

// armList transfers a list of registers, bit n for register n.
func armList(in *inst, load, before, up, back bool, rn int, list uint32) {
	n := int64(mathbits.OnesCount32(list)) * 4
	at := int64(0)
	switch {
	case up && before:
		at = 4
	case !up && before:
		at = -n
	case !up:
		at = 4 - n
	}
	if !up {
		n = -n
	}
	in.move(tempReg, rn)
	if back {
		in.addImm(rn, rn, n)
	}
	for r := range 16 {
		if list>>r&1 == 0 {
			continue
		}
		if load {
			in.load(r, tempReg, at, 4)
		} else {
			in.store(r, tempReg, at, 4)
		}
		at += 4
	}
	if load && list>>armPC&1 == 1 {
		in.ret(armPC)
	}
}

package unwind

import "encoding/binary"

// decodeAArch64 knows what saves, restores and moves, and which register all
// other instructions write.
func decodeAArch64(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 4 || pc&3 != 0 {
		return false
	}
	w := binary.LittleEndian.Uint32(code)
	in.size = 4
	rd, rn, rm := int(w&31), int(w>>5&31), int(w>>16&31)
	switch {
	case w>>26 == 0x05:
		in.jump(pc+uint64(signed(int64(w&0x3ffffff)<<2, 28)), false)
	case w>>26 == 0x25:
		in.call(pc + uint64(signed(int64(w&0x3ffffff)<<2, 28)))
	case w>>24 == 0x54, w>>25&0x3f == 0x1a: // B.cond, CBZ, CBNZ
		in.jump(pc+uint64(signed(int64(w>>5&0x7ffff)<<2, 21)), true)
	case w>>25&0x3f == 0x1b: // TBZ, TBNZ
		in.jump(pc+uint64(signed(int64(w>>5&0x3fff)<<2, 16)), true)
	case w>>25 == 0x6b:
		a64Branch(w, rn, in)
	case w>>24 == 0xd4:
		if w&0xffe0001f == 0xd4000001 {
			in.flow = flowSyscall
			in.clear(0)
		} else {
			in.flow = flowStop // BRK, HLT
		}
	case w>>24 == 0xd5: // system: MRS writes
		if w>>20 == 0xd53 {
			a64Clear(in, rd)
		}
		if w == 0xd50323ff || w == 0xd50323bf { // AUTIASP: the mask is taken off in any case
			return true
		}
	case w>>24&0x1f == 0x11: // ADD, SUB immediate; 31 is sp
		imm := int64(w >> 10 & 0xfff)
		if w>>22&1 == 1 {
			imm <<= 12
		}
		if w>>30&1 == 1 {
			imm = -imm
		}
		switch {
		case w>>31 == 1 && !(w>>29&1 == 1 && rd == 31):
			in.addImm(rd, rn, imm)
		case rd != 31:
			in.clear(rd)
		}
	case w>>24&0x1f == 0x0b && w>>31 == 1: // ADD, SUB shifted or extended register
		a64AddReg(w, rd, rn, rm, in)
	case w>>23&0x3f == 0x24: // AND immediate, ORR, EOR: of sp to align it
		if w>>31 == 1 && w>>29&3 == 0 && rd == 31 {
			in.add(op{kind: opAnd, dst: 31, src: rn, imm: int64(a64Mask(w))})
		} else if w>>29&3 != 3 { // not ANDS to xzr
			in.clear(rd)
		} else {
			a64Clear(in, rd)
		}
	case w>>24&0x1f == 0x0a: // logical, shifted register
		if w>>21&0x7ff == 0x550 && rn == 31 && w>>10&63 == 0 && rm != 31 && rd != 31 { // MOV
			in.move(rd, rm)
		} else {
			a64Clear(in, rd)
		}
	case w>>23&0x3f == 0x25: // MOVN, MOVZ, MOVK
		a64MoveWide(w, rd, in)
	case w>>24&0x1f == 0x10: // ADR, ADRP
		off := signed(int64(w>>5&0x7ffff)<<2|int64(w>>29&3), 21)
		if w>>31 == 1 {
			in.set(rd, pc&^0xfff+uint64(off<<12))
		} else {
			in.set(rd, pc+uint64(off))
		}
	case w>>25&5 == 4: // loads and stores
		a64Memory(w, rd, rn, rm, in)
	case w>>26&7 == 4, w>>25&7 == 5: // other data processing
		a64Clear(in, rd)
	case w>>25&7 == 7: // SIMD and FP: some write a general register
		if w&0x5f20fc00 == 0x1e200000 || w&0xbfe0fc00 == 0x0e003c00 || w&0xbfe0fc00 == 0x0e002c00 || w&0x7f20fc00 == 0x1e200000 {
			a64Clear(in, rd)
		}
	}
	return true
}

// a64Clear is for instructions whose register 31 is the zero register.
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
	case 3: // MOVK, behind a MOVZ
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

// a64Mask decodes the bit mask of a 64-bit logical immediate, as far as it clears
// low bits: other ones do not occur with sp.
func a64Mask(w uint32) uint64 {
	n, r, s := w>>22&1, w>>16&63, w>>10&63
	if n != 1 || s == 63 {
		return 0
	}
	ones := uint64(1)<<(s+1) - 1
	return ones>>r | ones<<(64-r)
}

// a64Memory decodes loads and stores.
func a64Memory(w uint32, rt, rn, rm int, in *inst) {
	vector := w>>26&1 == 1
	switch {
	case w>>27&7 == 5: // pairs
		rt2 := int(w >> 10 & 31)
		size := 4 << (w >> 31)
		if vector {
			size = 4 << (w >> 30)
		}
		if !vector && w>>30 == 1 { // LDPSW
			size = 4
		}
		off := signed(int64(w>>15&127), 7) * int64(size)
		mode := w >> 23 & 3
		a64Indexed(in, rn, off, mode == 1, mode == 3, func(off int64) {
			for i, r := range []int{rt, rt2} {
				a64Access(in, w>>22&1 == 1, vector, r, rn, off+int64(i*size), size)
			}
		})
	case w>>27&7 == 7 && w>>24&3 == 1: // unsigned offset
		size := 1 << (w >> 30)
		if vector && w>>23&1 == 1 {
			size = 16
		}
		off := int64(w>>10&0xfff) * int64(size)
		if w>>30 == 3 && w>>22&3 == 2 && !vector { // PRFM
			return
		}
		a64Access(in, w>>22&3 != 0 && !(vector && w>>22&1 == 0), vector, rt, rn, off, size)
	case w>>27&7 == 7 && w>>24&3 == 0 && w>>21&1 == 0: // unscaled, post, pre
		size := 1 << (w >> 30)
		if vector && w>>23&1 == 1 {
			size = 16
		}
		off := signed(int64(w>>12&511), 9)
		mode := w >> 10 & 3
		a64Indexed(in, rn, off, mode == 1, mode == 3, func(off int64) {
			a64Access(in, w>>22&3 != 0 && !(vector && w>>22&1 == 0), vector, rt, rn, off, size)
		})
	case w>>27&7 == 7: // register offset, atomics
		if w>>22&3 != 0 && !vector || w>>10&3 == 0 {
			a64Clear(in, rt)
		}
	case w>>27&7 == 3: // literal
		if !vector {
			a64Clear(in, rt)
		}
	case w>>24&0x3f == 8: // exclusive and ordered
		if w>>22&1 == 1 {
			a64Clear(in, rt)
			if w>>21&1 == 1 {
				a64Clear(in, int(w>>10&31))
			}
		}
		a64Clear(in, rm) // status
	case vector && w>>23&1 == 1 && rn == 31: // LD1, ST1 with write-back
		in.clear(rn)
	}
	_ = rm
}

// a64Indexed does what is done at base+off with write-back before or after it.
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

package unwind

// mips is one instruction.
type mips struct {
	a          *machine
	in         *inst
	w          uint32
	pc         uint64
	rs, rt, rd int
	imm        int64
	branch     uint64 // target of a branch
}

// decodeMIPS decodes MIPS I to MIPS64 releases 2 and 6, but not MIPS16 and microMIPS.
func decodeMIPS(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 4 || pc&3 != 0 {
		return false
	}
	w := a.code.Uint32(code)
	in.size = 4
	d := mips{a: a, in: in, w: w, pc: pc, rs: int(w >> 21 & 31), rt: int(w >> 16 & 31), rd: int(w >> 11 & 31), imm: int64(int16(w))}
	d.branch = a.mask(pc + 4 + uint64(d.imm<<2))
	if do := mipsOps[w>>26]; do != nil {
		do(&d)
	}
	return true
}

func mipsWrites(d *mips) { mipsClear(d.in, d.rt) }
func mipsAddImm(d *mips) { mipsAdd(d.in, d.rt, d.rs, d.imm) }

// mipsStores returns the effect of a store of a register; mipsStoresOther returns the effect
// of a store whose value is not tracked.
func mipsStores(size int) func(d *mips) {
	return func(d *mips) { d.in.store(rvStored(d.a, d.rt, size), d.rs, d.imm, size) }
}

func mipsStoresOther(size int) func(d *mips) {
	return func(d *mips) { d.in.store(noReg, d.rs, d.imm, size) }
}

// mipsStoresIf is SC, which also writes rt.
func mipsStoresIf(d *mips) {
	d.in.store(noReg, d.rs, d.imm, 1)
	mipsClear(d.in, d.rt)
}

// mipsBranches is a conditional branch.
func mipsBranches(d *mips) {
	d.in.delay = true
	d.in.jump(d.branch, true)
}

// mipsJumps is J, or JAL if bit 26 is set.
func mipsJumps(d *mips) {
	to := d.a.mask((d.pc+4)&^0xfffffff | uint64(d.w&0x3ffffff)<<2)
	d.in.delay = true
	if d.w>>26 == 2 {
		d.in.jump(to, false)
	} else {
		d.in.call(to)
	}
}

// mipsOps are the instructions by opcode, bits 26 to 31; nil for those without an
// effect here.
var mipsOps = [64]func(d *mips){
	0x00: func(d *mips) { mipsSpecial(d.w, d.rs, d.rt, d.rd, d.in) },
	0x01: mipsRegimm,
	0x02: mipsJumps, 0x03: mipsJumps,
	0x04: func(d *mips) { // BEQ; B if both registers are the same
		d.in.delay = true
		d.in.jump(d.branch, d.rs != d.rt)
	},
	0x05: mipsBranches, 0x06: mipsBranches, 0x07: mipsBranches,
	0x14: mipsBranches, 0x15: mipsBranches, 0x16: mipsBranches, 0x17: mipsBranches,
	0x08: mipsAddImm, 0x09: mipsAddImm, 0x18: mipsAddImm, 0x19: mipsAddImm, // ADDI, ADDIU, DADDI, DADDIU
	0x0a: mipsWrites, 0x0b: mipsWrites, 0x0e: mipsWrites, 0x1a: mipsWrites, 0x1b: mipsWrites,
	0x0c: func(d *mips) { // ANDI
		d.in.add(op{kind: opAnd, dst: d.rt, src: d.rs, imm: int64(uint16(d.imm))})
	},
	0x0d: func(d *mips) { // ORI
		if d.rs == 0 {
			d.in.set(d.rt, uint64(uint16(d.imm)))
		} else if d.rt != 0 {
			d.in.add(op{kind: opOr, dst: d.rt, src: d.rs, imm: int64(uint16(d.imm))})
		}
	},
	0x0f: func(d *mips) { // LUI
		if d.rt != 0 && d.rs == 0 {
			d.in.set(d.rt, uint64(d.imm<<16))
		}
	},
	0x10: mipsCoprocessor, 0x11: mipsCoprocessor, 0x12: mipsCoprocessor,
	0x1c: func(d *mips) { mipsClear(d.in, d.rd) }, // SPECIAL2: MUL, CLZ
	0x1f: func(d *mips) { // SPECIAL3: SEB, WSBH, DSBH write rd; EXT, INS, where rd is a size, write rt
		if f := d.w & 0x3f; f == 0x20 || f == 0x24 {
			mipsClear(d.in, d.rd)
		} else {
			mipsClear(d.in, d.rt)
		}
	},
	0x20: mipsWrites, 0x21: mipsWrites, 0x22: mipsWrites, 0x24: mipsWrites, 0x25: mipsWrites,
	0x26: mipsWrites, 0x27: mipsWrites, 0x30: mipsWrites, 0x34: mipsWrites,
	0x23: func(d *mips) { mipsLoad(d.a, d.in, d.rt, d.rs, d.imm, 4) },
	0x37: func(d *mips) { mipsLoad(d.a, d.in, d.rt, d.rs, d.imm, 8) },
	0x28: mipsStoresOther(1), 0x29: mipsStoresOther(2), 0x2b: mipsStores(4), 0x3f: mipsStores(8),
	0x38: mipsStoresIf, 0x3c: mipsStoresIf,
	0x39: mipsStoresOther(4), 0x3d: mipsStoresOther(8), // SWC1, SDC1
}

// mipsRegimm decodes opcode 1.
func mipsRegimm(d *mips) {
	d.in.delay = true
	switch {
	case d.rt == 0x11 && d.rs == 0: // BAL
		if d.branch == d.a.mask(d.pc+8) { // reads the program counter
			d.in.delay = false
			d.in.set(31, d.pc+8)
			return
		}
		d.in.call(d.branch)
	case d.rt == 0x10 || d.rt == 0x11:
		d.in.callReg()
	case d.rt < 4:
		d.in.jump(d.branch, true)
	default:
		d.in.delay = false // traps
	}
}

// mipsCoprocessor decodes moves to rt, and branches.
func mipsCoprocessor(d *mips) {
	if d.rs == 8 && d.w>>26 == 0x11 {
		mipsBranches(d)
	} else if d.rs <= 3 {
		mipsClear(d.in, d.rt)
	}
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
		// BREAK: gcc also writes it after divisions, where it is skipped
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

package unwind

import (
	"slices"
	"strings"

	"golang.org/x/arch/ppc64/ppc64asm"
)

// DWARF numbers of PowerPC's link and count registers.
const (
	ppcLR  = 65
	ppcCTR = 66
)

// ppc is one instruction.
type ppc struct {
	a          *machine
	in         *inst
	x          ppc64asm.Inst
	pc         uint64
	rt, ra, rb int // register fields by position
	imm        int64
}

// decodePPC decodes 32-bit PowerPC.
func decodePPC(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 4 || pc&3 != 0 {
		return false
	}
	in.size = 4
	x, err := ppc64asm.Decode(code[:4], a.code)
	if err != nil {
		return true // an instruction of a later PowerPC, or data
	}
	w := x.Enc
	d := ppc{a: a, in: in, x: x, pc: pc, rt: int(w >> 21 & 31), ra: int(w >> 16 & 31), rb: int(w >> 11 & 31), imm: int64(int16(w))}
	if do := ppcOps[x.Op]; do != nil {
		do(&d)
		return true
	}
	d.other()
	return true
}

// ppcReads are prefixes of the names of instructions that do not write their first operand.
var ppcReads = []string{"st", "dcb", "icb", "tw", "td", "mt", "cmp", "tlb", "slb", "wrtee"}

// other clears the registers that an instruction writes: its first operand and, for an
// instruction "with update", the address register.
func (d *ppc) other() {
	name := strings.TrimSuffix(d.x.Op.String(), ".")
	store := strings.HasPrefix(name, "st")
	if r, ok := d.x.Args[0].(ppc64asm.Reg); ok && r <= ppc64asm.R31 &&
		!slices.ContainsFunc(ppcReads, func(p string) bool { return strings.HasPrefix(name, p) }) {
		d.in.clear(int(r - ppc64asm.R0))
	}
	if (store || name[0] == 'l') && (strings.HasSuffix(name, "u") || strings.HasSuffix(name, "ux")) {
		d.in.clear(d.ra)
	}
}

// ppcOps are the instructions with a known effect. For others, other clears the
// registers that they write.
var ppcOps = map[ppc64asm.Op]func(d *ppc){
	ppc64asm.B: ppcBranch, ppc64asm.BA: ppcBranch, ppc64asm.BL: ppcBranch, ppc64asm.BLA: ppcBranch,
	ppc64asm.BC: ppcBranch, ppc64asm.BCA: ppcBranch, ppc64asm.BCL: ppcBranch, ppc64asm.BCLA: ppcBranch,
	ppc64asm.SC: func(d *ppc) {
		d.in.flow = flowSyscall
		d.in.clear(3)
	},
	ppc64asm.BCLR:  func(d *ppc) { d.in.ret(ppcLR); d.conditional() },
	ppc64asm.BCCTR: func(d *ppc) { d.in.indirect(ppcCTR); d.conditional() },
	ppc64asm.BCLRL: func(d *ppc) { d.in.callReg() }, ppc64asm.BCCTRL: func(d *ppc) { d.in.callReg() },
	ppc64asm.TW: func(d *ppc) {
		if d.rt == 31 && d.ra == d.rb {
			d.in.flow = flowStop // TRAP
		}
	},
	ppc64asm.TWI: func(d *ppc) {
		if d.rt == 31 {
			d.in.flow = flowStop
		}
	},
	ppc64asm.ADDI:  func(d *ppc) { d.addImm(d.imm) },
	ppc64asm.ADDIS: func(d *ppc) { d.addImm(d.imm << 16) },
	ppc64asm.ORI: func(d *ppc) {
		if d.rt != 0 || d.ra != 0 { // NOP
			d.in.add(op{kind: opOr, dst: d.ra, src: d.rt, imm: int64(uint16(d.imm))})
		}
	},
	ppc64asm.LI:  func(d *ppc) { d.addImm(d.imm) },
	ppc64asm.LIS: func(d *ppc) { d.addImm(d.imm << 16) },
	ppc64asm.OR:  ppcOr, ppc64asm.ORCC: ppcOr,
	ppc64asm.ADD: ppcAdd, ppc64asm.ADDCC: ppcAdd,
	ppc64asm.SUBF: ppcSub, ppc64asm.SUBFCC: ppcSub,
	ppc64asm.MFSPR: ppcFromSpecial,
	ppc64asm.MTSPR: ppcToSpecial,
	ppc64asm.LWZ:   func(d *ppc) { d.word(false, false) }, ppc64asm.LWZU: func(d *ppc) { d.word(false, true) },
	ppc64asm.STW: func(d *ppc) { d.word(true, false) }, ppc64asm.STWU: func(d *ppc) { d.word(true, true) },
	ppc64asm.LMW: func(d *ppc) {
		for r := d.rt; r < 32; r++ {
			if r != d.ra {
				d.in.load(r, d.ra, d.imm+int64(r-d.rt)*4, 4)
			}
		}
	},
	ppc64asm.STMW: func(d *ppc) {
		for r := d.rt; r < 32; r++ {
			d.in.store(r, d.ra, d.imm+int64(r-d.rt)*4, 4)
		}
	},
	ppc64asm.STB: ppcStores(1), ppc64asm.STBU: ppcStores(1), ppc64asm.STH: ppcStores(2), ppc64asm.STHU: ppcStores(2),
	ppc64asm.STFS: ppcStores(4), ppc64asm.STFSU: ppcStores(4), ppc64asm.STFD: ppcStores(8), ppc64asm.STFDU: ppcStores(8),
	ppc64asm.STWX: func(d *ppc) { d.indexed(false) }, ppc64asm.STWUX: func(d *ppc) { d.indexed(true) }, // of large frames
}

// ppcOr is OR, or MR.
func ppcOr(d *ppc) {
	if d.rt == d.rb {
		d.in.move(d.ra, d.rt)
	} else {
		d.in.clear(d.ra)
	}
}

func ppcAdd(d *ppc) { d.in.add(op{kind: opAddReg, dst: d.rt, src: d.ra, src2: d.rb}) }
func ppcSub(d *ppc) { d.in.add(op{kind: opSubReg, dst: d.rt, src: d.rb, src2: d.ra}) }

// ppcBranch is B and BC.
func ppcBranch(d *ppc) {
	w, base := d.x.Enc, d.pc
	off, cond := signed(int64(w&0x3fffffc), 26), false
	if w>>26 == 16 {
		off, cond = signed(int64(w&0xfffc), 16), d.rt&20 != 20
	}
	if w&2 != 0 {
		base = 0
	}
	to := d.a.mask(base + uint64(off))
	switch link := w&1 == 1; {
	case link && to == d.a.mask(d.pc+4): // reads the program counter
		d.in.set(ppcLR, d.pc+4)
	case link:
		d.in.call(to)
	default:
		d.in.jump(to, cond)
	}
}

// conditional sets whether a branch to a register is conditional.
func (d *ppc) conditional() { d.in.cond = d.rt&20 != 20 }

func (d *ppc) addImm(imm int64) {
	if d.ra == 0 {
		d.in.set(d.rt, uint64(imm))
	} else {
		d.in.addImm(d.rt, d.ra, imm)
	}
}

// Numbers of the link and count registers as special registers, with their halves swapped.
const (
	sprLR  = 8 << 5
	sprCTR = 9 << 5
)

func ppcFromSpecial(d *ppc) {
	switch d.x.Enc >> 11 & 0x3ff {
	case sprLR:
		d.in.move(d.rt, ppcLR)
	case sprCTR:
		d.in.move(d.rt, ppcCTR)
	default:
		d.in.clear(d.rt)
	}
}

func ppcToSpecial(d *ppc) {
	switch d.x.Enc >> 11 & 0x3ff {
	case sprLR:
		d.in.move(ppcLR, d.rt)
	case sprCTR:
		d.in.move(ppcCTR, d.rt)
	}
}

// word loads or stores a word, and updates the register of the address.
func (d *ppc) word(store, update bool) {
	switch {
	case d.ra == 0 && !store:
		d.in.clear(d.rt)
	case d.ra == 0:
	case store:
		d.in.store(d.rt, d.ra, d.imm, 4)
	default:
		d.in.load(d.rt, d.ra, d.imm, 4)
	}
	if update && d.ra != 0 {
		d.in.addImm(d.ra, d.ra, d.imm)
	}
}

// ppcStores returns the effect of a store whose value is not tracked.
func ppcStores(size int) func(d *ppc) {
	return func(d *ppc) {
		d.in.store(noReg, d.ra, d.imm, size)
		if d.x.Enc>>26&1 == 1 { // with update
			d.in.addImm(d.ra, d.ra, d.imm)
		}
	}
}

// indexed stores a word at the sum of two registers.
func (d *ppc) indexed(update bool) {
	d.in.add(op{kind: opAddReg, dst: tempReg, src: d.ra, src2: d.rb})
	d.in.store(d.rt, tempReg, 0, 4)
	if update {
		d.in.move(d.ra, tempReg)
	}
}

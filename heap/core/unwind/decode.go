package unwind

import (
	"encoding/binary"
	mathbits "math/bits"
)

// decoding is an instruction being decoded.
type decoding struct {
	*inst
	a   *machine
	pc  uint64 // of the instruction
	rel uint64 // what the program counter reads as
	bad bool   // not an instruction
}

func (d *decoding) to(off int64) uint64 { return d.a.mask(d.rel + uint64(off)) }

// verb is an effect of instructions.
type verb struct {
	args int
	do   func(d *decoding, x *values)
}

var verbs = map[string]verb{
	"bad":   {0, func(d *decoding, _ *values) { d.bad = true }},
	"clear": {1, func(d *decoding, x *values) { d.clear(x.reg(0)) }},
	"set":   {2, func(d *decoding, x *values) { d.set(x.reg(0), uint64(x[1])) }},
	"move":  {2, func(d *decoding, x *values) { d.move(x.reg(0), x.reg(1)) }},
	"add":   {3, func(d *decoding, x *values) { d.addImm(x.reg(0), x.reg(1), x[2]) }},
	"sum": {3, func(d *decoding, x *values) {
		d.add(op{kind: opAddReg, dst: x.reg(0), src: x.reg(1), src2: x.reg(2)})
	}},
	"difference": {3, func(d *decoding, x *values) {
		d.add(op{kind: opSubReg, dst: x.reg(0), src: x.reg(1), src2: x.reg(2)})
	}},
	"and":   {3, func(d *decoding, x *values) { d.add(op{kind: opAnd, dst: x.reg(0), src: x.reg(1), imm: x[2]}) }},
	"or":    {3, func(d *decoding, x *values) { d.add(op{kind: opOr, dst: x.reg(0), src: x.reg(1), imm: x[2]}) }},
	"load":  {4, func(d *decoding, x *values) { d.load(x.reg(0), x.reg(1), x[2], x.reg(3)) }},
	"store": {4, func(d *decoding, x *values) { d.store(x.reg(0), x.reg(1), x[2], x.reg(3)) }},
	"list": {6, func(d *decoding, x *values) {
		d.list(x[0] == 1, x[1] == 1, x[2] == 1, x[3] == 1, x.reg(4), uint32(x[5]))
	}},
	// An address relative to the program counter, to its word, or to its page.
	"setpc":   {2, func(d *decoding, x *values) { d.set(x.reg(0), d.rel+uint64(x[1])) }},
	"setword": {2, func(d *decoding, x *values) { d.set(x.reg(0), d.rel&^3+uint64(x[1])) }},
	"setpage": {2, func(d *decoding, x *values) { d.set(x.reg(0), d.rel&^0xfff+uint64(x[1])) }},
	"link":    {1, func(d *decoding, x *values) { d.set(x.reg(0), d.pc+uint64(d.size)) }},
	// Control flow.
	"jump":     {1, func(d *decoding, x *values) { d.jump(d.to(x[0]), false) }},
	"branch":   {1, func(d *decoding, x *values) { d.jump(d.to(x[0]), true) }},
	"call":     {1, func(d *decoding, x *values) { d.call(d.to(x[0])) }},
	"callword": {1, func(d *decoding, x *values) { d.call(d.to(x[0]) &^ 3) }},
	"jump28":   {1, func(d *decoding, x *values) { d.jump(d.a.mask(d.rel&^0xfffffff|uint64(x[0])), false) }},
	"call28":   {1, func(d *decoding, x *values) { d.call(d.a.mask(d.rel&^0xfffffff | uint64(x[0]))) }},
	"calls":    {0, func(d *decoding, _ *values) { d.callReg() }},
	"goto":     {1, func(d *decoding, x *values) { d.indirect(x.reg(0)) }},
	"return":   {1, func(d *decoding, x *values) { d.ret(x.reg(0)) }},
	"stop":     {0, func(d *decoding, _ *values) { d.flow = flowStop }},
	"syscall":  {0, func(d *decoding, _ *values) { d.flow = flowSyscall }},
	"delay":    {0, func(d *decoding, _ *values) { d.delay = true }},
	"then":     {1, func(d *decoding, x *values) { d.it = x.reg(0) }},
}

// list transfers a list of registers, bit n for register n.
func (in *inst) list(load, before, up, back bool, rn int, list uint32) {
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

// decode decodes the instruction w at pc, whose size is set in in. It reports whether it may be an instruction.
func (t *table) decode(a *machine, w uint32, pc uint64, in *inst) bool {
	d := decoding{inst: in, a: a, pc: pc, rel: pc + t.base}
	for _, p := range t.index[w>>t.shift&0xff] {
		if w&p.mask != p.value || p.word != 0 && p.word != a.word {
			continue
		}
		for i := range p.effects {
			e := &p.effects[i]
			var x values
			for n, o := range e.args {
				if x[n] = o.n; o.field != nil {
					x[n] = o.field.of(w)
				}
			}
			e.do(&d, &x)
		}
		break
	}
	return !d.bad
}

// decodeWords decodes an instruction of a machine whose instructions have 4 bytes.
func decodeWords(t func() *table) func(a *machine, code []byte, pc uint64, in *inst) bool {
	return func(a *machine, code []byte, pc uint64, in *inst) bool {
		if len(code) < 4 || pc&3 != 0 {
			return false
		}
		in.size = 4
		return t().decode(a, a.code.Uint32(code), pc, in)
	}
}

// decodeRISCV decodes RV32 and RV64 with the C extension.
func decodeRISCV(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 2 {
		return false
	}
	if h := binary.LittleEndian.Uint16(code); h&3 != 3 {
		in.size = 2
		return rvcTable().decode(a, uint32(h), pc, in)
	}
	if len(code) < 4 {
		return false
	}
	in.size = 4
	return riscvTable().decode(a, binary.LittleEndian.Uint32(code), pc, in)
}

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
	ok := armTable().decode(a, w, pc, in)
	if w>>28 < 14 {
		in.conditional()
	}
	return ok
}

// decodeThumb decodes Thumb and Thumb-2.
func decodeThumb(a *machine, code []byte, pc uint64, in *inst) bool {
	if len(code) < 2 {
		return false
	}
	h := uint32(a.code.Uint16(code))
	if h>>11 < 0x1d {
		in.size = 2
		return thumbTable().decode(a, h, pc, in)
	}
	if len(code) < 4 {
		return false
	}
	in.size = 4
	return thumb2Table().decode(a, h<<16|uint32(a.code.Uint16(code[2:])), pc, in)
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

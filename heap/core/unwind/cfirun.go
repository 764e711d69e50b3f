package unwind

import (
	"debug/elf"
	"slices"
)

// ruleKind is the kind of a rule by which a register of the caller is found.
type ruleKind uint8

const (
	ruleSame      ruleKind = iota // the register is unchanged, or there is no rule
	ruleUndefined                 // the value is lost
	ruleOffset                    // at CFA + off
	ruleValOffset                 // CFA + off
	ruleRegister                  // in another register
	ruleExpr                      // at the address that an expression computes
	ruleValExpr                   // the value of an expression
)

type rule struct {
	kind ruleKind
	reg  int
	off  int64
	expr []byte
}

// row holds the rules at one address.
type row struct {
	cfa  rule // ruleRegister: reg + off; ruleExpr
	regs [maxReg]rule
}

// maxRows limits the number of rows that DW_CFA_remember_state stores.
const maxRows = 64

// rulesAt runs the instructions of the entry up to addr; ok is false if they are malformed.
func (f *fde) rulesAt(addr uint64, w *walker) (*row, bool) {
	initial := &row{}
	if !runCFA(f.cie.code, f, initial, nil, ^uint64(0), w) {
		return nil, false
	}
	r := *initial
	if !runCFA(f.code, f, &r, initial, addr, w) {
		return nil, false
	}
	return &r, true
}

// cfaOp is a call frame instruction: its operands, and its effect with the register and the rule that they give.
//
//	r  a register; the second one is that of the rule
//	u  an unsigned number, s a signed one; U and S, times the data alignment
//	e  an expression
//	1  2, 4, 8: a number of so many bytes
type cfaOp struct {
	args string
	do   func(m *cfaRun, reg int, to rule) bool
}

// cfaOps are the call frame instructions by opcode, without those that have an operand in the opcode.
var cfaOps = map[byte]cfaOp{
	0x00: {"", func(*cfaRun, int, rule) bool { return true }}, // nop
	0x01: {"", (*cfaRun).setLoc},
	0x02: {"1", (*cfaRun).advance},
	0x03: {"2", (*cfaRun).advance},
	0x04: {"4", (*cfaRun).advance},
	0x1d: {"8", (*cfaRun).advance}, // MIPS_advance_loc8
	0x05: {"rU", setRule(ruleOffset)},
	0x06: {"r", func(m *cfaRun, reg int, _ rule) bool { m.restore(reg); return true }},
	0x07: {"r", setRule(ruleUndefined)},
	0x08: {"r", setRule(ruleSame)},
	0x09: {"rr", setRule(ruleRegister)},
	0x0a: {"", (*cfaRun).remember},
	0x0b: {"", (*cfaRun).recall},
	0x0c: {"ru", (*cfaRun).defCFA},
	0x0d: {"r", func(m *cfaRun, reg int, _ rule) bool { return m.defCFA(reg, rule{off: m.row.cfa.off}) }},
	0x0e: {"u", (*cfaRun).defOffset},
	0x0f: {"e", func(m *cfaRun, _ int, to rule) bool { to.kind = ruleExpr; m.row.cfa = to; return true }},
	0x10: {"re", setRule(ruleExpr)},
	0x11: {"rS", setRule(ruleOffset)},
	0x12: {"rS", (*cfaRun).defCFA},
	0x13: {"S", (*cfaRun).defOffset},
	0x14: {"rU", setRule(ruleValOffset)},
	0x15: {"rS", setRule(ruleValOffset)},
	0x16: {"re", setRule(ruleValExpr)},
	0x2d: {"", func(*cfaRun, int, rule) bool { return true }},  // AArch64 negate_ra_state: codePtr always removes the signature
	0x2e: {"u", func(*cfaRun, int, rule) bool { return true }}, // GNU_args_size
	0x2f: {"rU", func(m *cfaRun, reg int, to rule) bool { // GNU_negative_offset_extended
		to.off = -to.off
		return setRule(ruleOffset)(m, reg, to)
	}},
}

// cfaRun is a run of call frame instructions.
type cfaRun struct {
	cursor
	f       *fde
	w       *walker
	loc     uint64
	row     *row
	initial *row
	stack   []row
}

// runCFA runs call frame instructions until one moves past addr.
func runCFA(code []byte, f *fde, r, initial *row, addr uint64, w *walker) bool {
	m := cfaRun{cursor: cursor{b: code, order: w.arch.order}, f: f, w: w, loc: f.low, row: r, initial: initial}
	for m.off < len(m.b) && m.loc <= addr {
		if !w.spend(1) {
			return false
		}
		op := m.u8()
		low := int(op & 0x3f)
		switch op >> 6 {
		case 1:
			m.advance(0, rule{off: int64(low)})
		case 2:
			setRule(ruleOffset)(&m, low, rule{off: m.operand('U')})
		case 3:
			m.restore(low)
		default:
			if do := cfaOps[op].do; do == nil || !m.run(cfaOps[op]) {
				return false
			}
		}
	}
	return !m.bad
}

// run reads the operands of an instruction and executes it.
func (m *cfaRun) run(op cfaOp) bool {
	reg, to := 0, rule{}
	for i, kind := range []byte(op.args) {
		switch {
		case kind == 'e':
			to.expr = m.take(int(min(m.uleb(), 1<<30)))
		case kind != 'r':
			to.off = m.operand(kind)
		case i == 0:
			reg = int(min(m.uleb(), maxReg))
		default:
			to.reg = int(min(m.uleb(), maxReg))
		}
	}
	return op.do(m, reg, to)
}

// operand reads a number.
func (m *cfaRun) operand(kind byte) int64 {
	switch kind {
	case 'u':
		return int64(m.uleb())
	case 'U':
		return int64(m.uleb()) * m.f.cie.dataAlign
	case 'S':
		return m.sleb() * m.f.cie.dataAlign
	}
	return int64(m.uint(int(kind - '0')))
}

// setRule returns the effect of setting the rule of a register.
func setRule(kind ruleKind) func(m *cfaRun, reg int, to rule) bool {
	return func(m *cfaRun, reg int, to rule) bool {
		if to.kind = kind; reg < maxReg {
			m.row.regs[reg] = to
		}
		return true
	}
}

func (m *cfaRun) restore(reg int) {
	if reg < maxReg {
		m.row.regs[reg] = rule{}
		if m.initial != nil {
			m.row.regs[reg] = m.initial.regs[reg]
		}
	}
}

func (m *cfaRun) setLoc(int, rule) bool {
	v, ok := readEncoded(&m.cursor, m.f.cie.pcEnc&0xf, 0, 0, m.f.cie.addrSize)
	m.loc = v
	return ok && m.f.cie.pcEnc&0x70 == 0
}

func (m *cfaRun) advance(_ int, by rule) bool {
	m.loc += uint64(by.off) * m.f.cie.codeAlign
	return true
}

func (m *cfaRun) defCFA(reg int, to rule) bool {
	m.row.cfa = rule{kind: ruleRegister, reg: reg, off: to.off}
	return true
}

func (m *cfaRun) defOffset(_ int, to rule) bool {
	m.row.cfa.off = to.off
	return true
}

func (m *cfaRun) remember(int, rule) bool {
	m.stack = append(m.stack, *m.row)
	return len(m.stack) <= maxRows && m.w.spend(100)
}

func (m *cfaRun) recall(int, rule) bool {
	if len(m.stack) == 0 {
		return false
	}
	*m.row = m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return true
}

// stepCFI finds the registers of the caller by call frame information. done reports whether
// the tables mark this frame as the outermost.
func (w *walker) stepCFI(f *fde, regs *Regs, bias, addr uint64) (out Regs, done, ok bool) {
	r, ok := f.rulesAt(addr-bias, w)
	if !ok {
		return out, false, false
	}
	cfa, ok := w.cfaOf(r, regs)
	if !ok {
		return out, false, false
	}
	column := f.cie.raColumn
	if column < maxReg && r.regs[column].kind == ruleUndefined {
		return out, true, true
	}
	out = *regs
	a := w.arch
	if a.ra < 0 || column != a.ra { // the column is not a general register
		out.Forget(column)
	}
	for n := range maxReg {
		switch v, known := w.restored(&r.regs[n], n, regs, cfa); {
		case known:
			out.Set(n, v)
		case r.regs[n].kind != ruleSame, n < 72 && !slices.Contains(a.saved, n) && n != column:
			out.Forget(n)
		}
	}
	pc, known := out.Get(column)
	out.PC = a.codePtr(pc)
	return out, false, known
}

// cfaOf returns the canonical frame address.
func (w *walker) cfaOf(r *row, regs *Regs) (cfa uint64, ok bool) {
	switch r.cfa.kind {
	case ruleRegister:
		v, known := regs.Get(r.cfa.reg)
		return w.arch.mask(v + uint64(r.cfa.off)), known
	case ruleExpr:
		return w.eval(r.cfa.expr, regs, nil)
	}
	return 0, false
}

// restored returns the value of register n in the caller by its rule, and whether it is
// known.
func (w *walker) restored(to *rule, n int, regs *Regs, cfa uint64) (v uint64, known bool) {
	a := w.arch
	switch to.kind {
	case ruleSame:
		return cfa, n == a.sp
	case ruleOffset:
		return w.word(a.mask(cfa + uint64(to.off)))
	case ruleExpr:
		at, ok := w.eval(to.expr, regs, &cfa)
		if !ok {
			return 0, false
		}
		return w.word(a.mask(at))
	case ruleValOffset:
		return a.mask(cfa + uint64(to.off)), true
	case ruleRegister:
		return regs.Get(to.reg)
	case ruleValExpr:
		return w.eval(to.expr, regs, &cfa)
	}
	return 0, false
}

// codePtr returns a return address without the bits of its signature.
func (a *machine) codePtr(v uint64) uint64 {
	switch {
	case a.machine != elf.EM_AARCH64:
		return a.mask(v)
	case v>>55&1 == 0:
		return v & (1<<48 - 1)
	}
	return v | ^uint64(1<<48-1)
}

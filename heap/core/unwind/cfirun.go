package unwind

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

// runCFA runs call frame instructions until one moves past addr.
func runCFA(code []byte, f *fde, r, initial *row, addr uint64, w *walker) bool {
	var stack []row
	c := cursor{b: code, order: w.arch.order}
	loc := f.low
	set := func(reg uint64, to rule) {
		if reg < maxReg {
			r.regs[reg] = to
		}
	}
	factored := func(v uint64) int64 { return int64(v) * f.cie.dataAlign }
	for c.off < len(c.b) {
		if !w.spend(1) {
			return false
		}
		op := c.u8()
		low := uint64(op & 0x3f)
		switch op >> 6 {
		case 1: // advance_loc
			loc += low * f.cie.codeAlign
			if loc > addr {
				return true
			}
			continue
		case 2:
			set(low, rule{kind: ruleOffset, off: factored(c.uleb())})
			continue
		case 3:
			restore(r, initial, low)
			continue
		}
		advance := func(n uint64) { loc += n * f.cie.codeAlign }
		switch op {
		case 0x00: // nop
		case 0x01: // set_loc
			v, ok := readEncoded(&c, f.cie.pcEnc&0xf, 0, 0, f.cie.addrSize)
			if !ok || f.cie.pcEnc&0x70 != 0 {
				return false
			}
			loc = v
		case 0x02:
			advance(uint64(c.u8()))
		case 0x03:
			advance(uint64(c.u16()))
		case 0x04:
			advance(uint64(c.u32()))
		case 0x1d: // MIPS_advance_loc8
			advance(c.u64())
		case 0x05:
			reg := c.uleb()
			set(reg, rule{kind: ruleOffset, off: factored(c.uleb())})
		case 0x06:
			restore(r, initial, c.uleb())
		case 0x07:
			set(c.uleb(), rule{kind: ruleUndefined})
		case 0x08:
			set(c.uleb(), rule{kind: ruleSame})
		case 0x09:
			reg := c.uleb()
			set(reg, rule{kind: ruleRegister, reg: int(min(c.uleb(), maxReg))})
		case 0x0a: // remember_state
			if len(stack) >= maxRows || !w.spend(100) {
				return false
			}
			stack = append(stack, *r)
		case 0x0b: // restore_state
			if len(stack) == 0 {
				return false
			}
			*r = stack[len(stack)-1]
			stack = stack[:len(stack)-1]
		case 0x0c: // def_cfa
			reg := c.uleb()
			r.cfa = rule{kind: ruleRegister, reg: int(min(reg, maxReg)), off: int64(c.uleb())}
		case 0x0d:
			r.cfa.kind, r.cfa.reg = ruleRegister, int(min(c.uleb(), maxReg))
		case 0x0e:
			r.cfa.off = int64(c.uleb())
		case 0x0f: // def_cfa_expression
			r.cfa = rule{kind: ruleExpr, expr: c.take(int(min(c.uleb(), 1<<30)))}
		case 0x10:
			reg := c.uleb()
			set(reg, rule{kind: ruleExpr, expr: c.take(int(min(c.uleb(), 1<<30)))})
		case 0x11:
			reg := c.uleb()
			set(reg, rule{kind: ruleOffset, off: c.sleb() * f.cie.dataAlign})
		case 0x12:
			reg := c.uleb()
			r.cfa = rule{kind: ruleRegister, reg: int(min(reg, maxReg)), off: c.sleb() * f.cie.dataAlign}
		case 0x13:
			r.cfa.off = c.sleb() * f.cie.dataAlign
		case 0x14:
			reg := c.uleb()
			set(reg, rule{kind: ruleValOffset, off: factored(c.uleb())})
		case 0x15:
			reg := c.uleb()
			set(reg, rule{kind: ruleValOffset, off: c.sleb() * f.cie.dataAlign})
		case 0x16:
			reg := c.uleb()
			set(reg, rule{kind: ruleValExpr, expr: c.take(int(min(c.uleb(), 1<<30)))})
		case 0x2d: // AArch64 negate_ra_state: codePtr always removes the signature
		case 0x2e: // GNU_args_size
			c.uleb()
		case 0x2f: // GNU_negative_offset_extended
			reg := c.uleb()
			set(reg, rule{kind: ruleOffset, off: -factored(c.uleb())})
		default:
			return false
		}
		if loc > addr {
			return !c.bad
		}
	}
	return !c.bad
}

func restore(r, initial *row, reg uint64) {
	if reg >= maxReg {
		return
	}
	r.regs[reg] = rule{}
	if initial != nil {
		r.regs[reg] = initial.regs[reg]
	}
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
		case r.regs[n].kind != ruleSame, n < 72 && !a.isSaved(n) && n != column:
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

// isSaved reports whether functions preserve register n.
func (a *machine) isSaved(n int) bool {
	for _, s := range a.saved {
		if s == n {
			return true
		}
	}
	return false
}

// codePtr returns a return address without the bits of its signature.
func (a *machine) codePtr(v uint64) uint64 {
	switch a.name {
	case "aarch64":
		if v>>55&1 == 0 {
			return v & (1<<48 - 1)
		}
		return v | ^uint64(1<<48-1)
	case "s390":
		return v & 0x7fffffff
	}
	return a.mask(v)
}

// maxExprOps limits the operations executed for one DWARF expression, which may loop.
const maxExprOps = 1000

// exprConstants are the operations that push an operand.
var exprConstants = map[byte]func(c *cursor, word int) uint64{
	0x03: func(c *cursor, word int) uint64 { return c.addr(word) },
	0x08: func(c *cursor, _ int) uint64 { return uint64(c.u8()) },
	0x09: func(c *cursor, _ int) uint64 { return uint64(int64(int8(c.u8()))) },
	0x0a: func(c *cursor, _ int) uint64 { return uint64(c.u16()) },
	0x0b: func(c *cursor, _ int) uint64 { return uint64(int64(int16(c.u16()))) },
	0x0c: func(c *cursor, _ int) uint64 { return uint64(c.u32()) },
	0x0d: func(c *cursor, _ int) uint64 { return uint64(int64(int32(c.u32()))) },
	0x0e: func(c *cursor, _ int) uint64 { return c.u64() },
	0x0f: func(c *cursor, _ int) uint64 { return c.u64() },
	0x10: func(c *cursor, _ int) uint64 { return c.uleb() },
	0x11: func(c *cursor, _ int) uint64 { return uint64(c.sleb()) },
}

// Operations of DWARF expressions that exprOp executes.
const (
	exprLit0  = 0x30 // to 0x4f
	exprReg0  = 0x50 // to 0x6f
	exprBreg0 = 0x70 // to 0x8f
	exprBregx = 0x92
	exprSkip  = 0x2f
	exprBra   = 0x28
	exprNop   = 0x96
)

// maxExprStack is the largest number of values on the stack of an expression.
const maxExprStack = 64

// eval runs a DWARF expression. If first is not nil, it pushes *first before it starts.
func (w *walker) eval(expr []byte, regs *Regs, first *uint64) (uint64, bool) {
	var st []uint64
	if first != nil {
		st = append(st, *first)
	}
	c := cursor{b: expr, order: w.arch.order}
	for ops := 0; c.off < len(c.b); ops++ {
		if ops > maxExprOps || len(st) > maxExprStack || c.bad || !w.spend(1) {
			return 0, false
		}
		var ok bool
		if st, ok = w.exprOp(c.u8(), st, regs, &c); !ok {
			return 0, false
		}
	}
	if c.bad || len(st) == 0 {
		return 0, false
	}
	return w.arch.mask(st[len(st)-1]), true
}

// exprOp executes one operation of an expression.
func (w *walker) exprOp(op byte, st []uint64, regs *Regs, c *cursor) ([]uint64, bool) {
	if push := exprConstants[op]; push != nil {
		return append(st, push(c, int(w.arch.word))), true
	}
	switch {
	case op >= exprLit0 && op < exprReg0:
		return append(st, uint64(op-exprLit0)), true
	case op >= exprReg0 && op < exprBreg0:
		return st, false // a register location is not an address
	case op >= exprBreg0 && op < exprBreg0+32 || op == exprBregx:
		n := int(op) - exprBreg0
		if op == exprBregx {
			n = int(min(c.uleb(), maxReg))
		}
		off := c.sleb()
		v, ok := regs.Get(n)
		return append(st, w.arch.mask(v+uint64(off))), ok
	case op == exprSkip, op == exprBra:
		return exprJump(op, st, c)
	case op == exprNop:
		return st, true
	}
	return w.exprStackOp(op, st, c)
}

// exprJump executes exprSkip and exprBra, which jumps only if the value that it pops is
// not 0.
func exprJump(op byte, st []uint64, c *cursor) ([]uint64, bool) {
	to := int(int16(c.u16()))
	if op == exprBra {
		if len(st) == 0 {
			return st, false
		}
		v := st[len(st)-1]
		if st = st[:len(st)-1]; v == 0 {
			return st, true
		}
	}
	if to += c.off; to < 0 || to > len(c.b) {
		return st, false
	}
	c.off = to
	return st, true
}

// exprStackOp executes operations on the stack, and memory reads.
func (w *walker) exprStackOp(op byte, st []uint64, c *cursor) ([]uint64, bool) {
	n := len(st)
	args := map[byte]int{0x12: 1, 0x13: 1, 0x14: 2, 0x16: 2, 0x17: 3, 0x06: 1, 0x94: 1, 0x19: 1, 0x1f: 1, 0x20: 1, 0x23: 1}
	want, ok := args[op]
	if !ok {
		want = 2
	}
	if op == 0x15 { // pick
		i := int(c.u8())
		if i >= n {
			return st, false
		}
		return append(st, st[n-1-i]), true
	}
	if n < want {
		return st, false
	}
	switch op {
	case 0x12:
		return append(st, st[n-1]), true
	case 0x13:
		return st[:n-1], true
	case 0x14:
		return append(st, st[n-2]), true
	case 0x16:
		st[n-1], st[n-2] = st[n-2], st[n-1]
		return st, true
	case 0x17:
		st[n-1], st[n-2], st[n-3] = st[n-2], st[n-3], st[n-1]
		return st, true
	case 0x06, 0x94:
		size := int(w.arch.word)
		if op == 0x94 {
			size = int(c.u8())
		}
		v, ok := w.number(st[n-1], size)
		st[n-1] = v
		return st, ok
	case 0x19:
		if int64(st[n-1]) < 0 {
			st[n-1] = -st[n-1]
		}
		return st, true
	case 0x1f:
		st[n-1] = -st[n-1]
		return st, true
	case 0x20:
		st[n-1] = ^st[n-1]
		return st, true
	case 0x23:
		st[n-1] += c.uleb()
		return st, true
	}
	a, b := st[n-2], st[n-1]
	v, ok := binaryOp(op, a, b)
	st[n-2] = v
	return st[:n-1], ok
}

func binaryOp(op byte, a, b uint64) (uint64, bool) {
	truth := func(t bool) (uint64, bool) {
		if t {
			return 1, true
		}
		return 0, true
	}
	switch op {
	case 0x1a:
		return a & b, true
	case 0x1b:
		if b == 0 {
			return 0, false
		}
		return uint64(int64(a) / int64(b)), true
	case 0x1c:
		return a - b, true
	case 0x1d:
		if b == 0 {
			return 0, false
		}
		return a % b, true
	case 0x1e:
		return a * b, true
	case 0x21:
		return a | b, true
	case 0x22:
		return a + b, true
	case 0x24:
		return a << min(b, 64), true
	case 0x25:
		return a >> min(b, 64), true
	case 0x26:
		return uint64(int64(a) >> min(b, 63)), true
	case 0x27:
		return a ^ b, true
	case 0x29:
		return truth(a == b)
	case 0x2a:
		return truth(int64(a) >= int64(b))
	case 0x2b:
		return truth(int64(a) > int64(b))
	case 0x2c:
		return truth(int64(a) <= int64(b))
	case 0x2d:
		return truth(int64(a) < int64(b))
	case 0x2e:
		return truth(a != b)
	}
	return 0, false
}

package unwind

// ruleKind is how a register of the caller is found.
type ruleKind uint8

const (
	ruleSame      ruleKind = iota // it was not touched, or nothing is said of it
	ruleUndefined                 // it is lost
	ruleOffset                    // at CFA + off
	ruleValOffset                 // CFA + off
	ruleRegister                  // in another register
	ruleExpr                      // at the address an expression gives
	ruleValExpr                   // what an expression gives
)

type rule struct {
	kind ruleKind
	reg  int
	off  int64
	expr []byte
}

// row is the rules at one address.
type row struct {
	cfa  rule // ruleRegister: reg + off; ruleExpr
	regs [maxReg]rule
}

// maxRows bounds what DW_CFA_remember_state keeps.
const maxRows = 64

// rulesAt runs the entry's instructions up to addr; false if they make no sense.
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
		case 0x2d: // AArch64 negate_ra_state: the mask is taken off in any case
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

// stepCFI finds the caller's registers by call frame information. done: the
// tables say that there is no caller.
func (w *walker) stepCFI(f *fde, regs *Regs, bias, addr uint64) (out Regs, done, ok bool) {
	r, ok := f.rulesAt(addr-bias, w)
	if !ok {
		return out, false, false
	}
	var cfa uint64
	switch r.cfa.kind {
	case ruleRegister:
		v, known := regs.Get(r.cfa.reg)
		if !known {
			return out, false, false
		}
		cfa = w.arch.mask(v + uint64(r.cfa.off))
	case ruleExpr:
		if cfa, ok = w.eval(r.cfa.expr, regs, nil); !ok {
			return out, false, false
		}
	default:
		return out, false, false
	}
	column := f.cie.raColumn
	if column < maxReg && r.regs[column].kind == ruleUndefined {
		return out, true, true
	}
	out = *regs
	a := w.arch
	if a.ra < 0 || column != a.ra { // it is not a register of its own
		out.Forget(column)
	}
	for n := range maxReg {
		to := &r.regs[n]
		switch to.kind {
		case ruleSame:
			if n == a.sp {
				out.Set(n, cfa)
			} else if n < 72 && !a.isSaved(n) && n != column {
				out.Forget(n)
			}
		case ruleUndefined:
			out.Forget(n)
		case ruleOffset, ruleExpr:
			at := cfa + uint64(to.off)
			if to.kind == ruleExpr {
				if at, ok = w.eval(to.expr, regs, &cfa); !ok {
					out.Forget(n)
					continue
				}
			}
			if v, ok := w.word(a.mask(at)); ok {
				out.Set(n, v)
			} else {
				out.Forget(n)
			}
		case ruleValOffset:
			out.Set(n, a.mask(cfa+uint64(to.off)))
		case ruleRegister:
			if v, ok := regs.Get(to.reg); ok {
				out.Set(n, v)
			} else {
				out.Forget(n)
			}
		case ruleValExpr:
			if v, ok := w.eval(to.expr, regs, &cfa); ok {
				out.Set(n, v)
			} else {
				out.Forget(n)
			}
		}
	}
	pc, known := out.Get(column)
	if !known {
		return out, false, false
	}
	out.PC = a.codePtr(pc)
	return out, false, true
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

// codePtr returns a return address without the bits that sign it.
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

// maxExprOps bounds the operations of one DWARF expression: branches may loop.
const maxExprOps = 1000

// eval runs a DWARF expression; first is pushed before it, if there is one.
func (w *walker) eval(expr []byte, regs *Regs, first *uint64) (uint64, bool) {
	var st []uint64
	if first != nil {
		st = append(st, *first)
	}
	c := cursor{b: expr, order: w.arch.order}
	need := func(n int) bool { return len(st) >= n }
	for ops := 0; c.off < len(c.b); ops++ {
		if ops > maxExprOps || len(st) > 64 || c.bad || !w.spend(1) {
			return 0, false
		}
		op := c.u8()
		switch {
		case op >= 0x30 && op <= 0x4f:
			st = append(st, uint64(op-0x30))
			continue
		case op >= 0x50 && op <= 0x6f:
			return 0, false // a register's name is no address
		case op >= 0x70 && op <= 0x8f || op == 0x92:
			n := int(op) - 0x70
			if op == 0x92 {
				n = int(min(c.uleb(), maxReg))
			}
			off := c.sleb()
			v, ok := regs.Get(n)
			if !ok {
				return 0, false
			}
			st = append(st, w.arch.mask(v+uint64(off)))
			continue
		}
		switch op {
		case 0x03:
			st = append(st, c.addr(int(w.arch.word)))
		case 0x08:
			st = append(st, uint64(c.u8()))
		case 0x09:
			st = append(st, uint64(int64(int8(c.u8()))))
		case 0x0a:
			st = append(st, uint64(c.u16()))
		case 0x0b:
			st = append(st, uint64(int64(int16(c.u16()))))
		case 0x0c:
			st = append(st, uint64(c.u32()))
		case 0x0d:
			st = append(st, uint64(int64(int32(c.u32()))))
		case 0x0e, 0x0f:
			st = append(st, c.u64())
		case 0x10:
			st = append(st, c.uleb())
		case 0x11:
			st = append(st, uint64(c.sleb()))
		case 0x2f, 0x28: // skip, bra
			to := int(int16(c.u16()))
			if op == 0x28 {
				if !need(1) {
					return 0, false
				}
				v := st[len(st)-1]
				st = st[:len(st)-1]
				if v == 0 {
					continue
				}
			}
			if to += c.off; to < 0 || to > len(c.b) {
				return 0, false
			}
			c.off = to
		case 0x96: // nop
		default:
			var ok bool
			if st, ok = w.exprStackOp(op, st, &c); !ok {
				return 0, false
			}
		}
	}
	if c.bad || !need(1) {
		return 0, false
	}
	return w.arch.mask(st[len(st)-1]), true
}

// exprStackOp does the operations that only work on the stack, and memory reads.
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

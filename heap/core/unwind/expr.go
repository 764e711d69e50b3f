package unwind

// maxExprOps limits the operations executed for one DWARF expression, which may loop;
// maxExprStack the number of values on its stack.
const (
	maxExprOps   = 1000
	maxExprStack = 64
)

// expr is a run of a DWARF expression.
type expr struct {
	cursor
	w     *walker
	regs  *Regs
	stack []uint64
	wrong bool // malformed, or a value is not known
}

// exprOp is an operation of DWARF expressions: the number of values that it pops, and the value that it pushes. x holds
// the values, the top of the stack first.
type exprOp struct {
	pops int
	do   func(e *expr, x [2]uint64) uint64
}

// Operations with an operand in the opcode.
const (
	exprLit0  = 0x30 // to 0x4f
	exprReg0  = 0x50 // to 0x6f
	exprBreg0 = 0x70 // to 0x8f
)

// exprOps are the operations that push one value.
var exprOps = map[byte]exprOp{
	0x03: {0, func(e *expr, _ [2]uint64) uint64 { return e.uint(int(e.w.arch.word)) }},
	0x06: {1, func(e *expr, x [2]uint64) uint64 { return e.deref(x[0], int(e.w.arch.word)) }},
	0x08: {0, func(e *expr, _ [2]uint64) uint64 { return uint64(e.u8()) }},
	0x09: {0, func(e *expr, _ [2]uint64) uint64 { return uint64(int8(e.u8())) }},
	0x0a: {0, func(e *expr, _ [2]uint64) uint64 { return uint64(e.u16()) }},
	0x0b: {0, func(e *expr, _ [2]uint64) uint64 { return uint64(int16(e.u16())) }},
	0x0c: {0, func(e *expr, _ [2]uint64) uint64 { return uint64(e.u32()) }},
	0x0d: {0, func(e *expr, _ [2]uint64) uint64 { return uint64(int32(e.u32())) }},
	0x0e: {0, func(e *expr, _ [2]uint64) uint64 { return e.u64() }},
	0x0f: {0, func(e *expr, _ [2]uint64) uint64 { return e.u64() }},
	0x10: {0, func(e *expr, _ [2]uint64) uint64 { return e.uleb() }},
	0x11: {0, func(e *expr, _ [2]uint64) uint64 { return uint64(e.sleb()) }},
	0x12: {0, func(e *expr, _ [2]uint64) uint64 { return e.pick(0) }}, // dup
	0x14: {0, func(e *expr, _ [2]uint64) uint64 { return e.pick(1) }}, // over
	0x15: {0, func(e *expr, _ [2]uint64) uint64 { return e.pick(int(e.u8())) }},
	0x1a: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] & x[0] }},
	0x1c: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] - x[0] }},
	0x1e: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] * x[0] }},
	0x1f: {1, func(_ *expr, x [2]uint64) uint64 { return -x[0] }},
	0x20: {1, func(_ *expr, x [2]uint64) uint64 { return ^x[0] }},
	0x21: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] | x[0] }},
	0x22: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] + x[0] }},
	0x23: {1, func(e *expr, x [2]uint64) uint64 { return x[0] + e.uleb() }},
	0x24: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] << min(x[0], 64) }},
	0x25: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] >> min(x[0], 64) }},
	0x26: {2, func(_ *expr, x [2]uint64) uint64 { return uint64(int64(x[1]) >> min(x[0], 63)) }},
	0x27: {2, func(_ *expr, x [2]uint64) uint64 { return x[1] ^ x[0] }},
	0x29: {2, func(_ *expr, x [2]uint64) uint64 { return truth(x[1] == x[0]) }},
	0x2a: {2, func(_ *expr, x [2]uint64) uint64 { return truth(int64(x[1]) >= int64(x[0])) }},
	0x2b: {2, func(_ *expr, x [2]uint64) uint64 { return truth(int64(x[1]) > int64(x[0])) }},
	0x2c: {2, func(_ *expr, x [2]uint64) uint64 { return truth(int64(x[1]) <= int64(x[0])) }},
	0x2d: {2, func(_ *expr, x [2]uint64) uint64 { return truth(int64(x[1]) < int64(x[0])) }},
	0x2e: {2, func(_ *expr, x [2]uint64) uint64 { return truth(x[1] != x[0]) }},
	0x92: {0, func(e *expr, _ [2]uint64) uint64 { return e.register(int(min(e.uleb(), maxReg))) }},
	0x94: {1, func(e *expr, x [2]uint64) uint64 { return e.deref(x[0], int(e.u8())) }},
}

func truth(t bool) uint64 {
	if t {
		return 1
	}
	return 0
}

func (e *expr) push(v uint64) { e.stack = append(e.stack, v) }

// pop returns and removes the top of the stack.
func (e *expr) pop() (v uint64) {
	n := len(e.stack)
	if n == 0 {
		e.wrong = true
		return 0
	}
	v, e.stack = e.stack[n-1], e.stack[:n-1]
	return v
}

// pick returns value i from the top of the stack.
func (e *expr) pick(i int) uint64 {
	if i >= len(e.stack) {
		e.wrong = true
		return 0
	}
	return e.stack[len(e.stack)-1-i]
}

// deref reads size bytes of memory.
func (e *expr) deref(addr uint64, size int) uint64 {
	v, ok := e.w.number(addr, size)
	e.wrong = e.wrong || !ok
	return v
}

// register returns the value of register n plus an operand.
func (e *expr) register(n int) uint64 {
	v, ok := e.regs.Get(n)
	e.wrong = e.wrong || !ok
	return e.w.arch.mask(v + uint64(e.sleb()))
}

// eval runs a DWARF expression. If first is not nil, it pushes *first before it starts.
func (w *walker) eval(code []byte, regs *Regs, first *uint64) (uint64, bool) {
	e := expr{cursor: cursor{b: code, order: w.arch.order}, w: w, regs: regs}
	if first != nil {
		e.push(*first)
	}
	for ops := 0; e.off < len(e.b); ops++ {
		if ops > maxExprOps || len(e.stack) > maxExprStack || e.wrong || e.bad || !w.spend(1) {
			return 0, false
		}
		e.step(e.u8())
	}
	v := e.pop()
	return w.arch.mask(v), !e.wrong && !e.bad
}

// step executes one operation.
func (e *expr) step(code byte) {
	op, known := exprOps[code]
	switch {
	case known:
		var x [2]uint64
		for i := range op.pops {
			x[i] = e.pop()
		}
		e.push(op.do(e, x))
	case code >= exprLit0 && code < exprReg0:
		e.push(uint64(code - exprLit0))
	case code >= exprBreg0 && code < exprBreg0+32:
		e.push(e.register(int(code - exprBreg0)))
	case code == 0x13: // drop
		e.pop()
	case code == 0x16: // swap
		a, b := e.pop(), e.pop()
		e.push(a)
		e.push(b)
	case code == 0x2f || code == 0x28: // skip; bra, if the value that it pops is not 0
		to := int(int16(e.u16()))
		if code == 0x2f || e.pop() != 0 {
			e.jump(e.off + to)
		}
	case code != 0x96: // nop
		e.wrong = true
	}
}

func (e *expr) jump(to int) {
	if to < 0 || to > len(e.b) {
		e.wrong = true
		return
	}
	e.off = to
}

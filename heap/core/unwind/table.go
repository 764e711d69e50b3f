package unwind

import (
	_ "embed"
	"fmt"
	mathbits "math/bits"
	"strconv"
	"strings"
	"sync"
)

// Tables of instructions that save, restore or move registers, or change the control flow. Of other
// instructions, a table only tells the register that they write. The lines of a table are
//
//	field NAME BITS...       a register or number: the bits HIGH:LOW from the most significant on; zN appends N zeros
//	MASK VALUE EFFECTS       instructions whose bits in MASK equal VALUE; the first line that matches counts
//	word 4, word 8, word any the next lines are of machines with this size of addresses in bytes
//	index N                  lines are found by the bits N to N+7
//	base N                   what the program counter reads as, relative to the instruction
//
// A field that begins with - is signed; with !N, negated if bit N is 0. It may be followed by +N, which is added; neg and
// not, which change it; zero=N, the register that reads as 0; or the name of one of [fieldFuncs]. Effects are verbs
// with fields or numbers; - is a register that is not tracked, T a temporary one.
var (
	//go:embed tables/aarch64.txt
	aarch64Text string
	//go:embed tables/arm.txt
	armText string
	//go:embed tables/thumb.txt
	thumbText string
	//go:embed tables/thumb2.txt
	thumb2Text string
	//go:embed tables/mips.txt
	mipsText string
	//go:embed tables/riscv.txt
	riscvText string
	//go:embed tables/rvc.txt
	rvcText string

	aarch64Table = sync.OnceValue(func() *table { return parseTable(aarch64Text) })
	armTable     = sync.OnceValue(func() *table { return parseTable(armText) })
	thumbTable   = sync.OnceValue(func() *table { return parseTable(thumbText) })
	thumb2Table  = sync.OnceValue(func() *table { return parseTable(thumb2Text) })
	mipsTable    = sync.OnceValue(func() *table { return parseTable(mipsText) })
	riscvTable   = sync.OnceValue(func() *table { return parseTable(riscvText) })
	rvcTable     = sync.OnceValue(func() *table { return parseTable(rvcText) })
)

// table is a parsed table.
type table struct {
	index  [256][]*pattern // by the bits from shift on
	shift  int
	base   uint64
	fields map[string]*field
}

// pattern is a line of a table.
type pattern struct {
	mask, value uint32
	word        uint64 // size of an address, 0 for any
	effects     []effect
}

type effect struct {
	do   func(d *decoding, x *values)
	args []operand
}

// maxOperands is the largest number of operands of a verb.
const maxOperands = 6

type values [maxOperands]int64

// reg returns operand i as a register.
func (x *values) reg(i int) int { return int(x[i]) }

// operand is a field, or the number n if field is nil.
type operand struct {
	field *field
	n     int64
}

// field is the content of some bits of an instruction.
type field struct {
	parts  []bitRange
	signed bool
	minus  int // bit that is 0 if the number is negative, -1 if there is none
	plus   int64
	neg    bool
	not    bool
	zero   int64 // number of the register that reads as 0, -1 if there is none
	get    func(w uint32) int64
}

// bitRange is a part of a field: n bits from bit low on, or n zeros if low is negative.
type bitRange struct{ low, n int }

func (f *field) of(w uint32) int64 {
	v, width := int64(0), 0
	for _, p := range f.parts {
		v, width = v<<p.n, width+p.n
		if p.low >= 0 {
			v |= int64(w >> p.low & (1<<p.n - 1))
		}
	}
	switch {
	case f.get != nil:
		v = f.get(uint32(v))
	case f.signed:
		v = signed(v, width)
	case f.minus >= 0 && w>>f.minus&1 == 0:
		v = -v
	case v == f.zero:
		return zeroReg
	}
	switch {
	case f.neg:
		v = -v
	case f.not:
		v = ^v
	}
	return v + f.plus
}

// signed returns the lower n bits of v as a signed number.
func signed(v int64, n int) int64 { return v << (64 - n) >> (64 - n) }

// fieldFuncs compute what some fields encode.
var fieldFuncs = map[string]func(v uint32) int64{
	"power": func(v uint32) int64 { return 1 << v },
	"then":  func(v uint32) int64 { return int64(4 - mathbits.TrailingZeros32(v&15)) },
	// Immediates of data processing on Arm.
	"rotated":  func(w uint32) int64 { return int64(mathbits.RotateLeft32(w&0xff, -int(w>>8&15)*2)) },
	"expanded": thumbConstant,
	"wide":     thumbOffset,
	"bitmask":  a64Mask,
	// Loads and stores on AArch64: the scaled offset, the size of a vector register; the offset and the size of a pair of these.
	"scaled": func(w uint32) int64 { return int64(w>>10&0xfff) * a64Size(w) },
	"vector": a64Size,
	"pair":   func(w uint32) int64 { return signed(int64(w>>15&127), 7) * (4 << (w >> 30)) },
	"pairs":  func(w uint32) int64 { return 8 << (w >> 30) },
}

// a64Mask decodes the bit mask of a 64-bit logical immediate, or returns 0 for masks
// that do not occur with sp.
func a64Mask(w uint32) int64 {
	n, r, s := w>>22&1, w>>16&63, w>>10&63
	if n != 1 || s == 63 {
		return 0
	}
	ones := uint64(1)<<(s+1) - 1
	return int64(ones>>r | ones<<(64-r))
}

// a64Size returns the number of bytes of a load or store.
func a64Size(w uint32) int64 {
	if w>>26&1 == 1 && w>>23&1 == 1 {
		return 16
	}
	return 1 << (w >> 30)
}

// thumbConstant expands the immediate of data processing.
func thumbConstant(w uint32) int64 {
	v := w>>26&1<<11 | w>>12&7<<8 | w&0xff
	b := v & 0xff
	switch v >> 8 {
	case 0:
		return int64(b)
	case 1:
		return int64(b<<16 | b)
	case 2:
		return int64(b<<24 | b<<8)
	case 3:
		return int64(b * 0x01010101)
	}
	return int64(mathbits.RotateLeft32(0x80|v&0x7f, -int(v>>7)))
}

// thumbOffset returns the offset of B and BL.
func thumbOffset(w uint32) int64 {
	s := int64(w >> 26 & 1)
	i1, i2 := 1^(int64(w>>13&1)^s), 1^(int64(w>>11&1)^s)
	return signed(s<<24|i1<<23|i2<<22|int64(w>>16&0x3ff)<<12|int64(w&0x7ff)<<1, 25)
}

// parseTable parses a table. It panics if the table is malformed.
func parseTable(text string) *table {
	t := &table{fields: map[string]*field{}}
	word := uint64(0)
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch err := error(nil); {
		case f[0] == "field":
			t.fields[f[1]] = parseField(f[2:])
		case f[0] == "word":
			word, _ = strconv.ParseUint(f[1], 10, 64) // 0 for any
		case f[0] == "index":
			t.shift = int(number(f[1], 10))
		case f[0] == "base":
			t.base = uint64(number(f[1], 10))
		default:
			p := &pattern{mask: uint32(number(f[0], 16)), value: uint32(number(f[1], 16)), word: word}
			if p.effects, err = t.effects(strings.Join(f[2:], " ")); err != nil || p.value&^p.mask != 0 {
				panic(fmt.Sprintf("line %d: %v: %s", n+1, err, line))
			}
			for i := range t.index {
				if (uint32(i)<<t.shift^p.value)&p.mask&(0xff<<t.shift) == 0 {
					t.index[i] = append(t.index[i], p)
				}
			}
		}
	}
	return t
}

// number parses a number of a table.
func number(s string, base int) int64 {
	v, err := strconv.ParseInt(s, base, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// effects parses the effects of a line.
func (t *table) effects(text string) (list []effect, err error) {
	for s := range strings.SplitSeq(text, ";") {
		f := strings.Fields(s)
		if len(f) == 0 {
			continue
		}
		v, ok := verbs[f[0]]
		if !ok || len(f)-1 != v.args {
			return nil, fmt.Errorf("%q: no such verb, or not its operands", f)
		}
		e := effect{do: v.do}
		for _, name := range f[1:] {
			o := operand{field: t.fields[name]}
			switch {
			case o.field != nil:
			case name == "-":
				o.n = noReg
			case name == "T":
				o.n = tempReg
			default:
				o.n = number(name, 10)
			}
			e.args = append(e.args, o)
		}
		list = append(list, e)
	}
	return list, nil
}

// parseField parses a field's bits and what changes them.
func parseField(words []string) *field {
	f := &field{minus: -1, zero: -1}
	for p := range strings.SplitSeq(words[0], ",") {
		switch {
		case p[0] == '!':
			f.minus = int(number(p[1:], 10))
			continue
		case p[0] == 'z':
			f.parts = append(f.parts, bitRange{-1, int(number(p[1:], 10))})
			continue
		case p[0] == '-':
			f.signed, p = true, p[1:]
		}
		high, low, found := strings.Cut(p, ":")
		if !found {
			low = high
		}
		l := int(number(low, 10))
		f.parts = append(f.parts, bitRange{l, int(number(high, 10)) - l + 1})
	}
	for _, w := range words[1:] {
		zero, isZero := strings.CutPrefix(w, "zero=")
		switch {
		case isZero:
			f.zero = number(zero, 10)
		case w[0] == '+':
			f.plus = number(w, 10)
		case w == "neg":
			f.neg = true
		case w == "not":
			f.not = true
		default:
			f.get = fieldFuncs[w]
		}
	}
	return f
}

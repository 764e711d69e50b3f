package fuzz

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/bitstring"
	"github.com/lwsbt/lwsbt/internal/naive"
)

// naiveEncoder appends fields to bits.
type naiveEncoder struct {
	machine string // exact32 … zero64
	bits    string
}

// The writers of the second implementation, written from SPEC.md; internal/naive has its readers.

// naiveEncode returns the blob of a stack as machine writes it with a search, "lws" or "best".
func naiveEncode(pcs []uint64, size uint64, machine, search string) []byte {
	e := naiveEncoder{machine: machine}
	e.field(uint64(len(pcs)%32), 5)
	for n, pc := range pcs {
		base, literal := -1, true
		if search == "lws" {
			base, literal = searchLws(pcs, n)
		} else {
			base, literal = e.searchBest(pcs, n)
		}
		if literal {
			e.field(0, 1)
			e.value(pc)
			continue
		}
		sign, d := e.difference(pc, pcs[base], search)
		e.field(1, 1)
		e.field(uint64(n-1-base), 3)
		e.field(sign, 1)
		e.value(d)
	}
	e.value(size)
	blob := bitstring.Parse(e.bits)
	length := len(blob) + 2
	return append(blob, byte(length/256), byte(length%256))
}

// field writes a field that is the same on every machine, with a spill bit of 0.
func (e *naiveEncoder) field(v uint64, width int) {
	e.bits += fmt.Sprintf("%0*b", width, v) + "0"
}

// significant returns v in binary without leading zeros.
func significant(v uint64) string { return fmt.Sprintf("%b", v) }

// value writes count and value as the machine does. (BT-MACH-2, BT-MACH-3, BT-MACH-4)
func (e *naiveEncoder) value(v uint64) {
	bits := significant(v)
	count := len(bits)
	e.field(uint64(count%64), 6)
	// bit returns bit n of v; bit 0 is the last character of bits
	bit := func(n int) byte { return bits[count-1-n] }
	anyHigh := count >= 32 // a bit from 31 up is set: the first is always 1
	class := strings.TrimRight(e.machine, "2346")
	var written []byte
	for n := count - 1; n >= 0; n-- {
		switch {
		case class == "exact" || n < 31:
			written = append(written, bit(n))
		case n == 31:
			written = append(written, '1')
		case class == "zero":
			written = append(written, '0')
		case n%32 == 31:
			written = append(written, '1')
		default:
			written = append(written, bit(n%32))
		}
	}
	spill := "0"
	if class == "wrap" && anyHigh {
		spill = "1"
	}
	e.bits += string(written) + spill
}

// searchLws chooses as BT-SRCH-1 specifies.
func searchLws(pcs []uint64, n int) (base int, literal bool) {
	found, smallest := -1, uint64(0)
	for i := n - 8; i < n; i++ {
		if i < 0 {
			continue
		}
		if d := distance(pcs[i], pcs[n]); found < 0 || d < smallest {
			found, smallest = i, d
		}
	}
	if found <= 0 {
		return 0, true
	}
	if len(significant(smallest))+11 < len(significant(pcs[n]))+7 {
		return found, false
	}
	return 0, true
}

func distance(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return b - a
}

// searchBest chooses as BT-SRCH-2 specifies.
func (e *naiveEncoder) searchBest(pcs []uint64, n int) (base int, literal bool) {
	base, shortest := -1, uint64(0)
	for i := max(0, n-8); i < n; i++ {
		if _, d := e.difference(pcs[n], pcs[i], "best"); base < 0 || d < shortest {
			base, shortest = i, d
		}
	}
	if base < 0 {
		return 0, true
	}
	asLiteral := 10 + len(significant(pcs[n]))
	asDelta := 16 + len(significant(shortest))
	if asDelta == asLiteral {
		return base, asLiteral != 10+64
	}
	return base, asLiteral < asDelta
}

// difference returns the sign and magnitude of the delta from base to pc.
func (e *naiveEncoder) difference(pc, base uint64, search string) (sign, d uint64) {
	sign = 1
	if pc > base {
		sign = 0
	}
	d = distance(pc, base)
	if around := -d; search == "best" && strings.HasSuffix(e.machine, "64") && around < d {
		return 1 - sign, around
	}
	return sign, d
}

// naiveLine returns the ~m# line of a blob. (BT-TEXT-1, BT-B64-1)
func naiveLine(blob []byte) string {
	bits := bitstring.Unpack(blob)
	for len(bits)%6 != 0 {
		bits = append(bits, 0)
	}
	line := "~m#"
	for ; len(bits) > 0; bits = bits[6:] {
		line += naive.Alphabet[bitstring.Number(bits[:6]):][:1]
	}
	for (len(line)-3)%4 != 0 {
		line += "="
	}
	return line
}

// naiveDecoded returns the ~b# line of a stack. (BT-TEXT-2)
func naiveDecoded(pcs []uint64, size uint64) string {
	line := "~b#size: " + strconv.FormatUint(size, 10) + ","
	for _, pc := range pcs {
		line += " 0x" + strconv.FormatUint(pc, 16)
	}
	return line
}

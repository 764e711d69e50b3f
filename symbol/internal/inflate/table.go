package inflate

import (
	"encoding/binary"
	mathbits "math/bits"
)

// bits reads bits, the lowest of a byte first.
type bits struct {
	src []byte
	pos int    // of the next byte for acc
	acc uint64 // the next n bits
	n   int    // below 0 if more were taken than src has
}

// fill makes at least 48 bits available, or all that remain.
func (b *bits) fill() {
	if b.n >= 48 {
		return
	}
	if b.n >= 0 && b.pos+8 <= len(b.src) {
		b.acc |= binary.LittleEndian.Uint64(b.src[b.pos:]) << b.n
		b.pos += (63 - b.n) >> 3
		b.n |= 56
		return
	}
	for ; b.n >= 0 && b.n < 56 && b.pos < len(b.src); b.pos++ {
		b.acc |= uint64(b.src[b.pos]) << b.n
		b.n += 8
	}
}

func (b *bits) take(n uint) uint64 {
	v := b.acc & (1<<(n&63) - 1)
	b.acc >>= n & 63
	b.n -= int(n)
	return v
}

// An entry of a table has the bits of the code in its lowest byte, then the number of extra bits, the kind, and
// above that the literal, length or distance, or where the second table begins.
const (
	second  = 1 << 12 // the rest of the code is in a second table
	literal = 1 << 13
	end     = 1 << 14 // of the block
	invalid = 1 << 15 // no code
	kind    = second | literal | end | invalid

	maxLit, maxDist = 288, 32 // codes, some of them invalid
	maxBits         = 15      // of a code
)

// litEntry returns the entry of a code for literals and lengths. (RFC 1951, 3.2.5)
func litEntry(symbol int) uint32 {
	switch n := symbol - 257; {
	case symbol < 256:
		return uint32(symbol)<<16 | literal
	case symbol == 256:
		return end
	case n < 8:
		return uint32(n+3) << 16
	case n < 28:
		extra := uint32(n/4 - 1)
		return (3+(4+uint32(n)&3)<<extra)<<16 | extra<<8
	case n == 28:
		return 258 << 16
	}
	return invalid
}

// distEntry returns the entry of a code for distances. (RFC 1951, 3.2.5)
func distEntry(symbol int) uint32 {
	switch {
	case symbol < 4:
		return uint32(symbol+1) << 16
	case symbol < 30:
		extra := uint32(symbol/2 - 1)
		return (1+(2+uint32(symbol)&1)<<extra)<<16 | extra<<8
	}
	return invalid
}

// table maps codes to entries: codes of up to width bits directly, longer ones through a second table.
type table struct {
	width   int
	first   [1 << 11]uint32
	seconds []uint32 // each has the rest of the codes that begin with the same width bits
}

// next takes a code.
func (b *bits) next(t *table) uint32 {
	e := t.first[b.acc&(1<<t.width-1)&(uint64(len(t.first))-1)]
	if e&kind == second {
		b.take(uint(t.width))
		e = t.seconds[uint64(e>>16)+b.acc&(1<<(maxBits-t.width)-1)]
	}
	b.take(uint(e & 0xff))
	return e
}

// build makes the table of the codes with these lengths in bits. It returns false if there are more codes than
// bits for them. (RFC 1951, 3.2.2)
func (t *table) build(lens []uint8, entry func(symbol int) uint32) bool {
	var count, next [maxBits + 2]int
	for _, n := range lens {
		count[n]++
	}
	count[0] = 0
	for n := range maxBits {
		if next[n+1] = (next[n] + count[n]) << 1; next[n+1]+count[n+1] > 2<<n {
			return false
		}
	}
	first := t.first[:1<<t.width]
	for i := range first {
		first[i] = invalid
	}
	t.seconds = t.seconds[:0]
	for symbol, n := range lens {
		if n == 0 {
			continue
		}
		n := int(n)
		code := int(mathbits.Reverse16(uint16(next[n])) >> (16 - n))
		next[n]++
		e := entry(symbol)
		if n <= t.width {
			fillEvery(first, code, n, e)
			continue
		}
		head := &first[code&(len(first)-1)]
		if *head&kind != second {
			*head = uint32(len(t.seconds))<<16 | second
			for range 1 << (maxBits - t.width) {
				t.seconds = append(t.seconds, invalid)
			}
		}
		fillEvery(t.seconds[*head>>16:][:1<<(maxBits-t.width)], code>>t.width, n-t.width, e)
	}
	return true
}

// fillEvery sets the entries that begin with a code of n bits.
func fillEvery(list []uint32, code, n int, e uint32) {
	for i := code; i < len(list); i += 1 << n {
		list[i] = e | uint32(n)
	}
}

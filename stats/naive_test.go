package stats_test

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/lwsbt/lwsbt/corpus"
)

// This file computes the results of package stats a second time, in a simple way, from the
// addresses of a capture before encoding, and from SPEC.md. It uses neither the codec nor
// package stats.

func significant(v uint64) int { return max(1, bits.Len64(v)) }

// item is a field: its purpose and its bits without the spill bit.
type item struct {
	use  string
	bits int
}

// naiveFields returns the fields of the frames of a stack as lws chooses them. (BT-SRCH-1)
func naiveFields(pcs []uint64) []item {
	items := []item{{"depth", 5}}
	for n, v := range pcs {
		hit, least := 0, ^uint64(0)
		for i := max(0, n-8); i < n; i++ {
			d := v - pcs[i]
			if pcs[i] > v {
				d = pcs[i] - v
			}
			if d < least {
				hit, least = i, d
			}
		}
		items = append(items, item{"kinds", 1})
		if hit != 0 && significant(least)+11 < significant(v)+7 {
			items = append(items, item{"back references", 3}, item{"signs", 1}, item{"counts of frames", 6},
				item{"delta values", significant(least)})
			continue
		}
		items = append(items, item{"counts of frames", 6}, item{"literal values", significant(v)})
	}
	return items
}

// naiveBits returns the number of bits of fields with their spill bits.
func naiveBits(items []item) (n int) {
	for _, it := range items {
		n += it.bits + 1
	}
	return n
}

// naiveBest returns the fewest bits in which the frames of a stack can be written; if
// wrapping is true, deltas may wrap around 2^64.
func naiveBest(pcs []uint64, wrapping bool) int {
	n := 5 + 1
	for i, v := range pcs {
		least := 2 + 7 + significant(v) + 1
		for back := 1; back <= 8 && back <= i; back++ {
			for _, d := range []uint64{v - pcs[i-back], pcs[i-back] - v} {
				if !wrapping && (d == v-pcs[i-back]) != (v >= pcs[i-back]) {
					continue // would wrap around
				}
				least = min(least, 2+4+2+7+significant(d)+1)
			}
		}
		n += least
	}
	return n
}

// naiveLen returns the length in bytes of a blob whose frames take frameBits.
func naiveLen(frameBits int, size uint64) int {
	return (frameBits+7+significant(size)+1+7)/8 + 2
}

func lwsLen(a corpus.Allocation) int  { return naiveLen(naiveBits(naiveFields(a.PCs)), a.Size) }
func bestLen(a corpus.Allocation) int { return naiveLen(naiveBest(a.PCs, false), a.Size) }

// lineLen returns the length in bytes of the blob in a ~m# line, from the length of the
// line.
func lineLen(line string) int {
	n := (len(line) - len("~m#")) / 4 * 3
	for i := len(line) - 1; line[i] == '='; i-- {
		n--
	}
	return n
}

func sum(lens []int) (n uint64) {
	for _, l := range lens {
		n += uint64(l)
	}
	return n
}

func pathOf(pcs []uint64) string { return fmt.Sprintf("%x", pcs) }

// kept returns the rest of a stack after additional snips. (BT-CAP-1)
func kept(pcs []uint64, pre, post int) []uint64 {
	if pre >= len(pcs) {
		return nil
	}
	pcs = pcs[pre:]
	if len(pcs) > post {
		return pcs[:len(pcs)-post]
	}
	return pcs
}

// userBlob returns an empty stack of size 5 with 10 user bits after the size, assembled
// by hand: depth 00000., count 000011., value 101., user 1100110011, padding 00, length
// 6. It has 6+7+4 bits of fields, 10 user bits, 5 bits of padding.
func userBlob() []byte {
	fields := "000000" + "0000110" + "1010" + "1100110011" + "00000"
	var b []byte
	for i := 0; i < len(fields); i += 8 {
		var v byte
		for _, c := range fields[i : i+8] {
			v = v<<1 | byte(c-'0')
		}
		b = append(b, v)
	}
	return binary.BigEndian.AppendUint16(b, uint16(len(b)+2))
}

package naive

import (
	"math/big"
	"strings"
)

// The second implementation of Part III, call paths. It reads a line digit by digit. It first
// computes numbers and then checks their limits.

// CallFrame is one frame of a call path: an offset in the code in units, or an address.
type CallFrame struct {
	Escaped bool
	X       uint64 // an offset below 2^27, or an address if Escaped
}

// CallBlock is one live block, with flag 1.
type CallBlock struct{ Address, Size uint64 }

// PathEntry is one entry of a ~p# line.
type PathEntry struct {
	Base       int         // base, 0 to 3
	Name       uint32      // with bases 2 and 3
	Frames     []CallFrame // frames in the line, outermost first, including frames shared with earlier entries
	Definition bool        // no values follow

	Live, Bytes  uint64
	Blocks       []CallBlock // with flag 1, in place of Bytes
	Allocs, Ever uint64      // with flag 2: allocations and bytes since the boot
	Peak         uint64      // with flag 4
}

// PathLine is a ~p# line.
type PathLine struct {
	Flags, Dump, Sequence int
	Unit                  uint64 // with flag 1
	Entries               []PathEntry
}

// Flags of a ~p# line; flag 1 also of a ~v# line.
const (
	flagBlocks = 1
	flagEver   = 2
	flagPeak   = 4
	flagSpare8 = 8
	flagSpare  = 16
	flagLater  = 32
)

// codeLimit is the limit for offsets: 2^27 units.
const codeLimit = 1 << 27

// digitReader reads fields from a list of digits, each 0 to 63. reason is the first fault.
// After a fault, every field is 0.
type digitReader struct {
	digits []uint64
	pos    int
	reason string
}

func (r *digitReader) reject(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

func (r *digitReader) done() bool { return r.reason != "" || r.pos == len(r.digits) }

func (r *digitReader) digit() uint64 {
	if r.reason != "" {
		return 0
	}
	if r.pos == len(r.digits) {
		r.reject("truncated")
		return 0
	}
	r.pos++
	return r.digits[r.pos-1]
}

// fixed reads n digits, the least significant first.
func (r *digitReader) fixed(n int) uint64 {
	sum, weight := uint64(0), uint64(1)
	for range n {
		sum += r.digit() * weight
		weight *= 64
	}
	return sum
}

// number reads digits of 5 bits up to one that is below 32.
func (r *digitReader) number() uint64 {
	sum, weight := new(big.Int), big.NewInt(1)
	digits := 0
	for {
		d := r.digit()
		digits++
		sum.Add(sum, new(big.Int).Mul(weight, big.NewInt(int64(d%32))))
		weight.Mul(weight, big.NewInt(32))
		if digits == 13 && d > 15 { // 2^64 or more
			r.reject("number")
		}
		if d >= 32 {
			continue
		}
		if digits > 1 && d == 0 || !sum.IsUint64() {
			r.reject("number")
		}
		if r.reason != "" {
			return 0
		}
		return sum.Uint64()
	}
}

// name reads a name of 32 bits.
func (r *digitReader) name() uint32 {
	v := r.fixed(6)
	if v >= 1<<32 {
		r.reject("hash")
	}
	return uint32(v)
}

// frame reads a step from ref, or an escape.
func (r *digitReader) frame(ref uint64) CallFrame {
	first := r.digit()
	class := int(first % 4)
	all := first
	weight := uint64(64)
	for range class + 1 {
		all += r.digit() * weight
		weight *= 64
	}
	v := all / 4
	if r.reason == "" && class > 0 && v < []uint64{0, 1 << 10, 1 << 16, 1 << 22}[class] {
		r.reject("number")
	}
	if v == 1<<28-1 {
		return CallFrame{Escaped: true, X: r.number()}
	}
	x := int64(ref) + unfold(v)
	if r.reason == "" && (x < 0 || x >= codeLimit) {
		r.reject("frame")
	}
	return CallFrame{X: uint64(x)}
}

// unfold returns the difference that the number v stands for: 0, −1, 1, −2, 2 … (BT-DIGIT-3)
func unfold(v uint64) int64 {
	if v%2 == 0 {
		return int64(v / 2)
	}
	return -int64(v/2) - 1
}

// reference returns the offset from which the step after a frame counts.
func reference(f CallFrame) uint64 {
	if f.Escaped {
		return 0
	}
	return f.X
}

// digitsOf returns the digits of a line between its lead-in and its CRC; crc returns the
// CRC of their characters.
func digitsOf(line, leadIn string, least, crcDigits int, crc func(text string) uint64) (*digitReader, string) {
	text, found := strings.CutPrefix(line, leadIn)
	if !found {
		return nil, "lead-in"
	}
	var digits []uint64
	for _, c := range []byte(text) {
		at := strings.IndexByte(Alphabet, c)
		if at < 0 {
			return nil, "base64"
		}
		digits = append(digits, uint64(at))
	}
	if len(digits) < least {
		return nil, "short"
	}
	end := len(digits) - crcDigits
	said := (&digitReader{digits: digits[end:]}).fixed(crcDigits)
	if said != crc(text[:end]) {
		return nil, "crc"
	}
	return &digitReader{digits: digits[:end]}, ""
}

// crc16 is CRC-16/IBM-3740, a bit at a time.
func crc16(text string) uint64 {
	crc := uint64(0xFFFF)
	for _, c := range []byte(text) {
		for bit := 7; bit >= 0; bit-- {
			top := crc>>15&1 != uint64(c)>>bit&1
			crc = crc << 1 & 0xFFFF
			if top {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// ReadPaths reads a ~p# line; reason is "" on success.
func ReadPaths(line string) (PathLine, string) {
	r, reason := digitsOf(line, "~p#", 7, 3, crc16)
	if reason != "" {
		return PathLine{}, reason
	}
	l := PathLine{Flags: int(r.digit()), Dump: int(r.digit()), Sequence: int(r.fixed(2))}
	if l.Flags&flagBlocks != 0 {
		if l.Unit = r.digit(); r.reason == "" && l.Unit > 12 {
			r.reject("unit")
		}
	}
	var before *PathEntry
	units := uint64(0) // of the previous block
	for !r.done() {
		e := r.path(before)
		r.values(&e, l.Flags, l.Unit, &units)
		l.Entries = append(l.Entries, e)
		before = &e
	}
	if r.reason != "" {
		return PathLine{}, r.reason
	}
	return l, ""
}

// path reads base, name and frames of an entry. before is the previous entry, or nil.
func (r *digitReader) path(before *PathEntry) PathEntry {
	k := r.number()
	if r.reason != "" {
		return PathEntry{}
	}
	var e PathEntry
	ref := uint64(0)
	if k < 4 {
		e.Base = int(k)
		if k >= 2 {
			e.Name = r.name()
		}
	} else {
		if before == nil || k-4 > uint64(len(before.Frames)) {
			r.reject("drop")
			return e
		}
		keep := len(before.Frames) - int(k-4)
		e.Base, e.Name = before.Base, before.Name
		e.Frames = append(e.Frames, before.Frames[:keep]...)
		if k > 4 {
			ref = reference(before.Frames[keep])
		} else if keep > 0 {
			ref = reference(before.Frames[keep-1])
		}
	}
	if k == 2 {
		return e
	}
	n := r.number()
	if n > 1024 || n+uint64(len(e.Frames)) > 1024 {
		r.reject("depth")
	}
	for i := uint64(0); i < n && r.reason == ""; i++ {
		f := r.frame(ref)
		e.Frames = append(e.Frames, f)
		ref = reference(f)
	}
	return e
}

// values reads the values of an entry.
func (r *digitReader) values(e *PathEntry, flags int, unit uint64, units *uint64) {
	v := r.number()
	if v == 0 {
		e.Definition = true
		return
	}
	e.Live = v - 1
	if flags&flagBlocks != 0 {
		for i := uint64(0); i < e.Live && r.reason == ""; i++ {
			*units += uint64(unfold(r.number()))
			e.Blocks = append(e.Blocks, CallBlock{*units << unit, r.number()})
		}
	} else {
		e.Bytes = r.number()
	}
	if flags&flagEver != 0 {
		e.Allocs, e.Ever = r.number(), r.number()
	}
	if flags&flagPeak != 0 {
		e.Peak = r.number()
	}
	for _, flag := range []int{flagSpare8, flagSpare} {
		if flags&flag != 0 {
			r.number()
		}
	}
	if flags&flagLater != 0 {
		for k := r.number(); k > 0 && r.reason == ""; k-- {
			r.digit()
		}
	}
}

package callpath

import (
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
)

// The reasons to reject a line. (BT-PREJ-1)
const (
	reasonLeadIn    codec.Reason = "lead-in"   // a line that does not begin with its lead-in
	reasonBase64    codec.Reason = "base64"    // a character that is no digit
	reasonShort     codec.Reason = "short"     // too few digits for a head and a CRC
	reasonCRC       codec.Reason = "crc"       // the CRC differs
	reasonUnit      codec.Reason = "unit"      // a unit of addresses over 12
	reasonTruncated codec.Reason = "truncated" // a number reaches into the CRC
	reasonNumber    codec.Reason = "number"    // a number not in its shortest form, or of 2^64 or more
	reasonHash      codec.Reason = "hash"      // a name of more than 32 bits
	reasonDrop      codec.Reason = "drop"      // an entry drops more frames than the previous entry has
	reasonDepth     codec.Reason = "depth"     // a call path of more than 1,024 frames
	reasonFrame     codec.Reason = "frame"     // a code offset below 0, or of 2^27 or more
	reasonIndex     codec.Reason = "index"     // an index of a call path that the ~v# line has not named
	reasonAge       codec.Reason = "age"       // a block before the first one of the boot
)

// alphabet has the characters of the digits 0 to 63. (BT-DIGIT-1)
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// noDigit marks characters outside the alphabet in valueOf.
const noDigit = 0xff

// valueOf maps a character to its digit, or to noDigit.
var valueOf = func() (table [256]byte) {
	for c := range table {
		table[c] = noDigit
	}
	for d, c := range []byte(alphabet) {
		table[c] = byte(d)
	}
	return table
}()

// Lengths of fixed fields in digits. (BT-PLINE-1, BT-VLINE-1)
const (
	nameDigits      = 6
	crcDigits       = 3 // of a ~p# line
	eventsCRCDigits = 6 // of a ~v# line

	numberDigits = 13 // of the longest number; its last digit is at most 15 (BT-DIGIT-2)
)

// stepBits is the number of bits of the folded difference, by class of the step. (BT-DIGIT-3)
var stepBits = [4]uint{10, 16, 22, 28}

// escape is the folded value of class 3 that announces an address. (BT-DIGIT-3)
const escape = 1<<28 - 1

// fold returns d ≥ 0 as 2d and d < 0 as −2d − 1. (BT-DIGIT-3)
func fold(d int64) uint64 { return uint64(d<<1 ^ d>>63) }

// unfold is the inverse of fold.
func unfold(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// appendFixed appends v in n digits. (BT-DIGIT-1)
func appendFixed(dst []byte, v uint64, n int) []byte {
	for range n {
		dst = append(dst, alphabet[v&63])
		v >>= 6
	}
	return dst
}

// appendNumber appends v in 1 to 13 digits of 5 bits. (BT-DIGIT-2)
func appendNumber(dst []byte, v uint64) []byte {
	for ; v >= 32; v >>= 5 {
		dst = append(dst, alphabet[v&31|32])
	}
	return append(dst, alphabet[v])
}

// appendStep appends a difference of two code offsets, each below MaxOffset.
// (BT-DIGIT-3)
func appendStep(dst []byte, d int64) []byte {
	v := fold(d)
	class := uint64(0)
	for v>>stepBits[class] != 0 {
		class++
	}
	return appendFixed(dst, v<<2|class, int(class)+2)
}

// appendFrame appends the step from a reference to a frame, or an escape and its
// address. (BT-ENTRY-2)
func appendFrame(dst []byte, ref uint64, f Frame) []byte {
	if f.Escaped {
		return appendNumber(appendFixed(dst, escape<<2|3, 5), f.Value)
	}
	return appendStep(dst, int64(f.Value-ref))
}

// reader reads fields from digits. After the first fault, all fields read as 0, and no
// digits are left. (BT-PREJ-1)
type reader struct {
	digits []byte // values 0 to 63, up to the CRC
	pos    int

	reason   codec.Reason // of the first fault, "" if none
	clause   string
	at       int // digit of the fault
	expected string
}

func (r *reader) fail(at int, reason codec.Reason, clause, expected string) {
	if r.reason == "" {
		r.reason, r.clause, r.at, r.expected = reason, clause, at, expected
		r.pos = len(r.digits)
	}
}

// more reports whether digits are left.
func (r *reader) more() bool { return r.pos < len(r.digits) }

// error returns the first fault, or nil.
func (r *reader) error() error {
	if r.reason == "" {
		return nil
	}
	return lineError(len(LeadIn)+r.at, r.reason, r.clause, "%s", r.expected)
}

func lineError(off int, reason codec.Reason, clause, format string, args ...any) *codec.Error {
	return &codec.Error{Off: off, Field: "text", Frame: -1, Clause: clause, Reason: reason,
		Detail: codec.Detail{Format: format, Args: args}}
}

// fixed reads n digits. (BT-DIGIT-1)
func (r *reader) fixed(n int) (v uint64) {
	if len(r.digits)-r.pos < n {
		r.fail(r.pos, reasonTruncated, "BT-PREJ-1", "the field reaches into the CRC")
		return 0
	}
	for i, d := range r.digits[r.pos : r.pos+n] {
		v |= uint64(d) << (6 * i)
	}
	r.pos += n
	return v
}

// skip passes over n digits.
func (r *reader) skip(n uint64) {
	if n > uint64(len(r.digits)-r.pos) {
		r.fail(r.pos, reasonTruncated, "BT-PREJ-1", "the digits to skip reach into the CRC")
		return
	}
	r.pos += int(n)
}

// number reads a number in its shortest form, most often of one digit. (BT-DIGIT-2)
func (r *reader) number() uint64 {
	if r.pos < len(r.digits) && r.digits[r.pos] < 32 {
		r.pos++
		return uint64(r.digits[r.pos-1])
	}
	return r.longNumber()
}

func (r *reader) longNumber() (v uint64) {
	start := r.pos
	for i := 0; r.pos < len(r.digits); i++ {
		d := uint64(r.digits[r.pos])
		r.pos++
		if i == numberDigits-1 && d > 15 {
			r.fail(start, reasonNumber, "BT-DIGIT-2", "2^64 or more, expected a number below it")
			return 0
		}
		v |= d & 31 << (5 * i)
		if d < 32 {
			if d == 0 && i > 0 {
				r.fail(start, reasonNumber, "BT-DIGIT-2", "the last digit is 0, expected the shortest form")
				return 0
			}
			return v
		}
	}
	r.fail(start, reasonTruncated, "BT-PREJ-1", "the number reaches into the CRC")
	return 0
}

// step reads a folded difference; escaped reports that a number follows instead.
// (BT-DIGIT-3)
func (r *reader) step() (v uint64, escaped bool) {
	start := r.pos
	if !r.more() {
		r.fail(start, reasonTruncated, "BT-PREJ-1", "the step reaches into the CRC")
		return 0, false
	}
	class := int(r.digits[r.pos] & 3)
	v = r.fixed(class+2) >> 2
	if class > 0 && r.reason == "" && bits.Len64(v) <= int(stepBits[class-1]) {
		r.fail(start, reasonNumber, "BT-DIGIT-3", "the step fits fewer digits, expected the shortest form")
		return 0, false
	}
	return v, v == escape
}

// name reads a name. (BT-NAME-1)
func (r *reader) name() uint32 {
	start := r.pos
	v := r.fixed(nameDigits)
	if v>>32 != 0 {
		r.fail(start, reasonHash, "BT-NAME-1", "a name of more than 32 bits")
	}
	return uint32(v)
}

// unit reads the unit of addresses. (BT-PLINE-1, BT-VLINE-1)
func (r *reader) unit() uint8 {
	start := r.pos
	v := r.fixed(1)
	if v > MaxUnit {
		r.fail(start, reasonUnit, "BT-PLINE-1", "the unit is over 12")
		return 0
	}
	return uint8(v)
}

// open checks the lead-in, the digits, their number (at least least) and the CRC of a line.
// It sets r to read the digits before the CRC, or none on an error. (BT-PREJ-1)
func (r *reader) open(line []byte, leadIn string, least, crcLen int, crc func([]byte) uint64) error {
	*r = reader{digits: r.digits[:0]}
	if len(line) < len(leadIn) || string(line[:len(leadIn)]) != leadIn {
		return lineError(0, reasonLeadIn, "BT-PLINE-1", "expected %s", leadIn)
	}
	text := line[len(leadIn):]
	for i, c := range text {
		if valueOf[c] == noDigit {
			r.digits = r.digits[:0]
			return lineError(len(leadIn)+i, reasonBase64, "BT-DIGIT-1", "%q is not of the base64 alphabet", c)
		}
		r.digits = append(r.digits, valueOf[c])
	}
	if len(text) < least {
		r.digits = r.digits[:0]
		return lineError(len(line), reasonShort, "BT-PLINE-1", "%d digits, expected at least %d", len(text), least)
	}
	body := len(text) - crcLen
	r.pos = body
	got, want := r.fixed(crcLen), crc(text[:body])
	r.digits, r.pos = r.digits[:body], 0
	if got != want {
		r.digits = r.digits[:0]
		return lineError(len(leadIn)+body, reasonCRC, "BT-PLINE-2", "%#x, expected %#x of the line", got, want)
	}
	return nil
}

package naive

import (
	"math/bits"
	"strings"
)

// fields reads fields from a text of digits. At a fault, it panics with the reason of the
// rejection; reads recovers from the panic.
type fields struct {
	b    impl
	text string
	all  string // text and what is behind it

	zeros int // digits that were missing: p-truncated-as-zeros
}

func reads(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			reason, ok := p.(error)
			if _, runtime := p.(interface{ RuntimeError() }); !ok || runtime {
				panic(p)
			}
			err = reason
		}
	}()
	f()
	return nil
}

func (f *fields) digit() uint64 {
	if f.text == "" {
		switch {
		case f.b.has("p-truncated-as-zeros") && f.zeros < 1000:
			f.zeros++
			return 0
		case f.b.has("p-reads-crc") && f.all != "":
			f.text, f.all = f.all, ""
		default:
			panic(errTruncated)
		}
	}
	d := strings.IndexByte(base64Alphabet, f.text[0])
	f.text = f.text[1:]
	return uint64(d)
}

func (f *fields) fixed(n int) (v uint64) {
	for i := range n {
		v |= f.digit() << (6 * i)
	}
	return v
}

func (f *fields) number() (v uint64) {
	b := f.b
	if b.has("p-number-first-digit-last") {
		for {
			d := f.digit()
			if v = v<<5 | d&31; d < 32 {
				return v
			}
		}
	}
	for n := 0; ; n++ {
		d := f.digit()
		switch {
		case n == 12 && d > 15 && !b.has("p-number-wraps") || n > 12 && !b.has("p-number-wraps"):
			panic(errNumber)
		case n >= 7 && b.has("p-number-of-32-bits") || n > 11 && b.has("p-number-of-60-bits"):
			panic(errNumber)
		}
		v |= d & 31 << (5 * n)
		if d >= 32 {
			continue
		}
		if n > 0 && d == 0 && !b.has("p-number-with-zeros") {
			panic(errNumber)
		}
		if b.has("p-number-signed") && v>>63 == 1 {
			panic(errNumber)
		}
		return v
	}
}

func (f *fields) name() uint32 {
	if f.b.has("p-name-of-5-digits") {
		return uint32(f.fixed(5))
	}
	v := f.fixed(6)
	if f.b.has("p-name-last-digit-first") {
		v = v&63<<30 | v>>6&63<<24 | v>>12&63<<18 | v>>18&63<<12 | v>>24&63<<6 | v>>30
	}
	if v>>32 != 0 && !f.b.has("p-name-of-36-bits") && !(f.b.has("p-name-of-33-bits") && v>>33 == 0) {
		panic(errHash)
	}
	return uint32(v)
}

// crc16 returns the CRC-16/IBM-3740 of text, computed one byte at a time.
func (b impl) crc16(text string) uint64 {
	crc := uint16(0xFFFF)
	if b.has("p-crc-from-0") {
		crc = 0
	}
	for i := range len(text) {
		if b.has("p-crc-reflected") {
			x := (crc ^ uint16(text[i])) & 0xFF
			for range 8 {
				x = x>>1 ^ 0x8408*(x&1)
			}
			crc = crc>>8 ^ x
			continue
		}
		x := crc>>8 ^ uint16(text[i])
		x ^= x >> 4
		crc = crc<<8 ^ x<<12 ^ x<<5 ^ x
	}
	switch {
	case b.has("p-crc-inverted"):
		crc ^= 0xFFFF
	case b.has("p-crc-bytes-swapped"):
		crc = bits.ReverseBytes16(crc)
	}
	return uint64(crc)
}

// pathLine checks lead-in, digits and CRC, and returns the fields between them.
func (b impl) pathLine(of byte, text string, least, crcDigits int, crc func(string) uint64) *fields {
	lead := "~" + string(of) + "#"
	switch {
	case b.has("p-lead-in-searched") && strings.Contains(text, lead):
		text = text[strings.Index(text, lead):]
	case b.has("p-lead-in-optional") && !strings.HasPrefix(text, "~"), b.has("p-lead-in-of-any-letter") && len(text) > 3 && text[0] == '~' && text[2] == '#':
		text = lead + strings.TrimPrefix(text, text[:min(len(text), 3*strings.Count(text[:min(len(text), 1)], "~"))])
	case b.has("p-lead-in-of-any-case"):
		text = strings.Replace(strings.Replace(text, "~P#", "~p#", 1), "~V#", "~v#", 1)
	}
	digits, ok := strings.CutPrefix(text, lead)
	if !ok {
		panic(errLeadIn)
	}
	digits = b.otherDigits(digits)
	switch {
	case len(strings.TrimLeft(digits, base64Alphabet)) > 0:
		panic(errBase64)
	case len(digits) < least && b.has("p-short-accepted"):
		return &fields{b: b, text: "AAAAAAA"}
	case len(digits) < least:
		panic(errShort)
	case b.has("p-at-most-120") && len(text) > 120, b.has("p-at-most-239") && len(text) > 239:
		panic(errLength)
	}
	end := len(digits) - crcDigits
	sum := &fields{b: b, text: digits[end:]}
	got, want := sum.fixed(crcDigits), crc(digits[:end])
	switch {
	case b.has("p-crc-ignored"):
		got = want
	case b.has("p-crc-of-two-digits"):
		got, want = got&4095, want&4095
	case b.has("p-crc-unused-bits"):
		got &= map[int]uint64{3: 0xFFFF, 6: 0xFFFFFFFF}[crcDigits]
	case b.has("p-crc-last-digit-first") && crcDigits == 3:
		got = got&63<<12 | got&(63<<6) | got>>12
	case b.has("p-crc-with-lead-in"):
		want = crc(lead + digits[:end])
	case b.has("p-crc-bits-12-to-15-ignored"):
		got, want = got&^0xF000, want&^0xF000
	}
	if got != want {
		panic(errCRC)
	}
	return &fields{b: b, text: digits[:end], all: digits[end:]}
}

// otherDigits returns the digits after a bug has skipped, dropped or changed characters.
func (b impl) otherDigits(digits string) string {
	switch b.bug {
	case "p-url-alphabet":
		return strings.NewReplacer("-", "+", "_", "/").Replace(digits)
	case "p-skips-spaces":
		return strings.NewReplacer(" ", "", "\t", "").Replace(digits)
	case "p-skips-line-ends":
		return strings.NewReplacer("\r", "", "\n", "").Replace(digits)
	case "p-skips-line-end-behind":
		return strings.TrimRight(digits, "\r\n")
	case "p-skips-padding":
		return strings.TrimRight(digits, "=")
	case "p-skips-other-characters":
		return strings.Map(func(c rune) rune {
			if strings.ContainsRune(base64Alphabet, c) {
				return c
			}
			return -1
		}, digits)
	case "p-ends-at-other-characters":
		return digits[:len(digits)-len(strings.TrimLeft(digits, base64Alphabet))]
	case "p-digits-of-7-bits":
		return string(mapBytes(digits, func(c byte) byte { return c & 0x7f }))
	}
	return digits
}

func mapBytes(text string, f func(byte) byte) []byte {
	out := []byte(text)
	for i, c := range out {
		out[i] = f(c)
	}
	return out
}

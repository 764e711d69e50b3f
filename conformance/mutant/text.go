package mutant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// parseLine reads a ~m# line. (BT-TEXT-1, BT-B64-2, BT-B64-3)
func (b impl) parseLine(line string, lenient bool) ([]byte, error) {
	text, found := strings.CutPrefix(line, "~m#")
	if !found && !b.has("lead-in-optional") && (!lenient || b.has("lead-in-always")) {
		return nil, errLeadIn
	}
	var skip, alphabet string
	alphabet = base64Alphabet
	if lenient {
		skip = " \t\r\n"
	}
	switch {
	case lenient && b.has("lenient-refuses-spaces"):
		skip = "\r\n"
	case lenient && b.has("lenient-refuses-line-ends"):
		skip = " \t"
	case !lenient && b.has("strict-skips-line-ends"):
		skip = "\r\n"
	}
	if lenient && !b.has("lenient-refuses-url-alphabet") || b.has("strict-takes-url-alphabet") {
		text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	}
	text = strings.Map(func(c rune) rune {
		if strings.ContainsRune(skip, c) {
			return -1
		}
		return c
	}, text)
	if lenient && b.has("lenient-stops-at-others") {
		if at := strings.IndexFunc(text, func(c rune) bool { return !strings.ContainsRune(alphabet+"=", c) }); at >= 0 {
			text = text[:at]
		}
	}
	chars := strings.TrimRight(text, "=")
	pads := len(text) - len(chars)
	if len(chars)%4 == 1 && lenient && b.has("lenient-drops-single") {
		chars = chars[:len(chars)-1]
	}
	full := (4 - len(chars)%4) % 4
	optional := lenient && !b.has("lenient-refuses-no-padding") || b.has("strict-takes-no-padding")
	if len(chars)%4 == 1 || pads > full || pads < full && !optional {
		return nil, errBase64
	}
	var bits []byte
	for _, c := range []byte(chars) {
		at := strings.IndexByte(alphabet, c)
		if at < 0 {
			return nil, errBase64
		}
		for i := 5; i >= 0; i-- {
			bits = append(bits, byte(at>>i&1))
		}
	}
	blob := bitstring.Pack(bits[:len(bits)/8*8])
	if slices.Contains(bits[len(bits)/8*8:], 1) && !b.has("unused-bits-ignored") {
		return nil, errBase64
	}
	return blob, nil
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// parseDecoded reads a ~b# line. (BT-TEXT-2)
func (b impl) parseDecoded(line string) (v conformance.Value, err error) {
	text, found := strings.CutPrefix(line, "~b#")
	if !found {
		return v, errLeadIn
	}
	if !b.has("decoded-space-at-end") {
		text = strings.TrimRight(text, " \t\r\n")
	}
	text, found = strings.CutPrefix(text, "size: ")
	size := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	rest, comma := strings.CutPrefix(text[len(size):], ",")
	ok := false
	if v.Size, ok = b.digits(size, 10); !ok || !found || !comma && !b.has("decoded-without-comma") {
		return conformance.Value{}, errDecoded
	}
	for rest != "" {
		word, blank := strings.CutPrefix(rest, " ")
		word, after, more := strings.Cut(word, " ")
		rest = ""
		if more {
			rest = " " + after
		}
		number, hex := strings.CutPrefix(word, "0x")
		pc, ok := b.digits(number, 16)
		if !blank || !ok || !hex && !b.has("decoded-without-0x") || len(v.PCs) == 32 && !b.has("decoded-33-addresses") {
			return conformance.Value{}, errDecoded
		}
		v.PCs = append(v.PCs, pc)
	}
	return v, nil
}

func (b impl) digits(text string, base uint64) (v uint64, ok bool) {
	for _, c := range strings.ToLower(text) {
		d := uint64(strings.IndexRune("0123456789abcdef", c))
		if d >= base || v > (1<<64-1-d)/base && !b.has("decoded-overflows") {
			return 0, false
		}
		v = v*base + d
	}
	return v, text != ""
}

// line is a blob's text form. (BT-TEXT-1, BT-B64-1)
func (b impl) line(blob []byte) string {
	alphabet := base64Alphabet
	if b.has("line-url-alphabet") {
		alphabet = strings.NewReplacer("+", "-", "/", "_").Replace(alphabet)
	}
	all := bitstring.Unpack(blob)
	for len(all)%6 != 0 {
		all = append(all, 0)
	}
	var out strings.Builder
	out.WriteString("~m#")
	for ; len(all) > 0; all = all[6:] {
		out.WriteByte(alphabet[bitstring.Number(all[:6])])
	}
	if !b.has("line-without-padding") {
		out.WriteString(strings.Repeat("=", (3-len(blob)%3)%3))
	}
	return out.String()
}

// decoded is a stack's text form. (BT-TEXT-2)
func (b impl) decoded(v *conformance.Value) string {
	size, pc := "%d,", " 0x%x"
	switch {
	case b.has("decoded-size-hex"):
		size = "0x%x,"
	case b.has("decoded-upper-case"):
		pc = " 0x%X"
	}
	line := "~b#size: " + fmt.Sprintf(size, v.Size)
	for _, address := range v.PCs {
		line += fmt.Sprintf(pc, address)
	}
	if b.has("decoded-ends-in-space") {
		line += " "
	}
	return line
}

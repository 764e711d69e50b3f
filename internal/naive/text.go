package naive

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// Alphabet is the digits of base64, by their values. (BT-B64-1)
const Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// ParseLine reads a ~m# line; reason is "" on success. (BT-B64-2, BT-B64-3)
func ParseLine(line string, lenient bool) (blob []byte, reason string) {
	text, found := strings.CutPrefix(line, "~m#")
	if !found && !lenient {
		return nil, "lead-in"
	}
	if lenient {
		text = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "-", "+", "_", "/").Replace(text)
	}
	chars := strings.TrimRight(text, "=")
	padding := len(text) - len(chars)
	var all strings.Builder
	for _, c := range []byte(chars) {
		at := strings.IndexByte(Alphabet, c)
		if at < 0 {
			return nil, "base64"
		}
		fmt.Fprintf(&all, "%06b", at)
	}
	bits := all.String()
	unused := len(bits) % 8
	switch {
	case unused == 6, strings.Contains(bits[len(bits)-unused:], "1"):
		return nil, "base64"
	case !lenient && len(text)%4 != 0, padding > 2, padding > 0 && padding != (4-len(chars)%4)%4 && !lenient:
		return nil, "base64"
	case lenient && padding > (4-len(chars)%4)%4:
		return nil, "base64"
	}
	return bitstring.Parse(bits[:len(bits)-unused]), ""
}

// ParseDecoded reads a ~b# line; reason is "" on success. (BT-TEXT-2)
func ParseDecoded(line string) (pcs []uint64, size uint64, reason string) {
	text, found := strings.CutPrefix(line, "~b#")
	if !found {
		return nil, 0, "lead-in"
	}
	head, rest, comma := strings.Cut(strings.TrimRight(text, " \t\r\n"), ",")
	digits, named := strings.CutPrefix(head, "size: ")
	size, ok := parse(digits, 10)
	if !comma || !named || !ok {
		return nil, 0, "decoded-line"
	}
	for i, word := range strings.Split(rest, " 0x") {
		if i == 0 {
			if word != "" {
				return nil, 0, "decoded-line"
			}
			continue
		}
		pc, ok := parse(word, 16)
		if !ok || i > 32 {
			return nil, 0, "decoded-line"
		}
		pcs = append(pcs, pc)
	}
	return pcs, size, ""
}

// parse is like strconv.ParseUint, but rejects signs and underscores.
func parse(digits string, base int) (uint64, bool) {
	if strings.ContainsAny(digits, "+-_") {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, base, 64)
	return v, err == nil
}

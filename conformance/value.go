package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// Value is a stack in vectors and BTP/1.
type Value struct {
	Size uint64
	PCs  []uint64 // innermost first
	User []UserField
}

// UserField is a user field, as in Part II of SPEC.md.
type UserField struct {
	Tag   uint8
	Value uint64
}

// String returns the value in the form of vectors and BTP/1: size=N pcs=….
func (v Value) String() string {
	text := "size=" + strconv.FormatUint(v.Size, 10) + " pcs=" + formatPCs(v.PCs)
	for i, f := range v.User {
		text += []string{",", " user="}[b2i(i == 0)] + fmt.Sprintf("%d:%x", f.Tag, f.Value)
	}
	return text
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Equal reports whether v and w have the same size, frames and user fields.
func (v Value) Equal(w Value) bool {
	return v.Size == w.Size && slices.Equal(v.PCs, w.PCs) && slices.Equal(v.User, w.User)
}

// parseUser reads TAG:HEX,TAG:HEX.
func parseUser(text string) ([]UserField, error) {
	var fields []UserField
	for _, word := range strings.Split(text, ",") {
		tag, value, ok := strings.Cut(word, ":")
		t, err := strconv.ParseUint(tag, 10, 4)
		v, err2 := strconv.ParseUint(value, 16, 64)
		if !ok || err != nil || err2 != nil || t == 0 || fmt.Sprintf("%d:%x", t, v) != word {
			return nil, fmt.Errorf("user: %q, expected TAG:VALUE, decimal and hex", clip(word))
		}
		fields = append(fields, UserField{uint8(t), v})
	}
	return fields, nil
}

// formatPCs returns addresses in hexadecimal, separated by commas, or "-" if there are none.
func formatPCs(pcs []uint64) string {
	if len(pcs) == 0 {
		return "-"
	}
	var b []byte
	for i, pc := range pcs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, pc, 16)
	}
	return string(b)
}

func parsePCs(text string) ([]uint64, error) {
	if text == "-" {
		return nil, nil
	}
	words := strings.Split(text, ",")
	pcs := make([]uint64, 0, len(words))
	for _, word := range words {
		pc, err := strconv.ParseUint(word, 16, 64)
		if err != nil || strconv.FormatUint(pc, 16) != word {
			return nil, fmt.Errorf("pcs: %q, expected a 64-bit address in lower-case hex without 0x or leading zeros", word)
		}
		pcs = append(pcs, pc)
	}
	return pcs, nil
}

func parseSize(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("size: %q, expected a decimal number below 2^64", text)
	}
	return n, nil
}

// parseValue reads "size=N pcs=LIST", optionally followed by " user=LIST".
func parseValue(text string) (v Value, err error) {
	size, pcs, ok := strings.Cut(text, " ")
	pcs, user, hasUser := strings.Cut(pcs, " ")
	if hasUser {
		list, ok := strings.CutPrefix(user, "user=")
		if !ok {
			return Value{}, fmt.Errorf("%q, expected size=N pcs=LIST and perhaps user=LIST", clip(text))
		}
		if v.User, err = parseUser(list); err != nil {
			return Value{}, err
		}
	}
	size, okSize := strings.CutPrefix(size, "size=")
	pcs, okPCs := strings.CutPrefix(pcs, "pcs=")
	if !ok || !okSize || !okPCs {
		return Value{}, fmt.Errorf("%q, expected size=N pcs=LIST", clip(text))
	}
	if v.Size, err = parseSize(size); err != nil {
		return Value{}, err
	}
	v.PCs, err = parsePCs(pcs)
	return v, err
}

// clip shortens text for quoting in messages.
func clip(s string) string { return words.Clip(s) }

package fuzz

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// fieldReader reads the fields of a blob.
type fieldReader struct {
	bits []byte
	at   int
	bad  bool
}

func (b *fieldReader) field(w int) uint64 {
	if b.bad || b.at+w+1 > len(b.bits) {
		b.bad = true
		return 0
	}
	v := bitstring.Number(b.bits[b.at : b.at+w])
	b.at += w + 1
	return v
}

// value returns the text of a count and a value.
func (b *fieldReader) value() string {
	c := int(b.field(6))
	if c == 0 {
		c = 64
	}
	v := b.field(c)
	if c == bitsOf(v) {
		return strconv.FormatUint(v, 16)
	}
	return fmt.Sprintf("%x*%d", v, c)
}

func bitsOf(v uint64) int { return max(1, bits.Len64(v)) }

// blobForm returns the form of the bytes of a request for op.
func blobForm(data []byte, op conformance.Op) string {
	body, before, after := data, "", ""
	if n := len(data); n >= 2 {
		body = data[:n-2]
		switch length := int(data[n-2])<<8 | int(data[n-1]); {
		case length == n:
		case op == "end" && length >= 2 && length < n:
			before, body = "X"+hex.EncodeToString(data[:n-length])+" ", data[n-length:n-2]
		case op == "salvage":
			body, after = data, " n-"
		default:
			after = " n" + strconv.Itoa(length)
		}
	}
	f := before + bitsForm(bitstring.Unpack(body)) + after
	if back, ok := blobOf(f); ok && bytes.Equal(back, data) {
		return f
	}
	return "X" + hex.EncodeToString(data)
}

func bitsForm(all []byte) string {
	b := &fieldReader{bits: all}
	depth := int(b.field(5))
	if b.bad {
		return "B" + text01(all)
	}
	frames := depth
	if depth == 0 && len(all) >= 46*8 {
		frames = 32
	}
	var list []string
	good := b.at
	take := func(text string) bool {
		if !b.bad {
			list, good = append(list, text), b.at
		}
		return !b.bad
	}
	n := 0
	for ; n < frames; n++ {
		text := ""
		if b.field(1) == 0 {
			text = "L" + b.value()
		} else {
			text = fmt.Sprintf("D%d%c", b.field(3), "+-"[b.field(1)&1]) + b.value()
		}
		if !take(text) {
			break
		}
	}
	for more := take("S" + b.value()); more && len(all)-b.at >= 5; {
		tag := b.field(4)
		more = tag > 0 && take(fmt.Sprintf("U%d:%s", tag, b.value()))
	}
	if rest := all[good:]; len(rest) >= 8 || bytes.IndexByte(rest, 1) >= 0 {
		list = append(list, "B"+text01(rest))
	}
	if n%32 != depth {
		list = append([]string{"d" + strconv.Itoa(depth)}, list...)
	}
	return strings.Join(list, " ")
}

func text01(list []byte) string {
	out := make([]byte, len(list))
	for i, b := range list {
		out[i] = '0' + b
	}
	return string(out)
}

// blobWriter makes a blob of its form.
type blobWriter struct {
	memory        []byte // before the blob
	bits          []byte // behind the depth
	frames        int
	depth, length int  // -1: that of the frames, that of the blob; -2: no length
	first         byte // kind of the first word, 0 if there is none
}

func (w *blobWriter) put(v uint64, n int) { w.bits = append(bitstring.Append(w.bits, v, n), 0) }

func (w *blobWriter) value(text string) (ok bool) {
	text, count, has := strings.Cut(text, "*")
	v, err := strconv.ParseUint(text, 16, 64)
	c := bitsOf(v)
	if has {
		n, _ := strconv.Atoi(count)
		if n < c || n > 64 {
			return false
		}
		c = n
	}
	w.put(uint64(c%64), 6)
	w.put(v, c)
	return err == nil
}

// word adds what a word of the form says; ok is false if that is none.
func (w *blobWriter) word(kind byte, rest string) (ok bool) {
	n, err := strconv.ParseUint(rest, 10, 16)
	first := w.first
	if kind != 'X' && kind != 'n' {
		w.first = cmp.Or(first, kind)
	}
	switch kind {
	case 'X':
		b, err := hex.DecodeString(rest)
		w.memory = append(w.memory, b...)
		return err == nil && first == 0
	case 'n':
		if w.length = int(n); rest == "-" {
			w.length, err = -2, nil
		}
		return err == nil
	case 'd':
		w.depth = int(n)
		return err == nil && n < 32 && first == 0
	case 'L', 'D':
		w.frames++
		return w.frame(kind, rest)
	case 'S':
		return w.value(rest)
	case 'U':
		tag, value, _ := strings.Cut(rest, ":")
		n, err := strconv.ParseUint(tag, 10, 4)
		w.put(n, 4)
		return err == nil && n > 0 && w.value(value)
	case 'B':
		for _, c := range []byte(rest) {
			w.bits = append(w.bits, c-'0')
		}
		return strings.Trim(rest, "01") == ""
	}
	return false
}

func (w *blobWriter) frame(kind byte, rest string) (ok bool) {
	if kind == 'L' {
		w.put(0, 1)
		return w.value(rest)
	}
	if len(rest) < 3 || rest[0] < '0' || rest[0] > '7' || rest[1] != '+' && rest[1] != '-' {
		return false
	}
	w.put(1, 1)
	w.put(uint64(rest[0]-'0'), 3)
	w.put(uint64(b2i(rest[1] == '-')), 1)
	return w.value(rest[2:])
}

// blobOf is the reverse of blobForm.
func blobOf(text string) (data []byte, ok bool) {
	w := blobWriter{depth: -1, length: -1}
	for _, t := range strings.Fields(text) {
		if !w.word(t[0], t[1:]) {
			return nil, false
		}
	}
	if w.depth < 0 && w.frames > 32 {
		return nil, false
	}
	if w.first == 0 && w.length == -1 { // bytes as they are
		return w.memory, len(w.memory) > 0 || text == "X"
	}
	if w.first != 0 && w.first != 'B' {
		if w.depth < 0 {
			w.depth = w.frames % 32
		}
		w.bits = append(append(bitstring.Append(nil, uint64(w.depth), 5), 0), w.bits...)
	}
	data = bitstring.Pack(w.bits)
	if w.length == -1 {
		w.length = len(data) + 2
	}
	if w.length >= 0 {
		data = append(data, byte(w.length>>8), byte(w.length))
	}
	return append(w.memory, data...), len(data) < 60000
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

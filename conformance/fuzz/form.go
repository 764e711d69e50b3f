package fuzz

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// The form of a request is a text, which mutation and shrinking edit. What follows from the rest
// is not in it, and is computed when the form is made into a request: the CRC and base64 of lines,
// the length, padding, spill bits and depth of blobs.
//
//	blob       L406651 D0+3c9 D1-5*9 S1d60 U1:20 B0101: frames, size, user fields, bits
//	           d4, n9, n-: another depth than that of the frames, another length, no length
//	memory     X0aff and the form of a blob; X alone: bytes that no form gives
//	log, text  the text; in it ~m#(BLOB), ~e#(BLOB), ~p#(WORDS) and ~v#(WORDS) as BTP/1 has them,
//	           and ~p#{DIGITS}, ~v#{DIGITS} of lines that words cannot express
//	others     the words of BTP/1 behind the ID
//
// A value has *COUNT where the count is not that of its bits.

const digitChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

var (
	texts = []conformance.Op{conformance.OpMline, conformance.OpBline, conformance.OpEline, conformance.OpHline, conformance.OpPline,
		conformance.OpVline, conformance.OpScan, conformance.OpLog, conformance.OpDumps}
	blobs = []conformance.Op{conformance.OpDecode, conformance.OpEnd, conformance.OpSalvage, conformance.OpMarks, conformance.OpUser}
)

func isText(op conformance.Op) bool { return slices.Contains(texts, op) }
func isBlob(op conformance.Op) bool { return slices.Contains(blobs, op) }

// form returns the form of a request.
func form(r *conformance.Request) string {
	switch {
	case isText(r.Op):
		return textForm(r.Data)
	case isBlob(r.Op):
		return blobForm(r.Data, r.Op)
	}
	_, words, _ := strings.Cut(r.Line("1"), " 1 ")
	return words
}

// withForm returns r with the input of a form; ok is false if it is none, or BTP/1 forbids it.
func withForm(r conformance.Request, text string) (out conformance.Request, ok bool) {
	switch {
	case isText(r.Op):
		r.Data, ok = textOf(text)
		return r, ok
	case isBlob(r.Op):
		r.Data, ok = blobOf(text)
		return r, ok
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) || strings.Contains(" "+text+" ", "  ") {
		return r, false
	}
	_, out, _, err := conformance.ParseRequest(string(r.Op) + " 1 " + text)
	return out, err == nil && legal(&out)
}

// legal reports whether BTP/1 allows a request that parses.
func legal(r *conformance.Request) bool {
	switch r.Op {
	case conformance.OpUserEncode, conformance.OpEventEncode:
		for i, f := range r.In.User {
			if f.Tag > 6 || i > 0 && f.Tag <= r.In.User[i-1].Tag {
				return false
			}
		}
	case conformance.OpEncode:
		return len(r.In.User) == 0
	case conformance.OpFormat: // any number, and escapes as a writer has them
		if r.Words != "" {
			text := number.ReplaceAllString(r.Words, "$1 1")
			h, ok := words.ParseHeader(text)
			return ok && words.Header(&h) == text
		}
		return r.In == nil || len(r.In.User) == 0
	case conformance.OpPencode:
		_, list, _ := strings.Cut(r.Words, " ")
		p, err := words.ParsePathLine(list)
		return err == nil && p.Flags <= 7 && len(p.Entries) > 0 && p.String() == list
	case conformance.OpName:
		p, err := words.ParsePath(r.Words)
		return err == nil && below27(p.Frames)
	case conformance.OpAddresses, conformance.OpOffsets: // ranges as BT-HEAD-6 has them
		_, code, _ := strings.Cut(r.Words, "code=")
		code, _, _ = strings.Cut(code, " ")
		_, ok := codec.ParseRanges(code)
		c, err := words.ParseOffsets(r.Words)
		return ok && (r.Op == conformance.OpOffsets || err == nil && below27(c.List))
	case conformance.OpVencode:
		l, err := words.ParseEventLine(r.Words)
		if err != nil || l.Flags > 1 || len(l.Events) == 0 || l.String() != r.Words {
			return false
		}
		next := l.Next
		for _, e := range l.Events {
			if e.Kind == callpath.Allocated || e.Kind == callpath.Moved {
				if e.Number != next {
					return false
				}
				next++
			}
		}
	}
	return true
}

var number = regexp.MustCompile(`^([a-z]+) [0-9]+`)

func below27(frames []callpath.Frame) bool {
	return !slices.ContainsFunc(frames, func(f callpath.Frame) bool { return !f.Escaped && f.Value >= callpath.MaxOffset })
}

var (
	lineParts = regexp.MustCompile(`~[mepv]#(?:\([^()\n]*\)|\{[^{}\n]*\})`) // what a form has in another way than the text
	leadParts = regexp.MustCompile(`~[mepv]#[A-Za-z0-9+/]+={0,2}`)          // records and lines in a text
)

// textForm returns the form of a text.
func textForm(data []byte) string {
	if lineParts.Match(data) {
		return string(data)
	}
	return leadParts.ReplaceAllStringFunc(string(data), func(t string) string {
		for _, f := range partForms(t) {
			if back, ok := partOf(f); ok && back == t {
				return f
			}
		}
		return t
	})
}

// partForms returns the forms that a record or line may have.
func partForms(t string) (forms []string) {
	lead := t[:3]
	add := func(open, inner, end string) { forms = append(forms, lead+open+inner+end) }
	crc := 3
	switch lead {
	case "~m#", "~e#":
		if blob, err := base64.StdEncoding.Strict().DecodeString(t[3:]); err == nil {
			add("(", blobForm(blob, conformance.OpUser), ")")
		}
		return forms
	case "~p#":
		if l, err := words.ReadPathLine([]byte(t)); err == nil {
			add("(", l.String(), ")")
		}
	case "~v#":
		crc = 6
		if l, err := words.ReadEventLine([]byte(t)); err == nil {
			add("(", l.String(), ")")
		}
	}
	if n := len(t) - crc; n >= 3 {
		add("{", t[3:n], "}")
	}
	return forms
}

// textOf is the reverse of textForm.
func textOf(text string) (data []byte, ok bool) {
	ok = true
	out := lineParts.ReplaceAllStringFunc(text, func(t string) string {
		part, good := partOf(t)
		ok = ok && good
		return part
	})
	return []byte(out), ok
}

// partOf is the reverse of partForms.
func partOf(f string) (part string, ok bool) {
	defer func() { // a writer panics on what no caller may ask of it
		if recover() != nil {
			ok = false
		}
	}()
	lead, inner := f[:3], f[4:len(f)-1]
	switch {
	case f[3] == '{':
		return string(callpath.AppendCRC([]byte(lead + inner))), strings.Trim(inner, digitChars) == ""
	case lead == "~m#" || lead == "~e#":
		blob, ok := blobOf(inner)
		return lead + base64.StdEncoding.EncodeToString(blob), ok
	case lead == "~p#":
		l, err := words.ParsePathLine(inner)
		if err != nil || l.Flags > 7 {
			return "", false
		}
		line, err := callpath.AppendLine(nil, l.Head, l.Entries)
		return string(line), err == nil
	}
	a := right(&conformance.Request{Op: conformance.OpVencode, Words: inner})
	return string(a.Data), a.Outcome == conformance.OK
}

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
		case op == conformance.OpEnd && length >= 2 && length < n:
			before, body = "X"+hex.EncodeToString(data[:n-length])+" ", data[n-length:n-2]
		case op == conformance.OpSalvage:
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

// fieldWriter writes the fields of a blob.
type fieldWriter struct {
	bits   []byte
	frames int
}

func (w *fieldWriter) put(v uint64, n int) { w.bits = append(bitstring.Append(w.bits, v, n), 0) }

func (w *fieldWriter) value(text string) (ok bool) {
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

// token adds what a word of the form of a blob says; ok is false if that is none.
func (w *fieldWriter) token(kind byte, rest string) (ok bool) {
	switch kind {
	case 'L', 'D':
		if w.frames++; kind == 'L' {
			w.put(0, 1)
			break
		}
		if len(rest) < 3 || rest[0] < '0' || rest[0] > '7' || rest[1] != '+' && rest[1] != '-' {
			return false
		}
		w.put(1, 1)
		w.put(uint64(rest[0]-'0'), 3)
		w.put(uint64(b2i(rest[1] == '-')), 1)
		rest = rest[2:]
	case 'S':
	case 'U':
		tag, value, _ := strings.Cut(rest, ":")
		n, err := strconv.ParseUint(tag, 10, 4)
		if err != nil || n == 0 {
			return false
		}
		w.put(n, 4)
		rest = value
	case 'B':
		for _, c := range []byte(rest) {
			w.bits = append(w.bits, c-'0')
		}
		return strings.Trim(rest, "01") == ""
	default:
		return false
	}
	return w.value(rest)
}

// blobOf is the reverse of blobForm.
func blobOf(text string) (data []byte, ok bool) {
	var w fieldWriter
	var memory []byte
	depth, length, first := -1, -1, byte(0)
	for _, t := range strings.Fields(text) {
		kind, rest := t[0], t[1:]
		n, err := strconv.ParseUint(rest, 10, 16)
		switch kind {
		case 'X':
			b, err := hex.DecodeString(rest)
			if memory = append(memory, b...); err != nil || first != 0 {
				return nil, false
			}
			continue
		case 'n':
			if length = int(n); rest == "-" {
				length, err = -2, nil
			}
			if err != nil {
				return nil, false
			}
			continue
		case 'd':
			if depth = int(n); err != nil || n > 31 || first != 0 {
				return nil, false
			}
		default:
			if !w.token(kind, rest) {
				return nil, false
			}
		}
		first = cmp.Or(first, kind)
	}
	if depth < 0 && w.frames > 32 {
		return nil, false
	}
	if first == 0 && length < 0 { // bytes as they are
		return memory, len(memory) > 0 || text == "X"
	}
	if first != 0 && first != 'B' {
		if depth < 0 {
			depth = w.frames % 32
		}
		w.bits = append(append(bitstring.Append(nil, uint64(depth), 5), 0), w.bits...)
	}
	data = bitstring.Pack(w.bits)
	if length != -2 {
		n := len(data) + 2
		if length >= 0 {
			n = length
		}
		data = append(data, byte(n>>8), byte(n))
	}
	return append(memory, data...), len(data) < 60000
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

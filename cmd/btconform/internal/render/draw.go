package render

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// reading is the fields of a blob; of a rejected blob, those before the fault.
type reading struct {
	Fields []codec.Field
	Reason codec.Reason // "" if accepted
	At     int          // rejected: the first bit of the faulty field
}

func decode(blob []byte, word int) (r reading) {
	var err error
	var e *codec.Error
	if r.Fields, err = (codec.Decoder{Word: word}).AppendFields(nil, blob); errors.As(err, &e) {
		r.Reason, r.At = e.Reason, e.Off
	}
	return r
}

// cut is the reading of a blob cut at its end.
func cut(data []byte) reading {
	r := decode(binary.BigEndian.AppendUint16(slices.Clone(data), uint16(len(data)+2)), 64) // with a right length
	r.Fields = slices.DeleteFunc(r.Fields, func(f codec.Field) bool { return f.Kind == "user bits" || f.Kind == "length" })
	return r
}

// draw draws the input or, for encoding, the expected blob.
func draw(f *conformance.Failure, r *conformance.Result) []string {
	v := r.Vector
	switch r.Op.Drawn() {
	case "nothing":
		return nil
	case "text":
		return drawText(*v.Text, textPlace(f, v))
	case "log":
		return drawText(*v.Text, -1)
	case "request":
		return answer("asked ", f.Request)
	case "expected":
		if v.Rejects() {
			return nil
		}
		if r.Op == "format" {
			return drawText(v.Formatted(), bitstring.FirstDifference([]byte(v.Formatted()), f.Answer.Data)/8)
		}
		return drawWritten(f, r)
	}
	blob := f.Data
	if r.Op == "end" {
		if end, err := codec.BlobAtEnd(blob); err == nil {
			blob = end
		}
	}
	reading := decode(blob, v.Word)
	if r.Op == "salvage" {
		reading = cut(blob)
	}
	return drawBits(blob, nil, reading, place(f, reading, v))
}

// drawWritten draws the blob that an encoder must write.
func drawWritten(f *conformance.Failure, r *conformance.Result) []string {
	v := r.Vector
	want, _ := v.Expected()
	at := -1
	if f.Answer.Outcome == conformance.OK {
		mask := append([]byte{}, f.Answer.Data...)
		if v.Head.AnySpill && len(mask) == len(want) {
			for _, n := range v.Spills(r.Op) {
				bitstring.SetBit(mask, n, bitstring.Bit(want, n))
			}
		}
		at = bitstring.FirstDifference(want, mask)
	}
	return drawBits(want, f.Answer.Data, decode(want, 64), at)
}

// textPlace returns the first byte at which a text differs from the text of its control
// vector, or at which the implementation reported a fault; -1 if neither is known.
func textPlace(f *conformance.Failure, v *conformance.Vector) int {
	switch {
	case f.Answer.Outcome == conformance.Reject && f.Answer.Bit >= 0:
		return f.Answer.Bit / 8
	case v.Differs.Kind == "byte" || v.Differs.Kind == "insert" || v.Differs.Kind == "delete":
		return v.Differs.From
	}
	return -1
}

// place returns the bit at which the answer to a blob becomes wrong, or -1 if that is not
// known: the first field with a different value, or the fault that only one side reports.
func place(f *conformance.Failure, r reading, v *conformance.Vector) int {
	a := f.Answer
	switch {
	case v.Want.Outcome == conformance.Reject && r.Reason == "": // the fault is in what the fields do not show
		return -1
	case v.Want.Outcome == conformance.Reject:
		return r.At
	case a.Outcome == conformance.Reject && a.Bit >= 0:
		return a.Bit
	case a.Outcome != conformance.OK || a.Words != "":
		return -1
	}
	want, got := v.Want.Value, a.Value
	frame := -1
	for i := range min(len(want.PCs), len(got.PCs)) {
		if want.PCs[i] != got.PCs[i] {
			frame = i
			break
		}
	}
	for _, p := range r.Fields {
		switch {
		case len(want.PCs) != len(got.PCs) && p.Kind == "depth", v.Want.Depth != a.Depth && p.Kind == "depth":
			return p.Off
		case frame >= 0 && p.Frame == frame && (p.Kind == "literal" || p.Kind == "delta"):
			return p.Off
		case frame < 0 && p.Kind == "size":
			return p.Off
		}
	}
	return -1
}

// drawText quotes text, with a caret under byte at.
func drawText(text string, at int) (lines []string) {
	const margin = "  text  "
	var b strings.Builder
	if from := max(0, min(at-maxShown/2, len(text)-maxShown)); len(text) > maxShown {
		fmt.Fprintf(&b, "%d bytes ... ", from)
		rest := len(text) - from - maxShown
		text, at = text[from:from+maxShown], at-from
		defer func() { lines = append(lines, fmt.Sprintf("        … %d bytes after", rest)) }()
	}
	b.WriteByte('"')
	column := -1
	for i, c := range []byte(text) {
		if i == at {
			column = b.Len()
		}
		quoted, _ := json.Marshal(string(rune(c))) // a string: cannot fail
		if c >= 0x80 {
			quoted = fmt.Appendf(nil, `"\x%02x"`, c)
		}
		b.Write(quoted[1 : len(quoted)-1])
	}
	if at >= len(text) {
		column = b.Len()
	}
	b.WriteByte('"')
	return wrapWithCaret(margin, b.String(), "", column)
}

// wrapWithCaret breaks text into lines of the width. It puts below, a second row, under it, and
// a caret under column, if column is not negative.
func wrapWithCaret(margin, text, below string, column int) []string {
	var lines []string
	width := Width - len(margin)
	blank := strings.Repeat(" ", len(margin))
	for start := 0; start < len(text); {
		end := min(start+width, len(text))
		if end < len(text) {
			if i := strings.LastIndexByte(text[start:end], ' '); i > 0 {
				end = start + i + 1
			}
		}
		lines = append(lines, margin+strings.TrimRight(text[start:end], " "))
		margin = blank
		if start < len(below) {
			lines = append(lines, blank[:len(blank)-5]+"got  "+strings.TrimRight(below[start:min(end, len(below))], " "))
		}
		if start <= column && (column < end || column == len(text) && end == len(text)) {
			lines = append(lines, blank+strings.Repeat(" ", column-start)+"^")
		}
		start = end
	}
	return lines
}

// bitRow holds the fields of one frame, or the depth, the size or the length.
type bitRow struct {
	label    string
	off, end int // bits
	parts    []codec.Field
}

// drawBits draws the fields around bit at, or all fields if at is negative. got is another
// blob to draw under blob.
func drawBits(blob, got []byte, r reading, at int) []string {
	rows := bitRows(blob, r)
	if len(rows) == 0 {
		return nil
	}
	from, to := 0, min(len(rows), 7)
	if at >= 0 {
		for i, row := range rows {
			if row.off <= at {
				from, to = max(0, i-1), min(len(rows), i+2)
			}
		}
	}
	lines := []string{"  bits (spill bits: . is 0, : is 1)"}
	if from > 0 {
		lines = append(lines, fmt.Sprintf("  … %d bits before", rows[from].off))
	}
	for i, row := range rows[from:to] {
		lines = append(lines, fmt.Sprintf("  bit %-4d  %s", row.off, row.label))
		text, column := row.draw(blob, at)
		last := from+i == len(rows)-1
		if at >= row.end && last {
			column = len(text)
		}
		below := ""
		if column >= 0 && got != nil {
			below, _ = row.draw(got, -1)
		}
		lines = append(lines, aroundCaret(wrapWithCaret("            ", text, below, column))...)
	}
	if to < len(rows) {
		lines = append(lines, fmt.Sprintf("  … %d bits after", 8*len(blob)-rows[to].off))
	}
	return lines
}

// aroundCaret returns the lines of a long row without those that are far from its beginning and
// from the caret.
func aroundCaret(lines []string) (kept []string) {
	caret := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "^") })
	for i, line := range lines {
		switch {
		case i < 4 || caret >= 0 && i >= caret-2 && i <= caret+1:
			kept = append(kept, line)
		case !strings.HasSuffix(kept[len(kept)-1], "…"):
			kept = append(kept, "            …")
		}
	}
	return kept
}

// draw returns the bits of the row, with spaces between fields, and the column of bit at, or
// -1 if the bit is not in this row.
func (row bitRow) draw(data []byte, at int) (text string, column int) {
	column = -1
	var b strings.Builder
	for i, p := range row.parts {
		if i > 0 {
			b.WriteByte(' ')
		}
		for n := p.Off; n < p.End(); n++ {
			if n == at {
				column = b.Len()
			}
			switch {
			case n >= 8*len(data):
				b.WriteByte('-')
			case n == p.Off+p.Width:
				b.WriteByte(".:"[bitstring.Bit(data, n)])
			default:
				b.WriteByte('0' + bitstring.Bit(data, n))
			}
		}
	}
	return b.String(), column
}

func bitRows(blob []byte, r reading) []bitRow {
	var rows []bitRow
	for i := 0; i < len(r.Fields); {
		first := r.Fields[i]
		n := i + 1
		for n < len(r.Fields) && r.Fields[n].Frame == first.Frame && (first.Frame >= 0 || r.Fields[n].Kind == "size") {
			n++
		}
		parts := r.Fields[i:n]
		rows = append(rows, bitRow{label: rowLabel(parts), off: first.Off, end: parts[len(parts)-1].End(), parts: parts})
		i = n
	}
	next := 0
	if len(rows) > 0 {
		next = rows[len(rows)-1].end
	}
	if rest := 8*len(blob) - next; r.Reason != "" && rest > 0 {
		p := codec.Field{Kind: "user bits", Frame: -1, Off: next, Width: min(rest, 2*(Width-12))}
		label := "the rest: " + string(r.Reason)
		if r.At < next {
			label = "the rest"
		}
		rows = append(rows, bitRow{label: label, off: next, end: next + p.Width, parts: []codec.Field{p}})
	}
	return rows
}

// rowLabel returns the meaning of a row's fields.
func rowLabel(parts []codec.Field) string {
	last := parts[len(parts)-1]
	at := map[codec.FieldKind]uint64{}
	for _, p := range parts {
		at[p.Kind] = p.Value
	}
	switch last.Kind {
	case "depth", "size", "length":
		return fmt.Sprintf("%v %d", last.Kind, last.Value)
	case "literal":
		return fmt.Sprintf("frame %d: literal %#x", last.Frame, last.Value)
	case "delta":
		sign := "+"
		if at["sign"] == 1 {
			sign = "-"
		}
		return fmt.Sprintf("frame %d: delta, back %d (base: frame %d), %s %#x", last.Frame, at["back"], last.Frame-1-int(at["back"]), sign, last.Value)
	case "user bits":
		if last.Width < 8 && last.Value == 0 {
			return "padding"
		}
		return "user bits"
	}
	return fmt.Sprintf("frame %d: up to its %v", last.Frame, last.Kind)
}

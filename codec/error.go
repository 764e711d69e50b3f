package codec

import "fmt"

// Reason names the reason of a rejection, such as "truncated". The names are those of SPEC.md. (BT-REJ-1)
type Reason string

const (
	reasonLeadIn      Reason = "lead-in"      // a line that does not begin with its lead-in
	reasonBase64      Reason = "base64"       // not base64 by the rules of the function called, strict or lenient
	reasonDecodedLine Reason = "decoded-line" // a malformed ~b# line
	reasonShort       Reason = "short"        // too few bytes for a length field
	reasonEmpty       Reason = "empty"        // length 0: lws had no space for the metadata
	reasonLength      Reason = "length"       // the length field contradicts the number of bytes
	reasonTruncated   Reason = "truncated"    // a field reaches into the length field
	reasonDeltaFirst  Reason = "delta-first"  // frame 0 is a delta
	reasonBack        Reason = "back"         // a delta whose base lies before frame 0
	reasonCount       Reason = "count"        // a count over 32 in a blob of a 32-bit encoder
	reasonEvent       Reason = "event"        // an event that lacks a required user field
	reasonHeaderLine  Reason = "header-line"  // a malformed ~h# line

	reasonFrames Reason = "frames" // an encoder refuses more than MaxDepth frames
	reasonWord   Reason = "word"   // an encoder refuses a value that does not fit its machine's word
)

// Reasons returns every reason, in the order of SPEC.md: those of records, of events and headers, of
// lines of call paths, and those for which an encoder refuses a stack. (BT-REJ-1, BT-EVT-3, BT-HEAD-1,
// BT-PREJ-1, BT-REJ-2)
func Reasons() []Reason {
	return []Reason{reasonLeadIn, reasonBase64, reasonDecodedLine, reasonShort, reasonEmpty, reasonLength, reasonTruncated,
		reasonDeltaFirst, reasonBack, reasonCount, reasonEvent, reasonHeaderLine,
		"crc", "unit", "number", "hash", "drop", "depth", "frame", "index", "age", reasonFrames, reasonWord}
}

// Error is the only error type of decoding, parsing and encoding. Do not use values
// returned with it, except from [Decoder.Salvage].
type Error struct {
	// Off is the position of the faulty field or character: in bits from the start of
	// the blob or, if Field is "text", in bytes from the start of the line. It is -1
	// if an encoder refused its input.
	Off    int
	Field  FieldKind
	Frame  int    // frame of the field, -1 if none
	Clause string // violated clause of SPEC.md
	Reason Reason
	Detail Detail // the value found and the value expected, for people
}

// Detail is a text. It is formatted when it is printed: of a log with many damaged records, few errors
// are.
type Detail struct {
	Format string // of [fmt.Sprintf]
	Args   []any
}

func (d Detail) String() string { return fmt.Sprintf(d.Format, d.Args...) }

// Error returns place, field, expectation, reason and clause in one line.
func (e *Error) Error() string {
	unit := "bit"
	if e.Field == fieldText {
		unit = "byte"
	}
	field := string(e.Field)
	if e.Frame >= 0 {
		field = fmt.Sprintf("%s of frame %d", field, e.Frame)
	}
	if e.Off < 0 {
		return fmt.Sprintf("%s %s [%s, %s]", field, e.Detail, e.Reason, e.Clause)
	}
	return fmt.Sprintf("%s %d, %s: %s [%s, %s]", unit, e.Off, field, e.Detail, e.Reason, e.Clause)
}

// clauseOf returns the default clause of a reason. Some callers set a more specific
// clause.
func clauseOf(r Reason) string {
	switch r {
	case reasonLeadIn:
		return "BT-TEXT-1"
	case reasonBase64:
		return "BT-B64-2"
	case reasonDecodedLine:
		return "BT-TEXT-2"
	case reasonShort, reasonLength:
		return "BT-BLOB-2"
	case reasonEmpty:
		return "BT-BLOB-4"
	case reasonTruncated:
		return "BT-FIELD-4"
	case reasonDeltaFirst:
		return "BT-DELTA-4"
	case reasonBack:
		return "BT-DELTA-5"
	case reasonCount:
		return "BT-COUNT-4"
	case reasonEvent:
		return "BT-EVT-3"
	case reasonHeaderLine:
		return "BT-HEAD-1"
	case reasonFrames, reasonWord:
		return "BT-REJ-2"
	}
	panic("codec: unknown reason " + string(r))
}

func textError(off int, r Reason, clause, format string, args ...any) *Error {
	return &Error{Off: off, Field: fieldText, Frame: -1, Clause: clause, Reason: r, Detail: Detail{format, args}}
}

func bitError(off int, k FieldKind, frame int, r Reason, format string, args ...any) *Error {
	return &Error{Off: off, Field: k, Frame: frame, Clause: clauseOf(r), Reason: r, Detail: Detail{format, args}}
}

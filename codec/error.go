package codec

import "fmt"

// Reason names why something was rejected; the names are SPEC.md's. (BT-REJ-1)
type Reason string

const (
	ReasonLeadIn      Reason = "lead-in"      // a record line without its ~m# or ~b#
	ReasonBase64      Reason = "base64"       // not base64, read strictly or leniently as asked
	ReasonDecodedLine Reason = "decoded-line" // a ~b# line whose text is not of the form
	ReasonShort       Reason = "short"        // fewer bytes than a length field takes
	ReasonEmpty       Reason = "empty"        // length 0: lws had no room for the metadata
	ReasonLength      Reason = "length"       // the length field contradicts the number of bytes
	ReasonTruncated   Reason = "truncated"    // a field reaches into the length field
	ReasonDeltaFirst  Reason = "delta-first"  // frame 0 is a delta
	ReasonBack        Reason = "back"         // a delta whose base lies before frame 0
	ReasonCount       Reason = "count"        // a count over 32 in a blob read at word 32
	ReasonEvent       Reason = "event"        // an event without one of the user fields that it must have
	ReasonHeaderLine  Reason = "header-line"  // a ~h# line whose text is not of the form

	ReasonFrames Reason = "frames" // an encoder refuses more than MaxDepth frames
	ReasonWord   Reason = "word"   // an encoder refuses a value that its machine's word cannot hold
)

// Reasons lists every reason that a record can be rejected for, in the order of
// SPEC.md. (BT-REJ-1)
func Reasons() []Reason {
	return []Reason{ReasonLeadIn, ReasonBase64, ReasonDecodedLine, ReasonShort, ReasonEmpty,
		ReasonLength, ReasonTruncated, ReasonDeltaFirst, ReasonBack, ReasonCount}
}

// RecordingReasons lists the reasons that only lines of recordings can have.
// (BT-EVT-3, BT-HEAD-1)
func RecordingReasons() []Reason { return []Reason{ReasonEvent, ReasonHeaderLine} }

// RefusalReasons lists the reasons for which an encoder refuses a stack. (BT-REJ-2)
func RefusalReasons() []Reason { return []Reason{ReasonFrames, ReasonWord} }

// Error is the only error type of decoding, parsing and encoding. Values returned with
// it are not valid, except those of [Salvage].
type Error struct {
	// Off is where the offending field or character begins: in bits from the
	// start of the blob, or in bytes from the start of the line when Field is
	// FieldText; -1 of a refusal to encode.
	Off    int
	Field  FieldKind
	Frame  int    // frame the field belongs to, -1 if none
	Clause string // clause of SPEC.md that was broken
	Reason Reason
	detail string // what was expected and what was there
}

// Error returns the place, the field, what was expected, the reason and the clause in
// one line.
func (e *Error) Error() string {
	unit := "bit"
	if e.Field == FieldText {
		unit = "byte"
	}
	field := e.Field.String()
	if e.Frame >= 0 {
		field = fmt.Sprintf("%s of frame %d", field, e.Frame)
	}
	if e.Off < 0 {
		return fmt.Sprintf("%s %s [%s, %s]", field, e.detail, e.Reason, e.Clause)
	}
	return fmt.Sprintf("%s %d, %s: %s [%s, %s]", unit, e.Off, field, e.detail, e.Reason, e.Clause)
}

// clauseOf returns the clause that each reason enforces, unless the place has another.
func clauseOf(r Reason) string {
	switch r {
	case ReasonLeadIn:
		return "BT-TEXT-1"
	case ReasonBase64:
		return "BT-B64-2"
	case ReasonDecodedLine:
		return "BT-TEXT-2"
	case ReasonShort, ReasonLength:
		return "BT-BLOB-2"
	case ReasonEmpty:
		return "BT-BLOB-4"
	case ReasonTruncated:
		return "BT-FIELD-4"
	case ReasonDeltaFirst:
		return "BT-DELTA-4"
	case ReasonBack:
		return "BT-DELTA-5"
	case ReasonCount:
		return "BT-COUNT-4"
	case ReasonEvent:
		return "BT-EVT-3"
	case ReasonHeaderLine:
		return "BT-HEAD-1"
	case ReasonFrames, ReasonWord:
		return "BT-REJ-2"
	}
	panic("codec: unknown reason " + string(r))
}

func textError(off int, r Reason, clause, format string, args ...any) *Error {
	return &Error{Off: off, Field: FieldText, Frame: -1, Clause: clause, Reason: r,
		detail: fmt.Sprintf(format, args...)}
}

func bitError(off int, k FieldKind, frame int, r Reason, format string, args ...any) *Error {
	return &Error{Off: off, Field: k, Frame: frame, Clause: clauseOf(r), Reason: r,
		detail: fmt.Sprintf(format, args...)}
}

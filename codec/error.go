package codec

import "fmt"

// Reason names the reason of a rejection. The names are those of SPEC.md. (BT-REJ-1)
type Reason string

const (
	ReasonLeadIn      Reason = "lead-in"      // a line that does not begin with its lead-in
	ReasonBase64      Reason = "base64"       // not base64 by the rules of the function called, strict or lenient
	ReasonDecodedLine Reason = "decoded-line" // a malformed ~b# line
	ReasonShort       Reason = "short"        // too few bytes for a length field
	ReasonEmpty       Reason = "empty"        // length 0: lws had no space for the metadata
	ReasonLength      Reason = "length"       // the length field contradicts the number of bytes
	ReasonTruncated   Reason = "truncated"    // a field reaches into the length field
	ReasonDeltaFirst  Reason = "delta-first"  // frame 0 is a delta
	ReasonBack        Reason = "back"         // a delta whose base lies before frame 0
	ReasonCount       Reason = "count"        // a count over 32 in a blob of a 32-bit encoder
	ReasonEvent       Reason = "event"        // an event that lacks a required user field
	ReasonHeaderLine  Reason = "header-line"  // a malformed ~h# line

	ReasonCRC    Reason = "crc"    // the CRC of a ~p# or ~v# line differs
	ReasonUnit   Reason = "unit"   // a unit of addresses over 12
	ReasonNumber Reason = "number" // a number not in its shortest form, or of 2^64 or more
	ReasonHash   Reason = "hash"   // a name of more than 32 bits
	ReasonDrop   Reason = "drop"   // an entry drops more frames than the previous entry has
	ReasonDepth  Reason = "depth"  // a call path of more than 1,024 frames
	ReasonFrame  Reason = "frame"  // a code offset below 0, or of 2^27 or more
	ReasonIndex  Reason = "index"  // an index of a call path that the ~v# line has not named
	ReasonAge    Reason = "age"    // a block before the first one of the boot

	ReasonFrames Reason = "frames" // an encoder refuses more than MaxDepth frames
	ReasonWord   Reason = "word"   // an encoder refuses a value that does not fit its machine's word
)

// Reasons returns every reason for which a record can be rejected, in the order of
// SPEC.md. (BT-REJ-1)
func Reasons() []Reason {
	return []Reason{ReasonLeadIn, ReasonBase64, ReasonDecodedLine, ReasonShort, ReasonEmpty,
		ReasonLength, ReasonTruncated, ReasonDeltaFirst, ReasonBack, ReasonCount}
}

// RecordingReasons returns the reasons that only events and headers of recordings have.
// (BT-EVT-3, BT-HEAD-1)
func RecordingReasons() []Reason { return []Reason{ReasonEvent, ReasonHeaderLine} }

// PathReasons returns the reasons that only lines of call paths have, in the order of
// SPEC.md. (BT-PREJ-1)
func PathReasons() []Reason {
	return []Reason{ReasonCRC, ReasonUnit, ReasonNumber, ReasonHash, ReasonDrop, ReasonDepth,
		ReasonFrame, ReasonIndex, ReasonAge}
}

// RefusalReasons returns the reasons for which an encoder refuses a stack. (BT-REJ-2)
func RefusalReasons() []Reason { return []Reason{ReasonFrames, ReasonWord} }

// Error is the only error type of decoding, parsing and encoding. Do not use values
// returned with it, except from [Decoder.Salvage].
type Error struct {
	// Off is the position of the faulty field or character: in bits from the start of
	// the blob or, if Field is FieldText, in bytes from the start of the line. It is -1
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
	if e.Field == FieldText {
		unit = "byte"
	}
	field := e.Field.String()
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
	case ReasonCRC, ReasonUnit, ReasonNumber, ReasonHash, ReasonDrop, ReasonDepth, ReasonFrame, ReasonIndex, ReasonAge:
		return "BT-PREJ-1"
	case ReasonFrames, ReasonWord:
		return "BT-REJ-2"
	}
	panic("codec: unknown reason " + string(r))
}

func textError(off int, r Reason, clause, format string, args ...any) *Error {
	return &Error{Off: off, Field: FieldText, Frame: -1, Clause: clause, Reason: r, Detail: Detail{format, args}}
}

func bitError(off int, k FieldKind, frame int, r Reason, format string, args ...any) *Error {
	return &Error{Off: off, Field: k, Frame: frame, Clause: clauseOf(r), Reason: r, Detail: Detail{format, args}}
}

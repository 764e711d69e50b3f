package heaplog

import (
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Kind is what an [Item] is.
type Kind uint8

const (
	Text       Kind = iota // text between records
	Blob                   // a record: ~m#, then a blob in base64
	Decoded                // a record: ~b#, then size and addresses in numbers
	BareBlob               // a record: a line that is the base64 of a blob and nothing else; see [Bare]
	Event                  // ~e#, then the blob of an allocation event
	Mark                   // ~h#, a header line of a recording
	Unreadable             // a record that could not be read at all
	Idle                   // no text: the log has no more for now, and the pass is about to wait
)

var kindNames = [...]string{"text", "~m#", "~b#", "bare", "~e#", "~h#", "unreadable", "idle"}

// String returns the lead-in of a record, or a word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Place is where in a log something begins.
type Place struct {
	File   string
	Line   int64 // from 1; a line ends with its '\n'
	Offset int64 // in bytes from the start of the log, decompressed
}

// String returns the place as file:line (offset N).
func (p Place) String() string { return fmt.Sprintf("%s:%d (offset %d)", p.File, p.Line, p.Offset) }

// Item is a record, or text between records. An Item and what it points to are valid until
// the next item; symbol.Addr values in it stay valid.
type Item struct {
	Kind
	Place
	// Text is the item as the log has it. The Texts of all items are the log.
	Text []byte
	// Allocs are the allocations that the record says, with recovered bits and names. A
	// Mark, and a record that is Unreadable, has none.
	Allocs []Alloc
	// Blob is the decoded base64 of a record, as much of it as could be decoded. It is nil
	// for a Decoded record.
	Blob []byte
	// Stack is the stack as recorded, before bits are recovered; nil where there is none.
	// Of a cut record, its PCs are the complete frames.
	Stack *codec.Stack
	// User is the user fields of an Event, and of a record in a dump whose header says
	// that its records have some; else nil.
	User *codec.User
	// Header is what a Mark says; else nil.
	Header *codec.Header
	// Lenient reports that the base64 has the URL alphabet or lacks its padding.
	Lenient bool
	// Err is why a record is Unreadable or cut: a *codec.Error or [ErrTooLong].
	Err error
	// Cut is not nil if the end of the record is missing and at least one frame before
	// the cut is complete.
	Cut *Cut

	decoded *decoded // nil where there is no stack
}

// Cut describes a record whose end is missing. A character lost inside a record cannot always
// be distinguished from a cut; the frames after that character are then wrong.
type Cut struct {
	Depth int  // frames that the record announces, more than there are
	Sized bool // the size was there
	ByLws bool // it has the length at which lws itself cuts the lines it prints
}

// Alloc is an allocation.
type Alloc struct {
	Stack []symbol.Addr // innermost frame first
	profile.Value
	SizeLost bool // only the low 31 bits of the size are known
}

// ErrTooLong is the Err of a record that is longer than any record can be.
var ErrTooLong = errors.New("longer than the longest record")

// ReasonTooLong is the reason of ErrTooLong, beside those of codec.Reasons.
const ReasonTooLong codec.Reason = "too-long"

// Reason returns the name of the reason in Err, "" if there is none.
func (it *Item) Reason() codec.Reason {
	var e *codec.Error
	switch {
	case it.Err == nil:
		return ""
	case errors.As(it.Err, &e):
		return e.Reason
	}
	return ReasonTooLong
}

package heaplog

import (
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Kind is the kind of an [Item].
type Kind uint8

const (
	Text       Kind = iota // text between records
	Blob                   // a record: ~m# and a blob in base64
	Decoded                // a record: ~b#, size and addresses as numbers
	BareBlob               // a record: a line that is only the base64 of a blob; see [Bare]
	Event                  // ~e# and the blob of an allocation event
	Mark                   // ~h#, a header line of a recording
	Paths                  // ~p#, call paths with what they hold
	PathEvents             // ~v#, allocation events with names of call paths
	Unreadable             // a record of which nothing could be read
	Idle                   // no text: no data is available, and the pass is about to wait
)

var kindNames = [...]string{"text", "~m#", "~b#", "bare", "~e#", "~h#", "~p#", "~v#", "unreadable", "idle"}

// String returns the lead-in of a record, or the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Place is the position of a record or a line in a log.
type Place struct {
	File   string
	Line   int64 // from 1; the '\n' belongs to the line it ends
	Offset int64 // in bytes from the start of the log, decompressed
}

// String returns the place as "file:line (offset N)".
func (p Place) String() string { return fmt.Sprintf("%s:%d (offset %d)", p.File, p.Line, p.Offset) }

// Item is a record, or the text between two records. An Item and all it refers to are valid
// until the next item; symbol.Addr values in it stay valid.
type Item struct {
	Kind
	Place
	// Dump is the number of the dump that the item is in or follows, from 1 as in the order of
	// Dumps, also with Select; 0 before the first dump. Boot is the number of the boot, from 1.
	// Both are those at the end of the item, as far as the log up to there shows them. Where
	// only later records show that a dump has begun (see Inference above), the first records of
	// a dump have the number of the dump before, unless Select is set.
	Dump, Boot int
	// Text is the text of the item in the log. The Texts of all items together are the log.
	Text []byte
	// Allocs are the allocations of the record, with recovered bits and names. A Paths item
	// has one for each of its call paths. A Mark, a PathEvents item or an Unreadable record
	// has none.
	Allocs []Alloc
	// Paths is the line of a Paths item, before its first entry, else nil.
	Paths *callpath.Line
	// Events are the events of a PathEvents item.
	Events []PathEvent
	// Blob is the decoded base64 of a record, as far as it could be decoded. It is nil for
	// a Decoded record.
	Blob []byte
	// Stack is the stack as recorded, before bits are recovered, or nil if the item has
	// none. In a cut record, its PCs are the complete frames.
	Stack *codec.Stack
	// User holds the user fields of an Event, or of a record in a dump whose header
	// announces user fields; else nil.
	User *codec.User
	// Header is the header line of a Mark, else nil.
	Header *codec.Header
	// Heap holds the values of a ~h#heap line, else nil.
	Heap *profile.Heap
	// Lenient reports whether the base64 has the URL alphabet or lacks its padding.
	Lenient bool
	// Err is the reason why a record is Unreadable or cut: a *codec.Error or [ErrTooLong].
	Err error
	// Cut is not nil if the record is cut and, before the cut, its size or at least one
	// frame is complete.
	Cut *Cut

	decoded *decoded         // nil if there is no stack
	events  *callpath.Events // of a PathEvents item
}

// PathEvent is an event of a ~v# line. (BT-VLINE-4)
type PathEvent struct {
	callpath.Event
	Stack   []symbol.Addr // of Allocated and Moved, innermost frame first, as far as it is known
	NoOuter bool          // the outer frames are not known
}

// Cut describes a record whose end is missing. A character lost inside a record cannot
// always be distinguished from a cut; the frames after the lost character are then wrong.
type Cut struct {
	Depth int  // frames that the record announces; the record has fewer. Of ~b#, those with the one that could not be read
	Sized bool // the size is known
	ByLws bool // its length is the one at which lws cuts the lines it prints
}

// Alloc is an allocation and its call stack.
type Alloc struct {
	Stack []symbol.Addr // innermost frame first
	profile.Value
	SizeLost bool // only the low 31 bits of the size are known

	// The other fields are of Paths items. Value is what the line holds, before sampling is
	// accounted for.
	Name       uint32           // of the call path (BT-NAME-1)
	Definition bool             // the entry defines the name, and has no values
	NoOuter    bool             // the outer frames were not captured, or their name is not known
	Blocks     []callpath.Block // each block, if the line has them
	Ever       profile.Value    // allocations since the boot, if the line has them
	Peak       uint64           // the most bytes that were live, if the line has it
}

// ErrTooLong is the Err of a record longer than any valid record.
var ErrTooLong = errors.New("longer than the longest record")

// ReasonTooLong is the reason of ErrTooLong. It is not in codec.Reasons.
const ReasonTooLong codec.Reason = "too-long"

// Reason returns the reason in Err, "" if Err is nil or has no reason.
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

package heaplog

import (
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Kind is the kind of an [Item].
type Kind uint8

const (
	KindText       Kind = iota // text between records
	KindBlob                   // a record: ~m# and a blob in base64
	KindDecoded                // a record: ~b#, size and addresses as numbers
	KindBareBlob               // a record: a line that is only the base64 of a blob; see [Bare]
	KindEvent                  // ~e# and the blob of an allocation event
	KindMark                   // ~h#, a header line of a recording
	KindPaths                  // ~p#, call paths with what they hold
	KindPathEvents             // ~v#, allocation events with names of call paths
	KindUnreadable             // a record of which nothing could be read
	KindIdle                   // no text: no data is available, and the pass is about to wait
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
	File string
	Line int64 // from 1; the '\n' belongs to the line it ends
	// Offset is in bytes from the start of the log, decompressed, in which heap traces of other
	// systems are converted to records.
	Offset int64
}

// String returns the place as "file:line (offset N)".
func (p Place) String() string { return fmt.Sprintf("%s:%d (offset %d)", p.File, p.Line, p.Offset) }

// Item is a record, or the text between two records. An Item and all it refers to are valid
// until the next item; symbol.Addr values in it stay valid. Its kind decides which fields are
// set, besides Place, Dump, Boot and Text:
//
//	KindBlob, KindBareBlob   Blob, Stack and one of Allocs; User in a dump with user fields
//	KindEvent                Blob, User, Stack and one of Allocs
//	KindDecoded              Stack and one of Allocs
//	KindPaths                Paths, and one of Allocs for each entry
//	KindPathEvents           Events
//	KindMark                 Header; Heap of ~h#heap
//	KindUnreadable           Err, and what could be decoded of Blob
//
// A record that is cut has Err and Cut, too.
type Item struct {
	Kind
	Place
	// Dump is the number of the dump to which the item belongs, from 1. Between two dumps it is
	// that of the previous dump, and before the first dump it is 0. Boot is the number of the
	// boot, from 1. Both are as known at the end of the item. If a dump begins without a mark,
	// it is recognized only when its records repeat the beginning of the previous dump. Its
	// first records then have the number of the previous dump, unless Select is set.
	Dump, Boot int
	// Text is the text of the item in the log. The Texts of all items together are the log, with
	// heap traces of other systems as the records that they were converted to.
	Text []byte
	// Allocs are the allocations of the record, with recovered bits and names.
	Allocs []Alloc
	// Stack is the stack as recorded, before bits are recovered. In a cut record, its PCs are
	// the complete frames.
	Stack  *codec.Stack
	Blob   []byte         // the decoded base64, as far as it could be decoded
	User   *codec.User    // the user fields
	Paths  *callpath.Line // the line, before its first entry
	Events []PathEvent
	Header *codec.Header
	Heap   *profile.Heap
	// Lenient reports whether the base64 has the URL alphabet or lacks its padding.
	Lenient bool
	// Err is the reason why a record is unreadable or cut: a *codec.Error or [ErrTooLong].
	Err error
	// Cut is not nil if the record is cut and, before the cut, its size or at least one
	// frame is complete.
	Cut *Cut

	decoded *decoded         // nil if there is no stack
	events  *callpath.Events // of a KindPathEvents item
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
	// Depth is the number of frames that the record announces. The record holds fewer. A ~b#
	// record announces no number: Depth is the number of readable frames plus one.
	Depth int
	Sized bool // the size is known
	ByLws bool // the record has exactly the length at which lws cuts a line
}

// Alloc is one allocation and its call stack or, in a KindPaths item, a call path and the sum of
// its allocations.
type Alloc struct {
	Stack []symbol.Addr // innermost frame first
	// Value has Count 1 and the size of the allocation. In a KindPaths item, it is the sum that the
	// line holds, which is not scaled up if the dump is sampled.
	profile.Value
	SizeLost bool // only the low 31 bits of the size are known; false in a KindPaths item

	// The following fields are set only in KindPaths items.

	Name       uint32           // of the call path (BT-NAME-1)
	Definition bool             // the entry defines the name, and has no values
	NoOuter    bool             // the outer frames were not captured, or their name is not known
	Blocks     []callpath.Block // each block, if the line has them
	Ever       profile.Value    // allocations since the boot, if the line has them
	Peak       uint64           // the most bytes that were live, if the line has it
}

// ErrTooLong is the Err of a record longer than any valid record.
var ErrTooLong = errors.New("longer than the longest record")

// reasonTooLong is the reason of ErrTooLong. It is not in codec.Reasons.
const reasonTooLong codec.Reason = "too-long"

// Reason returns the reason in Err: "too-long" for [ErrTooLong], "" if Err is nil.
func (it *Item) Reason() codec.Reason {
	var e *codec.Error
	switch {
	case it.Err == nil:
		return ""
	case errors.As(it.Err, &e):
		return e.Reason
	}
	return reasonTooLong
}

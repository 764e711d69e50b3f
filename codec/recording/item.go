package recording

import (
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Kind is the kind of an [Item].
type Kind uint8

const (
	KindText       Kind = iota // text between records
	KindBlob                   // a record: ~m# and a blob in base64
	KindDecoded                // a record: ~b#, size and addresses as numbers
	KindEvent                  // ~e# and the blob of an allocation event
	KindHeader                 // ~h#, a header
	KindPaths                  // ~p#, call paths with what they hold
	KindPathEvents             // ~v#, allocation events with names of call paths
	KindUnreadable             // a record, header or line of which nothing could be read
	KindIdle                   // for programs that wait for input: no data is available. This package has no such item
)

var kindNames = [...]string{"text", "~m#", "~b#", "~e#", "~h#", "~p#", "~v#", "unreadable", "idle"}

// String returns the lead-in of a record, or the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Place is the position of an item in a log.
type Place struct {
	File   string // name of the log
	Line   int64  // from 1; the '\n' belongs to the line it ends
	Offset int64  // in bytes from the start of the log
}

// String returns the place as "file:line (offset N)".
func (p Place) String() string { return fmt.Sprintf("%s:%d (offset %d)", p.File, p.Line, p.Offset) }

// Item is a record, a header, a line of call paths or events, or the text between two of these.
// An Item and all it refers to are valid until the next item. Its kind decides which fields are
// set, besides Place and Text:
//
//	KindBlob        Blob and Stack; User in a dump with user fields
//	KindEvent       Blob, User and Stack
//	KindDecoded     Stack
//	KindPaths       PathLine
//	KindPathEvents  EventLine
//	KindHeader      Header
//	KindUnreadable  Err, and what could be decoded of Blob
//
// A record that is cut has Err and Cut, too.
type Item struct {
	Kind
	Place
	// Text is the text of the item. The Texts of all items together are the log.
	Text []byte
	run  int // the length of the text of a record of which less was read, else 0
	// Stack is the stack as recorded. In a cut record, its PCs are the complete frames.
	Stack     *codec.Stack
	Blob      []byte           // the decoded base64, as far as it could be decoded
	User      *codec.User      // the user fields
	Header    *codec.Header    // the header
	PathLine  *callpath.Line   // the line, before its first entry
	EventLine *callpath.Events // the line
	// Lenient reports whether the base64 has the URL alphabet or lacks its padding.
	Lenient bool
	// Err is the reason why a record is unreadable or cut: a *codec.Error or [ErrTooLong].
	Err error
	// Cut is not nil if the record is cut and, before the cut, its size or at least one
	// frame is complete.
	Cut *Cut
	// Memo is a value of the caller's that belongs to the text of a record: items with the same
	// text have the same Memo as long as the Scanner's cache has the record. It is nil if the
	// record is not in the cache, and *Memo is nil when the record enters the cache.
	Memo *any
}

// Extent returns the length in bytes of the text of a record as BT-TEXT-3 has it: the longest run of
// base64 characters. If only a shorter run is a blob, as where lines ran into each other, Text is
// that run, and what is behind it begins the next item.
func (it *Item) Extent() int { return max(len(it.Text), it.run) }

// Cut describes a record whose end is missing. A character lost inside a record cannot
// always be distinguished from a cut; the frames after the lost character are then wrong.
type Cut struct {
	// Depth is the number of frames that the record announces. The record holds fewer. A ~b#
	// record announces no number: Depth is the number of readable frames plus one.
	Depth int
	Sized bool // the size is known
	ByLws bool // the record has exactly the length at which lws cuts a line
}

// ErrTooLong is the Err of a record or line longer than a reader must accept. (BT-LIM-4, BT-PLINE-3,
// BT-VLINE-3)
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

// Counts reports whether the item is a record that n of a header counts: a ~m# or ~b# record
// that can be read or not. (BT-HEAD-4)
func (it *Item) Counts() bool {
	switch it.Kind {
	case KindBlob, KindDecoded:
		return true
	case KindUnreadable:
		return it.Found() && (it.Text[1] == 'm' || it.Text[1] == 'b')
	}
	return false
}

// Found reports whether SPEC.md finds a record, a header or a line here: false for text, and
// for a ~b# that does not begin in the form of a record. (BT-TEXT-3)
func (it *Item) Found() bool {
	switch it.Kind {
	case KindText, KindIdle:
		return false
	case KindUnreadable:
		var s codec.Stack
		return len(it.Text) > 2 && it.Text[2] == '#' && (it.Text[1] != 'b' || codec.ParseDecoded(&s, it.Text) == nil)
	}
	return true
}

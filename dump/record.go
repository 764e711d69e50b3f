package dump

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Kind is the form a record has in the log.
type Kind uint8

const (
	Blob    Kind = iota // ~m#, then the blob in base64
	Decoded             // ~b#, then size and addresses in numbers
	Bare                // a line that is the base64 of a blob and nothing else; only on request
	Event               // ~e#, then the blob of an allocation event; only in recordings
	Header              // ~h#, a mark in a recording; only in recordings

	kinds = iota
)

var kindNames = [...]string{"~m#", "~b#", "bare", "~e#", "~h#"}

// String returns the lead-in of the kind, or bare.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Place is where in the log something begins.
type Place struct {
	File   string
	Line   int64 // from 1; a line ends with its '\n'
	Offset int64 // bytes from the start of the log, decompressed
}

// String returns the place as file:line (offset N).
func (p Place) String() string { return fmt.Sprintf("%s:%d (offset %d)", p.File, p.Line, p.Offset) }

// Record is one record of a log, readable or not. It and what it points to
// belong to its [Scanner] and last until the next call of Next.
type Record struct {
	Place
	Kind Kind
	// Text is the record as it stands in the log, from its lead-in to its last
	// character.
	Text []byte
	// Blob is the decoded base64; nil for a Decoded record. When Err is not nil, it
	// is as much of it as could be decoded.
	Blob []byte
	// Stack is the allocation. Of a Cut record, PCs are the complete frames,
	// and Size is right if Sized. Of one that could not be read, it is empty.
	Stack codec.Stack
	// User is the user fields of an Event, and of a Blob in a dump whose header says
	// that there are some.
	User codec.User
	// Header is the mark of a Header, which has no stack.
	Header codec.Header
	// Err is why the record is rejected, nil if it is not: a *[codec.Error], or
	// [ErrTooLong].
	Err error
	// Cut says that the end of a rejected record is missing, and that at least one
	// frame before the cut is complete. A character lost inside a record cannot always
	// be told from a cut; what follows it is then wrong.
	Cut bool
	// CutByLws says of a Cut record that it has the length at which lws itself
	// cuts the lines it prints: 184 characters, and at most three of rubbish.
	CutByLws bool
	// Sized says of a Cut record that its size was still there.
	Sized bool
	// Depth is how many frames the record announces; of a Cut record, more than
	// there are.
	Depth int
	// Memo, if not zero, is the same number for records of the same text.
	Memo uint64
	// Lenient says that the base64 has the URL alphabet or lacks its padding.
	Lenient bool
}

// ErrTooLong is [Record.Err] for a lead-in followed by more than any record has: more base64
// than that of the longest blob, or a list or header of that length.
var ErrTooLong = errors.New("longer than the longest record")

// reasonTooLong is ErrTooLong's name beside those of [codec.Reasons].
const reasonTooLong codec.Reason = "too-long"

// Reason returns the name of the reason for which the record is rejected, "" if it is not.
func (r *Record) Reason() codec.Reason {
	var e *codec.Error
	switch {
	case r.Err == nil:
		return ""
	case errors.As(r.Err, &e):
		return e.Reason
	}
	return reasonTooLong
}

// MaxPlaces is how many places a [Tally] keeps for each reason.
const MaxPlaces = 3

// Fault counts the records that were rejected for one reason.
type Fault struct {
	Reason codec.Reason
	Count  int64
	Places []Place // the first MaxPlaces
	Errs   []error // why, at each of Places
}

// Tally counts what a scanner met. Read + Cut + Unreadable are all its records.
type Tally struct {
	Bytes      int64        // of log, decompressed, records included
	Lines      int64        // line ends, and one more if the last line has none
	Read       int64        // records that say what they should
	ByKind     [kinds]int64 // of Read; headers are not in Read
	Lenient    int64        // of Read: in base64 that strict reading rejects
	Cut        int64        // records cut at their end, with frames that could be saved
	CutByLws   int64        // of Cut: by lws itself
	Unreadable int64
	faults     map[codec.Reason]*Fault
	cuts       Fault
}

// Faults returns why records were unreadable, the commonest reason first.
func (t *Tally) Faults() []Fault {
	var all []Fault
	for _, f := range slices.Sorted(maps.Keys(t.faults)) {
		all = append(all, *t.faults[f])
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return cmp.Compare(b.Count, a.Count) })
	return all
}

// Cuts returns how many records were cut, and the places of the first ones.
func (t *Tally) Cuts() Fault { return t.cuts }

func (f *Fault) add(r *Record) {
	f.Count++
	if len(f.Places) < MaxPlaces {
		f.Places = append(f.Places, r.Place)
		f.Errs = append(f.Errs, r.Err)
	}
}

func (t *Tally) add(r *Record) {
	switch {
	case r.Err == nil && r.Kind == Header:
		t.ByKind[Header]++
	case r.Err == nil:
		t.Read++
		t.ByKind[r.Kind]++
		if r.Lenient {
			t.Lenient++
		}
	case r.Cut:
		t.Cut++
		if r.CutByLws {
			t.CutByLws++
		}
		t.cuts.Reason = r.Reason()
		t.cuts.add(r)
	default:
		t.Unreadable++
		t.fault(r.Reason()).add(r)
	}
}

// fault returns what counts the records that were rejected for a reason.
func (t *Tally) fault(reason codec.Reason) *Fault {
	if t.faults == nil {
		t.faults = map[codec.Reason]*Fault{}
	}
	if t.faults[reason] == nil {
		t.faults[reason] = &Fault{Reason: reason}
	}
	return t.faults[reason]
}

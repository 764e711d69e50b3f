package heaplog

import (
	"errors"

	"github.com/lwsbt/lwsbt/codec"
)

// Summary is what a pass met so far, or all of what the last pass met.
type Summary struct {
	At     Place // of the last item
	Bytes  int64 // of log, decompressed, records included
	Lines  int64
	Stored int64 // bytes read, before decompression
	Size   int64 // bytes of all inputs, as stored; -1 if one is not known

	Records  map[Kind]int64 // by kind; a cut record counts as Cut, not here
	Cut      int64          // records that are cut
	CutByLws int64          // of Cut: by lws itself
	Lenient  int64          // of Records: in base64 that strict reading rejects
	Faults   []Fault        // the commonest first

	Addresses int64 // of the records
	Lossy     int64 // of Addresses: the encoder kept the low 31 bits alone
	Inferred  int64 // of Lossy: recovered
	Lost      int64 // of Lossy: not recovered

	Dumps, Boots int
	LostEvents   int64   // that the recorder dropped
	BadFrees     []Place // the first frees that freed nothing
	Notes        []Note
}

// maxPlaces is how many places are kept of a fault, and of BadFrees.
const maxPlaces = 3

// Fault counts the records that were rejected for one reason.
type Fault struct {
	Reason codec.Reason
	Cut    bool // these records are cut, and their complete frames counted
	Count  int64
	Places []Place // of the first three
	Errs   []error // why, at each of Places
}

// NoteKind is what a [Note] is about.
type NoteKind uint8

const (
	NoteInfo    NoteKind = iota // how something was decided, such as a load base
	NoteLoss                    // records, bits or events are missing
	NoteSymbols                 // names are missing
	NoteWrong                   // something does not match the log, such as an ELF file
)

// Note says what the user of a log should know. Text is one line without a full stop. It
// names options as the flags of this module's commands: Split is --split.
type Note struct {
	Kind NoteKind
	Text string
}

// ErrNoRecord is the error of a log without a record that could be read. errors.Is finds it;
// the message says what was looked for, and where.
var ErrNoRecord = errors.New("no record")

// ReadError is an error of reading one input. What came before it was read.
type ReadError struct {
	Name        string
	Compression string // "gzip", "zstd", "xz", or "" if the log is not compressed
	Err         error
}

package heaplog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/symbol"
)

// Summary holds the counts and notes of the current pass so far, or of the last pass.
type Summary struct {
	At     recording.Place // of the last item
	Bytes  int64           // of the log, decompressed, including records
	Lines  int64
	Stored int64 // bytes read from the input, before decompression
	Size   int64 // total size of the inputs in bytes, as stored; -1 if a size is not known

	Records  map[recording.Kind]int64 // by kind, including unreadable records but not cut ones
	Cut      int64                    // number of cut records
	CutByLws int64                    // number of Cut that lws itself shortened
	Lenient  int64                    // number of Records with nonstandard base64, accepted leniently
	Faults   []Fault                  // the most frequent first

	Addresses int64 // number of addresses in all records
	Lossy     int64 // number of Addresses of which the encoder kept only the low 31 bits
	Inferred  int64 // number of Lossy that were recovered
	Lost      int64 // number of Lossy that were not recovered

	Dumps, Boots int
	BootHeader   string            // text of the ~h#boot of the last boot, "" if it has none
	Undecided    string            // why several dumps may have been read as one, "" if there is no such doubt; Split resolves it
	Layout       bool              // the log says where blocks are in the heap, or how much of it is free (~h#heap)
	LostEvents   int64             // events that the recorder dropped
	BadFrees     []recording.Place // the first frees of addresses with no live block
	Notes        []Note
	Is           string // what a log without records is, if its text says so, such as a crash dump
	Refusal      string // what is missing where numbers of bytes were found that do not count, "" if there are none
}

// Readable returns how many records could be read, at least in part.
func (s Summary) Readable() int64 {
	return s.Records[recording.KindBlob] + s.Records[recording.KindDecoded] + s.Records[recording.KindEvent] + s.Records[recording.KindPaths] + s.Records[recording.KindPathEvents] + s.Cut
}

// maxPlaces is the maximum number of places kept for a fault, and in BadFrees.
const maxPlaces = 3

// Fault counts the records that were rejected for one reason.
type Fault struct {
	Reason codec.Reason
	Cut    bool // the records are cut; they are in the sums of their dump, with the frames before the cut
	Count  int64
	Places []recording.Place // of the first three records
	Errs   []error           // the error at each of Places
}

// NoteKind is the subject of a [Note].
type NoteKind uint8

const (
	NoteInfo    NoteKind = iota // how something was decided, such as a load base
	NoteLoss                    // records, bits or events are missing
	NoteSymbols                 // names are missing
	NoteWrong                   // something does not match the log, such as an ELF file
)

// Note is a message for the user of a log.
type Note struct {
	Kind   NoteKind
	Text   string // one line without a full stop
	Option string // the option of Open that may help, such as "Split"; "" if there is none
}

// ErrNoRecord is the error for a log without a readable record. Test with errors.Is: the
// message of the returned error lists what was looked for.
var ErrNoRecord = errors.New("no record")

// ErrNoBlock is an ErrNoRecord for a log of another system that has no block, but tells what is free, or
// something that the notes say, such as that an allocation failed.
var ErrNoBlock = fmt.Errorf("%w of a block", ErrNoRecord)

// noRecord is an ErrNoRecord or ErrNoBlock with a specific message.
type noRecord struct {
	text    string
	kind    error
	damaged bool // a record could not be read, or was announced
}

func (e *noRecord) Error() string { return e.text }
func (e *noRecord) Unwrap() error { return e.kind }

// ReadError is an error in reading one input. The data before the error was processed.
type ReadError struct {
	Name        string
	Compression string // "gzip", "zstd", "xz", or "" if the log is not compressed
	Err         error
}

// Error returns the message with the name of the log and its compression.
func (e *ReadError) Error() string {
	return e.Name + ": " + input.Reason(e.Compression, e.Err)
}

// Unwrap returns the error of the reader.
func (e *ReadError) Unwrap() error { return e.Err }

func isRead(err error) bool {
	var e *ReadError
	return errors.As(err, &e)
}

// tally has the counts of a pass.
type tally struct {
	Summary                    // without what summary adds
	last       recording.Place // of the last item
	source     *input.Source   // being read
	readErrors int

	kinds    [recording.KindIdle + 1]int64
	readable int64 // records that could be read, at least in part
	firstCut recording.Place
	faults   map[faultKey]*Fault
	boots    int64  // ~h#boot lines that were rejected
	boot     string // what the first of them says

	states    [3]int64 // addresses, by symbol.State
	ambiguous int64
	lostSizes int64

	begun     int    // ~h#begin lines
	announced bool   // a ~h#begin line announces a number of records
	allocated bool   // a ~h#total line says that there were allocations
	process   string // of the last ~h#boot, "" if it has no process
	unended   bool   // events follow the last dump of the process

	kind           string // a value of k= that is not known, taken as k=paths
	outside        int64  // distinct code offsets in none of the code ranges
	lostEventLines int64
	lostAllocs     uint64

	badElements int   // invalid elements of symbolizer markup
	firstBad    error // the first error of badElements
}

type faultKey struct {
	reason codec.Reason
	cut    bool
}

func (t *tally) note(kind NoteKind, text string) {
	t.Notes = append(t.Notes, Note{Kind: kind, Text: text})
}

// add counts an item that is not text.
func (t *tally) add(it *Item, at *placed) {
	t.last = it.Place
	if it.Err != nil {
		t.fault(it)
	}
	t.LostEvents += int64(min(at.LostEvents, uint64(math.MaxInt64-t.LostEvents)))
	if it.Kind == recording.KindPathEvents {
		t.lostEventLines += at.Lost
		t.lostAllocs += at.LostAllocs
	}
	switch {
	case it.Cut != nil:
		if t.Cut++; t.Cut == 1 {
			t.firstCut = it.Place
		}
		t.readable++
		if it.Cut.ByLws {
			t.CutByLws++
		}
		return
	case it.Kind == recording.KindHeader:
		t.mark(it.Header)
	case it.Kind != recording.KindUnreadable:
		t.readable++
		if it.Lenient {
			t.Lenient++
		}
	}
	t.Layout = t.Layout || hasLayout(it)
	if it.Kind == recording.KindEvent || it.Kind == recording.KindPathEvents {
		t.unended = t.process != "" // btrecord writes a dump at the end of a process
	}
	t.kinds[it.Kind]++
}

// hasLayout reports whether an item has addresses of blocks or values of the allocator.
func hasLayout(it *Item) bool {
	switch it.Kind {
	case recording.KindHeader:
		return it.Header.Verb == codec.VerbHeap
	case recording.KindEvent:
		return true
	case recording.KindPaths:
		return it.PathLine.Flags&callpath.Blocks != 0
	case recording.KindPathEvents:
		return it.EventLine.Flags&callpath.Blocks != 0
	}
	if it.User == nil {
		return false
	}
	_, ok := it.User.Get(codec.TagAddress)
	return ok
}

func (t *tally) fault(it *Item) {
	if said, boot := bytes.CutPrefix(it.Text, []byte(codec.LeadInHeader+codec.VerbBoot+" ")); boot {
		t.boots++
		t.boot = cmp.Or(t.boot, string(said[:min(len(said), 200)]))
	}
	key := faultKey{it.Reason(), it.Cut != nil}
	f := t.faults[key]
	if f == nil {
		if t.faults == nil {
			t.faults = map[faultKey]*Fault{}
		}
		f = &Fault{Reason: key.reason, Cut: key.cut}
		t.faults[key] = f
	}
	if f.Count++; len(f.Places) < maxPlaces {
		f.Places, f.Errs = append(f.Places, it.Place), append(f.Errs, it.Err)
	}
}

// mark counts a ~h# line.
func (t *tally) mark(h *codec.Header) {
	number := func(key string) uint64 { n, _ := h.Uint(key); return n }
	switch h.Verb {
	case codec.VerbBoot:
		t.process, _ = h.Get("pid")
		t.unended = false
	case codec.VerbBegin:
		t.begun++
		if k, ok := h.Get("k"); ok && k != "paths" && k != "diff" {
			t.kind = k
		}
		t.announced = t.announced || number("n") > 0
	case codec.VerbEnd:
		t.announced = t.announced || number("n") > 0
		t.unended = false
	case "total":
		t.allocated = t.allocated || number("allocs") > 0
	}
}

func (t *tally) badMarkup(err error) {
	all := []error{err}
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		all = list.Unwrap()
	}
	if t.badElements += len(all); t.firstBad == nil {
		t.firstBad = all[0]
	}
}

// summary returns the Summary so far.
func (p *pass) summary(r *report) Summary {
	t := &p.tally
	s := t.Summary
	s.At = t.last
	s.Records, s.BadFrees = map[recording.Kind]int64{}, slices.Clone(r.badFrees)
	s.Dumps, s.Boots, s.BootHeader = p.places.count, p.places.boots, p.places.bootText()
	if t.source != nil {
		s.Stored += t.source.Stored
		s.Lines += p.reader.Place().Line - 1
	}
	for _, in := range p.c.inputs {
		if in.Size < 0 {
			s.Size = -1
			break
		}
		s.Size += in.Size
	}
	for kind := recording.KindBlob; kind < recording.KindIdle; kind++ {
		s.Records[kind] = t.kinds[kind]
	}
	order := slices.SortedFunc(maps.Keys(t.faults), func(a, b faultKey) int {
		return cmp.Compare(fmt.Sprint(a.reason, a.cut), fmt.Sprint(b.reason, b.cut))
	})
	for _, key := range order {
		f := *t.faults[key]
		f.Places, f.Errs = slices.Clone(f.Places), slices.Clone(f.Errs)
		s.Faults = append(s.Faults, f)
	}
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(b.Count, a.Count) })
	s.Inferred, s.Lost = t.states[symbol.Inferred], t.states[symbol.Lost]
	s.Lossy = s.Inferred + s.Lost
	s.Addresses = s.Lossy + t.states[symbol.Exact]
	s.Undecided = p.places.undecided()
	s.Notes = p.notes(&s, r)
	return s
}

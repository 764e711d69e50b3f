package heaplog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Summary is what a pass met so far, or all of what the last pass met.
type Summary struct {
	At     Place // of the last item
	Bytes  int64 // of log, decompressed, records included
	Lines  int64
	Stored int64 // bytes read, before decompression
	Size   int64 // bytes of all inputs, as stored; -1 if one is not known

	Records  map[Kind]int64 // by kind; Unreadable ones, too, but no cut ones
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

// Readable returns how many records could be read, at least in part.
func (s *Summary) Readable() int64 {
	return s.Records[Blob] + s.Records[Decoded] + s.Records[BareBlob] + s.Records[Event] + s.Cut
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

// noRecord is ErrNoRecord with more to say.
type noRecord struct{ text string }

func (e *noRecord) Error() string        { return e.text }
func (e *noRecord) Is(target error) bool { return target == ErrNoRecord }

// ReadError is an error of reading one input. What came before it was read.
type ReadError struct {
	Name        string
	Compression string // "gzip", "zstd", "xz", or "" if the log is not compressed
	Err         error
}

func isRead(err error) bool {
	var e *ReadError
	return errors.As(err, &e)
}

// tally counts what a pass meets.
type tally struct {
	last                 *Item
	bytes, lines, stored int64
	source               *source // being read
	readErrors           int

	kinds         [Idle + 1]int64
	readable      int64 // records that could be read, at least in part
	cut, cutByLws int64
	firstCut      Place
	lenient       int64
	faults        map[faultKey]*Fault

	states    [3]int64 // addresses, by symbol.State
	ambiguous int64
	lostSizes int64

	begun      int  // ~h#begin lines
	announced  bool // one of them gives a number of records
	allocated  bool // a ~h#total says that there were allocations
	lostEvents int64
	process    string // of the last ~h#boot, "" if it names none
	unended    bool   // there are events after its last dump
	badFrees   []Place

	badElements int   // of markup
	firstBad    error // of them
	notes       []Note
	dumps       []dumpFacts // of which something is to be said
	undecided   string      // of sequence
	otherPaths  int64
	saturated   bool
}

type faultKey struct {
	reason codec.Reason
	cut    bool
}

// dumpFacts is what is to be said of a dump.
type dumpFacts struct {
	profile.Dump
	marked, ended bool
}

// maxNotedDumps is of how many dumps something is said.
const maxNotedDumps = 1000

func (t *tally) note(kind NoteKind, text string) { t.notes = append(t.notes, Note{kind, text}) }

// add counts an item.
func (t *tally) add(it *Item) {
	if t.last = it; it.Kind == Text {
		return
	}
	if it.Err != nil {
		t.fault(it)
	}
	switch {
	case it.Cut != nil:
		if t.cut++; t.cut == 1 {
			t.firstCut = it.Place
		}
		t.readable++
		if it.Cut.ByLws {
			t.cutByLws++
		}
		return
	case it.Kind == Mark:
		t.mark(it.Header)
	case it.Kind != Unreadable:
		t.readable++
		if it.Lenient {
			t.lenient++
		}
	}
	if it.Kind == Event {
		t.unended = t.process != "" // btrecord ends a process by a dump
	}
	t.kinds[it.Kind]++
}

func (t *tally) fault(it *Item) {
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

// mark counts a line of a recording.
func (t *tally) mark(h *codec.Header) {
	number := func(key string) uint64 { n, _ := h.Uint(key); return n }
	switch h.Verb {
	case codec.VerbBoot:
		t.process, _ = h.Get("pid")
		t.unended = false
	case codec.VerbBegin:
		t.begun++
		t.announced = t.announced || number("n") > 0
	case codec.VerbEnd:
		t.announced = t.announced || number("n") > 0
		t.unended = false
	case codec.VerbTotal:
		t.allocated = t.allocated || number("allocs") > 0
	case codec.VerbLost:
		t.lostEvents += int64(min(number("n"), uint64(math.MaxInt64-t.lostEvents)))
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

func (t *tally) badFree(at Place) {
	if len(t.badFrees) < maxPlaces {
		t.badFrees = append(t.badFrees, at)
	}
}

// dump notes what a dump lacks.
func (t *tally) dump(d *profile.Dump, from *dumpStart) {
	t.otherPaths += d.Loss.OtherPaths
	t.saturated = t.saturated || d.Loss.Saturated
	a := &d.Announced
	if len(t.dumps) < maxNotedDumps && (from.marked && !from.ended || d.Loss.NoSize > 0 ||
		a.HasRecords && uint64(d.Records) != a.Records || a.HasBytes && d.Total.Bytes != a.Bytes) {
		f := dumpFacts{profile.Dump{Name: d.Name, Line: d.Line, Records: d.Records, Total: d.Total, Announced: *a, Loss: d.Loss}, from.marked, from.ended}
		t.dumps = append(t.dumps, f)
	}
}

// summary returns what the pass met so far.
func (p *pass) summary() Summary {
	t := &p.tally
	s := Summary{Bytes: t.bytes, Lines: t.lines, Stored: t.stored, Records: map[Kind]int64{}, Cut: t.cut, CutByLws: t.cutByLws,
		Lenient: t.lenient, Dumps: p.sequence.count, Boots: p.sequence.boot, LostEvents: t.lostEvents, BadFrees: slices.Clone(t.badFrees)}
	if t.last != nil {
		s.At = t.last.Place
	}
	if t.source != nil {
		s.Stored += t.source.stored
	}
	for _, in := range p.r.inputs {
		if in.size < 0 {
			s.Size = -1
			break
		}
		s.Size += in.size
	}
	for kind := Blob; kind < Idle; kind++ {
		s.Records[kind] = t.kinds[kind]
	}
	order := slices.SortedFunc(maps.Keys(t.faults), func(a, b faultKey) int { return cmp.Compare(a.reason, b.reason) })
	for _, key := range order {
		f := *t.faults[key]
		f.Places, f.Errs = slices.Clone(f.Places), slices.Clone(f.Errs)
		s.Faults = append(s.Faults, f)
	}
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(b.Count, a.Count) })
	s.Inferred, s.Lost = t.states[symbol.Inferred], t.states[symbol.Lost]
	s.Lossy = s.Inferred + s.Lost
	s.Addresses = s.Lossy + t.states[symbol.Exact]
	s.Notes = p.notes(&s)
	return s
}

// notes says what the user should know of all that the pass met.
func (p *pass) notes(s *Summary) (list []Note) {
	t := &p.tally
	note := func(kind NoteKind, format string, args ...any) {
		list = append(list, Note{kind, fmt.Sprintf(format, args...)})
	}
	list = append(list, t.notes...)
	for _, f := range s.Faults {
		if !f.Cut {
			note(NoteLoss, "%s unreadable (%s), the first at %v: %v", printable.Count(f.Count, "record"), f.Reason, f.Places[0], f.Errs[0])
		}
	}
	if s.Cut > 0 {
		note(NoteLoss, "%s cut short, the first at %v; the frames before the cut are kept", printable.Count(s.Cut, "record"), t.firstCut)
	}
	if t.badElements > 0 {
		note(NoteLoss, "markup %v", t.firstBad)
	}
	if t.badElements > 1 {
		note(NoteLoss, "markup: %s not understood", printable.Count(int64(t.badElements), "element"))
	}
	if s.Lossy > 0 {
		hint := ""
		if s.Inferred == 0 && len(p.r.symbols.Files)+len(p.r.maps) == 0 && !p.r.process.Mapped() {
			hint = "; give --maps, or -e with the ELF file"
		}
		note(NoteLoss, "the encoder kept only the low 31 bits of %s of %s: %s recovered, %s lost%s",
			printable.Number(s.Lossy), printable.Count(s.Addresses, "address"), printable.Number(s.Inferred), printable.Number(s.Lost), hint)
	}
	if t.ambiguous > 0 {
		note(NoteLoss, "%s of these are lost because several addresses fit", printable.Number(t.ambiguous))
	}
	if t.lostSizes > 0 {
		note(NoteLoss, "the encoder kept only the low 31 bits of %s over 4 GiB", printable.Count(t.lostSizes, "size"))
	}
	list = append(list, p.symbolNotes()...)
	return append(list, p.dumpNotes()...)
}

// symbolNotes says where files were loaded, and why symbols are missing.
func (p *pass) symbolNotes() (list []Note) {
	b := &p.r.bases
	if !b.live {
		for _, text := range b.notes {
			list = append(list, Note{NoteSymbols, text})
		}
	}
	for _, b := range b.current {
		unknown := ""
		if !b.Exact {
			unknown = ", of which the upper bits are not known"
		}
		text := fmt.Sprintf("%s: inferred load base %#x%s: %v", b.File.Path, b.Bias, unknown, b)
		if !b.Exact {
			text += "; addresses are the file's own"
		}
		list = append(list, Note{NoteInfo, text})
	}
	for _, text := range p.r.process.Notes() {
		list = append(list, Note{NoteSymbols, text})
	}
	return list
}

// dumpNotes says what the dumps lack that were yielded, and whether there may be more.
func (p *pass) dumpNotes() (list []Note) {
	t := &p.tally
	note := func(format string, args ...any) {
		list = append(list, Note{NoteLoss, fmt.Sprintf(format, args...)})
	}
	for i := range t.dumps {
		d := &t.dumps[i]
		cut, a := d.marked && !d.ended, &d.Announced
		switch {
		case cut && a.HasRecords && uint64(d.Records) < a.Records:
			note("%s (line %d): %s of %s records, no ~h#end: it was cut", d.Name, d.Line, printable.Number(d.Records), printable.Number(a.Records))
		case a.HasRecords && uint64(d.Records) != a.Records:
			note("%s (line %d): %s of %s records: lines were lost", d.Name, d.Line, printable.Number(d.Records), printable.Number(a.Records))
		case a.HasBytes && d.Total.Bytes != a.Bytes && !t.saturated:
			note("%s (line %d): %s of %s bytes: lines were lost or changed", d.Name, d.Line, printable.Number(d.Total.Bytes), printable.Number(a.Bytes))
		case cut:
			note("%s (line %d): has no ~h#end: it was cut", d.Name, d.Line)
		}
		if d.Loss.NoSize > 0 {
			note("%s: %s cut before the size, counted as 0 bytes", d.Name, printable.Count(d.Loss.NoSize, "record"))
		}
	}
	if t.unended {
		note("the recording of process %s has no dump at its end: it was cut, or the process was killed", t.process)
	}
	if t.lostEvents > 0 {
		note("the recorder dropped %s: sums are too low or too high", printable.Count(t.lostEvents, "event"))
	}
	if t.undecided != "" {
		note("%s", t.undecided)
	}
	if t.saturated {
		note("sums over 2^64-1 are reported as 2^64-1")
	}
	if t.otherPaths > 0 {
		note("%s of call paths beyond the limit are added up as %q; --max-paths sets the limit", printable.Count(t.otherPaths, "record"), profile.Other)
	}
	return list
}

// noRecord returns why nothing could be read.
func (p *pass) noRecord() error {
	t := &p.tally
	text := ""
	switch rejected := t.kinds[Unreadable]; {
	case rejected == 1:
		text = "the only record could not be read"
	case rejected > 1:
		text = fmt.Sprintf("none of %s could be read", printable.Count(rejected, "record"))
	case t.begun > 0:
		text = t.empty()
	case len(p.r.inputs) > 1:
		text = fmt.Sprintf("no records in %d logs: looked for %s and %s", len(p.r.inputs), codec.LeadIn, codec.LeadInDecoded)
	default:
		text = fmt.Sprintf("%s: no records in %s: looked for %s and %s", p.r.inputs[0].name, printable.Count(t.bytes, "byte"), codec.LeadIn, codec.LeadInDecoded)
	}
	return &noRecord{text}
}

// empty returns what may be wrong with a log of dumps without any record.
func (t *tally) empty() string {
	text := fmt.Sprintf("%d dumps, all empty", t.begun)
	if t.begun == 1 {
		text = "1 dump, and it is empty"
	}
	switch {
	case t.announced:
		text = fmt.Sprintf("%s, but none of the records that they announce", printable.Count(t.begun, "dump"))
	case !t.allocated:
		text += ": does malloc reach the library (-Wl,--wrap=malloc and so on)?"
	}
	return text
}

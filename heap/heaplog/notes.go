package heaplog

import (
	"fmt"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// noteList is a list of notes.
type noteList []Note

func (l *noteList) add(kind NoteKind, format string, args ...any) {
	*l = append(*l, Note{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// notes returns the notes for the user on the whole pass.
func (p *pass) notes(s *Summary, r *report) []Note {
	t := &p.tally
	list := noteList(slices.Clone(t.Notes))
	for _, f := range s.Faults {
		if !f.Cut {
			list.add(NoteLoss, "%s unreadable (%s), the first at %v: %v", printable.Count(f.Count, "record"), f.Reason, f.Places[0], f.Errs[0])
		}
	}
	if t.boots > 0 { // a value of a damaged line may be damaged, too (BT-HEAD-5)
		list.add(NoteLoss, "%s not used: program, firmware and build of the boot are not known; the first says %s", printable.Count(t.boots, "~h#boot line"), printable.Text(t.boot))
	}
	if s.Cut > 0 {
		kept := "; the frames before the cut are kept"
		if r.restored+r.left > 0 {
			kept = ""
		}
		list.add(NoteLoss, "%s cut short, the first at %v%s", printable.Count(s.Cut, "record"), t.firstCut, kept)
	}
	if r.restored > 0 {
		list.add(NoteLoss, "%s count as the records of their boot that they were but for a character or two, or as the sums of their dumps say", printable.Count(r.restored, "damaged record"))
	}
	if r.left > 0 {
		list.add(NoteLoss, "%s left out: neither the sums of their dumps nor other records say what they were", printable.Count(r.left, "damaged record"))
	}
	if t.badElements > 0 {
		list.add(NoteLoss, "markup %v", t.firstBad)
	}
	if t.badElements > 1 {
		list.add(NoteLoss, "markup: %s not understood", printable.Count(int64(t.badElements), "element"))
	}
	if s.Lossy > 0 {
		list.add(NoteLoss, "the encoder kept only the low 31 bits of %s of %s: %s recovered, %s lost",
			printable.Number(s.Lossy), printable.Count(s.Addresses, "address"), printable.Number(s.Inferred), printable.Number(s.Lost))
		if s.Inferred == 0 && len(p.c.symbols.Files)+len(p.c.maps) == 0 && !p.process.Mapped() {
			list[len(list)-1].Option = "Maps"
		}
	}
	if t.ambiguous > 0 {
		list.add(NoteLoss, "%s of these are lost because several addresses fit", printable.Number(t.ambiguous))
	}
	if t.lostSizes > 0 {
		list.add(NoteLoss, "the encoder kept only the low 31 bits of %s over 4 GiB", printable.Count(t.lostSizes, "size"))
	}
	p.symbolNotes(&list)
	list = append(list, r.notes...)
	for _, text := range p.lost {
		list.add(NoteLoss, "%s", printable.Text(text))
	}
	t.pathNotes(&list, r)
	p.passNotes(&list, r)
	return list
}

// symbolNotes adds notes on load bases and on missing symbols.
func (p *pass) symbolNotes(list *noteList) {
	b := &p.bases
	if !b.live {
		for _, text := range b.notes {
			*list = append(*list, Note{NoteWrong, text, "Exe"})
		}
	}
	for _, b := range b.current {
		if b.Exact {
			list.add(NoteInfo, "%s: inferred load base %#x: %v", b.File.Path, b.Bias, b)
		} else {
			list.add(NoteInfo, "%s: inferred load base %#x, of which the upper bits are not known: %v; addresses are the file's own", b.File.Path, b.Bias, b)
		}
	}
	missing, mismatches := p.process.Notes()
	for _, text := range missing {
		list.add(NoteSymbols, "%s", text)
	}
	for _, text := range mismatches {
		list.add(NoteWrong, "%s", text)
	}
	b.programNotes(list)
	for _, text := range p.process.Wrong() {
		*list = append(*list, Note{NoteWrong, text, "Force"})
	}
}

// passNotes adds notes on lost events, on dumps that may not have been recognized, and on
// limits.
func (p *pass) passNotes(list *noteList, r *report) {
	t := &p.tally
	if t.unended {
		list.add(NoteLoss, "the recording of process %s has no dump at its end: it was cut, or the process was killed", t.process)
	}
	if t.LostEvents > 0 {
		list.add(NoteLoss, "the recorder dropped %s: sums are too low or too high", printable.Count(t.LostEvents, "event"))
	}
	if text := p.places.undecided(); text != "" {
		*list = append(*list, Note{NoteLoss, text, "Split"})
	}
	if r.saturated {
		list.add(NoteLoss, "sums over 2^64-1 are reported as 2^64-1")
	}
	if r.otherPaths > 0 {
		text := fmt.Sprintf("%s of call paths beyond the limit are added up as %q", printable.Count(r.otherPaths, "record"), profile.OtherName)
		*list = append(*list, Note{NoteLoss, text, "MaxPaths"})
	}
}

// report is what the notes say about the dumps of a pass.
type report struct {
	several     bool              // there are several logs
	badFrees    []recording.Place // the first frees of addresses with no live block
	sameAddress int64             // blocks of ~p# lines at the address of another one
	peakParts   int64             // call paths whose peak stands in several entries of a dump
	notes       []Note            // about single dumps
	noted       int               // number of dumps in notes
	otherPaths  int64
	saturated   bool
	restored    int64       // damaged records that count as others
	left        int64       // damaged records that were left out, of dumps that announce their records
	limit       *frameLimit // of Items, nil for other passes
}

// maxNotedDumps is the maximum number of dumps with a note.
const maxNotedDumps = 1000

func (t *report) badFree(at recording.Place) {
	if len(t.badFrees) < maxPlaces {
		t.badFrees = append(t.badFrees, at)
	}
}

// dump takes what a dump lacks, from the finished dump and its headers.
func (t *report) dump(built *profile.Dump, d *dump) {
	l := &built.Loss
	t.otherPaths += l.OtherPaths
	t.saturated = t.saturated || l.Saturated
	t.restored += l.Restored
	if d.said != nil {
		t.left += l.Unreadable
	}
	var list []Note
	note := func(kind NoteKind, format string, args ...any) {
		list = append(list, Note{Kind: kind, Text: built.Name + fmt.Sprintf(format, args...)})
	}
	if text := d.missing(built); text != "" {
		at := fmt.Sprintf("line %d", built.Line)
		if t.several {
			at = fmt.Sprintf("%s:%d", built.File, built.Line)
		}
		note(NoteLoss, " (%s): %s", at, text)
	}
	if l.NoSize > 0 {
		note(NoteLoss, ": %s cut before the size, counted as 0 bytes", printable.Count(l.NoSize, "record"))
	}
	if d.headless {
		note(NoteLoss, ": its ~h#begin was lost, so it may be incomplete")
	}
	if d.Foreign > 0 && d.Headless == nil {
		note(NoteLoss, ": %s of another dump, whose ~h#begin was lost, not counted", printable.Count(d.Foreign, "line"))
	}
	if l.NoBase {
		note(NoteLoss, ": has only what changed since dump number %d, which is missing or incomplete", built.Base)
	}
	if l.NoOuter > 0 {
		note(NoteLoss, ": %s without outer frames", printable.Count(l.NoOuter, "call path"))
	}
	if l.Folded > 0 {
		note(NoteLoss, ": %s counted under an outer frame of the call path: the table of the device was full", printable.Count(l.Folded, "block"))
	}
	if built.Sample > 0 {
		bytesErr, _ := built.TotalStdErr()
		note(NoteInfo, ": sampled, once in %s bytes: %s ± %s bytes (standard error)",
			printable.Number(built.Sample), printable.Number(built.Total.Bytes), printable.Number(uint64(math.Round(bytesErr))))
	}
	if len(list) > 0 && t.noted < maxNotedDumps {
		t.noted++
		t.notes = append(t.notes, list...)
	}
}

// missing returns how much of a finished dump is missing, "" if nothing is known to be.
func (d *dump) missing(built *profile.Dump) string {
	cut, a, written := d.marked() && !d.ended(), &built.Announced, built.Written.Bytes
	records, lost := built.Records, built.Loss.Lines
	unit, why := "records", "lines were lost"
	if d.isPaths {
		unit = "blocks"
		if a.HasBytes {
			unit = fmt.Sprintf("blocks and %s of %s bytes", printable.Number(written), printable.Number(a.Bytes))
		}
		if lost > 0 {
			why = printable.Count(lost, "line") + " lost"
		}
	}
	switch {
	case cut && built.Foreign:
		return "has no last line: it was cut"
	case cut && a.HasRecords && uint64(records) < a.Records:
		return fmt.Sprintf("%s of %s %s, no ~h#end: it was cut", printable.Number(records), printable.Number(a.Records), unit)
	case a.HasRecords && uint64(records) != a.Records:
		return fmt.Sprintf("%s of %s %s: %s", printable.Number(records), printable.Number(a.Records), unit, why)
	case a.HasBytes && written != a.Bytes && !built.Loss.Saturated:
		return fmt.Sprintf("%s of %s bytes: lines were lost or changed", printable.Number(written), printable.Number(a.Bytes))
	case cut:
		return "has no ~h#end: it was cut"
	case lost > 0:
		return printable.Count(lost, "line") + " lost"
	}
	return ""
}

// pathNotes adds notes on lines of call paths.
func (t *tally) pathNotes(list *noteList, r *report) {
	if t.kind != "" {
		list.add(NoteInfo, "dumps with k=%s are read as k=paths", printable.Text(t.kind))
	}
	if r.sameAddress > 0 {
		list.add(NoteLoss, "%s in a dump at the address of another one: both count", printable.Count(r.sameAddress, "block"))
	}
	if r.peakParts > 0 {
		list.add(NoteInfo, "peaks of %s were recorded in parts: their sums are upper bounds", printable.Count(r.peakParts, "call path"))
	}
	if l := r.limit; l != nil && l.leftOut > 0 {
		list.add(NoteLoss, "%s without their outer frames, from %s:%d on: they would be over %d frames per byte of the log",
			printable.Count(l.leftOut, "call path"), printable.Text(l.first.File), l.first.Line, framesPerByte)
	}
	if t.outside > 0 {
		list.add(NoteSymbols, "%s in no known code: no ELF file is given, and ~h#boot has no code=", printable.Count(t.outside, "code offset"))
	}
	if t.lostAllocs > 0 {
		list.add(NoteLoss, "lines of events were lost, with %s", printable.Count(clampInt(t.lostAllocs), "allocation"))
	} else if t.lostEventLines > 0 {
		list.add(NoteLoss, "%s of events were lost", printable.Count(t.lostEventLines, "line"))
	}
}

// lookedFor lists the lead-ins of records.
const lookedFor = "~m#, ~b#, ~p#, ~e#, ~v#, and heap traces of other systems"

// noRecord returns the error for a pass without a readable record.
func (p *pass) noRecord() error {
	t := &p.tally
	text, kind := "", ErrNoRecord
	switch rejected := t.kinds[recording.KindUnreadable]; {
	case rejected == 1:
		text = "the only record could not be read"
	case rejected > 1:
		text = fmt.Sprintf("none of %s could be read", printable.Count(rejected, "record"))
	case t.begun > 0:
		text = t.empty()
	case len(p.places.heaps)+len(p.heaps) > 0:
		text, kind = "the log has no block, only what the allocator reports: btheap leaks tells the trend", ErrNoBlock
	case p.foreign && slices.ContainsFunc(t.Notes, func(n Note) bool { return n.Kind == NoteLoss }):
		text, kind = "the log has no block, and does not say what is free", ErrNoBlock
	case len(p.c.inputs) > 1:
		text = fmt.Sprintf("no records in %d logs: looked for %s", len(p.c.inputs), lookedFor)
	default:
		text = fmt.Sprintf("%s: no records in %s: looked for %s", p.c.inputs[0].Name, printable.Count(t.Bytes, "byte"), lookedFor)
	}
	return &noRecord{text, kind, t.kinds[recording.KindUnreadable] > 0 || t.announced}
}

// empty returns a note about a log whose dumps have no records.
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

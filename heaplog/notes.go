package heaplog

import (
	"fmt"
	"math"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
)

// notes returns the notes for the user on the whole pass.
func (p *pass) notes(s *Summary) (list []Note) {
	t := &p.tally
	note := func(kind NoteKind, format string, args ...any) {
		list = append(list, Note{Kind: kind, Text: fmt.Sprintf(format, args...)})
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
		note(NoteLoss, "the encoder kept only the low 31 bits of %s of %s: %s recovered, %s lost",
			printable.Number(s.Lossy), printable.Count(s.Addresses, "address"), printable.Number(s.Inferred), printable.Number(s.Lost))
		if s.Inferred == 0 && len(p.r.symbols.Files)+len(p.r.maps) == 0 && !p.r.process.Mapped() {
			list[len(list)-1].Option = "Maps"
		}
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

// symbolNotes returns notes on load bases and on missing symbols.
func (p *pass) symbolNotes() (list []Note) {
	b := &p.r.bases
	if !b.live {
		for _, text := range b.notes {
			list = append(list, Note{NoteWrong, text, "Exe"})
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
		list = append(list, Note{Kind: NoteInfo, Text: text})
	}
	missing, mismatches := p.r.process.Notes()
	for _, text := range missing {
		list = append(list, Note{Kind: NoteSymbols, Text: text})
	}
	for _, text := range mismatches {
		list = append(list, Note{Kind: NoteWrong, Text: text})
	}
	return list
}

// dumpNotes returns notes on what the yielded dumps lack, and on dumps that may not have
// been recognized.
func (p *pass) dumpNotes() (list []Note) {
	t := &p.tally
	note := func(format string, args ...any) {
		list = append(list, Note{Kind: NoteLoss, Text: fmt.Sprintf(format, args...)})
	}
	for i := range t.dumps {
		d := &t.dumps[i]
		if text := d.missing(t.saturated); text != "" {
			at := fmt.Sprintf("line %d", d.Line)
			if len(p.r.inputs) > 1 {
				at = fmt.Sprintf("%s:%d", d.File, d.Line)
			}
			note("%s (%s): %s", d.Name, at, text)
		}
		if d.Loss.NoSize > 0 {
			note("%s: %s cut before the size, counted as 0 bytes", d.Name, printable.Count(d.Loss.NoSize, "record"))
		}
		list = append(list, d.pathNotes()...)
	}
	p.pathNotes(func(kind NoteKind, format string, args ...any) {
		list = append(list, Note{Kind: kind, Text: fmt.Sprintf(format, args...)})
	})
	if t.unended {
		note("the recording of process %s has no dump at its end: it was cut, or the process was killed", t.process)
	}
	if t.lostEvents > 0 {
		note("the recorder dropped %s: sums are too low or too high", printable.Count(t.lostEvents, "event"))
	}
	if text := p.sequence.undecided(); text != "" {
		list = append(list, Note{NoteLoss, text, "Split"})
	}
	if t.saturated {
		note("sums over 2^64-1 are reported as 2^64-1")
	}
	if t.otherPaths > 0 {
		text := fmt.Sprintf("%s of call paths beyond the limit are added up as %q", printable.Count(t.otherPaths, "record"), profile.OtherName)
		list = append(list, Note{NoteLoss, text, "MaxPaths"})
	}
	return list
}

// missing returns how much of a dump is missing, "" if nothing is known to be.
func (d *dumpFacts) missing(saturated bool) string {
	cut, a := d.marked && !d.ended, &d.Announced
	unit, why := "records", "lines were lost"
	if d.paths {
		unit = "blocks"
		if a.HasBytes {
			unit = fmt.Sprintf("blocks and %s of %s bytes", printable.Number(d.Written.Bytes), printable.Number(a.Bytes))
		}
		if n := d.Loss.Lines; n > 0 {
			why = printable.Count(n, "line") + " lost"
		}
	}
	switch {
	case cut && a.HasRecords && uint64(d.Records) < a.Records:
		return fmt.Sprintf("%s of %s %s, no ~h#end: it was cut", printable.Number(d.Records), printable.Number(a.Records), unit)
	case a.HasRecords && uint64(d.Records) != a.Records:
		return fmt.Sprintf("%s of %s %s: %s", printable.Number(d.Records), printable.Number(a.Records), unit, why)
	case a.HasBytes && d.Written.Bytes != a.Bytes && !saturated:
		return fmt.Sprintf("%s of %s bytes: lines were lost or changed", printable.Number(d.Written.Bytes), printable.Number(a.Bytes))
	case cut:
		return "has no ~h#end: it was cut"
	case d.Loss.Lines > 0:
		return printable.Count(d.Loss.Lines, "line") + " lost"
	}
	return ""
}

// pathNotes returns notes on a dump of call paths.
func (d *dumpFacts) pathNotes() (list []Note) {
	note := func(kind NoteKind, format string, args ...any) {
		list = append(list, Note{Kind: kind, Text: d.Name + ": " + fmt.Sprintf(format, args...)})
	}
	l := &d.Loss
	if d.headless {
		note(NoteLoss, "its ~h#begin was lost, so it may be incomplete")
	}
	if l.NoBase {
		note(NoteLoss, "has only what changed since dump number %d, which is missing or incomplete", d.Base)
	}
	if l.NoOuter > 0 {
		note(NoteLoss, "%s without outer frames", printable.Count(l.NoOuter, "call path"))
	}
	if l.Folded > 0 {
		note(NoteLoss, "%s counted under an outer frame of the call path: the table of the device was full", printable.Count(l.Folded, "block"))
	}
	if d.Sample > 0 {
		note(NoteInfo, "sampled, once in %s bytes: %s ± %s bytes (standard error)", printable.Number(d.Sample), printable.Number(d.Total.Bytes), printable.Number(uint64(math.Round(d.bytesErr))))
	}
	return list
}

// lookedFor lists the lead-ins of records.
const lookedFor = "~m#, ~b#, ~p#, ~e#, ~v#, and heap traces of other systems"

// noRecord returns the error for a pass without a readable record.
func (p *pass) noRecord() error {
	t := &p.tally
	text := ""
	switch rejected := t.kinds[KindUnreadable]; {
	case rejected == 1:
		text = "the only record could not be read"
	case rejected > 1:
		text = fmt.Sprintf("none of %s could be read", printable.Count(rejected, "record"))
	case t.begun > 0:
		text = t.empty()
	case len(p.r.inputs) > 1:
		text = fmt.Sprintf("no records in %d logs: looked for %s", len(p.r.inputs), lookedFor)
	default:
		text = fmt.Sprintf("%s: no records in %s: looked for %s", p.r.inputs[0].Name, printable.Count(t.bytes, "byte"), lookedFor)
	}
	return &noRecord{text}
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

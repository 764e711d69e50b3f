package heaplog

import (
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
)

// notes returns the notes for the user on the whole pass.
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

// symbolNotes returns notes on load bases and on missing symbols.
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
	wrong := p.r.process.Mismatches()
	for _, text := range p.r.process.Notes() {
		kind := NoteSymbols
		if slices.Contains(wrong, text) {
			kind = NoteWrong
		}
		list = append(list, Note{kind, text})
	}
	return list
}

// dumpNotes returns notes on what the yielded dumps lack, and on dumps that may not have
// been recognized.
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

// noRecord returns the error for a pass without a readable record.
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

// empty returns what may be wrong with a log whose dumps have no records.
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

package logs

import (
	"fmt"

	"github.com/lwsbt/lwsbt/internal/cli"
)

// Notes reports records that could not be read, addresses that lost bits, and missing
// symbols, by Note.
func (r *Reader) Notes() {
	t := r.Tally()
	for i, err := range r.damaged {
		if i == 0 && r.found == 0 {
			continue // Outcome returns it
		}
		r.Note("%v; %s before that", err, cli.Count(t.Read+t.Cut+t.Unreadable, "record"))
	}
	for _, f := range t.Faults() {
		r.Note("%s unreadable (%s), the first at %v: %v", cli.Count(f.Count, "record"), f.Reason, f.Places[0], f.Errs[0])
	}
	if c := t.Cuts(); c.Count > 0 {
		r.Note("%s cut short, the first at %v; the frames before the cut are kept", cli.Count(c.Count, "record"), c.Places[0])
	}
	if r.badMaps > 1 {
		r.Note("markup: %s not understood", cli.Count(int64(r.badMaps), "element"))
	}
	c := &r.Process.Counts
	if c.Lossy > 0 {
		r.Note("the encoder kept only the low 31 bits of %s of %s: %s recovered, %s lost%s",
			cli.Number(c.Lossy), cli.Count(c.Addresses, "address"), cli.Number(c.Inferred), cli.Number(c.Lost()), r.hint())
	}
	if c.Ambiguous > 0 {
		r.Note("%s of these are lost because several addresses fit", cli.Number(c.Ambiguous))
	}
	if c.LossySizes > 0 {
		r.Note("the encoder kept only the low 31 bits of %s over 4 GiB", cli.Count(c.LossySizes, "size"))
	}
	for _, boot := range r.inferredBases() {
		r.Note("%s", boot)
	}
	for _, n := range r.Process.Files.Notes() {
		r.Note("%s", n)
	}
}

// inferredBases says where files were loaded, as far as that was inferred.
func (r *Reader) inferredBases() (list []string) {
	bases := r.Process.Files.Bases()
	for _, b := range bases {
		if b.Votes == 0 {
			continue // given, not inferred
		}
		if b.Exact {
			list = append(list, fmt.Sprintf("%s: inferred load base %#x: %v", b.File.Path, b.Bias, b))
		} else {
			list = append(list, fmt.Sprintf("%s: inferred load base %#x, of which the upper bits are not known: %v; addresses are the file's own", b.File.Path, b.Bias, b))
		}
	}
	return list
}

// hint returns how lost addresses could be recovered.
func (r *Reader) hint() string {
	c := &r.Process.Counts
	if c.Inferred == 0 && c.Lost() > 0 && !r.Symbols() {
		return "; give --maps, or -e with the ELF file"
	}
	return ""
}

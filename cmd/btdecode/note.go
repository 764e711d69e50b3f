package main

import (
	"fmt"

	"github.com/lwsbt/lwsbt/dump"
)

// note says something on stderr.
func (d *decoder) note(format string, args ...any) {
	if !d.quiet {
		fmt.Fprintf(d.stderr, "btdecode: "+format+"\n", args...)
	}
}

// badMarkup says the first time that markup was not understood.
func (d *decoder) badMarkup(err error) {
	if d.markup++; d.markup == 1 {
		d.note("markup %v", err)
	}
}

// notes says what of the log could not be read, what became of addresses that
// are lossy, and what is missing of symbols.
func (d *decoder) notes(t *dump.Tally) {
	for _, f := range t.Faults() {
		d.note("%d records unreadable (%s), the first at %v: %v", f.Count, f.Reason, f.Places[0], f.Errs[0])
	}
	if c := t.Cuts(); c.Count > 0 {
		d.note("%d records cut short, the first at %v; their whole frames are kept", c.Count, c.Places[0])
	}
	if d.markup > 1 {
		d.note("markup: %d elements in all were not understood", d.markup)
	}
	c := &d.process.Counts
	if c.Lossy > 0 {
		d.note("%d of %d addresses kept only their low 31 bits in the encoder: %d given back, %d lost%s",
			c.Lossy, c.Addresses, c.Inferred, c.Lost(), d.hint())
	}
	if c.Ambiguous > 0 {
		d.note("%d of these because several addresses fit", c.Ambiguous)
	}
	if c.LossySizes > 0 {
		d.note("%d sizes over 4 GiB kept only their low 31 bits", c.LossySizes)
	}
	for _, b := range d.process.Files.Bases() {
		if b.Votes == 0 {
			continue // told, not found
		}
		where := fmt.Sprintf("load base ends in %#x, its upper bits are not known; addresses are the file's own", b.Bias)
		if b.Exact {
			where = fmt.Sprintf("load base %#x", b.Bias)
		}
		d.note("%v: %s", b, where)
	}
	for _, n := range d.process.Files.Notes() {
		d.note("%s", n)
	}
}

// hint is what would give lost addresses back.
func (d *decoder) hint() string {
	c := &d.process.Counts
	if c.Inferred == 0 && c.Lost() > 0 && !d.symbols() {
		return "; give --maps, or -e with the ELF file"
	}
	return ""
}

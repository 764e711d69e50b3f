package symbol

import (
	"cmp"
	"fmt"
	"slices"
)

// maxNotes is how many different notes are kept.
const maxNotes = 50

// note keeps what the user should hear, each thing once.
func (r *Resolver) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if len(r.notes) < maxNotes && !slices.Contains(r.notes, s) {
		r.notes = append(r.notes, s)
	}
}

// minCalls is how many addresses say anything about whether a file is the right
// one, and wrongShare the share of them after calls below which it is not.
const (
	minCalls   = 5
	wrongShare = 0.7
)

// Notes returns why symbols are missing, and which files do not match the log,
// each thing once.
func (r *Resolver) Notes() []string {
	notes := slices.Clone(r.notes)
	all := slices.Concat(r.added, r.opened)
	slices.SortStableFunc(all, func(a, b *object) int { return cmp.Compare(a.file.Path, b.file.Path) })
	for _, o := range all {
		if o.seen >= minCalls && float64(o.afterCall) < wrongShare*float64(o.seen) {
			notes = append(notes, fmt.Sprintf(
				"%s: only %d of %d addresses in its code follow a call: ELF does not match the log",
				o.file.Path, o.afterCall, o.seen))
		}
	}
	for _, o := range r.added {
		if !o.used && r.outside >= minCalls {
			notes = append(notes, fmt.Sprintf(
				"%s: contains none of the addresses (%d are in no ELF file): ELF does not match the log, or was loaded elsewhere: -e %s@0xADDR",
				o.file.Path, r.outside, o.file.Path))
		}
	}
	return notes
}

package symbol

import (
	"cmp"
	"fmt"
	"slices"
)

// maxNotes is the most notes of a Process.
const maxNotes = 50

// note adds a note for the user, unless it was added before.
func (p *Process) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if len(p.notes) < maxNotes && !slices.Contains(p.notes, s) {
		p.notes = append(p.notes, s)
	}
}

// A file does not match the log if at least minCalls return addresses are in its code and
// less than wrongShare of them follow a call.
const (
	minCalls   = 5
	wrongShare = 0.7
)

// Notes returns the reasons why symbols are missing, each once, and the mismatches: notes
// about ELF files that do not match the addresses. Names from such files may be wrong.
func (p *Process) Notes() (missing, mismatches []string) {
	all := slices.Concat(p.added, p.opened)
	slices.SortStableFunc(all, func(a, b *object) int { return cmp.Compare(a.file.Path, b.file.Path) })
	for _, o := range all {
		if o.seen >= minCalls && float64(o.afterCall) < wrongShare*float64(o.seen) {
			mismatches = append(mismatches, fmt.Sprintf(
				"%s: only %d of %d addresses in its code follow a call: ELF does not match the log",
				o.file.Path, o.afterCall, o.seen))
		}
	}
	for _, o := range p.added {
		if !o.used && p.outside >= minCalls {
			mismatches = append(mismatches, fmt.Sprintf(
				"%s: contains none of the addresses (%d are in no ELF file): ELF does not match the log, or was loaded elsewhere: -e %s@0xADDR",
				o.file.Path, p.outside, o.file.Path))
		}
	}
	return slices.Clone(p.notes), mismatches
}

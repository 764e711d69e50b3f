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

// mismatch returns how a file does not match the log, "" if it may match. A file with the build-id
// in the log matches, wherever signals and interrupts came in.
func (o *object) mismatch() string {
	if o.same || o.seen < minCalls || float64(o.afterCall) >= wrongShare*float64(o.seen) {
		return ""
	}
	return fmt.Sprintf("%s: only %d of %d addresses in its code follow a call: ELF does not match the log", o.file.Path, o.afterCall, o.seen)
}

func (p *Process) isAdded(o *object) bool { return slices.Contains(p.added, o) }

// Wrong returns how files of [Config.Files] do not match the addresses, if Config.Check is set.
// Addresses get no names from such files once that is known.
func (p *Process) Wrong() (list []string) {
	for _, o := range p.added {
		if text := o.mismatch(); text != "" && p.config.Check {
			list = append(list, fmt.Sprintf("%s; expected the build that ran, of whose addresses nearly all follow a call", text))
		}
	}
	return list
}

// Confirm tells the Process that the program has a build-id. Files with it match.
func (p *Process) Confirm(buildID string) {
	for _, o := range p.added {
		o.same = o.same || buildID != "" && o.file.BuildID == buildID
	}
}

// Seen returns the number of distinct return addresses that were checked against Config.Files.
func (p *Process) Seen() (n int) {
	for _, o := range p.added {
		n += o.seen
	}
	return n
}

// Notes returns the reasons why symbols are missing, each once, and the mismatches: notes
// about ELF files that do not match the addresses, other than those of Wrong. Names from such files
// may be wrong.
func (p *Process) Notes() (missing, mismatches []string) {
	all := slices.Concat(p.added, p.opened)
	slices.SortStableFunc(all, func(a, b *object) int { return cmp.Compare(a.file.Path, b.file.Path) })
	for _, o := range all {
		if text := o.mismatch(); text != "" && !(p.config.Check && p.isAdded(o)) {
			mismatches = append(mismatches, text)
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

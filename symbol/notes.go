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

// minMapped is the least number of addresses in the code of a module by which its file can be rejected.
const minMapped = 5

// mismatch returns how the file of a module does not match the log, "" if it may match. A file with the
// build-id in the log matches, wherever signals and interrupts came in.
func (o *object) mismatch() string {
	if o.same || o.seen < minMapped || float64(o.afterCall) >= wrongShare*float64(o.seen) {
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

// Seen returns the number of distinct return addresses in mappings of Config.Files.
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
		if !o.used && !o.excluded && p.outside >= minMapped {
			mismatches = append(mismatches, fmt.Sprintf(
				"%s: contains none of the addresses (%d are in no ELF file): ELF does not match the log, or was loaded elsewhere: -e %s@0xADDR",
				o.file.Path, p.outside, o.file.Path))
		}
	}
	return slices.Clone(p.notes), mismatches
}

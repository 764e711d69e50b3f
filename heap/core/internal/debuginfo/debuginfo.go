// Package debuginfo has the limits on the debug information of an ELF file that nobody vouches for.
package debuginfo

import (
	"debug/elf"
	"strings"
)

const (
	// MaxBytes is the most that the sections of debug information may have together, in bytes.
	MaxBytes = 1 << 28
	// MaxEntries is the number of entries that are read.
	MaxEntries = 1 << 22

	maxInflate = 100 // bytes of a section for each byte in the file
)

// Check reports whether a file has debug information, and whether that is within the limits.
func Check(f *elf.File) (some, ok bool) {
	total := uint64(0)
	for _, s := range f.Sections {
		if !strings.HasPrefix(s.Name, ".debug_") && !strings.HasPrefix(s.Name, ".zdebug") {
			continue
		}
		some = true
		if total += s.Size; total > MaxBytes || s.Size/maxInflate > s.FileSize {
			return true, false
		}
	}
	return some, true
}

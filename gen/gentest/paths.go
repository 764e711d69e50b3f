package gentest

import (
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Entries returns the entries of a parsed line, with memory of their own.
func Entries(l *callpath.Line) []callpath.Entry {
	var all []callpath.Entry
	for e := (callpath.Entry{}); l.Next(&e); {
		e.Path, e.Blocks = e.Clone(), slices.Clone(e.Blocks)
		all = append(all, e)
	}
	return all
}

// Show returns entries in a form that is equal for equal ones, whether a slice is nil or
// empty.
func Show(entries []callpath.Entry) string {
	var out string
	for _, e := range entries {
		out += fmt.Sprintln(e.Base, e.Outer, len(e.Frames), e.Frames, e.Definition, e.Live, e.Bytes, e.Blocks, e.Allocs, e.AllocBytes, e.Peak)
	}
	return out
}

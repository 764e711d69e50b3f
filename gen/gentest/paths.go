package gentest

import (
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Entries returns copies of the entries of a parsed line.
func Entries(l *callpath.Line) []callpath.Entry {
	var all []callpath.Entry
	for e := (callpath.Entry{}); l.Next(&e); {
		e.Path, e.Blocks = e.Clone(), slices.Clone(e.Blocks)
		all = append(all, e)
	}
	return all
}

// Show returns entries as text. Nil and empty slices give the same text.
func Show(entries []callpath.Entry) string {
	var out string
	for _, e := range entries {
		out += fmt.Sprintln(e.Base, e.Outer, len(e.Frames), e.Frames, e.Definition, e.Live, e.Bytes, e.Blocks, e.Allocs, e.AllocBytes, e.Peak)
	}
	return out
}

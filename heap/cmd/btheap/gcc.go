package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// writeGCC writes a line per leak in the format of compiler messages, for editors and CI.
func (l *leaks) writeGCC(w io.Writer, found *growth.Leaks) {
	var limit stackLimit
	listed, unknown, _ := leaktext.Listed(found)
	for _, r := range slices.Concat(listed, unknown) {
		at, name, kind := inLog(found), "(no frames)", "warning"
		stack := limit.leak(r)
		if len(stack) > 0 {
			name = stack[0].Func
		}
		if len(r.Parts) > 0 {
			stack = r.Parts[0].Stack()
		}
		if i := slices.IndexFunc(stack, func(s profile.Site) bool { return s.File != "" && s.Line > 0 }); i >= 0 {
			at, name = fmt.Sprintf("%s:%d", stack[i].File, stack[i].Line), stack[i].Func
		}
		if !r.Sure() {
			kind = "note"
		}
		fmt.Fprintf(w, "%s: %s: %s: %s: %s, %s → %s blocks\n", at, kind, leaktext.Short(&r.Judgement), name, leaktext.RateOf(found, r),
			cli.Number(r.First.Count), cli.Number(r.Last.Count))
	}
	if len(listed) == 0 {
		writeHeapsGCC(w, found)
	}
}

// writeHeapsGCC writes a line per heap that leaks, where no call path tells why: at the report since which it
// does, or at the last one.
func writeHeapsGCC(w io.Writer, found *growth.Leaks) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		at, kind := &t.Last, "warning"
		if t.Began != nil {
			at = t.Began
		}
		if t.Verdict != leak.Leak {
			continue
		}
		if !t.Sure() {
			kind = "note"
		}
		fmt.Fprintf(w, "%s:%d: %s: %s\n", at.File, max(1, at.Line), kind, leaktext.Heap(t))
	}
}

// inLog returns where the log has the last used dump, for a leak of which no source line is known.
func inLog(found *growth.Leaks) string {
	at := "-:1"
	for _, d := range found.Dumps {
		if d.Used && d.File != "" {
			at = fmt.Sprintf("%s:%d", d.File, max(1, d.Line))
		}
	}
	return at
}

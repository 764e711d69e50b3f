package main

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// textLine is a line of the screen.
type textLine struct{ attribute, text string }

// head returns four lines about the log as a whole, and more where one is longer than the screen and
// the screen high enough.
func (m *screen) head() []textLine {
	lines := m.headTexts()
	free := m.height - headLines - footLines - stackLines - minList
	var out []textLine
	for i, l := range lines {
		parts := m.wrap(l.text)
		if len(parts) > 1 && len(parts)-1 > free {
			parts = append(parts[:max(0, free)], strings.Join(parts[max(0, free):], " "))
		}
		free -= len(parts) - 1
		for _, text := range parts {
			out = append(out, textLine{lines[i].attribute, text})
		}
	}
	return out
}

// wrap breaks a text into lines of the width of the screen.
func (m *screen) wrap(text string) []string {
	return strings.Split(ansi.Wordwrap(printable.Text(text), max(1, m.width), " "), "\n")
}

// headTexts returns the texts of head: the log, its last dump, what leaks, and until when.
func (m *screen) headTexts() []textLine {
	title := "btheap live: " + m.name
	switch {
	case m.frozen && m.next != nil:
		title += "  [frozen; newer dumps have come]"
	case m.frozen:
		title += "  [frozen]"
	case m.ended:
		title += "  [the log has ended]"
	}
	st := m.now
	if len(st.dumps) == 0 && len(st.found.Heaps) > 0 {
		lines := []textLine{{bold, title}, {plainText, leaktext.HeapHeadline(st.found) + st.unfinished()}}
		return append(lines, st.until())
	}
	if len(st.dumps) == 0 {
		text := "no dump yet"
		if st.open != nil {
			text = "no whole dump yet" + st.unfinished()
		}
		return []textLine{{bold, title}, {plainText, text}, {}, {}}
	}
	d := st.dumps[len(st.dumps)-1]
	var totals []profile.Value
	for _, d := range st.dumps {
		totals = append(totals, d.Total)
	}
	complete := func(i int) bool { return st.dumps[i].Complete() }
	text := when(d) + ": " + held(d) + "  " + sparkline(totals, complete, profile.Bytes, 24)
	if t := leastFree(st.found.Heaps); t != nil {
		text += "  " + leaktext.Free(&t.Last.Heap)
	}
	if !d.Complete() {
		text += "  (" + d.Incomplete() + ")"
	}
	found := st.finding()
	if st.found.Used > 0 {
		found += " in " + leaktext.Examined(st.found)
	}
	return []textLine{{bold, title}, {plainText, text + st.unfinished()}, {plainText, found}, st.until()}
}

// leastFree returns the heap with the least free memory, nil if no report says what is free.
func leastFree(list []growth.HeapTrend) (least *growth.HeapTrend) {
	for i := range list {
		if t := &list[i]; t.Last.Free.Known && (least == nil || t.Last.Free.Bytes < least.Last.Free.Bytes) {
			least = t
		}
	}
	return least
}

// until returns the line with the alarm, the deadline, and what is fragmented.
func (st *state) until() textLine {
	attribute, parts := plainText, []string{}
	if st.alarm != "" {
		attribute, parts = red, append(parts, "ALARM: "+st.alarm)
	}
	if x := st.found.Exhaustion; x != nil {
		parts = append(parts, fmt.Sprintf("free %s bytes: exhausted in %s", cli.Number(x.Free), leaktext.Left(x)))
	}
	return textLine{attribute, strings.Join(append(parts, leaktext.Fragmentation(st.found)...), "; ")}
}

// unfinished describes the dump that has not ended.
func (st *state) unfinished() string {
	if st.open == nil {
		return ""
	}
	return fmt.Sprintf("  (%s begins: %s)", st.open.Name, cli.Count(st.open.Records, "record"))
}

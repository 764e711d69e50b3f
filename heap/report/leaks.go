package report

import (
	"slices"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// NewLeaks returns leaks for [Options]: the sure ones first, then up to three call paths that grow.
func NewLeaks(found *profile.Leaks) *Leaks {
	l := &Leaks{Summary: []string{leaktext.Headline(found) + " in " + leaktext.Examined(found)}}
	for _, text := range slices.Concat([]string{leaktext.Exhaustion(found)}, leaktext.Heaps(found), leaktext.Basis(found)) {
		if text != "" {
			l.Summary = append(l.Summary, text)
		}
	}
	for _, r := range append(found.Sure(), leaktext.Growing(found)...) {
		row := Leak{Verdict: r.Verdict.String(), Stack: r.Stack(), Rate: leaktext.Rate(found, r.Rate, r.Margin), Grows: r.Rate > 0,
			First: r.First, Last: r.Last, Text: leaktext.Evidence(&r)}
		for i, v := range r.Points() {
			if found.Dumps[i].Used {
				row.Points = append(row.Points, v.Bytes)
			}
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

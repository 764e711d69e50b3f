package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// maxLeaks is the largest number of sure leaks on a page, each of which has all its frames.
const maxLeaks = 500

// NewLeaks returns leaks for [Options]: the sure ones first, then up to three call paths that grow, and up to three
// that stopped.
func NewLeaks(found *growth.Leaks) *Leaks {
	l := &Leaks{Summary: []string{leaktext.Headline(found) + " in " + leaktext.Examined(found)}}
	for _, text := range slices.Concat([]string{leaktext.Exhaustion(found)}, leaktext.Heaps(found, 0), leaktext.Basis(found)) {
		if text != "" {
			l.Summary = append(l.Summary, text)
		}
	}
	sure := found.Leaking()
	if left := len(sure) - maxLeaks; left > 0 {
		l.Summary = append(l.Summary, fmt.Sprintf("The list has the %d most likely leaks; %d more are left out.", maxLeaks, left))
		sure = sure[:maxLeaks]
	}
	_, unknown, ended := leaktext.Listed(found)
	for _, r := range slices.Concat(sure, unknown, ended) {
		row := Leak{Verdict: leaktext.Short(&r.Judgement), Stack: r.Stack(), Rate: leaktext.RateOf(found, r), Grows: r.Rate > 0,
			First: r.First, Last: r.Last, Text: leaktext.VerdictOf(found, r)}
		row.Text = strings.Join(append([]string{row.Text}, leaktext.Notes(found, r)...), "; ")
		for i, v := range r.Points() {
			if found.Dumps[i].Used {
				row.Points = append(row.Points, v.Bytes)
			}
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

package profile

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
)

// sortedStacks is up to how many stacks folded output is sorted; more are written
// in the order of the log, for sorting takes memory.
const sortedStacks = 1_000_000

var foldedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// writeFolded writes a line per call stack, outermost function first, and its
// weight: what flamegraph.pl and its like read.
func writeFolded(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) ([]string, error) {
	functions := *n
	if n.view.By == ByLine { // the format has functions alone
		v := *n.view
		v.By = ByFunction
		functions = *v.Names(n.prof)
	}
	s := functions.stacks(d)
	n.Matched = functions.Matched
	var names []string
	var frames []LocationID
	write := func(i int, to func(string, uint64)) {
		names = names[:0]
		frames = s.append(frames[:0], i)
		for _, f := range frames {
			names = append(names, foldedName.Replace(functions.Site(SiteID(f)).String()))
		}
		if len(names) == 0 {
			names = append(names, "(no frames)")
		}
		to(strings.Join(names, ";"), o.Weight.Of(*s.sums.at(i)))
	}
	line := func(stack string, v uint64) { fmt.Fprintf(w, "%s %d\n", stack, v) }
	if s.sums.n > sortedStacks {
		for i := range s.sums.n {
			write(i, line)
		}
		return nil, nil
	}
	type row struct {
		stack string
		v     uint64
	}
	var rows []row
	for i := range s.sums.n {
		write(i, func(stack string, v uint64) { rows = append(rows, row{stack, v}) })
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.stack, b.stack) })
	for _, r := range rows {
		line(r.stack, r.v)
	}
	return nil, nil
}

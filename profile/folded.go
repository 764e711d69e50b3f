package profile

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

var foldedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// writeFolded writes a line per call stack, outermost function first, and its
// weight, sorted: what flamegraph.pl and its like read.
func writeFolded(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) ([]string, error) {
	functions := n
	if n.view.By == ByLine { // the format has functions alone
		v := *n.view
		v.By = ByFunction
		functions = v.Names(n.prof)
	}
	f := &folded{names: functions, stacks: functions.stacks(d)}
	n.Matched = functions.Matched
	f.rank()
	t := &trie{}
	for i := range f.stacks.rows() {
		f.stack = f.stacks.append(f.stack[:0], i)
		f.line = f.line[:0]
		for i, s := range slices.Backward(f.stack) {
			f.line = append(f.line, SiteID(f.ranks[min(i, 1)][s]))
		}
		t.add(uint32(i), f.line)
	}
	t.order(t.branches, 0)
	var err error
	for _, b := range t.branches {
		row := int(t.path(b))
		f.stack = f.stacks.append(f.stack[:0], row)
		for i, s := range slices.Backward(f.stack) {
			w.WriteString(f.text[s])
			if i > 0 {
				w.WriteByte(';')
			}
		}
		if len(f.stack) == 0 {
			w.WriteString("(no frames)")
		}
		_, err = fmt.Fprintf(w, " %d\n", o.Weight.Of(*f.stacks.sums.at(row)))
	}
	return nil, err
}

// folded orders the lines of folded output without holding them.
type folded struct {
	names  *Names
	stacks *stackSums
	text   []string // by SiteID
	// ranks is where the text of a site stands among those of all, by SiteID: behind
	// it the end of the line, or a further frame.
	ranks [2][]uint32
	stack []SiteID
	line  []SiteID // ranks of its frames, outermost first
}

const foldedEnd, foldedFrame = 0, 1

// rank orders the texts of all sites, each with what can stand behind it.
func (f *folded) rank() {
	f.text = make([]string, f.names.Sites())
	order := make([]uint32, 0, 2*len(f.text)) // 2*SiteID + what is behind it
	for i := range f.text {
		f.text[i] = foldedName.Replace(f.names.Site(SiteID(i)).String())
		order = append(order, uint32(2*i+foldedEnd), uint32(2*i+foldedFrame))
	}
	compare := func(a, b uint32) int {
		x, y := f.text[a/2], f.text[b/2]
		if n := min(len(x), len(y)); len(x) != len(y) && x[:n] == y[:n] { // one goes on
			if len(x) < len(y) {
				return compareEnd(a%2, y[n])
			}
			return -compareEnd(b%2, x[n])
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a%2, b%2))
	}
	slices.SortFunc(order, compare)
	for i := range f.ranks {
		f.ranks[i] = make([]uint32, len(f.text))
	}
	rank := uint32(0)
	for i, x := range order {
		if i > 0 && compare(order[i-1], x) != 0 {
			rank++
		}
		f.ranks[x%2][x/2] = rank
	}
}

// compareEnd orders what is behind a text and a byte of a longer one.
func compareEnd(behind uint32, c byte) int {
	if behind == foldedEnd {
		return -1
	}
	return cmp.Compare(';', c)
}

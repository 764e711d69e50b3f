package export

import (
	"bufio"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/profile"
)

var foldedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// writeFolded writes the folded format of flamegraph.pl: a line per call stack, outermost
// function first, with its weight. Lines are ordered by the names of their frames.
func writeFolded(w *bufio.Writer, p *profile.Profile, o Options) ([]string, error) {
	if v := p.Current(); v.By == profile.ByLine { // the format has only functions
		v.By = profile.ByFunction
		p = p.View(v)
	}
	sites := newSiteTree(p)
	nodes := map[uint32][]profile.Value{} // of rows, by the node of their sites
	for row, v := range rows(p) {
		n := sites.row(row)
		nodes[n] = append(nodes[n], v)
	}
	text, rank := ranked(sites.sites)
	// Sites with equal texts are one site.
	order := newTree()
	byText := make([]uint32, len(sites.nodes)) // nodes of order
	values := map[uint32][]profile.Value{}
	for n := range sites.nodes {
		if at := sites.nodes[n]; n > 0 {
			byText[n] = order.below(byText[at.parent], rank[at.value])
		}
		if list := nodes[uint32(n)]; len(list) > 0 {
			values[byText[n]] = append(values[byText[n]], list...)
		}
	}
	var stack []uint32
	for node := range order.ordered() {
		stack = order.append(stack[:0], node)
		for _, v := range values[node] {
			for i, site := range slices.Backward(stack) {
				w.WriteString(text[site])
				if i > 0 {
					w.WriteByte(';')
				}
			}
			if len(stack) == 0 {
				w.WriteString("(no frames)")
			}
			w.WriteByte(' ')
			writeUint(w, o.Weight.Of(v))
			if err := w.WriteByte('\n'); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// ranked returns the texts of sites in their order, and by site the index of its text.
func ranked(sites []profile.Site) (text []string, rank []uint32) {
	texts := make([]string, len(sites))
	for i, s := range sites {
		texts[i] = foldedName.Replace(s.String())
	}
	text = slices.Compact(slices.Sorted(slices.Values(texts)))
	rank = make([]uint32, len(sites))
	for i, t := range texts {
		n, _ := slices.BinarySearch(text, t)
		rank[i] = uint32(n)
	}
	return text, rank
}

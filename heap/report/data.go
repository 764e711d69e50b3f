package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// data is the input of the script. Call paths are a tree from the outermost frame
// inward: node 0 is its root, and a node's parent has a lower number.
type data struct {
	Subtitle string   `json:"subtitle"`
	Notes    []string `json:"notes"`
	Dumps    []dump   `json:"dumps"`
	Open     int      `json:"open"`              // the dump to show first
	OpenWhy  string   `json:"openWhy"`           // why Open is not the last dump
	Threads  bool     `json:"threads,omitempty"` // the outermost frames are threads
	Sites    []site   `json:"sites"`
	Parent   []int    `json:"parent"`
	Site     []int    `json:"site"`
	// Values has for each node with values: the node, the number of changes, and for each
	// change the dump, and the bytes and the count from that dump on.
	Values []uint64 `json:"values"`
	Costs  []cost   `json:"costs,omitempty"`
	Leaks  *leaks   `json:"leaks,omitempty"`
	Map    *heapMap `json:"map,omitempty"`

	sites map[profile.Site]int
	nodes map[edge]int
}

// site is a call site: an array of function, file, line and module.
type site profile.Site

func (s site) MarshalJSON() ([]byte, error) {
	return json.Marshal([4]any{s.Func, s.File, s.Line, s.Module})
}

type dump struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"` // the same, short
	Time    *float64 `json:"time"`  // seconds since the boot
	Boot    int      `json:"boot"`
	Bytes   uint64   `json:"bytes"`
	Count   uint64   `json:"count"`
	Warning string   `json:"warning,omitempty"`
	Minor   bool     `json:"minor,omitempty"` // little is missing: up to 5 % of the records
	Aside   string   `json:"aside,omitempty"` // why a complete dump cannot be compared
	Steady  bool     `json:"steady"`          // it can be compared
}

type cost struct {
	Name   string   `json:"name"`
	About  string   `json:"about"`
	Values []uint64 `json:"values"` // node, bytes, count; node, …
}

type leaks struct {
	Summary []string `json:"summary"`
	Rows    []leak   `json:"rows"`
	Heaps   []Heap   `json:"heaps,omitempty"`
}

type leak struct {
	Leak
	Stack []int `json:"stack"`
	Node  int   `json:"node"`
}

// largestExact is the largest whole number that the script's numbers hold exactly.
const largestExact = 1<<53 - 1

func newData(p *profile.Profile, o *Options) *data {
	d := &data{Subtitle: printable.Text(o.Subtitle), Threads: o.Threads, Notes: []string{}, Sites: []site{}, Parent: []int{-1}, Site: []int{-1}, Values: []uint64{},
		sites: map[profile.Site]int{}, nodes: map[edge]int{}}
	for _, n := range o.Notes {
		d.Notes = append(d.Notes, printable.Text(n))
	}
	d.addDumps(p)
	d.addRows(p)
	d.addCosts(o.Costs, o.CostValues)
	d.addLeaks(o.Leaks)
	d.addMap(o.Map)
	return d
}

// addDumps adds the facts of the dumps.
func (d *data) addDumps(p *profile.Profile) {
	rounded := false
	for i, from := range p.Dumps() {
		total := p.Total(i)
		rounded = rounded || total.Bytes > largestExact
		out := dump{Name: printable.Text(from.Name), Label: fmt.Sprint(i + 1), Boot: from.Boot, Bytes: total.Bytes, Count: total.Count,
			Warning: warning(from), Minor: minor(from)}
		if out.Name == "" {
			out.Name = fmt.Sprintf("dump %d", i+1)
		}
		if from.Timed {
			t := from.Time.Seconds()
			out.Time = &t
		}
		d.Dumps = append(d.Dumps, out)
	}
	d.setAside(p.Dumps())
	if rounded {
		d.Notes = append(d.Notes, "Sums above 2^53 are rounded on this page.")
	}
	open, reason := growth.Steady(p.Dumps()...)
	d.Open = max(0, open)
	if last := len(d.Dumps) - 1; d.Open < last {
		d.OpenWhy = fmt.Sprintf("Shown instead of the last, %s (%s).", d.Dumps[last].Name, printable.Text(reason))
	}
}

// setAside marks the dumps that do not show a running program.
func (d *data) setAside(dumps []*profile.Dump) {
	for i, from := range dumps {
		only := []*profile.Dump{from}
		if i == len(dumps)-1 || dumps[i+1].Boot != from.Boot { // the last of a boot is compared with the one before
			only = dumps[max(0, i-1) : i+1]
			if only[0].Boot != from.Boot {
				only = only[1:]
			}
		}
		at, reason := growth.Steady(only...)
		d.Dumps[i].Steady = at == len(only)-1 && reason == ""
		if reason != "" && d.Dumps[i].Warning == "" {
			d.Dumps[i].Aside = "It is not compared with others: " + printable.Text(reason) + "."
		}
	}
}

// warning describes the known missing part of a dump.
func warning(d *profile.Dump) string {
	var parts []string
	if text := d.Incomplete(); text != "" {
		parts = append(parts, text)
	}
	if n := d.Loss.NoSize; n > 0 {
		parts = append(parts, fmt.Sprintf("%d records were cut before their size and count as 0 bytes", n))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Incomplete: " + strings.Join(parts, "; ") + "."
}

// minor reports whether little of a dump is missing, and the log tells how much.
func minor(d *profile.Dump) bool {
	missing, known := d.Missing()
	return known && missing <= 0.05 && !d.Loss.NoBase
}

// addCosts adds costs by call path. It adds paths that are not on the page.
func (d *data) addCosts(list []Cost, values *profile.Profile) {
	if len(list) == 0 {
		return
	}
	sums := map[int][]profile.Value{} // by node
	places := places{d, values, map[uint32]int{}}
	for row := range values.Rows() {
		node := places.node(row, len(d.nodes) < 4*MaxPaths)
		if node == 0 {
			node = d.child(0, d.extraSite(profile.OtherName))
		}
		if sums[node] == nil {
			sums[node] = make([]profile.Value, len(list))
		}
		row.AddTo(sums[node])
	}
	nodes := slices.Sorted(maps.Keys(sums))
	for i, c := range list {
		out := cost{Name: printable.Text(c.Name), About: printable.Text(c.About), Values: []uint64{}}
		for _, node := range nodes {
			if v := sums[node][i]; !v.IsZero() {
				out.Values = append(out.Values, uint64(node), v.Bytes, v.Count)
			}
		}
		d.Costs = append(d.Costs, out)
	}
}

func (d *data) addLeaks(l *Leaks) {
	if l == nil {
		return
	}
	d.Leaks = &leaks{Summary: []string{}, Rows: []leak{}}
	for _, s := range l.Summary {
		d.Leaks.Summary = append(d.Leaks.Summary, printable.Text(s))
	}
	for _, h := range l.Heaps {
		h.Name, h.Verdict, h.Lines = printable.Text(h.Name), printable.Text(h.Verdict), printed(h.Lines)
		d.Leaks.Heaps = append(d.Leaks.Heaps, h)
	}
	for _, r := range l.Rows {
		stack := d.stack(r.Stack)
		r.Rate, r.Text, r.Points = printable.Text(r.Rate), printable.Text(r.Text), append([]uint64{}, r.Points...)
		for i, part := range r.Parts {
			r.Parts[i] = printed(part)
		}
		d.Leaks.Rows = append(d.Leaks.Rows, leak{r, stack, d.find(stack)})
	}
}

// printed returns texts that can be shown.
func printed(texts []string) []string {
	list := make([]string, len(texts))
	for i, s := range texts {
		list[i] = printable.Text(s)
	}
	return list
}

// stack returns the numbers of sites, which it adds if they are new, innermost first.
func (d *data) stack(sites []profile.Site) []int {
	list := make([]int, 0, len(sites))
	for _, s := range sites {
		n, known := d.sites[s]
		if !known {
			n = len(d.Sites)
			d.sites[s] = n
			d.Sites = append(d.Sites, site{printable.Text(s.Func), printable.Text(s.File), s.Line, printable.Text(s.Module)})
		}
		list = append(list, n)
	}
	return list
}

// addRows adds the call paths. Beyond the limits of a page, the smallest paths become one.
func (d *data) addRows(p *profile.Profile) {
	shown, n := heaviest(p, len(d.Dumps))
	rest := make([]profile.Value, len(d.Dumps))
	byNode := map[int][]profile.Row{}
	places := places{d, p, map[uint32]int{}}
	for i, row := range enumerate(p.Rows()) {
		if shown != nil && !shown[i] {
			row.AddTo(rest)
			continue
		}
		node := places.node(row, true)
		byNode[node] = append(byNode[node], row)
	}
	other := -1
	if left := p.Len() - n; left > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("The page holds the %d call paths that hold most; the other %d are shown as one.", n, left))
		other = d.child(0, d.extraSite(profile.OtherName))
		byNode[other] = append(byNode[other], profile.Row{})
	}
	sums := make([]profile.Value, len(d.Dumps))
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		clear(sums)
		if node == other {
			copy(sums, rest)
		}
		for _, row := range byNode[node] {
			row.AddTo(sums)
		}
		changes := appendChanges(nil, slices.All(sums), len(sums))
		d.Values = append(d.Values, uint64(node), uint64(len(changes)/3))
		d.Values = append(d.Values, changes...)
	}
}

func enumerate[T any](list iter.Seq[T]) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		i := 0
		for v := range list {
			if !yield(i, v) {
				return
			}
			i++
		}
	}
}

// appendChanges appends each dump whose value differs from that of the dump before, with the
// bytes and the count. Dumps that values omits have the value 0.
func appendChanges(dst []uint64, values iter.Seq2[int, profile.Value], dumps int) []uint64 {
	next, before := 0, profile.Value{}
	put := func(dump int, v profile.Value) {
		if v != before {
			dst = append(dst, uint64(dump), v.Bytes, v.Count)
		}
		before = v
	}
	for dump, v := range values {
		if dump > next {
			put(next, profile.Value{})
		}
		put(dump, v)
		next = dump + 1
	}
	if next < dumps {
		put(next, profile.Value{})
	}
	return dst
}

// heaviest returns which rows a page has, and how many: nil for all. If the page cannot hold all
// rows, it holds the rows with the largest maximum of bytes, then of allocations.
func heaviest(p *profile.Profile, dumps int) (shown []bool, n int) {
	type sized struct {
		most         profile.Value
		row, changes uint32
	}
	list, sum := make([]sized, p.Len()), 0
	var changes []uint64
	for i, row := range enumerate(p.Rows()) {
		changes = appendChanges(changes[:0], slices.All(row.Points()), dumps)
		s := &list[i]
		s.row, s.changes = uint32(i), uint32(len(changes)/3)
		for k := 0; k < len(changes); k += 3 {
			s.most.Bytes, s.most.Count = max(s.most.Bytes, changes[k+1]), max(s.most.Count, changes[k+2])
		}
		sum += int(s.changes)
	}
	if len(list) <= MaxPaths && sum <= maxChanges {
		return nil, len(list)
	}
	slices.SortStableFunc(list, func(a, b sized) int {
		return cmp.Or(cmp.Compare(b.most.Bytes, a.most.Bytes), cmp.Compare(b.most.Count, a.most.Count))
	})
	shown, sum = make([]bool, len(list)), 0
	for n < min(len(list), MaxPaths) && sum+int(list[n].changes) <= maxChanges {
		sum += int(list[n].changes)
		shown[list[n].row] = true
		n++
	}
	return shown, n
}

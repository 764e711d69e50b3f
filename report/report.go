package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
)

//go:embed assets/page.html
var page string

//go:embed assets/report.css
var style string

//go:embed assets/report.js
var script string

// MaxPaths is the largest number of call paths of a page. The call paths with the
// smallest maxima beyond it are added up as one.
const MaxPaths = 50_000

// maxGrowth is the largest number of call paths of the growth page.
const maxGrowth = 200

// MaxDumps is the largest number of dumps of a page.
const MaxDumps = 500

// SomeDumps selects the dumps for a page: all, or, if there are more than MaxDumps, some
// at even distances, with the first and the last. note names the selection, "" if all.
func SomeDumps(all []*profile.Dump) (some []*profile.Dump, note string) {
	if len(all) <= MaxDumps {
		return all, ""
	}
	for i := range MaxDumps {
		some = append(some, all[i*(len(all)-1)/(MaxDumps-1)])
	}
	return some, fmt.Sprintf("The page holds %d of %d dumps, evenly from the first to the last.", MaxDumps, len(all))
}

// Options are the texts of a page beside the profile.
type Options struct {
	Title    string   // "" for "heap"
	Subtitle string   // what the profile is of
	Notes    []string // remarks for the reader, such as which lines were lost
}

// Write writes the page of a profile, which has 1 to MaxDumps dumps. Growth is computed
// from the complete dumps.
func Write(w io.Writer, p *profile.Profile, o Options) error {
	if n := len(p.Dumps()); n == 0 || n > MaxDumps {
		return fmt.Errorf("report: %d dumps, expected 1 to %d", n, MaxDumps)
	}
	if o.Title == "" {
		o.Title = "heap"
	}
	data, err := json.Marshal(newData(p, &o)) // which escapes <, > and &
	if err != nil {
		return err
	}
	tmpl, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	title := template.HTMLEscapeString(printable.Text(o.Title))
	return tmpl.Execute(w, map[string]string{"Title": title, "Data": string(data), "Style": style, "StyleHash": hash(style),
		"Script": script, "ScriptHash": hash(script)})
}

// hash returns the hash source of a text in a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// data is the input of the script. Call paths are a tree from the outermost frame
// inward: node 0 is its root, and a node's parent has a lower number.
type data struct {
	Subtitle    string      `json:"subtitle"`
	Notes       []string    `json:"notes"`
	Dumps       []dump      `json:"dumps"`
	Sites       [][4]any    `json:"sites"` // function, file, line, module
	Parent      []int       `json:"parent"`
	Site        []int       `json:"site"`
	Growth      *[2][]grown `json:"growth,omitempty"` // by bytes, by count
	GrowthTotal *[2]grown   `json:"growthTotal,omitempty"`
}

type dump struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"` // the same, short
	Time    string   `json:"time"`
	Bytes   uint64   `json:"bytes"`
	Count   uint64   `json:"count"`
	Warning string   `json:"warning"`
	Values  []uint64 `json:"values"` // node, bytes, count; node, …
}

type grown struct {
	Stack  []int    `json:"stack"` // sites, innermost first
	Points []uint64 `json:"points"`
	Slope  float64  `json:"slope"`
	Every  bool     `json:"every"`
}

// largestExact is the largest whole number that the script's numbers hold exactly.
const largestExact = 1<<53 - 1

func newData(p *profile.Profile, o *Options) *data {
	d := &data{Subtitle: printable.Text(o.Subtitle), Notes: []string{}, Parent: []int{-1}, Site: []int{-1}}
	for _, n := range o.Notes {
		d.Notes = append(d.Notes, printable.Text(n))
	}
	sites := &pageSites{data: d, numbers: map[profile.Site]int{}}
	rounded := false
	var complete []int // indexes of dumps
	for i, from := range p.Dumps() {
		total := p.Total(i)
		rounded = rounded || total.Bytes > largestExact
		d.Dumps = append(d.Dumps, newDump(from, i, total))
		if from.Complete() {
			complete = append(complete, i)
		}
	}
	if rounded {
		d.Notes = append(d.Notes, "Sums above 2^53 are rounded on this page.")
	}
	d.addRows(p, sites)
	if len(complete) > 1 { // what the others lack is not known
		d.Growth, d.GrowthTotal = &[2][]grown{}, &[2]grown{}
		for i, w := range []profile.Weight{profile.Bytes, profile.Count} {
			trend := p.Growth(w)
			d.GrowthTotal[i] = newGrown(trend.Total, []int{}, complete, func(dump int) uint64 { return w.Of(p.Total(dump)) })
			d.Growth[i] = []grown{}
			for _, g := range trend.Rows[:min(maxGrowth, len(trend.Rows))] {
				d.Growth[i] = append(d.Growth[i], newGrown(g, sites.stack(g.Row), complete, func(dump int) uint64 { return w.Of(g.At(dump)) }))
			}
		}
	}
	return d
}

func newDump(from *profile.Dump, index int, total profile.Value) dump {
	out := dump{Name: printable.Text(from.Name), Label: fmt.Sprint(index + 1), Bytes: total.Bytes, Count: total.Count,
		Warning: warning(from), Values: []uint64{}}
	if out.Name == "" {
		out.Name = fmt.Sprintf("dump %d", index+1)
	}
	if from.Timed {
		out.Time = from.Time.Round(time.Millisecond).String()
	}
	return out
}

// warning describes the known missing part of a dump.
func warning(d *profile.Dump) string {
	var parts []string
	if a := d.Announced; a.HasRecords && uint64(d.Records) != a.Records {
		parts = append(parts, fmt.Sprintf("%d of %d records were read", d.Records, a.Records))
	}
	if d.Cut {
		parts = append(parts, "the dump was never closed")
	}
	if n := d.Loss.NoSize; n > 0 {
		parts = append(parts, fmt.Sprintf("%d records were cut before their size and count as 0 bytes", n))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Incomplete: " + strings.Join(parts, "; ") + "."
}

func newGrown(g profile.Growth, stack, dumps []int, value func(dump int) uint64) grown {
	out := grown{Stack: stack, Slope: g.Slope, Every: g.Every}
	for _, dump := range dumps {
		out.Points = append(out.Points, value(dump))
	}
	return out
}

// pageSites numbers the sites that are on the page.
type pageSites struct {
	data    *data
	numbers map[profile.Site]int
}

// stack returns the sites of a row, innermost first.
func (p *pageSites) stack(row profile.Row) []int {
	list := []int{}
	for _, s := range row.Stack() {
		n, known := p.numbers[s]
		if !known {
			n = len(p.data.Sites)
			p.numbers[s] = n
			p.data.Sites = append(p.data.Sites, [4]any{printable.Text(s.Func), printable.Text(s.File), s.Line, printable.Text(s.Module)})
		}
		list = append(list, n)
	}
	return list
}

// addRows adds the call paths. Beyond MaxPaths, those that never hold much become one.
func (d *data) addRows(p *profile.Profile, sites *pageSites) {
	rows := slices.Collect(p.Rows())
	var rest []profile.Row
	if len(rows) > MaxPaths {
		sortByMost(rows)
		rows, rest = rows[:MaxPaths], rows[MaxPaths:]
		d.Notes = append(d.Notes, fmt.Sprintf("The page holds the %d call paths that hold most; the other %d are shown as one.", MaxPaths, len(rest)))
	}
	nodes := map[edge]int{}
	for _, row := range rows {
		node := 0
		for _, s := range slices.Backward(sites.stack(row)) {
			node = d.child(nodes, node, s)
		}
		if node == 0 { // no frame is known
			node = d.child(nodes, 0, d.extraSite("(no frames)"))
		}
		for i, v := range row.Values() {
			d.put(i, node, v)
		}
	}
	if len(rest) == 0 {
		return
	}
	other := make([]profile.Value, len(d.Dumps))
	for _, row := range rest {
		for i, v := range row.Values() {
			other[i].Add(v)
		}
	}
	node := d.child(nodes, 0, d.extraSite(profile.Other))
	for i, v := range other {
		d.put(i, node, v)
	}
}

// sortByMost sorts rows by the most bytes, then allocations, that they ever hold.
func sortByMost(rows []profile.Row) {
	type heavy struct {
		most profile.Value
		row  profile.Row
	}
	list := make([]heavy, len(rows))
	for i, row := range rows {
		list[i].row = row
		for _, v := range row.Values() {
			most := &list[i].most
			most.Bytes, most.Count = max(most.Bytes, v.Bytes), max(most.Count, v.Count)
		}
	}
	slices.SortStableFunc(list, func(a, b heavy) int {
		return cmp.Or(cmp.Compare(b.most.Bytes, a.most.Bytes), cmp.Compare(b.most.Count, a.most.Count))
	})
	for i := range list {
		rows[i] = list[i].row
	}
}

// edge is a call site below a node.
type edge struct{ parent, site int }

// child returns the node of a site below a node.
func (d *data) child(nodes map[edge]int, parent, site int) int {
	n, ok := nodes[edge{parent, site}]
	if !ok {
		n = len(d.Parent)
		nodes[edge{parent, site}] = n
		d.Parent, d.Site = append(d.Parent, parent), append(d.Site, site)
	}
	return n
}

// put adds what a node holds in a dump.
func (d *data) put(dump, node int, v profile.Value) {
	if !v.IsZero() {
		d.Dumps[dump].Values = append(d.Dumps[dump].Values, uint64(node), v.Bytes, v.Count)
	}
}

// extraSite returns the number of a site that is only a name.
func (d *data) extraSite(name string) int {
	for i, s := range d.Sites {
		if s[0] == name {
			return i
		}
	}
	d.Sites = append(d.Sites, [4]any{name, "", 0, ""})
	return len(d.Sites) - 1
}

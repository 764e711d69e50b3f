package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
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

// MaxPaths is how many call paths a page holds. The rest, those that never hold much,
// are added up as one.
const MaxPaths = 50_000

// maxGrowth is how many call paths the growth page lists.
const maxGrowth = 200

// MaxDumps is how many dumps a page holds.
const MaxDumps = 500

// SomeDumps returns the dumps that a page holds of these: all, or of more than MaxDumps
// some, evenly, the first and the last among them. note says which, "" if all.
func SomeDumps(all []*profile.Dump) (some []*profile.Dump, note string) {
	if len(all) <= MaxDumps {
		return all, ""
	}
	for i := range MaxDumps {
		some = append(some, all[i*(len(all)-1)/(MaxDumps-1)])
	}
	return some, fmt.Sprintf("The page holds %d of %d dumps, evenly from the first to the last.", MaxDumps, len(all))
}

// Options are the texts of a page beside the table.
type Options struct {
	Title    string   // "" for "heap"
	Subtitle string   // what the profile is of
	Notes    []string // remarks for the reader, such as which lines were lost
}

// Write writes the page of a table, which has one dump or more.
func Write(w io.Writer, t *profile.Table, o Options) error {
	if n := len(t.Dumps); n == 0 || n > MaxDumps {
		return fmt.Errorf("report: %d dumps, expected 1 to %d", n, MaxDumps)
	}
	if o.Title == "" {
		o.Title = "heap"
	}
	data, err := json.Marshal(newData(t, &o)) // which escapes <, > and &
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

// hash returns what a Content-Security-Policy calls a text by.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// data is what the script draws. Call paths are a tree from the outermost frame
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

func newData(t *profile.Table, o *Options) *data {
	d := &data{Subtitle: printable.Text(o.Subtitle), Notes: []string{}, Parent: []int{-1}, Site: []int{-1}}
	for _, n := range o.Notes {
		d.Notes = append(d.Notes, printable.Text(n))
	}
	p := &pageSites{data: d, table: t, numbers: map[profile.SiteID]int{}}
	rounded := false
	for i, from := range t.Dumps {
		total := t.Total[i]
		rounded = rounded || total.Bytes > largestExact
		d.Dumps = append(d.Dumps, newDump(from, i, total))
	}
	if rounded {
		d.Notes = append(d.Notes, "Sums above 2^53 are rounded on this page.")
	}
	d.addRows(t, p)
	if t := t.Complete(); len(t.Dumps) > 1 { // of others nobody knows what they lack
		d.Growth, d.GrowthTotal = &[2][]grown{}, &[2]grown{}
		for i, w := range []profile.Weight{profile.Bytes, profile.Count} {
			d.GrowthTotal[i] = newGrown(t.TotalGrowth(w), w, t.Total, []int{})
			d.Growth[i] = []grown{}
			for _, g := range t.Growth(w) {
				if len(d.Growth[i]) == maxGrowth {
					break
				}
				d.Growth[i] = append(d.Growth[i], newGrown(g, w, t.Row(g.Row).Points(len(t.Dumps)), p.stack(g.Row)))
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
	if from.Timed && from.Time <= math.MaxInt64/1000 {
		out.Time = (time.Duration(from.Time) * time.Microsecond).Round(time.Millisecond).String()
	}
	return out
}

// warning returns what of a dump is known to be missing.
func warning(d *profile.Dump) string {
	var parts []string
	if d.HasAnnouncedRecords && uint64(d.Records) != d.AnnouncedRecords {
		parts = append(parts, fmt.Sprintf("%d of %d records were read", d.Records, d.AnnouncedRecords))
	}
	if d.Cut {
		parts = append(parts, "the dump was never closed")
	}
	if d.NoSize > 0 {
		parts = append(parts, fmt.Sprintf("%d records were cut before their size and count as 0 bytes", d.NoSize))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Incomplete: " + strings.Join(parts, "; ") + "."
}

func newGrown(g profile.Growth, w profile.Weight, points []profile.Value, stack []int) grown {
	out := grown{Stack: stack, Slope: g.Slope, Every: g.Every}
	for _, p := range points {
		out.Points = append(out.Points, w.Of(p))
	}
	return out
}

// pageSites numbers the sites that are on the page.
type pageSites struct {
	data    *data
	table   *profile.Table
	numbers map[profile.SiteID]int
}

// stack returns the sites of a row, innermost first.
func (p *pageSites) stack(row int) []int {
	list := []int{}
	for _, id := range p.table.AppendStack(nil, row) {
		n, known := p.numbers[id]
		if !known {
			n = len(p.data.Sites)
			p.numbers[id] = n
			s := p.table.Site(id)
			p.data.Sites = append(p.data.Sites, [4]any{printable.Text(s.Func), printable.Text(s.File), s.Line, printable.Text(s.Module)})
		}
		list = append(list, n)
	}
	return list
}

// addRows adds the call paths. Past MaxPaths, those that never hold much become one.
func (d *data) addRows(t *profile.Table, p *pageSites) {
	other := make([]profile.Value, len(t.Dumps))
	var rows, rest []int
	if t.Rows() > MaxPaths {
		rows = t.Heaviest(profile.Bytes, 0)
		rows, rest = rows[:MaxPaths], rows[MaxPaths:]
		for _, row := range rest {
			for i, v := range t.Row(row).Values() {
				other[i].Add(v)
			}
		}
		d.Notes = append(d.Notes, fmt.Sprintf("The page holds the %d call paths that hold most; the other %d are shown as one.", MaxPaths, len(rest)))
	} else {
		for row := range t.Rows() {
			rows = append(rows, row)
		}
	}
	type edge struct{ parent, site int }
	nodes := map[edge]int{}
	child := func(parent, site int) int {
		n, ok := nodes[edge{parent, site}]
		if !ok {
			n = len(d.Parent)
			nodes[edge{parent, site}] = n
			d.Parent, d.Site = append(d.Parent, parent), append(d.Site, site)
		}
		return n
	}
	put := func(node int, values iter.Seq2[int, profile.Value]) {
		for i, v := range values {
			if !v.IsZero() {
				d.Dumps[i].Values = append(d.Dumps[i].Values, uint64(node), v.Bytes, v.Count)
			}
		}
	}
	for _, row := range rows {
		node := 0
		for _, s := range slices.Backward(p.stack(row)) {
			node = child(node, s)
		}
		if node == 0 { // no frame is known
			node = child(0, d.extraSite("(no frames)"))
		}
		put(node, t.Row(row).Values())
	}
	if len(rest) > 0 {
		put(child(0, d.extraSite(profile.Other)), slices.All(other))
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

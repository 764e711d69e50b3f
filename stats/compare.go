package stats

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Comparison sets two dumps side by side, by call path. Both must come from the same
// program at the same load address: nothing else makes their addresses the same.
type Comparison struct {
	Version int    `json:"version"`
	A       Side   `json:"a"`
	B       Side   `json:"b"`
	Growth  Growth `json:"growth"` // of B over A, in all
	// Paths are the call paths that changed, the one that grew most bytes first.
	Paths []PathGrowth `json:"paths"`
	New   int          `json:"new_paths"`  // of Paths: not in A
	Gone  int          `json:"gone_paths"` // not in B
}

// Side is one of two dumps.
type Side struct {
	Name    string `json:"name"`
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes"`
	Paths   int    `json:"paths"`
}

// Growth is what B has more than A; negative if less.
type Growth struct {
	Bytes int64 `json:"bytes"`
	Count int64 `json:"count"`
}

// PathGrowth is a call path in both dumps.
type PathGrowth struct {
	Addresses []string `json:"addresses"` // as in Spot
	BytesA    uint64   `json:"bytes_a"`
	BytesB    uint64   `json:"bytes_b"`
	CountA    uint64   `json:"count_a"`
	CountB    uint64   `json:"count_b"`
	Growth    Growth   `json:"growth"`

	path *path
}

func (c *Collector) side(name string) Side {
	return Side{Name: name, Records: c.records, Bytes: c.payload, Paths: len(c.order)}
}

// Compare says how dump b differs from dump a.
func Compare(a, b *Collector, nameA, nameB string) *Comparison {
	out := &Comparison{Version: ReportVersion, A: a.side(nameA), B: b.side(nameB), Paths: []PathGrowth{}}
	out.Growth = Growth{int64(b.payload - a.payload), int64(b.records - a.records)}
	all := map[string]*PathGrowth{}
	var key []byte
	of := func(p *path) *PathGrowth {
		key = key[:0]
		for n := range p.pcs {
			key = binary.LittleEndian.AppendUint64(key, p.id(n))
		}
		g := all[string(key)]
		if g == nil {
			g = &PathGrowth{path: p}
			all[string(key)] = g
		}
		return g
	}
	for _, p := range a.order {
		g := of(p)
		g.BytesA, g.CountA = satAdd(g.BytesA, p.bytes), g.CountA+p.count
	}
	for _, p := range b.order {
		g := of(p)
		g.BytesB, g.CountB = satAdd(g.BytesB, p.bytes), g.CountB+p.count
	}
	for _, g := range all {
		g.Growth = Growth{int64(g.BytesB - g.BytesA), int64(g.CountB - g.CountA)}
		if g.Growth == (Growth{}) {
			continue
		}
		if g.CountA == 0 {
			out.New++
		}
		if g.CountB == 0 {
			out.Gone++
		}
		g.Addresses = g.path.addresses()
		out.Paths = append(out.Paths, *g)
	}
	slices.SortFunc(out.Paths, func(x, y PathGrowth) int {
		return cmp.Or(cmp.Compare(y.Growth.Bytes, x.Growth.Bytes), cmp.Compare(y.Growth.Count, x.Growth.Count),
			slices.Compare(x.Addresses, y.Addresses))
	})
	return out
}

// Sections is the comparison as tables, of at most top call paths each.
func (c *Comparison) Sections(top int) []Section {
	total := Table{ID: "total", Head: []string{"", "A", "B", "growth"}, Rows: [][]any{
		{"allocations", c.A.Records, c.B.Records, signed(c.Growth.Count)},
		{"bytes", c.A.Bytes, c.B.Bytes, signed(c.Growth.Bytes)},
		{"call paths", c.A.Paths, c.B.Paths, signed(int64(c.B.Paths - c.A.Paths))},
	}}
	s := Section{ID: "compare", Title: "Growth", Tables: []Table{total}, Notes: []string{
		"A: " + c.A.Name, "B: " + c.B.Name,
		fmt.Sprintf("%s changed: %s new in B, %s gone since A.", plural(len(c.Paths), "call path", "call paths"), text(c.New), text(c.Gone))}}
	if c.A.Paths > 0 && c.New == c.B.Paths && c.Gone == c.A.Paths {
		s.Notes = append(s.Notes, "Not one call path is in both: were these programs loaded at different addresses, or built anew?")
	}
	byBytes := Table{ID: "by-bytes", Title: c.heading("bytes", top), Head: []string{"#", "growth", "bytes in A", "count", "count in A", "call path, innermost first"}}
	for i, g := range c.Paths[:min(top, len(c.Paths))] {
		byBytes.Rows = append(byBytes.Rows, g.row(i+1))
	}
	byCount := Table{ID: "by-count", Title: c.heading("count", top), Head: byBytes.Head}
	paths := slices.Clone(c.Paths)
	slices.SortStableFunc(paths, func(x, y PathGrowth) int { return cmp.Compare(y.Growth.Count, x.Growth.Count) })
	for i, g := range paths[:min(top, len(paths))] {
		byCount.Rows = append(byCount.Rows, g.row(i+1))
	}
	if len(byBytes.Rows) > 0 {
		s.Tables = append(s.Tables, byBytes, byCount)
	}
	return []Section{s}
}

func (c *Comparison) heading(by string, top int) string {
	if len(c.Paths) <= top {
		return fmt.Sprintf("Call paths by growth in %s", by)
	}
	return fmt.Sprintf("Call paths by growth in %s, the first %d of %s", by, top, text(len(c.Paths)))
}

func (g *PathGrowth) row(rank int) []any {
	cells := []any{fmt.Sprint(rank), signed(g.Growth.Bytes), g.BytesA, signed(g.Growth.Count), g.CountA, list(g.Addresses)}
	if len(g.Addresses) == 0 {
		cells[5] = "(no frames)"
	}
	return cells
}

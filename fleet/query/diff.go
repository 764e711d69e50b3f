package query

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// Change is a call path that was compared between two builds.
type Change struct {
	Before   float64 `json:"before"` // mean bytes per device
	After    float64 `json:"after"`
	Had      int64   `json:"had"`  // devices that hold it, of Diff.DevicesBefore
	Have     int64   `json:"have"` // of Diff.DevicesAfter
	Kind     string  `json:"kind"` // new, gone, grown or shrunk
	P        float64 `json:"p"`    // probability that any path differs at least as much although no path changed
	Evidence string  `json:"evidence"`
	Stack    []Frame `json:"stack"`              // innermost first
	PathOld  int64   `json:"path_before,string"` // -1 if there is none
	PathNew  int64   `json:"path_after,string"`  // -1 if there is none
	Chain    string  `json:"chain"`              // key by which the paths were matched
}

// Delta returns the difference of the bytes per device.
func (c *Change) Delta() float64 { return c.After - c.Before }

// Words for the evidence of a change.
const (
	Changed    = "changed"  // P is at most 0.0001
	Perhaps    = "probably" // P is at most 0.01
	NoEvidence = ""         // the difference may be random
)

// Diff is the result of [DB.Diff].
type Diff struct {
	BuildBefore   string  `json:"build_before"`
	BuildAfter    string  `json:"build_after"`
	DevicesBefore int64   `json:"devices_before"`
	DevicesAfter  int64   `json:"devices_after"`
	Hours         float64 `json:"hours"`  // the dumps compared have an uptime from Hours/2 to Hours; negative if no uptime is known
	Before        float64 `json:"before"` // bytes per device, of all paths
	After         float64 `json:"after"`
	Paths         int     `json:"paths"`   // compared
	ByName        bool    `json:"by_name"` // paths were matched by the names of their functions, else by address
	// Comparable is false if paths were matched by address and those that match hold less than half
	// of the bytes: the builds have their functions at other addresses. There are no Rows then.
	Comparable bool `json:"comparable"`
	// Rows holds first the paths that changed, then the paths that probably changed, then
	// the others, each group sorted by growth, the largest first.
	Rows []Change `json:"rows"`
}

// Growth returns the growth, in bytes per device, of the paths that changed and grew.
func (d *Diff) Growth() (sum float64) {
	for _, r := range d.Rows {
		if r.Evidence == Changed {
			sum += max(0, r.Delta())
		}
	}
	return sum
}

// Diff compares two builds. (fleet/docs/fleet-leaks.md)
func (d *DB) Diff(ctx context.Context, before, after string, o Scope) (*Diff, error) {
	if before == after {
		return nil, fmt.Errorf("query: a build cannot be compared with itself")
	}
	o.Builds = []string{before, after}
	f := &Diff{BuildBefore: before, BuildAfter: after}
	if err := d.with(ctx, o, allTables, func(s *session) error { return s.diff(ctx, f) }); err != nil {
		return nil, err
	}
	return f, nil
}

func (s *session) diff(ctx context.Context, d *Diff) error {
	defer s.drop("steady", "compared", "wanted", "addresses", "keys")
	if err := s.tables(ctx, "steady", "compared"); err != nil {
		return err
	}
	hours, err := rows[struct {
		Build string
		Hours float64
	}](ctx, s, "select build, max(hours) from compared group by build")
	if err != nil {
		return err
	}
	for _, b := range []string{d.BuildBefore, d.BuildAfter} {
		found := false
		for _, h := range hours {
			found, d.Hours = found || h.Build == b, h.Hours
		}
		if !found {
			return fmt.Errorf("build %s: %w", b, ErrNoDump)
		}
	}
	if err := s.define(ctx, "wanted", "select distinct path from paths"); err != nil {
		return err
	}
	if err := s.tables(ctx, "addresses", "keys"); err != nil {
		return err
	}
	known, err := rows[struct{ Builds int64 }](ctx, s, "select count(distinct build) from keys where known = 1")
	if err != nil {
		return err
	}
	d.ByName = known[0].Builds == 2
	if err := s.changes(ctx, d); err != nil {
		return err
	}
	var paths []int64
	for _, r := range d.Rows {
		paths = append(paths, max(r.PathNew, r.PathOld))
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		if paths[i] = r.PathNew; r.PathNew < 0 {
			paths[i] = r.PathOld
		}
	}
	stacks, err := s.stacks(ctx, paths)
	for i := range d.Rows {
		build := d.BuildAfter
		if d.Rows[i].PathNew < 0 {
			build = d.BuildBefore
		}
		d.Rows[i].Stack = stacks[pathOf{build, paths[i]}]
	}
	return err
}

// percentiles is the number of percentiles that diff.sql compares.
const percentiles = 5

// changes sets d.Rows.
func (s *session) changes(ctx context.Context, d *Diff) error {
	type row struct {
		Key          string
		N1, N2       int64
		Mean1, Mean2 float64
		With1, With2 int64
		Above        [2 * percentiles]int64 // by percentile: before, after
		Path1, Path2 int64
	}
	q := strings.NewReplacer("'BEFORE'", s.quote(d.BuildBefore), "'AFTER'", s.quote(d.BuildAfter)).Replace(text("diff"))
	list, err := rows[row](ctx, s, q)
	if err != nil {
		return fmt.Errorf("query diff: %w", err)
	}
	d.Paths = len(list)
	var matched [2]float64 // bytes per device of paths that both builds have
	rare := 0.0            // paths that some devices have and others have not
	for _, r := range list {
		if d.Before, d.After = d.Before+r.Mean1, d.After+r.Mean2; r.Path1 >= 0 && r.Path2 >= 0 {
			matched[0], matched[1] = matched[0]+r.Mean1, matched[1]+r.Mean2
		}
		if n := r.With1 + r.With2; n > 0 && n < r.N1+r.N2 {
			rare++
		}
		d.DevicesBefore, d.DevicesAfter = r.N1, r.N2
	}
	if d.Comparable = d.ByName || matched[0] >= d.Before/2 || matched[1] >= d.After/2; !d.Comparable {
		return nil
	}
	byEvidence := map[string][]Change{}
	for _, r := range list {
		c := Change{Before: r.Mean1, After: r.Mean2, Had: r.With1, Have: r.With2, Chain: r.Key, PathOld: r.Path1, PathNew: r.Path2}
		p := 1.0
		for i := range percentiles {
			p = min(p, fisher(r.Above[2*i], r.N1, r.Above[2*i+1], r.N2))
		}
		c.P = min(1, percentiles*p*float64(len(list)), 2*rare*fisher(r.With1, r.N1, r.With2, r.N2))
		switch {
		case r.With1 == 0:
			c.Kind = "new"
		case r.With2 == 0:
			c.Kind = "gone"
		case c.After > c.Before:
			c.Kind = "grown"
		default:
			c.Kind = "shrunk"
		}
		switch {
		case c.P <= 1e-4:
			c.Evidence = Changed
		case c.P <= 1e-2:
			c.Evidence = Perhaps
		}
		byEvidence[c.Evidence] = append(byEvidence[c.Evidence], c)
	}
	for _, e := range []string{Changed, Perhaps, NoEvidence} {
		d.Rows = append(d.Rows, byEvidence[e]...)
	}
	return nil
}

// fisher returns the two-sided p-value of Fisher's exact test: the probability that the shares a
// of n and b of m differ at least this much if both are from one population.
func fisher(a, n, b, m int64) float64 {
	k := a + b
	if n == 0 || m == 0 || k == 0 || k == n+m {
		return 1
	}
	choose := func(n, k int64) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		y, _ := math.Lgamma(float64(k + 1))
		z, _ := math.Lgamma(float64(n - k + 1))
		return x - y - z
	}
	all := choose(n+m, k)
	at := func(i int64) float64 { return math.Exp(choose(n, i) + choose(m, k-i) - all) }
	low, high := max(0, k-m), min(n, k)
	var below, above float64 // P(i ≤ a), P(i ≥ a)
	for i := low; i <= a; i++ {
		below += at(i)
	}
	for i := a; i <= high; i++ {
		above += at(i)
	}
	return min(1, 2*min(below, above))
}

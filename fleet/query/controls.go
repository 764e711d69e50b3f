package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
)

// minControls is the least number of devices that got the build after, and of those that stayed on the build before
// meanwhile, for a comparison of their changes.
const minControls = 8

// change is what a device held with a path of a build, in bytes, before and after its update; of a device that stayed, before
// and after the median of the updates.
type change struct {
	Device        string
	Updated       int64
	Build         string
	Path          int64
	Before, After float64
}

// never is the time in µs of an update that did not happen.
const never = 1 << 62

// span is a time of updates, in µs: of devices that were updated from From to To, the dumps before From are compared with those from To to End,
// and so are those of the devices that were not updated until End, the controls.
type span struct{ From, To, End int64 }

// window returns the span that has the most devices in the smaller group, times the shorter time before or after. at are the times of the
// updates, after the last dump for none, and first is that of the first dump. ok is false if there are too few devices.
func window(at []float64, first float64) (w span, ok bool) {
	slices.Sort(at)
	edges := make([]int, 0, len(at)) // stages begin after the longest times without an update
	for i := 1; i < len(at); i++ {
		edges = append(edges, i)
	}
	slices.SortFunc(edges, func(a, b int) int { return cmp.Compare(at[b]-at[b-1], at[a]-at[a-1]) })
	edges = append(edges[:min(len(edges), 32)], 0)
	best := 0.0
	for _, i := range edges {
		for _, j := range edges {
			for _, k := range edges {
				if n := min(j-i, len(at)-k); n >= minControls && k >= j {
					if v := float64(n) * min(at[i]-first, at[k]-at[j-1]); v > best {
						w, best = span{int64(at[i]), int64(at[j-1]), int64(at[k])}, v
					}
				}
			}
		}
	}
	return w, best > 0
}

// controls compares the devices that were updated with those that were not, at the same time: what changed on both is no change
// of the build. It raises the p-values of the rows.
func (s *session) controls(ctx context.Context, d *Diff, list []*matched) error {
	// The time of receipt; of logs that were put in at once, that of the device.
	if err := s.tables(ctx, "dated"); err != nil {
		return err
	}
	ran, err := rows[struct{ First, Last, Old, New int64 }](ctx, s, fmt.Sprintf("select min(at_us) as f, max(at_us) as l, sum(case when build = %s then 1 else 0 end) as o, min(case when build = %s then at_us else %d end) as n from dated group by device",
		s.quote(d.BuildBefore), s.quote(d.BuildAfter), never))
	if err != nil {
		return err
	}
	var updates []float64
	first, last := math.Inf(1), 0.0
	for _, r := range ran {
		if first, last = min(first, float64(r.First)), max(last, float64(r.Last)); r.Old > 0 {
			updates = append(updates, float64(r.New))
		}
	}
	for i, at := range updates {
		updates[i] = min(at, last+1)
	}
	w, ok := window(updates, first)
	if !ok {
		return nil
	}
	if err := s.define(ctx, "windowed", text("windowed", "{after}", s.quote(d.BuildAfter), "{never}", fmt.Sprint(never),
		"{from}", fmt.Sprint(w.From), "{to}", fmt.Sprint(w.To), "{end}", fmt.Sprint(w.End))); err != nil {
		return err
	}
	if err := s.tables(ctx, "whole"); err != nil {
		return err
	}
	n, err := rows[struct{ Updated, Devices int64 }](ctx, s, "select updated, count(*) as n from whole group by updated")
	if err != nil {
		return err
	}
	var devices [2]int64 // that stayed, that were updated
	for _, r := range n {
		devices[r.Updated] = r.Devices
	}
	if min(devices[0], devices[1]) < minControls {
		return nil
	}
	changes, err := rows[change](ctx, s, text("changes"))
	if err != nil {
		return fmt.Errorf("query changes: %w", err)
	}
	d.Controls, d.Updated = devices[0], devices[1]
	of, err := s.rowOf(ctx, d, list, changes)
	if err != nil {
		return err
	}
	d.against(list, of, changes, w.End <= int64(last))
	return nil
}

// rowOf returns the indices in list of the paths of changes. Dumps of equal uptime may lack the path of one build.
func (s *session) rowOf(ctx context.Context, d *Diff, list []*matched, changes []change) (map[pathOf]int, error) {
	byKey := map[string]int{}
	for i, m := range list {
		byKey[m.key] = i
	}
	paths := map[pathOf]*heldPath{}
	for _, c := range changes {
		paths[pathOf{c.Build, c.Path}] = &heldPath{path: c.Path}
	}
	keys := slices.Collect(maps.Keys(paths))
	err := s.stacks(ctx, len(keys), func(i int) (pathOf, *[]Frame) { return keys[i], &paths[keys[i]].stack })
	of := map[pathOf]int{}
	for k, p := range paths {
		if i, ok := byKey[d.key(p)]; ok {
			of[k] = i
		}
	}
	return of, err
}

// against sets the p-values of the differences between the changes of two groups of devices. of has the indices in list of the paths. If
// they are compared early, before the controls were updated, this decides on the paths that had changed by half as much.
func (d *Diff) against(list []*matched, of map[pathOf]int, changes []change, early bool) {
	sums := make([]map[string]float64, len(list))
	updated := map[string]int64{}
	for _, c := range changes {
		if i, ok := of[pathOf{c.Build, c.Path}]; ok {
			if sums[i] == nil {
				sums[i] = map[string]float64{}
			}
			sums[i][c.Device] += c.After - c.Before
			updated[c.Device] = c.Updated
		}
	}
	n := [2]int64{d.Controls, d.Updated}
	all := newTests(n)
	counts := make([][][2]int64, len(list))
	for i, sum := range sums {
		counts[i] = exceeds(sum, updated, n)
		for _, c := range counts[i] {
			all.add(c)
		}
	}
	row := map[string]int{}
	for i, m := range list {
		row[m.key] = i
	}
	for k := range d.Rows {
		c := &d.Rows[k]
		i := row[c.Chain]
		grown := 0.0 // meanwhile, per updated device
		for device, v := range sums[i] {
			grown += v * float64(updated[device]) / float64(d.Updated)
		}
		if delta := c.Delta(); early && grown*delta < delta*delta/2 {
			continue
		}
		p := 1.0
		for _, n := range counts[i] {
			p = min(p, all.alone(n))
		}
		p = all.any(p)
		c.PControls = &p
		c.P = max(c.P, p)
		c.setEvidence()
	}
	d.sort()
}

// exceeds returns how many devices of each group changed by more than each percentile of all, upward and downward. Devices without
// the path did not change.
func exceeds(sum map[string]float64, updated map[string]int64, n [2]int64) (counts [][2]int64) {
	for _, sign := range []float64{1, -1} {
		var changes sample
		for device, v := range sum {
			if v = math.Round(sign*v*1000) / 1000; v > 0 {
				changes[updated[device]] = append(changes[updated[device]], v)
			}
		}
		slices.Sort(changes[0])
		slices.Sort(changes[1])
		limits := changes.limits(n)
		if int64(2*(len(changes[0])+len(changes[1]))) <= n[0]+n[1] { // the median did not change this way
			limits = append(limits, 0)
		}
		for _, limit := range limits {
			counts = append(counts, changes.above(limit))
		}
	}
	return counts
}

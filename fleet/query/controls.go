package query

import (
	"context"
	"fmt"
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

// controls compares the devices that were updated with those that were not, at the same time: what changed on both is no change
// of the build. It raises the p-values of the rows.
func (s *session) controls(ctx context.Context, d *Diff, list []*matched) error {
	// The time of receipt; of logs that were put in at once, that of the device.
	if err := s.tables(ctx, "dated"); err != nil {
		return err
	}
	ran, err := rows[struct {
		Device   string
		Old, New int64
	}](ctx, s, fmt.Sprintf("select device, sum(case when build = %[1]s then 1 else 0 end) as o, coalesce(min(case when build = %[2]s then at_us end), -1) as n from dated group by device order by device",
		s.quote(d.BuildBefore), s.quote(d.BuildAfter)))
	if err != nil {
		return err
	}
	var updates []float64
	stayed := 0
	for _, r := range ran {
		switch {
		case r.Old > 0 && r.New >= 0:
			updates = append(updates, float64(r.New))
		case r.Old > 0:
			stayed++
		}
	}
	if len(updates) < minControls || stayed < minControls {
		return nil
	}
	cut := int64(quantile(updates, 0.5))
	if err := s.define(ctx, "windowed", fmt.Sprintf(`select s.device as device, s.boot as boot, s.dump as dump, s.build as build, s.q as q, u.updated as updated,
  case when s.build = %[1]s or u.updated = 0 and s.late = 1 then 1 else 0 end as later
from (
  select s.device as device, s.boot as boot, s.dump as dump, s.build as build, s.q as q, d.late as late
  from steady s join (select device, boot, dump, case when at_us >= %[2]d then 1 else 0 end as late from dated) d
  on d.device = s.device and d.boot = s.boot and d.dump = s.dump) s
join (select device, max(case when build = %[1]s then 1 else 0 end) as updated from dumps group by device) u on u.device = s.device`,
		s.quote(d.BuildAfter), cut)); err != nil {
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
	d.against(list, changes)
	return nil
}

// against sets the p-values of the differences between the changes of two groups of devices.
func (d *Diff) against(list []*matched, changes []change) {
	of := [2]map[int64]int{{}, {}} // row by path
	for i, m := range list {
		for side, paths := range m.paths {
			for _, p := range paths {
				of[side][p.path] = i
			}
		}
	}
	sums := make([]map[string]float64, len(list))
	updated := map[string]int64{}
	for _, c := range changes {
		side := 0
		if c.Build == d.BuildAfter {
			side = 1
		}
		if i, ok := of[side][c.Path]; ok {
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
	byChain := map[string]float64{}
	for i, m := range list {
		p := 1.0
		for _, c := range counts[i] {
			p = min(p, all.alone(c))
		}
		byChain[m.key] = all.any(p)
	}
	for i := range d.Rows {
		c := &d.Rows[i]
		p := byChain[c.Chain]
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

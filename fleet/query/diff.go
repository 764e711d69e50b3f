package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Change is a call path that was compared between two builds.
type Change struct {
	Before float64 `json:"before"` // mean bytes per device
	After  float64 `json:"after"`
	Had    int64   `json:"had"`    // devices that hold it, of Diff.DevicesBefore
	Have   int64   `json:"have"`   // of Diff.DevicesAfter
	Kind   string  `json:"kind"`   // new, gone, grown or shrunk
	P      float64 `json:"p"`      // probability that any path differs at least as much although no path changed
	PHeld  float64 `json:"p_held"` // probability that Had and Have differ at least as much although this path did not change
	// PControls is the probability that the changes on the devices that got the build after differ so from those on the devices
	// that stayed on the build before meanwhile; nil if there are too few. P is at least that.
	PControls *float64 `json:"p_controls"`
	Evidence  string   `json:"evidence"`
	Stack     []Frame  `json:"stack"`              // innermost first
	PathOld   int64    `json:"path_before,string"` // -1 if there is none
	PathNew   int64    `json:"path_after,string"`  // -1 if there is none
	Chain     string   `json:"chain"`              // key by which the paths were matched
}

// Delta returns the difference of the bytes per device.
func (c *Change) Delta() float64 { return c.After - c.Before }

// Words for the evidence of a change.
const (
	Changed    = "changed"  // P is at most 0.0001
	Perhaps    = "probably" // P is at most 0.01
	Possibly   = "possibly" // P is at most 0.1, or PHeld at most 0.05
	NoEvidence = ""         // the difference may be random
)

// Diff is the result of [DB.Diff].
type Diff struct {
	BuildBefore   string `json:"build_before"`
	BuildAfter    string `json:"build_after"`
	DevicesBefore int64  `json:"devices_before"`
	DevicesAfter  int64  `json:"devices_after"`
	DevicesBoth   int64  `json:"devices_both"` // of these, those that ran both builds
	// Updated and Controls are the devices that got the build after, and those that stayed on the build before meanwhile, if
	// their changes were compared, else 0.
	Updated  int64   `json:"updated"`
	Controls int64   `json:"controls"`
	Hours    float64 `json:"hours"`  // the dumps compared have an uptime from Hours/2 to Hours; negative if no uptime is known
	Before   float64 `json:"before"` // bytes per device, of all paths
	After    float64 `json:"after"`
	Paths    int     `json:"paths"`   // compared
	ByName   bool    `json:"by_name"` // paths were matched by the names of their functions, else by address
	// Comparable is false if the paths that match hold less than half of the bytes: a build has no names, and
	// the functions of the other are at other addresses. There are no Rows then.
	Comparable bool `json:"comparable"`
	// Rows holds first the paths that changed, then those that probably changed, then those that possibly changed,
	// then the others, each group sorted by growth, the largest first.
	Rows []Change `json:"rows"`

	both []bool // by number, whether the device ran both builds
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
	if err := s.tables(ctx, "steady", "compared"); err != nil {
		return err
	}
	ran, err := rows[struct {
		Device, Build string
		Hours         float64
	}](ctx, s, "select device, build, max(hours) as at_most from compared group by n, device, build order by n")
	if err != nil {
		return fmt.Errorf("query compared: %w", err)
	}
	d.DevicesBefore, d.DevicesAfter, d.DevicesBoth, d.both = 0, 0, 0, nil
	of := make([]side, len(ran))
	for i, r := range ran {
		if d.Hours = r.Hours; r.Build == d.BuildBefore {
			d.DevicesBefore++
		} else {
			d.DevicesAfter++
			of[i].build = 1
		}
		if i > 0 && r.Device == ran[i-1].Device {
			d.DevicesBoth, d.both[len(d.both)-1] = d.DevicesBoth+1, true
		} else {
			d.both = append(d.both, false)
		}
		of[i].device = int32(len(d.both) - 1)
	}
	for i, n := range []int64{d.DevicesBefore, d.DevicesAfter} {
		switch build := []string{d.BuildBefore, d.BuildAfter}[i]; {
		case n == 0 && d.Hours > 0:
			return fmt.Errorf("build %s: %w at an uptime of %.2g to %.2g hours, which half of the devices of the other build have", build, ErrNoDump, d.Hours/2, d.Hours)
		case n == 0:
			return fmt.Errorf("build %s: %w", build, ErrNoDump)
		}
	}
	paths, err := s.heldPaths(ctx, d, of)
	if err != nil {
		return fmt.Errorf("query diff: %w", err)
	}
	return s.controls(ctx, d, d.compare(paths))
}

// side is a device with a build.
type side struct {
	device int32
	build  int // 0 for the build before, 1 for that after
}

// heldPaths returns the call paths of both builds that devices hold in the compared dumps. of has the devices by n, from 1.
func (s *session) heldPaths(ctx context.Context, d *Diff, of []side) (list []*heldPath, err error) {
	sums, err := rows[struct {
		Path                 int64
		Devices, Thousandths numbers
	}](ctx, s, text("sums"))
	if err != nil {
		return nil, err
	}
	for _, r := range sums {
		pair := [2]*heldPath{{path: r.Path}, {path: r.Path, side: 1}}
		for i, n := range r.Thousandths {
			held := float64(n) / 1000
			at := of[r.Devices[i]-1]
			p := pair[at.build]
			p.devices, p.bytes, p.sum = append(p.devices, at.device), append(p.bytes, held), p.sum+held
		}
		for _, p := range pair {
			if p.devices != nil {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b *heldPath) int { return cmp.Or(a.side-b.side, cmp.Compare(a.path, b.path)) })
	return list, s.stacks(ctx, len(list), func(i int) (pathOf, *[]Frame) {
		return pathOf{[]string{d.BuildBefore, d.BuildAfter}[list[i].side], list[i].path}, &list[i].stack
	})
}

package query

import (
	"context"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Point is what the devices of a build hold of a call path at a time: bytes of the median device, and of nine of ten.
type Point struct {
	At      float64 `json:"at"` // hours since the boot, or days since Curves.First
	Low     float64 `json:"low"`
	Median  float64 `json:"median"`
	High    float64 `json:"high"`
	Devices int64   `json:"devices"`
}

// Curves has a call path over the uptime, and over the days.
type Curves struct {
	Path   int64     `json:"path,string"`
	Uptime []Point   `json:"uptime"`
	Days   []Point   `json:"days"`
	First  time.Time `json:"first"` // first dump
}

// Curves returns the curves of call paths of a build. The scope must have exactly one build.
func (d *DB) Curves(ctx context.Context, o Scope, paths ...int64) (list []Curves, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	err = d.with(ctx, o, []string{store.Dumps, store.Facts}, func(s *session) error {
		list = nil
		if err := s.define(ctx, "chosen", "select toInt64(arrayJoin(["+numbered(paths)+"])) as path"); err != nil {
			return err
		}
		if err := s.tables(ctx, "dated", "ends", "held"); err != nil {
			return err
		}
		ends, err := rows[struct{ First, Longest int64 }](ctx, s, "select begin_at, longest from ends")
		if err != nil {
			return err
		}
		all, err := rows[struct {
			Path, Axis, Slot  int64
			Low, Median, High float64
			Devices           int64
		}](ctx, s, text("curves"))
		for _, r := range all {
			if len(list) == 0 || list[len(list)-1].Path != r.Path {
				list = append(list, Curves{Path: r.Path, First: time.UnixMicro(ends[0].First).UTC()})
			}
			c := &list[len(list)-1]
			p := Point{float64(r.Slot), r.Low, r.Median, r.High, r.Devices}
			if r.Axis == 0 {
				p.At = (p.At + 0.5) / 24 * (time.Duration(ends[0].Longest) * time.Microsecond).Hours()
			}
			curve := []*[]Point{&c.Uptime, &c.Days}[r.Axis]
			*curve = append(*curve, p)
		}
		return err
	})
	return list, err
}

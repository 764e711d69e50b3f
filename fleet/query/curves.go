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
	var chosen [][]any
	for _, p := range paths {
		chosen = append(chosen, []any{p})
	}
	err = d.with(ctx, o, []string{store.Dumps, store.Facts}, func(s *session) error {
		list = nil
		defer s.drop("chosen", "held")
		if err := s.define(ctx, "chosen", s.literal(chosen, "path")); err != nil {
			return err
		}
		ends, err := rows[struct {
			First   time.Time
			Longest int64
		}](ctx, s, "select min(received) as begin_at, max(uptime_us) as longest from dumps where lost <= 0.2")
		if err != nil || len(ends) == 0 {
			return err
		}
		if err := s.tables(ctx, "held"); err != nil {
			return err
		}
		all, err := rows[struct {
			Path, Daily, Slot int64
			Low, Median, High float64
			Devices           int64
		}](ctx, s, text("curves"))
		for _, r := range all {
			if len(list) == 0 || list[len(list)-1].Path != r.Path {
				list = append(list, Curves{Path: r.Path, First: ends[0].First})
			}
			c := &list[len(list)-1]
			p := Point{float64(r.Slot), r.Low, r.Median, r.High, r.Devices}
			if r.Daily == 1 {
				c.Days = append(c.Days, p)
			} else {
				p.At = (p.At + 0.5) / 24 * (time.Duration(ends[0].Longest) * time.Microsecond).Hours()
				c.Uptime = append(c.Uptime, p)
			}
		}
		return err
	})
	return list, err
}

package query

import (
	"context"
	"fmt"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// Leak holds the evidence that a call path leaks in a build. (fleet/docs/fleet-leaks.md)
type Leak struct {
	Path     int64    `json:"path,string"`
	Examined int64    `json:"examined"` // devices
	Grew     int64    `json:"grew"`     // devices on which the path grows
	Shrank   int64    `json:"shrank"`   // devices on which it shrinks, by the same rule; as many may grow at random
	Share    float64  `json:"share"`    // (Grew − Shrank) / Examined, at least 0
	Z        float64  `json:"z"`        // Grew − Shrank, in standard deviations
	D        float64  `json:"d"`        // distance of the floors from a straight line
	H2       float64  `json:"h2"`       // how evenly the sum over the devices grew in both halves of the time
	Rate     *float64 `json:"rate"`     // median of the devices that grow, bytes per hour; nil if no times are known
	Rate95   *float64 `json:"rate95"`   // 95th percentile
	Hours    *float64 `json:"hours"`    // median of the time until this path alone exhausts the heap
	Gain     float64  `json:"gain"`     // rise of the floor, in bytes per device
	Word     int64    `json:"-"`
	Score    float64  `json:"score"`

	Verdict profile.Verdict `json:"verdict"`
	Stack   []Frame         `json:"stack"` // innermost first
}

// Leaks is the result of [DB.Leaks].
type Leaks struct {
	Build    string `json:"build"`
	Devices  int64  `json:"devices"`  // devices with a dump
	Examined int64  `json:"examined"` // devices with a boot of three dumps or more
	Paths    int64  `json:"paths"`    // call paths examined
	Rows     []Leak `json:"rows"`     // paths with evidence, the most likely leak first
	// Exhaustion is nil if no row is a leak or a probable leak, or if the free memory is not known.
	Exhaustion *Exhaustion `json:"exhaustion"`
}

// Exhaustion holds the times until the heaps of the leaking devices are full.
type Exhaustion struct {
	Devices int64    `json:"devices"`
	Hours   *float64 `json:"hours"`   // median
	Hours05 *float64 `json:"hours05"` // 5th percentile
}

// Rate returns the sum of rate times share over the leaks and probable leaks, in bytes per hour
// and device.
func (l *Leaks) Rate() (sum float64) {
	for _, r := range l.Rows {
		if r.Verdict.Sure() && r.Rate != nil {
			sum += *r.Rate * r.Share
		}
	}
	return sum
}

// Leaks returns the call paths of a build that leak or may leak. The scope must have exactly
// one build.
func (d *DB) Leaks(ctx context.Context, o Scope) (*Leaks, error) {
	if len(o.Builds) != 1 {
		return nil, fmt.Errorf("query: leaks of %d builds, expected one", len(o.Builds))
	}
	l := &Leaks{Build: o.Builds[0]}
	err := d.with(ctx, o, func(s *session) error { return s.leaks(ctx, l) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

// evidence creates the tables that leaks.sql and exhaustion.sql read.
func (s *session) evidence(ctx context.Context) error {
	return s.tables(ctx, "steady", "used", "rises", "candidates", "evidence")
}

func (s *session) leaks(ctx context.Context, l *Leaks) error {
	defer s.drop("steady", "used", "rises", "candidates", "evidence", "wanted")
	if err := s.evidence(ctx); err != nil {
		return err
	}
	n, err := rows[struct{ Devices, Examined, Paths int64 }](ctx, s,
		"select (select count(distinct device) from dumps), (select count(distinct device) from used), (select count(distinct path) from rises)")
	if err != nil {
		return err
	}
	if n[0].Devices == 0 {
		return fmt.Errorf("build %s: %w", l.Build, ErrNoDump)
	}
	l.Devices, l.Examined, l.Paths = n[0].Devices, n[0].Examined, n[0].Paths
	type row struct {
		Path, Examined, Grew, Shrank int64
		Share, Z, D, H2              float64
		Rate, Rate95, Hours          *float64
		Gain                         float64
		Word                         int64
		Score                        float64
	}
	list, err := rows[row](ctx, s, text("leaks"))
	if err != nil {
		return fmt.Errorf("query leaks: %w", err)
	}
	var paths, accused []int64
	for _, r := range list {
		if r.Word == 0 {
			continue
		}
		v := profile.Verdict(r.Word)
		l.Rows = append(l.Rows, Leak{r.Path, r.Examined, r.Grew, r.Shrank, r.Share, r.Z, r.D, r.H2, r.Rate, r.Rate95, r.Hours, r.Gain, r.Word, r.Score, v, nil})
		paths = append(paths, r.Path)
		if v >= profile.Probably {
			accused = append(accused, r.Path)
		}
	}
	if len(accused) > 0 {
		if err := s.exhaust(ctx, l, accused); err != nil {
			return err
		}
	}
	stacks, err := s.stacks(ctx, paths)
	for i := range l.Rows {
		l.Rows[i].Stack = stacks[pathOf{l.Build, l.Rows[i].Path}]
	}
	return err
}

// exhaust computes the times until the heaps of the leaking devices are full.
func (s *session) exhaust(ctx context.Context, l *Leaks, accused []int64) error {
	if err := s.want(ctx, accused); err != nil {
		return err
	}
	x, err := rows[Exhaustion](ctx, s, text("exhaustion"))
	if err == nil && len(x) == 1 && x[0].Devices > 0 {
		l.Exhaustion = &x[0]
	}
	return err
}

package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Rollout compares the leaks of two builds, to decide whether the update of a fleet from one to the other continues.
type Rollout struct {
	BuildBefore string  `json:"build_before"`
	BuildAfter  string  `json:"build_after"`
	Devices     int64   `json:"devices"` // with the build after
	Of          int64   `json:"of"`      // devices with the last dump of either build
	Share       float64 `json:"share"`   // Devices / Of
	Comparison
	Stages []Stage `json:"stages"` // that the update has reached, and what was known then
}

// Stage is a share of the devices, of those that got the build after first, and what their dumps told until the next stage was reached.
type Stage struct {
	Percent int        `json:"percent"` // 1, 10, 50 or 100
	Reached time.Time  `json:"reached"` // when the last of them sent its first dump with the build after
	Until   *time.Time `json:"until"`   // when the next stage was reached, nil for the last
	Devices int64      `json:"devices"`
	Comparison
}

// Comparison has what is known of devices with the build after.
type Comparison struct {
	Examined int64  `json:"examined"` // devices
	New      []Leak `json:"new"`      // leaks, or probable ones, of the build after alone
	Mended   []Leak `json:"mended"`   // of the build before alone, which would be on one of the devices at 95 %
	Both     []Leak `json:"both"`     // of both builds, as in the build after
	Answer   string `json:"answer"`   // stop, go, or unknown if no device with the build after was examined
}

// stages returns the stages that an update of so many devices has reached, without answers: first has those with the build after.
func stages(of int64, first []Device) (list []Stage) {
	slices.SortFunc(first, func(a, b Device) int { return a.First.Compare(b.First) })
	for _, percent := range []int{1, 10, 50, 100} {
		n := (of*int64(percent) + 99) / 100
		if n == 0 || n > int64(len(first)) {
			break
		}
		s := Stage{Percent: percent, Reached: first[n-1].First, Devices: n}
		if len(list) > 0 {
			list[len(list)-1].Until = &s.Reached
		}
		list = append(list, s)
	}
	return list
}

// Rollout compares the leaks of two builds. Paths are those of the same functions; without names, of the same addresses.
func (d *DB) Rollout(ctx context.Context, before, after string, o Scope) (*Rollout, error) {
	r := &Rollout{BuildBefore: before, BuildAfter: after}
	o.Builds = []string{before}
	old, err := d.Leaks(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Builds = []string{after}
	now, err := d.Leaks(ctx, o)
	if err != nil {
		return nil, err
	}
	first, err := d.Devices(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	o.Builds = []string{before, after}
	list, err := d.Devices(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if r.Of++; x.Build == after {
			r.Devices++
		}
	}
	r.Share = float64(r.Devices) / max(1, float64(r.Of))
	r.compare(old, now)
	r.Stages = stages(r.Of, first)
	for i := range r.Stages {
		s := &r.Stages[i]
		known := now
		if s.Until != nil {
			if known, err = d.until(ctx, after, *s.Until, first[:s.Devices]); err != nil {
				return nil, err
			}
		}
		s.compare(old, known)
	}
	return r, nil
}

// compare sets which leaks of the build before devices with the build after have, too.
func (s *Comparison) compare(old, now *Leaks) {
	known := map[string]bool{}
	for _, l := range old.Rows {
		if l.Verdict.Sure() {
			known[functionsOf(l.Stack)] = true
		}
	}
	has := map[string]bool{}
	for _, l := range now.Rows {
		has[functionsOf(l.Stack)] = true
		switch {
		case !l.Verdict.Sure():
		case known[functionsOf(l.Stack)]:
			s.Both = append(s.Both, l)
		default:
			s.New = append(s.New, l)
		}
	}
	for _, l := range old.Rows {
		// That none of so few devices leaks may be random.
		none := math.Pow(1-float64(l.Grew)/float64(l.Examined), float64(now.Examined))
		if l.Verdict.Sure() && !has[functionsOf(l.Stack)] && none <= 0.05 {
			s.Mended = append(s.Mended, l)
		}
	}
	s.Examined = now.Examined
	switch {
	case len(s.New) > 0:
		s.Answer = "stop"
	case s.Examined > 0 && !now.Moving:
		s.Answer = "go"
	default:
		s.Answer = "unknown"
	}
}

// until returns the leaks of devices of a build as they were known at a time. It stores nothing.
func (d *DB) until(ctx context.Context, build string, at time.Time, devices []Device) (l *Leaks, err error) {
	dir, err := os.MkdirTemp("", "btfleet-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	then, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	err = d.judge(ctx, build, devices, at.UnixMicro(), func(ctx context.Context, j *store.Judgements) error { return putJudged(ctx, then, j) })
	if err != nil {
		return nil, err
	}
	if l, err = sumOf(store.WithoutLabels(ctx), then, build); errors.Is(err, ErrNoDump) || err == nil && len(l.Rows) == 0 {
		return l, nil
	} else if err != nil {
		return nil, err
	}
	return l, d.with(ctx, Scope{Builds: []string{build}}, []string{store.Paths, store.Frames}, func(s *session) error {
		return s.stacks(ctx, len(l.Rows), func(i int) (pathOf, *[]Frame) { return pathOf{build, l.Rows[i].Path}, &l.Rows[i].Stack })
	})
}

// putJudged stores judgements, and of each device a dump, without which it is of no question.
func putJudged(ctx context.Context, s *store.Store, j *store.Judgements) error {
	b := &store.Batch{Name: fmt.Sprint(time.Now().UnixNano()), Day: time.Now()}
	for _, x := range j.Devices {
		b.Dumps = append(b.Dumps, store.Dump{Build: x.Build, Device: x.Device, Boot: x.Boot, Dump: x.Dump, Upload: x.Device})
	}
	return errors.Join(s.Put(ctx, b), s.PutJudged(ctx, j))
}

// sumOf returns the leaks of the judgements of a store, without stacks.
func sumOf(ctx context.Context, s *store.Store, build string) (*Leaks, error) {
	db, err := Open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	l := &Leaks{Build: build}
	return l, db.with(ctx, Scope{Builds: []string{build}}, ofLeaks, func(s *session) error { return s.leaks(ctx, l) })
}

// functionsOf returns what a path has in common with that of another build: its functions, or addresses without names.
func functionsOf(stack []Frame) string {
	var list []string
	for _, f := range stack {
		list = append(list, cmp.Or(f.Function, f.Address))
	}
	return strings.Join(list, "\n")
}

package query

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// maxJudged is the number of rows that a pass holds before it stores them.
const maxJudged = 1 << 19

// Judge judges the devices that sent dumps since they were judged, and stores the result.
// Without builds, it judges those of all builds.
func (d *DB) Judge(ctx context.Context, builds ...string) error {
	ctx = store.WithoutLabels(ctx)
	if len(builds) == 0 {
		list, err := d.Builds(ctx, Scope{})
		if err != nil {
			return err
		}
		for _, b := range list {
			builds = append(builds, b.Build)
		}
	}
	d.judging.Lock()
	defer d.judging.Unlock()
	for _, b := range builds {
		for more := true; more; {
			batch := &store.Judgements{}
			err := d.with(ctx, Scope{Builds: []string{b}}, ofJudge, func(s *session) (err error) {
				*batch = store.Judgements{}
				more, err = s.pass(ctx, b, batch)
				return err
			})
			if err != nil {
				return err
			}
			if len(batch.Devices) == 0 {
				break
			}
			if err := d.rows().PutJudged(ctx, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass judges devices of a build. more reports whether there may be others.
func (s *session) pass(ctx context.Context, build string, into *store.Judgements) (more bool, err error) {
	list, err := rows[moment](ctx, s, text("moments"))
	if err != nil {
		return false, fmt.Errorf("query moments: %w", err)
	}
	byDevice := split(list)
	known, err := rows[struct {
		Device           string
		Boot, Dump, Rule int64
	}](ctx, s, text("known"))
	if err != nil {
		return false, fmt.Errorf("query known: %w", err)
	}
	last := map[string]int{}
	for i := range known {
		last[known[i].Device] = i
	}
	byDevice = slices.DeleteFunc(byDevice, func(dumps []moment) bool {
		m := &dumps[len(dumps)-1]
		i, ok := last[m.Device]
		return ok && known[i].Boot == m.Boot && known[i].Dump == m.Dump && known[i].Rule == Rule
	})
	return judge(ctx, build, byDevice, s.facts(ctx, namesOf(byDevice)), into)
}

// namesOf returns the names of devices.
func namesOf(byDevice [][]moment) (names []string) {
	for _, dumps := range byDevice {
		names = append(names, dumps[0].Device)
	}
	return names
}

// judge judges devices in parallel. all has the facts of each that has any, in this order.
func judge(ctx context.Context, build string, byDevice [][]moment, all iter.Seq2[[]store.Fact, error], into *store.Judgements) (more bool, err error) {
	at := time.Now().UnixMicro()
	var mu sync.Mutex
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	one := func(dumps []moment, facts []store.Fact) {
		workers.Go(func() error {
			device, paths := judgeFacts(build, at, dumps, facts)
			mu.Lock()
			defer mu.Unlock()
			into.Devices, into.Paths = append(into.Devices, device), append(into.Paths, paths...)
			return nil
		})
	}
	values := 0
	for facts, e := range all {
		if err = cmp.Or(e, ctx.Err()); err != nil {
			break
		}
		if more = values > 8*maxJudged; more {
			break
		}
		for byDevice[0][0].Device < facts[0].Device { // which have no facts
			one(byDevice[0], nil)
			byDevice = byDevice[1:]
		}
		values += len(facts)
		one(byDevice[0], facts)
		byDevice = byDevice[1:]
	}
	if err == nil && !more {
		for _, dumps := range byDevice {
			one(dumps, nil)
		}
	}
	workers.Wait()
	if err != nil {
		return false, fmt.Errorf("query series: %w", err)
	}
	into.Sort()
	return more, nil
}

// judgeFacts judges a device, and its call paths that vary.
func judgeFacts(build string, at int64, dumps []moment, facts []store.Fact) (of store.JudgedDevice, paths []store.Judged) {
	d := newDevice(dumps)
	if of = judgeDevice(d, build, at); of.Boots == 0 {
		return of, nil
	}
	for path, values := range byPath(dumps, facts) {
		if slices.ContainsFunc(values, func(v profile.Value) bool { return v != values[0] }) {
			p := d.judge(path, values)
			p.Build, p.Device, p.At = build, of.Device, at
			paths = append(paths, p)
		}
	}
	return of, paths
}

// PutFrames stores the functions of addresses of builds.
func (d *DB) PutFrames(ctx context.Context, now time.Time, rows []store.Frame) error {
	return d.rows().PutFrames(ctx, now, rows)
}

// rows returns where rows are stored.
func (d *DB) rows() interface {
	PutJudged(context.Context, *store.Judgements) error
	PutFrames(context.Context, time.Time, []store.Frame) error
} {
	if d.clickhouse != nil {
		return d.clickhouse
	}
	return d.store
}

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

// devicesPerQuery bounds the memory of an engine, and of this process.
const devicesPerQuery = 2000

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
		o := Scope{Builds: []string{b}}
		// The facts are not asked for, but checked: a damaged file leaves out its dumps, whose devices may be judged already.
		devices, err := ask[Device](ctx, d, o, []string{store.Dumps, store.Facts, store.JudgedDevices}, text("unjudged", "{rule}", fmt.Sprint(Rule)))
		if err != nil {
			return fmt.Errorf("query unjudged: %w", err)
		}
		if err := d.judge(ctx, b, devices, never, d.rows().PutJudged); err != nil {
			return err
		}
	}
	return nil
}

// judge judges devices of a build by the dumps received before a time in µs.
func (d *DB) judge(ctx context.Context, build string, devices []Device, until int64, put func(context.Context, *store.Judgements) error) error {
	for some := range slices.Chunk(devices, d.part) {
		names := make([]string, len(some))
		for i := range some {
			names[i] = some[i].Device
		}
		err := d.with(ctx, Scope{Builds: []string{build}}, ofJudge, func(s *session) error {
			list, err := rows[moment](ctx, s, text("moments", "{dumps}", s.table(store.Dumps, " and device in ("+s.quoted(names)+")"), "{until}", fmt.Sprint(until)))
			if err != nil {
				return fmt.Errorf("query moments: %w", err)
			}
			for rest := split(list); len(rest) > 0 && err == nil; {
				names = slices.DeleteFunc(names, func(name string) bool { return name < rest[0][0].Device })
				j := &store.Judgements{}
				if rest, err = judge(ctx, build, rest, s.facts(ctx, names), j); err == nil {
					err = put(ctx, j)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// judge judges devices in parallel, and returns those that are left when it has as many rows as a batch may have. all has the facts of each
// that has any, in this order.
func judge(ctx context.Context, build string, byDevice [][]moment, all iter.Seq2[[]store.Fact, error], into *store.Judgements) (rest [][]moment, err error) {
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
		if values > 8*maxJudged {
			rest = byDevice
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
	if err == nil && rest == nil {
		for _, dumps := range byDevice {
			one(dumps, nil)
		}
	}
	workers.Wait()
	if err != nil {
		return nil, fmt.Errorf("query series: %w", err)
	}
	into.Sort()
	return rest, nil
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

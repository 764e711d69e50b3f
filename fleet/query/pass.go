package query

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
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
			if err := d.judgements().PutJudged(ctx, batch); err != nil {
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
	return s.judge(ctx, build, byDevice, into)
}

// judged is a device with its facts, and what they say.
type judged struct {
	device store.JudgedDevice
	paths  []store.Judged
}

// judge judges devices in parallel.
func (s *session) judge(ctx context.Context, build string, byDevice [][]moment, into *store.Judgements) (more bool, err error) {
	if len(byDevice) == 0 {
		return false, nil
	}
	at := time.Now().UnixMicro()
	workers, stop := errgroup.WithContext(ctx)
	workers.SetLimit(runtime.GOMAXPROCS(0))
	results := make(chan judged, 64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range results {
			into.Devices, into.Paths = append(into.Devices, r.device), append(into.Paths, r.paths...)
		}
	}()
	rest := byDevice
	one := func(dumps []moment, facts []store.Fact) {
		workers.Go(func() error {
			results <- judgeFacts(build, at, dumps, facts)
			return nil
		})
	}
	values := 0
	for facts, err := range s.facts(ctx, byDevice) {
		if err != nil || stop.Err() != nil {
			workers.Wait()
			close(results)
			<-done
			return false, fmt.Errorf("query series: %w", cmp.Or(err, stop.Err()))
		}
		if values > 8*maxJudged {
			more = true
			break
		}
		for len(rest) > 0 && rest[0][0].Device < facts[0].Device {
			one(rest[0], nil)
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0][0].Device != facts[0].Device {
			continue // none of its dumps is in the scope
		}
		values += len(facts)
		one(rest[0], slices.Clone(facts))
		rest = rest[1:]
	}
	if !more {
		for _, dumps := range rest {
			one(dumps, nil)
		}
	}
	workers.Wait()
	close(results)
	<-done
	into.Sort()
	return more, ctx.Err()
}

// judgeFacts judges the call paths of a device that vary.
func judgeFacts(build string, at int64, dumps []moment, facts []store.Fact) (r judged) {
	d := newDevice(dumps)
	r.device = judgeDevice(d, build, at)
	if r.device.Boots == 0 {
		return r
	}
	for path, values := range byPath(dumps, facts) {
		if !slices.ContainsFunc(values, func(v profile.Value) bool { return v != values[0] }) {
			continue
		}
		p := d.judge(path, values)
		p.Build, p.Device, p.At = build, r.device.Device, at
		r.paths = append(r.paths, p)
	}
	return r
}

// judgements returns where judgements are stored.
func (d *DB) judgements() interface {
	PutJudged(context.Context, *store.Judgements) error
} {
	if d.clickhouse != nil {
		return d.clickhouse
	}
	return d.store
}

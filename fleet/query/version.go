package query

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Version has a number for each build, which changes with the rows of the build.
type Version map[string]uint64

// versioned is the version of a list of files.
type versioned struct {
	files uint64
	of    Version
}

// Version returns the present version of the rows. It lists files, and reads two columns if the list is not that of the
// last call. In ClickHouse, it counts rows.
func (d *DB) Version(ctx context.Context) (Version, error) {
	ctx = store.WithoutLabels(ctx)
	if d.clickhouse != nil {
		return version(ctx, d.remote(ctx, Scope{}), d.clickhouse.Table(store.Dumps), d.clickhouse.Table(store.Frames))
	}
	list, err := d.store.Snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	fmt.Fprint(h, list.Dumps, list.Frames)
	d.versions.Lock()
	defer d.versions.Unlock()
	if last := d.version; last.of != nil && last.files == h.Sum64() {
		return last.of, nil
	}
	var v Version
	err = d.with(ctx, Scope{copies: true}, []string{store.Dumps, store.Frames}, func(s *session) (err error) {
		v, err = version(ctx, s, store.Dumps, store.Frames)
		return err
	})
	if err == nil {
		d.version = versioned{h.Sum64(), v}
	}
	return v, err
}

func version(ctx context.Context, s *session, dumps, frames string) (Version, error) {
	list, err := rows[struct {
		Build string
		Rows  uint64
		Last  string
	}](ctx, s, "select build, count(*) as n, cast(max(received) as varchar) as last from "+dumps+" group by build union all select build, count(*) as n, '' as last from "+frames+" group by build")
	v := Version{}
	for _, r := range list {
		h := fnv.New64a()
		fmt.Fprint(h, r.Build, r.Rows, r.Last)
		v[r.Build] += h.Sum64()
	}
	return v, err
}

// Of returns the version of some builds, or of all builds if none is given.
func (v Version) Of(builds ...string) (sum uint64) {
	for build, n := range v {
		if len(builds) == 0 || slices.Contains(builds, build) {
			sum += n
		}
	}
	return sum
}

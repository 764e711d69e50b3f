package query

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Version has a number for each build, which changes with the rows of the build.
type Version map[string]uint64 // by the build as in the names of files

// Version returns the present version of the rows. It reads names of files, or counts rows of ClickHouse.
func (d *DB) Version(ctx context.Context) (Version, error) {
	v := Version{}
	add := func(build, what string) {
		h := fnv.New64a()
		h.Write([]byte(what))
		v[build] += h.Sum64()
	}
	if d.clickhouse != nil {
		s := d.remote(Scope{})
		list, err := rows[struct {
			Build string
			Rows  uint64
		}](ctx, s, "select build, count(*) as n from "+d.clickhouse.Table(store.Dumps)+" group by build union all select build, count(*) as n from "+d.clickhouse.Table(store.Frames)+" group by build")
		for _, r := range list {
			add(store.Escape(r.Build), fmt.Sprint(r.Rows))
		}
		return v, err
	}
	list, err := d.store.Snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, files := range [][]string{list.Dumps, list.Frames} {
		for _, name := range files {
			_, rest, _ := strings.Cut(name, "/build=")
			build, _, _ := strings.Cut(rest, "/")
			add(build, name)
		}
	}
	return v, nil
}

// Of returns the version of some builds, or of all builds if none is given.
func (v Version) Of(builds ...string) (sum uint64) {
	for build, n := range v {
		if len(builds) == 0 {
			sum += n
		}
		for _, b := range builds {
			if store.Escape(b) == build {
				sum += n
			}
		}
	}
	return sum
}

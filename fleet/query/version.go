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
	files string
	of    Version
}

// Version returns the present version of the rows. It lists files, and reads two columns if the list is not that of the
// last call. In ClickHouse, it counts rows.
func (d *DB) Version(ctx context.Context) (Version, error) {
	ctx = store.WithoutLabels(ctx)
	d.versions.Lock()
	defer d.versions.Unlock()
	files := ""
	if d.clickhouse == nil {
		list, err := d.store.Snapshot(ctx, "")
		if err != nil {
			return nil, err
		}
		if files = fmt.Sprint(list[store.Dumps], list[store.Frames]); d.version.of != nil && d.version.files == files {
			return d.version.of, nil
		}
	}
	list, err := ask[struct {
		Build string
		Rows  uint64
		Last  string
	}](ctx, d, Scope{copies: true}, []string{store.Dumps, store.Frames}, text("rows"))
	if err != nil {
		return nil, err
	}
	v := Version{}
	for _, r := range list {
		h := fnv.New64a()
		fmt.Fprint(h, r.Build, r.Rows, r.Last)
		v[r.Build] += h.Sum64()
	}
	d.version = versioned{files, v}
	return v, nil
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

package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Damaged returns the files of the store that could not be read, and those in its quarantine, sorted. Answers leave out their
// rows. A file of dumps, facts or paths is left out with the two others of its batch.
func (d *DB) Damaged() []string {
	d.damage.Lock()
	defer d.damage.Unlock()
	list := slices.Clone(d.quarantined)
	for name, err := range d.checked {
		if err != nil {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// batch returns what the files of one batch have in common.
func batch(name string) string {
	table, rest, _ := strings.Cut(name, "/")
	switch table {
	case store.Frames:
		return name
	case store.JudgedDevices, store.JudgedPaths: // the devices are judged again
		return store.JudgedPaths + "/" + rest
	}
	return rest
}

// without removes the files of damaged batches from a snapshot.
func (d *DB) without(list store.Snapshot) {
	bad := map[string]bool{}
	for _, name := range d.Damaged() {
		bad[batch(name)] = true
	}
	for table, files := range list {
		list[table] = slices.DeleteFunc(files, func(name string) bool { return bad[batch(name)] })
	}
}

// verify checks the checksums of the files of a snapshot that were not checked before. Those that are wrong are damaged, and with
// last those that are missing.
func (d *DB) verify(ctx context.Context, list store.Snapshot, last bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, name := range slices.Concat(slices.Collect(maps.Values(list))...) {
		d.damage.Lock()
		_, known := d.checked[name]
		d.damage.Unlock()
		if known && !last {
			continue
		}
		group.Go(func() error {
			data, err := os.ReadFile(d.paths([]string{name})[0])
			switch {
			case err == nil:
				err = store.Check(data)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			case !last:
				return nil // see gone
			}
			if errors.Is(err, store.ErrSchema) {
				return fmt.Errorf("%s %w", name, err)
			}
			d.damage.Lock()
			defer d.damage.Unlock()
			d.checked[name] = err
			return ctx.Err()
		})
	}
	return group.Wait()
}

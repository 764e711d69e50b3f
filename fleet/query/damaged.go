package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	for name := range d.damaged {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// batch returns what the files of dumps, facts and paths of one batch have in common.
func batch(name string) string {
	table, rest, _ := strings.Cut(name, "/")
	switch table {
	case store.Frames:
		return name
	case store.JudgedDevices: // its devices are judged again
		return store.JudgedPaths + "/" + rest
	case store.JudgedPaths:
		return name
	}
	return rest
}

// without removes the files of damaged batches from a snapshot.
func (d *DB) without(list *store.Snapshot) {
	bad := map[string]bool{}
	for _, name := range d.Damaged() {
		bad[batch(name)] = true
	}
	for _, files := range list.Tables() {
		*files = slices.DeleteFunc(*files, func(name string) bool { return bad[batch(name)] })
	}
}

// verify checks the checksums of the files of a snapshot that were not checked before. Those that are wrong are damaged.
func (d *DB) verify(ctx context.Context, list *store.Snapshot) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, name := range list.Files() {
		d.damage.Lock()
		known := d.checked[name]
		d.damage.Unlock()
		if known {
			continue
		}
		group.Go(func() error {
			data, err := os.ReadFile(d.paths([]string{name})[0])
			if errors.Is(err, fs.ErrNotExist) {
				return nil // see gone
			}
			if err != nil {
				return err
			}
			if err := store.CheckSum(data); err != nil {
				d.addDamaged(name)
				return ctx.Err()
			}
			d.damage.Lock()
			defer d.damage.Unlock()
			if d.checked == nil {
				d.checked = map[string]bool{}
			}
			d.checked[name] = true
			return ctx.Err()
		})
	}
	return group.Wait()
}

func (d *DB) addDamaged(name string) {
	d.damage.Lock()
	defer d.damage.Unlock()
	if d.damaged == nil {
		d.damaged = map[string]bool{}
	}
	d.damaged[name] = true
}

// examine reads each file of a snapshot whole. It adds those that cannot be read to the damaged
// files, with missing those that do not exist, too, and reports whether there are any.
func (d *DB) examine(ctx context.Context, list *store.Snapshot, missing bool) (found bool) {
	for _, name := range list.Files() {
		_, err := d.db.ExecContext(ctx, fmt.Sprintf("select bit_xor(hash(t)) from read_parquet(%s, hive_partitioning = false) t", d.list(name)))
		if err == nil && strings.HasPrefix(name, store.Facts) {
			for _, err = range store.ByDevice([]string{""}, d.paths([]string{name})) {
			}
		}
		if err == nil || ctx.Err() != nil || gone(err) && !missing {
			continue
		}
		found = true
		d.addDamaged(name)
	}
	return found
}

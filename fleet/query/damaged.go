package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Damaged returns the files of the store that could not be read, sorted. Answers leave out their
// rows. A file of dumps, facts or paths is left out with the two others of its batch.
func (d *DB) Damaged() []string {
	d.damage.Lock()
	defer d.damage.Unlock()
	var list []string
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

// examine reads each file of a snapshot whole. It adds those that cannot be read to the damaged
// files, with missing those that do not exist, too, and reports whether there are any.
func (d *DB) examine(ctx context.Context, list *store.Snapshot, missing bool) (found bool) {
	for _, name := range list.Files() {
		_, err := d.db.ExecContext(ctx, fmt.Sprintf("select bit_xor(hash(t)) from read_parquet(%s, hive_partitioning = false) t", d.list(name)))
		if err == nil && strings.HasPrefix(name, store.Facts) {
			for _, err = range store.ByDevice(d.paths([]string{name})) {
			}
		}
		if err == nil || ctx.Err() != nil || gone(err) && !missing {
			continue
		}
		found = true
		d.damage.Lock()
		if d.damaged == nil {
			d.damaged = map[string]bool{}
		}
		d.damaged[name] = true
		d.damage.Unlock()
	}
	return found
}

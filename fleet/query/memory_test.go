package query

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// memory holds the rows of a fleet for tests of the rule on many fleets, since files take several times as long.
type memory struct {
	dumps   map[string][]moment // by build, in order
	batches map[string][]*store.Batch
}

// Put keeps a batch, whose rows are of one build, in the order of the devices.
func (m *memory) Put(_ context.Context, b *store.Batch) error {
	build := b.Dumps[0].Build
	for _, d := range b.Dumps {
		m.dumps[build] = append(m.dumps[build], moment{d.Device, d.Boot, d.Dump, d.Uptime, time.UnixMicro(d.Received), d.Count, d.Bytes, d.Lost, d.Complete, d.Why, d.HeapFree, d.Heaps})
	}
	m.batches[build] = append(m.batches[build], b)
	return nil
}

// inMemory returns the rows of a fleet.
func inMemory(t testing.TB, f *fleet) *memory {
	m := &memory{map[string][]moment{}, map[string][]*store.Batch{}}
	if _, _, err := f.Store(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for _, list := range m.dumps {
		slices.SortFunc(list, func(a, b moment) int {
			return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.Dump, b.Dump))
		})
	}
	return m
}

// factsOf yields the facts of each device of batches.
func factsOf(batches []*store.Batch, devices [][]moment) iter.Seq2[[]store.Fact, error] {
	return func(yield func([]store.Fact, error) bool) {
		at := make([]int, len(batches))
		for _, d := range devices {
			var list []store.Fact
			for k, b := range batches {
				from := at[k]
				for at[k] < len(b.Facts) && b.Facts[at[k]].Device == d[0].Device {
					at[k]++
				}
				list = append(list, b.Facts[from:at[k]]...)
			}
			if len(list) > 0 && !yield(list, nil) {
				return
			}
		}
	}
}

// Leaks does as [DB.Leaks] does, without stacks: only the judgements, and the last dump of each device, are stored.
func (m *memory) Leaks(ctx context.Context, o Scope) (*Leaks, error) {
	build := o.Builds[0]
	byDevice := split(m.dumps[build])
	var j store.Judgements
	if rest, err := judge(ctx, build, byDevice, factsOf(m.batches[build], byDevice), &j); err != nil || rest != nil {
		return nil, fmt.Errorf("%d devices left: %w", len(rest), err)
	}
	dir, err := os.MkdirTemp("", "btfleet-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	st, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := putJudged(ctx, st, &j); err != nil {
		return nil, err
	}
	return sumOf(ctx, st, build)
}

// free returns the free memory of each device of a build in its last dump.
func (m *memory) free(build string) map[string]int64 {
	list := map[string]int64{}
	for _, d := range m.dumps[build] {
		list[d.Device] = d.Free
	}
	return list
}

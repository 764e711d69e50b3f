package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// heapSize is the heap of a device in bytes.
const heapSize = 1 << 20

// batchFacts is how many facts a file has, at most: they are held in memory.
const batchFacts = 1 << 21

// Store writes the rows of the fleet to a store, a batch per build and day, as a server
// and a compaction do. It returns the numbers of dumps and facts.
func (f *Fleet) Store(ctx context.Context, s *store.Store) (dumps, facts int, err error) {
	if err := f.Check(); err != nil {
		return 0, 0, err
	}
	paths := f.sources()
	ids := make([]int64, len(paths))
	for i, p := range paths {
		ids[i] = store.PathID(addresses(p.frames))
	}
	schedule := make([][]moment, f.Devices)
	for d := range schedule {
		schedule[d] = f.moments(d)
	}
	for build := range f.Builds {
		rows := make([]store.Path, len(paths))
		for i, p := range paths {
			rows[i] = store.Path{Build: f.BuildID(build), Path: ids[i], Addresses: addresses(p.frames)}
		}
		for day := range f.Days {
			b := &store.Batch{}
			part := 0
			put := func() error {
				if len(b.Dumps) == 0 {
					return nil
				}
				b.Name, b.Day, b.Paths = fmt.Sprintf("simulated-%d-%d", f.Seed, part), f.Start.AddDate(0, 0, day), rows
				dumps, facts, part = dumps+len(b.Dumps), facts+len(b.Facts), part+1
				err := s.Put(ctx, b)
				b = &store.Batch{Dumps: b.Dumps[:0], Facts: b.Facts[:0]}
				return err
			}
			for d := build; d < f.Devices; d += f.Builds {
				for i := range schedule[d] {
					if m := &schedule[d][i]; m.day == day {
						f.rows(b, d, m, paths, ids)
					}
				}
				if len(b.Facts) > batchFacts {
					if err := put(); err != nil {
						return dumps, facts, err
					}
				}
			}
			if err := put(); err != nil {
				return dumps, facts, err
			}
		}
	}
	return dumps, facts, nil
}

// rows appends the rows of a dump.
func (f *Fleet) rows(b *store.Batch, device int, m *moment, paths []source, ids []int64) {
	build := device % f.Builds
	at := m.received.Add(f.skew(device)).UnixMicro()
	row := store.Dump{Build: f.BuildID(build), FW: f.Firmware(build), Device: f.DeviceID(device), Boot: m.heard.UnixMicro(), Dump: int64(m.index),
		Time: at, Uptime: m.uptime.Microseconds(), Received: m.received.UnixMicro(), Why: "interval",
		HeapSize: heapSize, HeapLargest: -1, HeapMinimum: -1, Upload: fmt.Sprintf("%016x%016x", hash(f.Seed, uint64(device)), hash(uint64(m.n)))}
	first := len(b.Facts)
	var lost, used int64 // blocks that did not arrive, bytes with those
	for h := range f.heap(device, m, paths) {
		used += h.bytes
		if !h.arrived {
			lost += h.count
			continue
		}
		row.Bytes, row.Count = row.Bytes+h.bytes, row.Count+h.count
		b.Facts = append(b.Facts, store.Fact{Build: row.Build, Device: row.Device, Path: ids[h.path], Boot: row.Boot, Dump: row.Dump,
			Time: at, Count: h.count, Bytes: h.bytes})
	}
	row.HeapFree = max(0, heapSize-used)
	if lost > 0 {
		row.Lost = float64(lost) / float64(lost+row.Count)
	}
	row.Complete = lost == 0
	for i := range b.Facts[first:] {
		b.Facts[first+i].Complete, b.Facts[first+i].Lost = row.Complete, row.Lost
	}
	b.Dumps = append(b.Dumps, row)
}

// skew returns how much the clock of a device is wrong.
func (f *Fleet) skew(device int) time.Duration {
	return time.Duration((2*f.uniform(10, device, 0) - 1) * float64(f.Skew))
}

// addresses returns the text of code offsets.
func addresses(offsets []uint64) (list []string) {
	for _, o := range offsets {
		list = append(list, fmt.Sprintf("code+%#x", o))
	}
	return list
}

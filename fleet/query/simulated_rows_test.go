package query

import (
	"context"
	"fmt"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// heapSize is the heap of a device in bytes.
const heapSize = 1 << 20

// batchFacts is the largest number of facts in a file, since they are simHeld in memory.
const batchFacts = 1 << 21

// Store writes the rows of the fleet to a store, one batch per build and day, like a server
// after compaction. It returns the numbers of dumps and facts.
func (f *fleet) Store(ctx context.Context, s store.Putter) (dumps, facts int, err error) {
	w := simWriter{f: f, s: s, paths: f.sources(), schedule: make([][]simMoment, f.Devices)}
	for d := range w.schedule {
		w.schedule[d] = f.moments(d)
	}
	for build := range f.Builds {
		w.ids = f.ids(build, w.paths)
		for day := range f.Days {
			if err := w.day(ctx, build, day); err != nil {
				return w.dumps, w.facts, err
			}
		}
	}
	return w.dumps, w.facts, nil
}

// simWriter writes a fleet to a store.
type simWriter struct {
	f            *fleet
	s            store.Putter
	paths        []source
	ids          []int64       // by path, of the build that is being written
	schedule     [][]simMoment // by device
	dumps, facts int           // written
}

// day writes the dumps of a build and a day, in parts if there are many.
func (w *simWriter) day(ctx context.Context, build, day int) error {
	b := &store.Batch{}
	part := 0
	for d := build; d < w.f.Devices; d += w.f.Builds {
		for i := range w.schedule[d] {
			if m := &w.schedule[d][i]; m.day == day {
				w.f.rows(b, d, m, w.paths, w.ids)
				if w.f.uniform(16, d, m.n) < w.f.Twice { // on a server that does not know the boot
					copied := *m
					copied.received = m.received.Add(time.Minute)
					copied.heard, copied.index = copied.received, 0
					w.f.rows(b, d, &copied, w.paths, w.ids)
				}
			}
		}
		if len(b.Facts) > batchFacts {
			if err := w.put(ctx, b, build, day, part); err != nil {
				return err
			}
			b, part = &store.Batch{}, part+1
		}
	}
	if len(b.Dumps) == 0 {
		return nil
	}
	return w.put(ctx, b, build, day, part)
}

// put writes a part of a day.
func (w *simWriter) put(ctx context.Context, b *store.Batch, build, day, part int) error {
	b.Name, b.Day = fmt.Sprintf("simulated-%d-%d-%d", w.f.Seed, build, part), w.f.Start.AddDate(0, 0, day)
	if w.f.Bases != PerBoot {
		for _, p := range w.paths {
			b.Paths = append(b.Paths, w.f.path(build, &p, &simMoment{}))
		}
	}
	w.dumps, w.facts = w.dumps+len(b.Dumps), w.facts+len(b.Facts)
	return w.s.Put(ctx, b)
}

// rows appends the rows of a dump.
func (f *fleet) rows(b *store.Batch, device int, m *simMoment, paths []source, ids []int64) {
	build := device % f.Builds
	if f.Bases == PerBoot {
		ids = make([]int64, len(paths))
		for i := range paths {
			p := f.path(build, &paths[i], m)
			ids[i], b.Paths = p.Path, append(b.Paths, p)
		}
	}
	at := m.received.Add(f.skew(device)).UnixMicro()
	row := store.Dump{Build: f.BuildID(build), FW: f.Firmware(build), Device: f.DeviceID(device), Boot: m.heard.UnixMicro(), Dump: int64(m.index),
		Time: at, Uptime: f.reported(m.uptime).Microseconds(), Received: m.received.UnixMicro(), Why: "interval",
		HeapSize: heapSize, HeapLargest: -1, HeapMinimum: -1, Upload: fmt.Sprintf("%016x%016x", hash(f.Seed, uint64(device)), hash(uint64(m.n)))}
	first := len(b.Facts)
	var lost, used int64 // blocks that did not arrive; bytes, including those of lost blocks
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

// skew returns the error of the clock of a device.
func (f *fleet) skew(device int) time.Duration {
	return time.Duration((2*f.uniform(10, device, 0) - 1) * float64(f.Skew))
}

// ids returns the identifiers of the paths of a build.
func (f *fleet) ids(build int, paths []source) (list []int64) {
	for i := range paths {
		list = append(list, f.path(build, &paths[i], &simMoment{}).Path)
	}
	return list
}

// path returns the row of a path of a build, at a simMoment of a device.
func (f *fleet) path(build int, p *source, m *simMoment) store.Path {
	row := store.Path{Build: f.BuildID(build)}
	for _, o := range p.frames {
		switch f.Bases {
		case PerBuild:
			row.Addresses = append(row.Addresses, fmt.Sprintf("code+%#x", o+uint64(build)*0x10a4))
		case PerBoot:
			base := 0x550000000000 + hash(uint64(m.started.UnixNano()))>>24<<12
			row.Addresses = append(row.Addresses, fmt.Sprintf("%#x", base+o))
		default:
			row.Addresses = append(row.Addresses, fmt.Sprintf("code+%#x", o))
		}
	}
	row.Path = store.PathID(row.Addresses)
	return row
}

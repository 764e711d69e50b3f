package heaplog

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording/reconcile"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// dump is a dump under construction: its start, and what an assembler has added to it.
type dump struct {
	*start
	isPaths bool             // it has call paths
	heaps   []profile.Heap   // latest report of the allocator on each
	holes   []codec.Range    // free blocks that the reports list
	unread  bool             // the rest of its log cannot be read
	only    bool             // it is the only dump
	loss    profile.Loss     // of its records
	written profile.Value    // sum of the records in the log
	builder *profile.Builder // whose open dump it is
	in      *callPaths       // of the boot, nil if the dump has no entries so far
	mixed   bool             // builder has records that are in no pathValues
	records []pathRecord     // the ~m# records of a dump of call paths, by path
	index   map[profile.Path]int
	blocks  []replay.Block // that have addresses
	named   []namedBlock
	stamps  []profile.Stamp      // if its header has no time
	said    *reconcile.Announced // what its headers announce, where they differ; nil if it is not reconciled
	naming  int                  // how often the load bases had changed when it began
	old     bool                 // a block has no address, or one that an earlier dump of the boot has
	line    []byte               // the last one of call paths
}

// pathRecord is the sum of the records of a path.
type pathRecord struct {
	path profile.Path
	sum  callpath.PathSum
}

// namedBlock is a block of a line of call paths. Its call path is known when the dump ends.
type namedBlock struct {
	callpath.Block
	id callpath.ID
}

// newDump returns a dump that begins.
func newDump(at *placed, b *profile.Builder) *dump {
	d := &dump{start: at.dump, isPaths: at.dump.isPaths || hasKind(at.dump.Begin), heaps: at.dump.heaps, builder: b, naming: at.naming}
	if d.headless && d.Sum.Names != nil { // recording has added up its lines
		d.in = at.callPaths
		d.written = profile.Value{Bytes: d.Sum.Bytes, Count: d.Sum.Live}
	}
	return d
}

// info returns what the headers say of the dump. (BT-HEAD-4, BT-DUMP-1)
func (d *dump) info(index int) profile.DumpInfo {
	i := profile.DumpInfo{Naming: d.naming, Offsets: d.isPaths && d.in != nil && !d.in.code.Known(), Name: fmt.Sprintf("dump %d", d.ordinal), File: d.File, Line: d.Line, Index: index, Boot: d.boot, Number: d.dumpNumber(),
		BootHeader: d.bootText, Loss: d.loss, Heaps: d.heaps, Fresh: !d.isPaths && !d.old && d.written.Count > 0, Written: d.written, Stamps: d.stamps, Paths: d.isPaths, Cut: !d.ended() && (d.marked() || d.unread) || d.headless}
	if d.only {
		i.Name = d.File
	}
	if h := d.header; h != nil {
		i.Build, _ = h.Get("build")
		i.Device, _ = h.Get("dev")
		i.Firmware, _ = h.Get("fw")
	}
	i.Announced.Records, i.Announced.HasRecords = d.Announced("n")
	i.Announced.Bytes, i.Announced.HasBytes = d.Announced("b")
	if a := d.said; a != nil {
		i.Announced = profile.Announced{Records: a.N, Bytes: a.B, HasRecords: a.HasN, HasBytes: a.HasB}
		i.Cut = i.Cut && !(a.HasN && a.HasB && d.written == profile.Value{Bytes: a.B, Count: a.N})
	}
	if h := d.Begin; h != nil {
		_, i.Foreign = h.Get(forms.ForeignKey)
		us, timed := h.Uint("t")
		i.Time, i.Timed = microseconds(us), timed
		i.Why, _ = h.Get("why")
		i.Sample, _ = h.Uint("sample")
		base, _ := h.Uint("base")
		i.Base = int64(base)
		_, i.Diff = d.Difference()
	}
	if h := d.End; h != nil && d.isPaths { // BT-DUMP-6
		folded, _ := h.Uint("cut")
		i.Loss.Folded = clampInt(folded)
	}
	if d.isPaths {
		i.Loss.Lines, i.Loss.NoBase = clampInt(d.Lines()), d.NoBase // BT-DUMP-4
	}
	return i
}

// heapSize returns the size of the heaps as far as the log has it, the largest number if it does not.
func (d *dump) heapSize() uint64 {
	var sizes []uint64
	for _, h := range d.heaps {
		n := h.Size.Bytes
		if !h.Size.Known {
			n = math.MaxUint64
		}
		sizes = append(sizes, n)
	}
	return reconcile.HeapSize(d.header, sizes)
}

// addRecord adds a record with its stack.
func (d *dump) addRecord(p profile.Path, v profile.Value) {
	d.written.Add(v)
	if !d.isPaths {
		d.mixed = true
		d.builder.Add(p, v)
		return
	}
	i, ok := d.index[p]
	if !ok {
		if d.index == nil {
			d.index = map[profile.Path]int{}
		}
		i = len(d.records)
		d.index[p] = i
		d.records = append(d.records, pathRecord{path: p})
	}
	d.records[i].sum.Add(&callpath.Entry{Live: v.Count, Bytes: v.Bytes}, d.Sum.Sample)
}

// count counts a record for what the headers announce, if it stands in the dump.
func (d *dump) count(at *placed) {
	if at.Dump != nil {
		d.Add(&at.item.Item, &at.Placed)
	}
}

// again reports whether a line of call paths is the line before once more: its text has its number.
func (d *dump) again(text []byte) bool {
	if bytes.Equal(text, d.line) {
		return true
	}
	d.line = append(d.line[:0], text...)
	return false
}

// addLine adds a line of call paths. (BT-DUMP-2)
func (d *dump) addLine(at *placed, blocks bool) {
	d.Add(&at.item.Item, &at.Placed)
	if !at.Ours && d.marked() {
		return // it is of another dump, or outside of this one
	}
	d.isPaths = true
	for i := range at.Entries {
		e := &at.Entries[i]
		if e.Definition {
			continue
		}
		if d.in == nil {
			d.in = at.callPaths
		}
		d.written.Add(profile.Value{Bytes: e.Bytes, Count: e.Live})
		for _, b := range e.Blocks {
			if blocks {
				d.named = append(d.named, namedBlock{b, d.ID(at.Boot, e.ID)})
			}
		}
	}
}

// waits reports whether a later line can still define a name that is not known yet.
func (d *dump) waits() bool { return d.in != nil && !d.in.closed && d.Sum.Waits() }

// build returns the dump with v, the values of its call paths. base has those of the dump from which it is
// a difference, nil if there is none. With snapshot, it returns the
// dump so far, and another dump of the same lines can be built later.
func (d *dump) build(info profile.DumpInfo, v, base *pathValues, snapshot bool) *profile.Dump {
	b := d.builder
	if v != nil && snapshot {
		b = b.Fork()
		for a := range d.builder.Dump(profile.DumpInfo{}).Allocations() { // ~m# records before the first ~p# line
			b.AddAllocation(a)
		}
	}
	saturated := false
	if snapshot || d.mixed || !v.addChanges(base, b, &info.Loss) {
		saturated = v.addTo(b, &info.Loss)
	}
	info.Loss.Partial = v != nil && v.partial
	var built *profile.Dump
	if snapshot {
		built = b.Dump(info)
	} else {
		built = b.End(info)
	}
	built.Records = clampInt(d.written.Count)
	built.Loss.Saturated = built.Loss.Saturated || saturated
	if v != nil && v.in != nil && !snapshot && !d.mixed {
		v.built, v.generation = built, v.in.process.Generation()
	}
	return built
}

// allBlocks yields the blocks of the dump. v has the values of its call paths.
func (d *dump) allBlocks(v *pathValues) iter.Seq[replay.Block] {
	return func(yield func(replay.Block) bool) {
		for _, b := range d.blocks {
			if !yield(b) {
				return
			}
		}
		for _, b := range d.named {
			if !yield(replay.Block{Addr: b.Address, Bytes: b.Size, Path: v.path(d.builder, b.id).Path}) {
				return
			}
		}
	}
}

func clampInt(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// microseconds converts a time of the log to a duration, limited to the longest duration.
func microseconds(us uint64) time.Duration {
	return time.Duration(min(us, uint64(math.MaxInt64/time.Microsecond))) * time.Microsecond
}

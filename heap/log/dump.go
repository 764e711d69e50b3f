package heaplog

import (
	"iter"
	"math"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// dump is a dump under construction. A sequence begins it with the content of its marks, and an
// assembler adds the records.
type dump struct {
	profile.DumpInfo
	ordinal int   // number of the dump in all logs, from 1
	log     int   // number of logs before the log of the dump
	offset  int64 // where it begins in the log
	space   []codec.Range

	marked   bool // begins with a ~h#begin line
	ended    bool // has a ~h#end line
	headless bool // its begin mark was lost
	repeats  bool // begins with the pending records, which repeat the beginning of the dump before
	isPaths  bool // has k= in its ~h#begin line, or a line of call paths
	// lines is the number of lines of call paths since the boot, at the begin mark; after the
	// end mark, the number in the dump. counted reports whether the marks have these numbers.
	lines   uint64
	counted bool

	builder *profile.Builder // whose open dump it is
	sum     callpath.Dump    // of the lines of call paths
	in      *callPaths       // of the boot, nil if the dump has no entries so far
	records []pathRecord     // the ~m# records of a dump of call paths, by path
	index   map[profile.Path]int
	blocks  []profile.Block // that have addresses
	named   []namedBlock
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

// newDump returns a dump that begins at a place.
func newDump(at Place) *dump {
	d := &dump{}
	d.beginAt(at)
	return d
}

func (d *dump) beginAt(p Place) { d.File, d.Line, d.offset = p.File, p.Line, p.Offset }

// beginMark reads a ~h#begin line. (BT-HEAD-4, BT-DUMP-1)
func (d *dump) beginMark(h *codec.Header) {
	d.marked, d.Number = true, int64(h.Number)
	us, timed := h.Uint("t")
	d.Time, d.Timed = microseconds(us), timed
	d.Why, _ = h.Get("why")
	d.announce(h)
	kind, isPaths := h.Get("k")
	d.isPaths, d.Diff = isPaths, kind == "diff"
	base, _ := h.Uint("base")
	d.Base = int64(base)
	d.Sample, _ = h.Uint("sample")
	d.lines, d.counted = h.Uint("l")
}

// endedBy reports whether an end mark closes the dump. open means that the last begin or end
// mark was a begin mark.
func (d *dump) endedBy(h *codec.Header, open bool) bool {
	if d.headless {
		return !d.ended && d.Number&63 == int64(h.Number)&63
	}
	return open && d.Number == int64(h.Number)
}

// endMark reads a ~h#end line.
func (d *dump) endMark(h *codec.Header) {
	d.ended, d.Number = true, int64(h.Number)
	d.announce(h)
	lines, ok := h.Uint("l")
	d.counted = d.counted && ok && lines >= d.lines
	d.lines = lines - d.lines
	if folded, _ := h.Uint("cut"); d.isPaths { // BT-DUMP-6
		d.Loss.Folded = clampInt(folded)
	}
}

func (d *dump) announce(h *codec.Header) {
	a := &d.Announced
	if n, ok := h.Uint("n"); ok {
		a.Records, a.HasRecords = n, true
	}
	if n, ok := h.Uint("b"); ok {
		a.Bytes, a.HasBytes = n, true
	}
}

// addRecord adds a record with its stack.
func (d *dump) addRecord(p profile.Path, v profile.Value) {
	d.Written.Add(v)
	if !d.isPaths {
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
	d.records[i].sum.Add(&callpath.Entry{Live: v.Count, Bytes: v.Bytes}, d.Sample)
}

// addLine adds the current line of call paths, before which other lines were lost. (BT-DUMP-2)
func (d *dump) addLine(c *callPaths, lost int64, blocks bool) {
	d.isPaths = true
	d.sum.Lines++
	d.sum.Gaps += lost
	for i := range c.entries {
		if e := &c.entries[i]; !e.Definition {
			d.addEntry(c, e, blocks)
		}
	}
}

func (d *dump) addEntry(c *callPaths, e *pathEntry, blocks bool) {
	if d.in == nil {
		d.in, d.sum.Names, d.sum.Sample = c, c.names, d.Sample
	}
	id := e.id
	if d.sum.Names != c.names { // module lines came after the first lines of the dump
		p := c.names.Path(id, nil)
		id = d.sum.Names.Add(&p)
	}
	d.Written.Add(profile.Value{Bytes: e.Bytes, Count: e.Live})
	d.sum.Add(id, &e.Entry)
	if blocks {
		for _, b := range e.Blocks {
			d.named = append(d.named, namedBlock{b, id})
		}
	}
}

// waits reports whether a later line can still define a name that is not known yet.
func (d *dump) waits() bool { return d.in != nil && !d.in.closed && d.sum.Waits() }

// build returns the dump with v, the values of its call paths. With snapshot, it returns the
// dump so far, and another dump of the same lines can be built later.
func (d *dump) build(v *pathValues, snapshot bool) *profile.Dump {
	b, info := d.builder, d.DumpInfo
	if v != nil && snapshot {
		b = b.Fork()
		for a := range d.builder.Dump(profile.DumpInfo{}).Allocations() { // ~m# records before the first ~p# line
			b.AddAllocation(a)
		}
	}
	saturated := v.addTo(b, &info.Loss)
	if d.isPaths {
		info.Loss.Lines = d.sum.Lost(d.lines, d.ended && d.counted) // BT-DUMP-4
	}
	var built *profile.Dump
	if snapshot {
		built = b.Dump(info)
	} else {
		built = b.End(info)
	}
	built.Records = clampInt(d.Written.Count)
	built.Loss.Saturated = built.Loss.Saturated || saturated
	return built
}

// allBlocks yields the blocks of the dump. v has the values of its call paths.
func (d *dump) allBlocks(v *pathValues) iter.Seq[profile.Block] {
	return func(yield func(profile.Block) bool) {
		for _, b := range d.blocks {
			if !yield(b) {
				return
			}
		}
		for _, b := range d.named {
			if !yield(profile.Block{Addr: b.Address, Bytes: b.Size, Path: v.path(d.builder, b.id).Path}) {
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

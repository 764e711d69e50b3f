package heaplog

import (
	"maps"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
)

// pathDump holds the call paths of a dump with lines of call paths: a dump with k= in its
// ~h#begin line, or without ~h# lines. The zero pathDump is ready for use.
type pathDump struct {
	sums    []pathSum
	paths   []profile.Path       // by index in sums
	index   map[profile.Path]int // in sums
	pending []pendingPath
	written profile.Value
	lines   int64 // read
	gaps    int64 // lines that are missing between those
	noOuter int64

	addresses map[uint64]struct{} // of blocks
	same      int64               // blocks at an address of addresses
}

// pendingPath is an entry of a call path whose outer frames have a name that is not known
// yet.
type pendingPath struct {
	in  *callPaths
	id  callpath.ID
	sum pathSum
}

// add adds an entry of a path.
func (d *pathDump) add(p profile.Path, s *pathSum) {
	i, ok := d.index[p]
	if !ok {
		if d.index == nil {
			d.index = map[profile.Path]int{}
		}
		i = len(d.sums)
		d.index[p] = i
		d.sums, d.paths = append(d.sums, pathSum{}), append(d.paths, p)
	}
	d.sums[i].add(s)
}

// entry adds an entry of a line.
func (d *pathDump) entry(b *profile.Builder, c *callPaths, e *pathEntry, sample uint64) {
	s := sumOf(e, sample)
	d.written.Add(e.live)
	for _, x := range e.blocks {
		if d.addresses == nil {
			d.addresses = map[uint64]struct{}{}
		}
		if _, known := d.addresses[x.Address]; known {
			d.same++
		}
		d.addresses[x.Address] = struct{}{}
	}
	x, ok := c.knownPath(b, e.id)
	if !ok {
		d.pending = append(d.pending, pendingPath{c, e.id, s})
		return
	}
	if x.noOuter {
		d.noOuter++
	}
	d.add(x.path, &s)
}

func (d *pathDump) addPath(b *profile.Builder, c *callPaths, id callpath.ID, s *pathSum) {
	path, noOuter := c.builderPath(b, id)
	if noOuter {
		d.noOuter++
	}
	d.add(path, s)
}

// waits reports whether a later line can still define a name that is not known yet.
func (d *pathDump) waits() bool {
	if d == nil {
		return false
	}
	return slices.ContainsFunc(d.pending, func(x pendingPath) bool { return !x.in.closed && !x.in.known(x.id) })
}

// resolved returns the dump with the pending entries, as far as their names are known by
// now. d does not change.
func (d *pathDump) resolved(b *profile.Builder) *pathDump {
	if len(d.pending) == 0 {
		return d
	}
	r := *d
	r.sums, r.paths, r.index, r.pending = slices.Clone(d.sums), slices.Clone(d.paths), maps.Clone(d.index), nil
	for i := range d.pending {
		x := &d.pending[i]
		r.addPath(b, x.in, x.id, &x.sum)
	}
	return &r
}

// maxBases is the number of dumps of a boot that are kept, since a later dump may be a
// difference from one of them.
const maxBases = 64

// bases holds the latest dumps of a boot by number.
type dumpBases struct {
	boot   int
	dumps  map[int64]*profile.Dump
	latest []int64 // numbers in dumps, the oldest first
}

func (b *dumpBases) add(d *profile.Dump) {
	if b.boot != d.Boot || b.dumps == nil {
		*b = dumpBases{boot: d.Boot, dumps: map[int64]*profile.Dump{}}
	}
	if b.dumps[d.Number] == nil {
		if len(b.latest) == maxBases {
			delete(b.dumps, b.latest[0])
			b.latest = b.latest[1:]
		}
		b.latest = append(b.latest, d.Number)
	}
	b.dumps[d.Number] = d
}

// get returns a dump of a boot, nil if it is not there.
func (b *dumpBases) get(boot int, number int64) *profile.Dump {
	if b.boot != boot {
		return nil
	}
	return b.dumps[number]
}

// endedDump is a dump with all its lines, before it is yielded.
type endedDump struct {
	facts   profile.Dump
	from    *dumpStart
	number  int
	builder *profile.Builder // whose open dump it is
	paths   *pathDump        // nil if it has no lines of call paths
}

// build returns the dump. With snapshot, it returns the dump so far, and another dump of the
// same lines can be built later.
func (e *endedDump) build(bases *dumpBases, snapshot bool) *profile.Dump {
	b := e.builder
	if e.paths == nil {
		var d *profile.Dump
		if snapshot {
			d = b.Dump(e.facts)
		} else {
			d = b.End(e.facts)
		}
		d.Written = profile.Value{Bytes: d.Total.Bytes, Count: uint64(d.Records)}
		return d
	}
	others := b.Dump(profile.Dump{}) // ~m# records of a dump without k=
	if snapshot {
		b = b.Fork()
		for a := range others.Allocations() {
			b.AddAllocation(a)
		}
	}
	paths, facts := *e.paths.resolved(b), e.facts
	paths.written.Add(profile.Value{Bytes: others.Total.Bytes, Count: uint64(others.Records)})
	facts.Written, facts.Sample, facts.Diff, facts.Base = paths.written, e.from.sample, e.from.diff, e.from.base
	facts.Loss.NoOuter += paths.noOuter
	facts.Loss.Lines = e.lost()
	facts.Loss.Folded = clampInt(e.from.folded)
	if e.from.diff { // BT-DUMP-3
		base := bases.get(facts.Boot, e.from.base)
		facts.Loss.NoBase = base == nil || !base.Complete() || base.Loss.Lines > 0
		for a := range base.Allocations() {
			if _, changed := paths.index[a.Path]; !changed {
				b.AddAllocation(a)
			}
		}
	}
	saturated := false
	var bytes, count rounding
	for i := range paths.sums {
		s := &paths.sums[i]
		saturated = saturated || s.saturated
		b.AddAllocation(s.allocation(paths.paths[i], e.from.sample, &bytes, &count))
	}
	d := b.Dump(facts)
	if !snapshot {
		d = b.End(facts)
	}
	d.Records = clampInt(paths.written.Count)
	d.Loss.Saturated = d.Loss.Saturated || saturated
	return d
}

// lost returns the number of lines that are missing. If both the ~h#begin and the ~h#end line
// have the number of lines before them, this includes lines at the end of the dump. (BT-DUMP-4)
func (e *endedDump) lost() int64 {
	from, to := e.from.lines[0], e.from.lines[1]
	if from.known && to.known && to.n >= from.n {
		return max(0, clampInt(to.n-from.n)-e.paths.lines)
	}
	return e.paths.gaps
}

func clampInt(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// allocation returns the values of a call path, scaled if the dump is sampled.
func (s *pathSum) allocation(p profile.Path, sample uint64, bytes, count *rounding) profile.Allocation {
	a := profile.Allocation{Path: p, Value: s.live, Ever: s.ever, Peak: s.peak}
	if sample == 0 {
		return a
	}
	a.Value = profile.Value{Bytes: bytes.next(s.bytes), Count: count.next(s.count)}
	a.BytesErr, a.CountErr = math.Sqrt(s.bytesVar), math.Sqrt(s.countVar)
	return a
}

// rounding rounds estimates to integers whose sum is the rounded sum of the estimates. It is
// the sum of the estimates less the sum of the integers so far.
type rounding float64

// next returns an integer less than 1 from v, at most 2^64-1.
func (r *rounding) next(v float64) uint64 {
	v += float64(*r)
	n := math.Round(v)
	*r = rounding(v - n)
	if n >= 1<<64 {
		return math.MaxUint64
	}
	return uint64(max(n, 0))
}

// maxParked is the number of dumps that wait for the names of call paths. A device repeats
// each definition within 16 dumps. (BT-NAME-4)
const maxParked = 32

// pathLine adds a line of call paths. (BT-DUMP-2)
func (a *assembler) pathLine(p *pass, b boundary) bool {
	if b == newDump && !a.begin(p) {
		return false
	}
	if len(a.held) > 0 {
		a.release()
	}
	if len(a.parked) > 0 && !a.unpark(p, false) {
		return false
	}
	d := a.current
	if d == nil || d.ended {
		return true // definitions
	}
	if a.paths == nil {
		a.paths = &pathDump{}
	}
	d.paths = true
	a.paths.lines++
	a.paths.gaps += p.lostLines
	for i := range p.paths.entries {
		if e := &p.paths.entries[i]; !e.definition {
			a.paths.entry(a.builder, p.paths, e, d.sample)
		}
	}
	return true
}

// emit yields a dump if it is selected.
func (a *assembler) emit(p *pass, e *endedDump) bool {
	e.facts.Index = a.yielded
	d := e.build(&a.bases, false)
	if e.paths != nil {
		if e.from.marked {
			a.bases.add(d)
		}
		p.tally.pathDump(e.paths)
	}
	switch {
	case a.r.selected && a.r.from < 0:
		a.last, a.lastFrom = d, e.from
		return true
	case !a.r.selectsDump(e.number, math.MaxInt), a.r.resplits(p.sequence):
		return true
	}
	a.yielded++
	p.tally.dump(d, e.from)
	return a.yielded <= a.skip || a.yield(d, nil)
}

// unpark emits the parked dumps that wait for no name, in order. With all, it emits all.
func (a *assembler) unpark(p *pass, all bool) bool {
	for len(a.parked) > 0 {
		e := a.parked[0]
		if !all && len(a.parked) <= maxParked && e.paths.waits() {
			break
		}
		a.parked = a.parked[1:]
		if !a.emit(p, e) {
			return false
		}
	}
	return true
}

// pathDump counts what is unusual in the call paths of a dump.
func (t *tally) pathDump(d *pathDump) {
	t.sameAddress += d.same
	for i := range d.sums {
		if d.sums[i].peaks > 1 {
			t.peakParts++
		}
	}
}

// pathNotes returns the notes on lines of call paths.
func (p *pass) pathNotes(note func(kind NoteKind, format string, args ...any)) {
	t := &p.tally
	if t.kind != "" {
		note(NoteInfo, "dumps with k=%s are read as k=paths", printable.Text(t.kind))
	}
	if t.sameAddress > 0 {
		note(NoteLoss, "%s in a dump at the address of another one: both count", printable.Count(t.sameAddress, "block"))
	}
	if t.peakParts > 0 {
		note(NoteInfo, "peaks of %s were recorded in parts: their sums are upper bounds", printable.Count(t.peakParts, "call path"))
	}
	if t.outside > 0 {
		note(NoteSymbols, "%s in no known code: give -e, or code= in ~h#boot", printable.Count(t.outside, "code offset"))
	}
	if t.lostAllocs > 0 {
		note(NoteLoss, "lines of events were lost, with %s", printable.Count(clampInt(t.lostAllocs), "allocation"))
	} else if t.lostEventLines > 0 {
		note(NoteLoss, "%s of events were lost", printable.Count(t.lostEventLines, "line"))
	}
}

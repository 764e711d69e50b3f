package heaplog

import (
	"math"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
)

// pathDump holds a dump with lines of call paths: a dump with k= in its ~h#begin line, or
// without ~h# lines. The zero pathDump is ready for use.
type pathDump struct {
	sum     callpath.Dump
	in      *callPaths // of the boot, nil if the dump has no entries so far
	written profile.Value
	records []pathRecord // the ~m# records of the dump, by path
	index   map[profile.Path]int
}

// pathRecord is the sum of the records of a path.
type pathRecord struct {
	path profile.Path
	sum  callpath.PathSum
}

// record adds a record with its stack.
func (d *pathDump) record(p profile.Path, bytes, sample uint64) {
	d.written.Add(profile.Value{Bytes: bytes, Count: 1})
	i, ok := d.index[p]
	if !ok {
		if d.index == nil {
			d.index = map[profile.Path]int{}
		}
		i = len(d.records)
		d.index[p] = i
		d.records = append(d.records, pathRecord{path: p})
	}
	d.records[i].sum.Add(&callpath.Entry{Live: 1, Bytes: bytes}, sample)
}

// entry adds an entry of a line, and its blocks to a list.
func (d *pathDump) entry(c *callPaths, e *pathEntry, sample uint64, blocks *blockList) {
	if d.in == nil {
		d.in, d.sum.Names, d.sum.Sample = c, c.names, sample
	}
	id := e.id
	if d.sum.Names != c.names { // module lines came after the first lines of the dump
		p := c.names.Path(id, nil)
		id = d.sum.Names.Add(&p)
	}
	d.written.Add(profile.Value{Bytes: e.Bytes, Count: e.Live})
	d.sum.Add(id, &e.Entry)
	if blocks.wanted {
		for _, b := range e.Blocks {
			blocks.named = append(blocks.named, namedBlock{b, id})
		}
	}
}

// waits reports whether a later line can still define a name that is not known yet.
func (d *pathDump) waits() bool {
	return d != nil && d.in != nil && !d.in.closed && d.sum.Waits()
}

// maxBases is the number of dumps of a boot that are kept, since a later dump may be a
// difference from one of them.
const maxBases = 64

// dumpBases holds the latest dumps of a boot by number.
type dumpBases struct {
	boot   int
	dumps  map[int64]*dumpPaths
	latest []int64 // numbers in dumps, the oldest first
}

// dumpPaths has the call paths of a dump. If the dump is a difference, they include those of
// its base.
type dumpPaths struct {
	in       *callPaths // of the boot, nil if there are no paths
	names    *callpath.Names
	paths    []callpath.PathSum
	own      int // number of paths that are the dump's own, before those of its base
	records  []pathRecord
	noBase   bool // the base is missing or not complete
	complete bool
}

// add adds a dump with its paths.
func (b *dumpBases) add(d *profile.Dump, s *dumpPaths) {
	if b.boot != d.Boot || b.dumps == nil {
		*b = dumpBases{boot: d.Boot, dumps: map[int64]*dumpPaths{}}
	}
	if b.dumps[d.Number] == nil {
		if len(b.latest) == maxBases {
			delete(b.dumps, b.latest[0])
			b.latest = b.latest[1:]
		}
		b.latest = append(b.latest, d.Number)
	}
	s.complete = d.Complete() && d.Loss.Lines == 0
	b.dumps[d.Number] = s
}

// get returns a dump of a boot, nil if it is not there.
func (b *dumpBases) get(boot int, number int64) *dumpPaths {
	if b.boot != boot {
		return nil
	}
	return b.dumps[number]
}

// endedDump is a dump with all its lines, before it is yielded.
type endedDump struct {
	facts   profile.DumpInfo
	from    *dumpStart
	number  int
	builder *profile.Builder // whose open dump it is
	paths   *pathDump        // nil if it has no lines of call paths
	blocks  blockList
}

// sums returns the call paths of the dump, nil if it has no lines of call paths.
func (e *endedDump) sums(bases *dumpBases) *dumpPaths {
	if e.paths == nil {
		return nil
	}
	d := e.paths
	s := &dumpPaths{in: d.in, names: d.sum.Names, paths: d.sum.Paths(), records: d.records}
	s.own = len(s.paths)
	if !e.from.diff { // BT-DUMP-3
		return s
	}
	base := bases.get(e.facts.Boot, e.from.base)
	s.noBase = base == nil || !base.complete
	if base == nil || base.in != nil && s.in != nil && base.names != s.names {
		return s
	}
	if s.in == nil {
		s.in, s.names = base.in, base.names
	}
	if base.in != nil {
		s.paths = s.names.Apply(s.paths, base.paths)
	}
	for _, r := range base.records {
		if _, changed := d.index[r.path]; !changed {
			s.records = append(s.records[:len(s.records):len(s.records)], r)
		}
	}
	return s
}

// path returns the call path of a Builder.
func (s *dumpPaths) path(b *profile.Builder, id callpath.ID) (p profile.Path, noOuter bool) {
	if s.names == s.in.names {
		if x, ok := s.in.knownPath(b, id); ok {
			return x.path, x.noOuter
		}
	}
	return s.in.builderPath(b, s.names.Path(id, nil))
}

// build returns the dump with the paths that sums returned. With snapshot, it returns the dump
// so far, and another dump of the same lines can be built later.
func (e *endedDump) build(sum *dumpPaths, snapshot bool) *profile.Dump {
	b := e.builder
	if sum == nil {
		var d *profile.Dump
		if snapshot {
			d = b.Dump(e.facts)
		} else {
			d = b.End(e.facts)
		}
		d.Written = profile.Value{Bytes: d.Total.Bytes, Count: uint64(d.Records)}
		return d
	}
	others := b.Dump(profile.DumpInfo{}) // ~m# records of a dump without k=
	if snapshot {
		b = b.Fork()
		for a := range others.Allocations() {
			b.AddAllocation(a)
		}
	}
	facts := e.facts
	facts.Written, facts.Sample, facts.Diff, facts.Base = e.paths.written, e.from.sample, e.from.diff, e.from.base
	facts.Written.Add(profile.Value{Bytes: others.Total.Bytes, Count: uint64(others.Records)})
	facts.Loss.Lines = e.lost()
	facts.Loss.Folded = clampInt(e.from.folded)
	facts.Loss.NoBase = sum.noBase
	var round roundings
	saturated := false
	add := func(p profile.Path, s *callpath.PathSum) {
		saturated = saturated || s.Saturated
		b.AddAllocation(round.allocation(p, s))
	}
	for i := range sum.paths {
		s := &sum.paths[i]
		path, noOuter := sum.path(b, s.ID)
		if noOuter && i < sum.own {
			facts.Loss.NoOuter += int64(s.Entries)
		}
		add(path, s)
	}
	for i := range sum.records {
		add(sum.records[i].path, &sum.records[i].sum)
	}
	d := b.Dump(facts)
	if !snapshot {
		d = b.End(facts)
	}
	d.Records = clampInt(facts.Written.Count)
	d.Loss.Saturated = d.Loss.Saturated || saturated
	return d
}

// lost returns the number of lines that are missing. If both the ~h#begin and the ~h#end line
// have the number of lines before them, this includes lines at the end of the dump. (BT-DUMP-4)
func (e *endedDump) lost() int64 {
	from, to := e.from.lines[0], e.from.lines[1]
	return e.paths.sum.Lost(to.n-from.n, from.known && to.known && to.n >= from.n)
}

func clampInt(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// roundings are the rounding errors of the bytes and blocks of a sampled dump.
type roundings struct{ bytes, count rounding }

// allocation returns the values of a call path: estimates, if the dump is sampled.
func (r *roundings) allocation(p profile.Path, s *callpath.PathSum) profile.Allocation {
	a := profile.Allocation{Path: p, Value: profile.Value{Bytes: s.Bytes, Count: s.Live},
		Ever: profile.Value{Bytes: s.AllocBytes, Count: s.Allocs}, Peak: s.Peak}
	if s.LiveEst == 0 && s.BytesEst == 0 {
		return a
	}
	a.Value = profile.Value{Bytes: r.bytes.next(s.BytesEst), Count: r.count.next(s.LiveEst)}
	a.BytesErr, a.CountErr = math.Sqrt(s.BytesVar), math.Sqrt(s.LiveVar)
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
	a.paths.sum.Lines++
	a.paths.sum.Gaps += p.lostLines
	for i := range p.paths.entries {
		if e := &p.paths.entries[i]; !e.Definition {
			a.paths.entry(p.paths, e, d.sample, &a.blocks)
		}
	}
	return true
}

// emit yields a dump if it is selected.
func (a *assembler) emit(p *pass, e *endedDump) bool {
	e.facts.Index = a.yielded
	sum := e.sums(&a.bases)
	d := e.build(sum, false)
	if sum != nil {
		p.tally.pathDump(e.paths, sum)
		if e.from.marked {
			a.bases.add(d, sum)
		}
	}
	switch {
	case a.r.selected && a.r.from < 0:
		a.last, a.lastFrom = e.yielded(d, sum), e.from
		return true
	case !a.r.selectsDump(e.number, math.MaxInt), a.r.resplits(p.sequence):
		return true
	}
	a.yielded++
	p.tally.dump(d, e.from)
	return a.yielded <= a.skip || a.yield(e.yielded(d, sum), nil)
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

// pathDump counts irregularities in the call paths of a dump.
func (t *tally) pathDump(d *pathDump, sum *dumpPaths) {
	t.sameAddress += d.sum.SameAddress
	for i := range sum.own {
		if sum.paths[i].Peaks > 1 {
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
		note(NoteSymbols, "%s in no known code: no ELF file is given, and ~h#boot has no code=", printable.Count(t.outside, "code offset"))
	}
	if t.lostAllocs > 0 {
		note(NoteLoss, "lines of events were lost, with %s", printable.Count(clampInt(t.lostAllocs), "allocation"))
	} else if t.lostEventLines > 0 {
		note(NoteLoss, "%s of events were lost", printable.Count(t.lostEventLines, "line"))
	}
}

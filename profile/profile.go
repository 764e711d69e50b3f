package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Limits of a profile unless others are set. At both limits, with symbols or
// without, a profile takes under 2.5 GB.
const (
	DefaultMaxPaths     = 10_000_000
	DefaultMaxLocations = 40_000_000
)

// Profile is allocations by call path, in one dump or in several that share the
// numbers of their paths. The zero Profile is empty and ready to use.
type Profile struct {
	Dumps []*Dump
	// MaxPaths is how many distinct call paths are kept, 0 for DefaultMaxPaths. The
	// records of further paths are added up as one path, [Other].
	MaxPaths int
	// MaxLocations does the same for distinct addresses.
	MaxLocations int
	// OtherRecords is how many records are in that path.
	OtherRecords uint64
	// Saturated reports that a sum reached the largest value, 2^64-1.
	Saturated bool

	locations locations
	paths     paths
	other     PathID
	hasOther  bool
	open      *Dump
}

// Other is the name of the single frame of call paths past the limits of a [Profile].
const Other = "(other call paths)"

// otherTag is the tag of the location behind Other; no caller's tag is so large.
const otherTag = 1<<32 - 1

// Dump is the live allocations at one moment.
type Dump struct {
	Name   string // what reports call it: "dump 3", or the name of a file
	Boot   int    // which boot of the log it is of, from 1
	Number int64  // as a ~h# line numbers it, else counted, from 1
	File   string // where it begins
	Line   int64
	Time   uint64 // microseconds since the boot, if Timed
	Timed  bool

	// Announced are the totals that a ~h# line gave, if HasAnnounced*.
	AnnouncedRecords, AnnouncedBytes       uint64
	HasAnnouncedRecords, HasAnnouncedBytes bool
	// Cut reports that the dump was opened by a ~h# line and never closed.
	Cut bool

	Records int64 // that were added
	NoSize  int64 // of these, cut before their size: they count 0 bytes
	Total   Value

	// Of these, one holds the values. few while there are few beside the numbers of
	// their paths: what a dump takes is not to depend on those before it. sparse once
	// ended, if fewer than half of dense are not zero.
	few    map[PathID]Value
	dense  array[Value] // by PathID
	sparse []pathValue  // by PathID
}

// Complete reports whether a dump has its end and as many records as were announced,
// if its log tells.
func (d *Dump) Complete() bool {
	return !d.Cut && (!d.HasAnnouncedRecords || uint64(d.Records) >= d.AnnouncedRecords)
}

// maxFew and fewOf bound the numbers that dense has: maxFew, and fewOf for each record.
const (
	maxFew = 1 << 10
	fewOf  = 16
)

type pathValue struct {
	path PathID
	Value
}

// Begin begins another dump, to which Add adds, and ends the one before.
func (p *Profile) Begin(d Dump) *Dump {
	p.End()
	p.open = &d
	p.Dumps = append(p.Dumps, p.open)
	return p.open
}

// End ends the open dump, if there is one.
func (p *Profile) End() {
	d := p.open
	p.open = nil
	if d == nil {
		return
	}
	if d.few != nil {
		d.sparse, d.few = d.sorted(), nil
		return
	}
	if d.dense.n == 0 {
		return
	}
	n := 0
	for _, c := range d.dense.chunks {
		for i := range c {
			if !c[i].IsZero() {
				n++
			}
		}
	}
	if n >= d.dense.n/2 {
		return
	}
	d.sparse = make([]pathValue, 0, n)
	for id, v := range d.Values() {
		d.sparse = append(d.sparse, pathValue{id, v})
	}
	d.dense = array[Value]{}
}

// Location returns the number of a return address. A tag, below 2^32-1, distinguishes
// equal addresses of different places: of another boot or map. If fresh, the address is
// new, and [Profile.Describe] may be called for it.
func (p *Profile) Location(addr uint64, tag uint32) (id LocationID, fresh bool) {
	return p.locations.intern(addr, tag)
}

// Describe sets what is known of a location.
func (p *Profile) Describe(id LocationID, l *Location) {
	d := &p.locations.detail
	if int(id) >= len(*d) {
		*d = append(*d, make([]*Location, int(id)+1-len(*d))...)
	}
	(*d)[id] = l
}

// LocationAt returns what is known of a location: at least its address.
func (p *Profile) LocationAt(id LocationID) *Location {
	if l := p.described(id); l != nil {
		return l
	}
	addr := p.locations.keys.at(int(id)).addr
	return &Location{Addr: addr, Call: addr}
}

// described returns the location given to Describe, nil if there was none.
func (p *Profile) described(id LocationID) *Location {
	if int(id) < len(p.locations.detail) {
		return p.locations.detail[id]
	}
	return nil
}

// Known returns the index of the addresses for which Location was called. Other goroutines
// may get from it what they find.
func (p *Profile) Known() *Index { return &p.locations.index }

// Path returns the number of a call path, innermost frame first. Past the limits
// it is the path [Other], and more is true.
func (p *Profile) Path(frames []LocationID) (id PathID, more bool) {
	p.paths.encode(frames)
	return p.PathByKey(p.paths.key, hashKey(p.paths.key))
}

// AppendPathKey appends what a call path is stored as, and returns a hash of it, both for
// [Profile.PathByKey]. It uses nothing of a profile.
func AppendPathKey(dst []byte, frames []LocationID) (key []byte, hash uint32) {
	key = appendKey(dst, frames)
	return key, hashKey(key[len(dst):])
}

// PathByKey is [Profile.Path] for a path of which key and hash are known.
func (p *Profile) PathByKey(key []byte, hash uint32) (id PathID, more bool) {
	id, slot, found := p.paths.findKey(key, hash)
	switch {
	case found:
		return id, false
	case p.paths.start.n < limit(p.MaxPaths, DefaultMaxPaths):
		return p.paths.addKey(key, hash, slot), false
	}
	return p.OtherPath(), true
}

// Expect prefetches what PathByKey reads for these hashes. The result only keeps the
// compiler from leaving that out.
func (p *Profile) Expect(hashes []uint32) uint32 { return p.paths.touch(hashes) }

// OtherPath returns the call path [Other].
func (p *Profile) OtherPath() PathID {
	if !p.hasOther {
		l, _ := p.locations.intern(0, otherTag)
		p.Describe(l, &Location{Frames: []Frame{{Func: Other}}})
		p.paths.encode([]LocationID{l})
		_, hash, slot, _ := p.paths.find()
		p.other, p.hasOther = p.paths.add(hash, slot), true
	}
	return p.other
}

// HasCapacity reports whether Location may be called for n more distinct addresses. If
// not, use OtherPath for call paths that have a new one.
func (p *Profile) HasCapacity(n int) bool {
	return p.locations.keys.n+n <= limit(p.MaxLocations, DefaultMaxLocations)
}

func limit(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Add adds to a call path in the open dump; there must be one.
func (p *Profile) Add(id PathID, v Value) {
	d := p.open
	if d.few == nil && int(id) >= d.dense.n && int64(id) >= maxFew+fewOf*d.Records {
		d.fewNow()
	}
	if d.few != nil {
		sum := d.few[id]
		if sum.Add(v) {
			p.Saturated = true
		}
		d.few[id] = sum
		if len(d.few) > maxFew/fewOf && len(d.few)*fewOf > p.Paths() {
			d.manyNow()
		}
	} else {
		for d.dense.n <= int(id) {
			d.dense.push(Value{})
		}
		if d.dense.at(int(id)).Add(v) {
			p.Saturated = true
		}
	}
	if d.Total.Add(v) {
		p.Saturated = true
	}
	d.Records++
	if p.hasOther && id == p.other {
		p.OtherRecords++
	}
}

// sorted returns the few values by the numbers of their paths.
func (d *Dump) sorted() []pathValue {
	list := make([]pathValue, 0, len(d.few))
	for id, v := range d.few {
		list = append(list, pathValue{id, v})
	}
	slices.SortFunc(list, func(a, b pathValue) int { return cmp.Compare(a.path, b.path) })
	return list
}

// fewNow makes few of dense.
func (d *Dump) fewNow() {
	few := map[PathID]Value{}
	for id, v := range d.Values() {
		few[id] = v
	}
	d.few, d.dense = few, array[Value]{}
}

// manyNow makes dense of few.
func (d *Dump) manyNow() {
	for _, v := range d.sorted() {
		for d.dense.n < int(v.path) {
			d.dense.push(Value{})
		}
		d.dense.push(v.Value)
	}
	d.few = nil
}

// Paths returns how many call paths there are.
func (p *Profile) Paths() int { return p.paths.start.n }

// Locations returns how many locations there are.
func (p *Profile) Locations() int { return p.locations.keys.n }

// AppendPath appends the locations of a call path, innermost first.
func (p *Profile) AppendPath(dst []LocationID, id PathID) []LocationID {
	return p.paths.append(dst, id)
}

// Values returns the call paths that hold something, by number.
func (d *Dump) Values() iter.Seq2[PathID, Value] {
	return d.valuesIn(0, math.MaxInt)
}

// valuesIn returns those with numbers from from up to but not including to.
func (d *Dump) valuesIn(from, to int) iter.Seq2[PathID, Value] {
	return func(yield func(PathID, Value) bool) {
		list := d.sparse
		if d.few != nil {
			list = d.sorted()
		}
		at, _ := slices.BinarySearchFunc(list, from, func(v pathValue, id int) int { return int(v.path) - id })
		for _, v := range list[at:] {
			if int(v.path) >= to || !yield(v.path, v.Value) {
				return
			}
		}
		for i := from; i < min(to, d.dense.n); i++ {
			if v := *d.dense.at(i); !v.IsZero() && !yield(PathID(i), v) {
				return
			}
		}
	}
}

// Value returns what a call path holds in the dump.
func (d *Dump) Value(id PathID) Value {
	if d.few != nil {
		return d.few[id]
	}
	if d.sparse != nil {
		i, ok := slices.BinarySearchFunc(d.sparse, id, func(v pathValue, id PathID) int { return int(v.path) - int(id) })
		if ok {
			return d.sparse[i].Value
		}
		return Value{}
	}
	if int(id) < d.dense.n {
		return *d.dense.at(int(id))
	}
	return Value{}
}

// Stacks returns how many distinct call paths hold something in the dump.
func (d *Dump) Stacks() int {
	n := 0
	for range d.Values() {
		n++
	}
	return n
}

// Sum returns dumps of the profile added up as one, which is not one of its Dumps.
func (p *Profile) Sum(dumps []*Dump) *Dump {
	if len(dumps) == 1 {
		return dumps[0]
	}
	sum := &Dump{Name: dumps[0].Name + " to " + dumps[len(dumps)-1].Name, File: dumps[0].File, Line: dumps[0].Line}
	for _, d := range dumps {
		for id, v := range d.Values() {
			for sum.dense.n <= int(id) {
				sum.dense.push(Value{})
			}
			if sum.dense.at(int(id)).Add(v) || sum.Total.Add(v) {
				p.Saturated = true
			}
		}
		sum.Records += d.Records
		sum.NoSize += d.NoSize
	}
	return sum
}

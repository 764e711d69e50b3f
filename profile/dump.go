package profile

import (
	"iter"
	"slices"
	"time"
)

// Dump holds the allocations that were live at one moment, by call path. A Dump that a
// [Builder] has returned does not change.
type Dump struct {
	Name   string        // the name in reports: "dump 3", or the name of a file
	File   string        // the log in which it begins
	Line   int64         // line in File where it begins, from 1; 0 if not known
	Index  int           // among the dumps of all inputs, from 0
	Boot   int           // boot of the device, from 1
	Number int64         // number of the dump in the log, or else counted from 1
	Time   time.Duration // since the boot, if Timed
	Timed  bool
	Why    string // what caused the dump, as its ~h#begin says: "exit", "interval"; "" if not known

	Records   int64 // number of records added
	Total     Value
	Announced Announced
	Loss      Loss
	Cut       bool // the end is missing: the log has a begin mark and no end mark, or reading failed
	Ended     bool // no more records will be added

	in     *paths
	addrs  int // of in, which the call paths are made of
	ids    []uint32
	values []Value // by index in ids
}

// Announced holds the numbers that the marks of a dump in the log announce.
type Announced struct {
	Records, Bytes       uint64
	HasRecords, HasBytes bool
}

// Loss counts the records of a dump that are incomplete.
type Loss struct {
	Unreadable int64
	Cut        int64 // call paths that lack their outer frames
	NoSize     int64 // records cut before the size, which count 0 bytes
	OtherPaths int64 // records of call paths beyond the limit, added up as one path
	Saturated  bool  // a sum overflowed and is 2^64-1
}

// Complete reports whether no part of the dump is known to be missing: the dump has ended,
// it has an end mark if it has a begin mark, and its number of records is the announced
// one.
func (d *Dump) Complete() bool {
	return d.Ended && !d.Cut && (!d.Announced.HasRecords || uint64(d.Records) >= d.Announced.Records)
}

// Missing returns the fraction of the announced blocks that is missing, from 0 to 1. known is
// false if the log does not say how many blocks the dump had.
func (d *Dump) Missing() (fraction float64, known bool) {
	if !d.Announced.HasRecords {
		return 0, false
	}
	if n := d.Announced.Records; n > d.Total.Count {
		return float64(n-d.Total.Count) / float64(n), true
	}
	return 0, true
}

// Allocation is the sum of the live allocations of one call path.
type Allocation struct {
	Path
	Value
}

// Allocations returns the allocations of the dump by call path, in the order in which the
// Builder first met the paths. No value is zero.
func (d *Dump) Allocations() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		if d == nil {
			return
		}
		for i, id := range d.ids {
			if !yield(Allocation{Path{d.in, id}, d.values[i]}) {
				return
			}
		}
	}
}

// Len returns the number of call paths with live allocations.
func (d *Dump) Len() int {
	if d == nil {
		return 0
	}
	return len(d.ids)
}

// Value returns the live allocations of a call path in the dump.
func (d *Dump) Value(p Path) Value {
	if d == nil || p.in != d.in {
		return Value{}
	}
	i, ok := slices.BinarySearch(d.ids, p.id)
	if !ok {
		return Value{}
	}
	return d.values[i]
}

// Sum returns the sum of several dumps as one dump, named after the first and the last. The
// sum of one dump is that dump itself.
func Sum(dumps ...*Dump) *Dump {
	dumps = slices.DeleteFunc(slices.Clone(dumps), func(d *Dump) bool { return d == nil })
	switch len(dumps) {
	case 0:
		return &Dump{Ended: true}
	case 1:
		return dumps[0]
	}
	first, last := dumps[0], dumps[len(dumps)-1]
	facts := Dump{Name: first.Name + " to " + last.Name, File: first.File, Line: first.Line, Boot: first.Boot}
	records := int64(0)
	b := builderOn(dumps)
	for _, d := range dumps {
		for a := range d.Allocations() {
			b.Add(a.Path, a.Value)
		}
		records += d.Records
		facts.Loss.add(&d.Loss)
		facts.Cut = facts.Cut || d.Cut
	}
	sum := b.End(facts)
	sum.Records = records
	sum.Loss.OtherPaths = facts.Loss.OtherPaths
	sum.Loss.Saturated = sum.Loss.Saturated || facts.Loss.Saturated
	return sum
}

// add adds the losses of another dump.
func (l *Loss) add(o *Loss) {
	l.Unreadable += o.Unreadable
	l.Cut += o.Cut
	l.NoSize += o.NoSize
	l.OtherPaths += o.OtherPaths
	l.Saturated = l.Saturated || o.Saturated
}

// common returns the call paths that all dumps share, or nil if the dumps have several
// Builders.
func common(dumps []*Dump) (in *paths, ok bool) {
	for _, d := range dumps {
		if d.Len() == 0 || d.in == in {
			continue
		}
		if in != nil {
			return nil, false
		}
		in = d.in
	}
	return in, true
}

// builderOn returns a Builder to which the dumps can be added. If the dumps share a
// Builder, builderOn copies no path, and the caller must add no other paths.
func builderOn(dumps []*Dump) *Builder {
	b := NewBuilder(0)
	if in, ok := common(dumps); ok && in != nil {
		b.paths = in
	}
	return b
}

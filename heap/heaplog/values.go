package heaplog

import (
	"iter"
	"math"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// pathValues has the values of the call paths of a dump. If the dump is a difference, they
// include those of its base.
type pathValues struct {
	of      *recording.Dump
	in      *callPaths // of the boot, nil if there are no paths
	names   *callpath.Names
	paths   *callpath.Sums
	own     int // number of paths that are the dump's own, before those of its base
	records []pathRecord
	partial bool // it has only what changed since a dump that is missing

	built      *profile.Dump // with these values, nil if it has others, too
	generation int           // of the process when built was made
	single     bool          // callPaths.single has returned true for each path
}

// values returns the values of the call paths of the dump, nil if it is no dump of call paths.
// base has those of the dump from which it is a difference, nil if that is missing. With settle,
// they are the final ones. (BT-DUMP-3)
func (d *dump) values(base *pathValues, settle bool) *pathValues {
	if !d.isPaths {
		return nil
	}
	v := &pathValues{of: d.Dump, in: d.in, records: d.records}
	if settle {
		v.paths, v.names, v.own = d.Settle()
	} else {
		v.paths, v.names, v.own = d.Paths()
	}
	_, diff := d.Difference()
	v.partial = d.kindLost || diff && (base == nil || base.partial)
	if base == nil {
		return v
	}
	if v.in == nil {
		v.in = base.in
	}
	if len(v.records) == 0 {
		v.records = base.records
		return v
	}
	for _, r := range base.records {
		if _, changed := d.index[r.path]; !changed {
			v.records = append(v.records[:len(v.records):len(v.records)], r)
		}
	}
	return v
}

// changed yields the paths that are the dump's own.
func (v *pathValues) changed() iter.Seq[callpath.PathSum] {
	return func(yield func(callpath.PathSum) bool) {
		n := v.own
		if n == 0 {
			return
		}
		for s := range v.paths.All() {
			if n--; !yield(s) || n == 0 { // to find the next one may take the time of all paths
				return
			}
		}
	}
}

// addChanges is addTo in the time of the paths that v changes, if the others have the values and the paths
// of base. ok is false, and nothing is added, if they may have others.
func (v *pathValues) addChanges(base *pathValues, b *profile.Builder, loss *profile.Loss) (ok bool) {
	if v == nil || base == nil || base.built == nil || !v.paths.Continues(base.paths) || v.in != base.in || v.names != base.names || v.names != v.in.names ||
		len(v.records) > 0 || base.built.Loss.Saturated || base.built.Loss.OtherPaths > 0 || base.generation != v.in.process.Generation() {
		return false
	}
	if !base.single {
		for s := range base.paths.All() {
			if !v.in.single(v.path(b, s.ID).Path, s.ID) {
				return false
			}
		}
		base.single = true
	}
	var list []profile.Allocation
	noOuter := int64(0)
	var round roundings
	for s := range v.changed() {
		path := v.path(b, s.ID)
		if s.Saturated || path.Other() || !v.in.single(path.Path, s.ID) {
			return false
		}
		if path.noOuter {
			noOuter += int64(s.Entries)
		}
		list = append(list, round.allocation(path.Path, &s))
	}
	v.single = true
	b.Continue(base.built)
	for i := range list {
		b.Replace(list[i])
	}
	loss.NoOuter += noOuter
	return true
}

// path returns the call path of a Builder.
func (v *pathValues) path(b *profile.Builder, id callpath.ID) builtPath {
	if v.names != v.in.names {
		return v.in.build(b, v.names, v.names.Resolve(id), map[callpath.ID]profile.Callers{})
	}
	x, _ := v.in.path(b, id, false)
	return x
}

// addTo adds the values to the open dump of a Builder, and counts the own paths whose outer
// frames are missing. saturated reports whether a sum has overflowed.
func (v *pathValues) addTo(b *profile.Builder, loss *profile.Loss) (saturated bool) {
	if v == nil {
		return false
	}
	var round roundings
	own := v.own
	for s := range v.paths.All() {
		path := v.path(b, s.ID)
		if own--; own >= 0 && path.noOuter {
			loss.NoOuter += int64(s.Entries)
		}
		saturated = saturated || s.Saturated
		b.AddAllocation(round.allocation(path.Path, &s))
	}
	for i := range v.records {
		r := &v.records[i]
		saturated = saturated || r.sum.Saturated
		b.AddAllocation(round.allocation(r.path, &r.sum))
	}
	return saturated
}

// peaksInParts returns the number of call paths of the dump whose peak was recorded in parts.
func (v *pathValues) peaksInParts() (n int64) {
	for s := range v.changed() {
		if s.Peaks > 1 {
			n++
		}
	}
	return n
}

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

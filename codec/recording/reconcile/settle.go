package reconcile

import (
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// This file decides, at the end of a dump, which held records count.

// Announced is what a header announces: the keys n and b. (BT-HEAD-4)
type Announced struct {
	N, B       uint64
	HasN, HasB bool
}

// Settled is what is decided at the end of a dump.
type Settled[P comparable, T any] struct {
	Counts []Record[P, T] // of the records that waited, those that count
	Said   Announced      // by the header that the records confirm, or come nearest to
	// Restored is the number of damaged records that count as others, and Left that of those left out.
	Restored, Left int64
}

// settling is the state of End.
type settling[P comparable, T any] struct {
	Settled[P, T]
	sum     total
	most    uint64 // bytes of a record, and of all
	changed int    // records that can be read and may be damaged
	times   map[kind[P]]int
}

// announced returns what the headers of a dump announce.
func announced(d *recording.Dump) (list []Announced) {
	for _, h := range []*codec.Header{d.End, d.Begin} {
		if h != nil {
			x := Announced{}
			x.N, x.HasN = h.Uint("n")
			x.B, x.HasB = h.Uint("b")
			list = append(list, x)
		}
	}
	return list
}

// End ends a dump. The most is the size of the heap in bytes, the largest number if it is not known.
func (r *Reconciler[P, T]) End(d *recording.Dump, most uint64) Settled[P, T] {
	s := settling[P, T]{sum: r.have, most: most}
	list, waits := announced(d), r.held
	r.held = nil
	damaged, all := uint64(0), r.have
	for i := range waits {
		switch x := &waits[i]; {
		case !x.err:
			all.add(x.Bytes)
		case !x.prose:
			damaged++
		}
	}
	for _, s.Said = range list {
		if s.Said.HasN && s.Said.N == all.n && (!s.Said.HasB || s.Said.B == all.bytes) { // damaged lines are no records
			for i := range waits {
				if !waits[i].err {
					r.accept(&s, &waits[i])
				}
			}
			return s.Settled
		}
	}
	s.Said = nearest(list, all.n+damaged)
	said := s.Said
	switch {
	case !said.HasN:
		r.plausible(&s, waits)
		return s.Settled
	case said.N < all.n: // the header may be the damaged one
		s.Said = Announced{N: math.MaxUint64}
	case said.HasB:
		s.most = min(most, said.B)
	}
	r.settle(&s, waits)
	s.Said = said
	return s.Settled
}

// plausible accepts the held records that can be in a heap of a size, where nothing tells what is missing.
func (r *Reconciler[P, T]) plausible(s *settling[P, T], waits []held[P, T]) {
	for i := range waits {
		if x := &waits[i]; !x.prose && (!x.err || x.readable()) && x.Bytes <= s.most {
			r.accept(s, x)
		} else if !x.prose && x.Bytes > s.most {
			s.Left++
		}
	}
}

// readable reports whether a cut record counts where nothing says that it is damaged.
func (x *held[P, T]) readable() bool { return x.named && !x.inside }

// accept accepts a held record as it is.
func (r *Reconciler[P, T]) accept(s *settling[P, T], x *held[P, T]) {
	if !x.err {
		r.fact(x.text, &x.Record)
	}
	s.Counts = append(s.Counts, x.Record)
}

// nearest returns the header that announces the number nearest to that of the records, and not less if
// one does.
func nearest(list []Announced, records uint64) (best Announced) {
	distance := func(a Announced) float64 {
		if a.N < records {
			return 1e3 * float64(records-a.N)
		}
		return float64(a.N - records)
	}
	least := math.Inf(1)
	for _, a := range list {
		if d := distance(a); a.HasN && d < least {
			best, least = a, d
		}
	}
	return best
}

// kind returns the kind of a record that can be read, the zero kind for others.
func (x *held[P, T]) kind() kind[P] {
	if x.err {
		return kind[P]{}
	}
	return kind[P]{x.Path, x.Bytes}
}

// countKinds counts the kinds of the records that can be read, and how many of these may be damaged.
func (s *settling[P, T]) countKinds(waits []held[P, T]) {
	s.times = map[kind[P]]int{}
	for i := range waits {
		switch x := &waits[i]; {
		case !x.err:
			s.times[x.kind()]++
		case x.inside && !x.prose:
			s.changed += changedPerLost
		}
	}
}

func (s *settling[P, T]) fits(h *Record[P, T]) bool {
	return s.sum.n < s.Said.N && (!s.Said.HasB || s.sum.bytes+h.Bytes <= s.Said.B) && h.Bytes <= s.most
}

func (s *settling[P, T]) take(h Record[P, T]) {
	s.Counts = append(s.Counts, h)
	s.sum.add(h.Bytes)
}

// settle decides on the held records of a dump that does not add up.
func (r *Reconciler[P, T]) settle(s *settling[P, T], waits []held[P, T]) {
	s.countKinds(waits)
	frequent := func(x *held[P, T]) int { return s.times[x.kind()] }
	order := make([]*held[P, T], len(waits))
	for i := range waits {
		order[i] = &waits[i]
	}
	slices.SortStableFunc(order, func(a, b *held[P, T]) int { return frequent(b) - frequent(a) })
	var rest []*held[P, T]
	like := map[*held[P, T]]bool{} // that are like a much more frequent kind
	for _, x := range order {
		n := 0 // as if it could not be read
		if x.Bytes <= s.most {
			n = frequent(x)
		}
		h, text, ok := r.restore(x, n)
		switch {
		case ok && s.fits(&h) && (n == 0 || s.changed >= n):
			s.Restored++
			s.changed -= n
			r.restored(&h, text)
			s.take(h)
		case ok && n > 0: // too many of them to be damaged, or it does not fit
			like[x] = true
			rest = append(rest, x)
		case n > 1 && s.fits(&x.Record):
			r.fact(x.text, &x.Record)
			s.take(x.Record)
		case !x.prose:
			rest = append(rest, x)
		}
	}
	r.settleRest(s, rest, like)
}

// settleRest decides on the records that are like no other. Those of like resemble a more frequent kind.
func (r *Reconciler[P, T]) settleRest(s *settling[P, T], rest []*held[P, T], like map[*held[P, T]]bool) {
	var one *held[P, T] // that was left out
	var single []int    // indexes in Counts of records whose kind no other dump has
	for _, x := range rest {
		key := kind[P]{x.Path, x.Bytes}
		seen := r.once[key]
		unlikely := !x.err && !seen && s.changed > 0 && len(r.last) > 0
		if !x.err && len(r.once) < maxKinds {
			r.once[key] = true
		}
		if !s.fits(&x.Record) || unlikely || x.err && !x.readable() {
			s.Left++
			one = x
			s.changed -= min(s.changed, s.times[x.kind()])
			continue
		}
		if !x.err && seen && !like[x] {
			r.fact(x.text, &x.Record)
		} else if !x.err {
			single = append(single, len(s.Counts))
		}
		s.take(x.Record)
	}
	switch {
	case s.Left == 1 && s.sum.n+1 == s.Said.N && s.Said.HasB && r.knows(one.Path): // its size is what the sum says
		one.Bytes, one.Restored = s.Said.B-s.sum.bytes, true
		s.take(one.Record)
		s.Restored, s.Left = s.Restored+1, 0
	case len(single) == 1 && s.sum.n == s.Said.N && s.Said.HasB && s.sum.bytes != s.Said.B: // as that of a record that was changed
		h := &s.Counts[single[0]]
		h.Bytes, h.Restored = h.Bytes+s.Said.B-s.sum.bytes, true
		s.Restored++
	}
}

// knows reports whether accepted records of the boot have a call path.
func (r *Reconciler[P, T]) knows(p P) bool {
	for k := range r.kinds {
		if k.path == p {
			return true
		}
	}
	return false
}

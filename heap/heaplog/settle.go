package heaplog

import (
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// This file decides, at the end of a dump, which held records count.

// announced is what a header announces.
type announced struct {
	n, b       uint64
	hasN, hasB bool
}

// end returns the held records that count. most is the size of the heap, the largest number if it is not
// known. restored is the number of damaged records that count as others, and left the number of those left out.
func (r *reconciler) end(list []announced, most uint64) (counts []pendingRecord, said announced, restored, left int64) {
	held, have := r.held, r.have
	r.held = nil
	damaged := 0
	for i := range held {
		if held[i].err && !held[i].prose {
			damaged++
		}
	}
	all := have
	for i := range held {
		if !held[i].err {
			all.Add(held[i].Value)
		}
	}
	for _, said = range list {
		if said.hasN && said.n == all.Count && (!said.hasB || said.b == all.Bytes) { // damaged lines are no records
			for i := range held {
				if !held[i].err {
					counts = r.accept(counts, &held[i])
				}
			}
			return counts, said, 0, 0
		}
	}
	said = nearest(list, all.Count+uint64(damaged))
	if !said.hasN {
		counts, left = r.plausible(held, most)
		return counts, said, 0, left
	}
	if said.n < all.Count { // the header may be the damaged one
		counts, _, restored, left = r.settle(held, announced{n: math.MaxUint64}, most, have)
		return counts, said, restored, left
	}
	if said.hasB {
		most = min(most, said.b)
	}
	return r.settle(held, said, most, have)
}

// plausible returns the held records that can be in a heap of a size, where nothing tells what is missing.
func (r *reconciler) plausible(held []heldRecord, most uint64) (counts []pendingRecord, left int64) {
	for i := range held {
		if x := &held[i]; !x.prose && (!x.err || x.readable()) && x.Bytes <= most {
			counts = r.accept(counts, x)
		} else if !x.prose && x.Bytes > most {
			left++
		}
	}
	return counts, left
}

// readable reports whether a cut record counts where nothing says that it is damaged.
func (x *heldRecord) readable() bool { return x.path != (profile.Path{}) && !x.inside }

// accept accepts a held record as it is.
func (r *reconciler) accept(counts []pendingRecord, x *heldRecord) []pendingRecord {
	if !x.err {
		r.fact(x.text, &x.pendingRecord)
	}
	return append(counts, x.pendingRecord)
}

// nearest returns the header that announces the number nearest to that of the records, and not less if
// one does.
func nearest(list []announced, records uint64) (best announced) {
	distance := func(a announced) float64 {
		if a.n < records {
			return 1e3 * float64(records-a.n)
		}
		return float64(a.n - records)
	}
	least := math.Inf(1)
	for _, a := range list {
		if d := distance(a); a.hasN && d < least {
			best, least = a, d
		}
	}
	return best
}

// possible returns the largest number for a size that is possible, else 0.
func possible(bytes, most uint64) int {
	if bytes > most {
		return 0
	}
	return math.MaxInt
}

// kind returns the kind of a record that can be read, the zero kind for others.
func (x *heldRecord) kind() kind {
	if x.err {
		return kind{}
	}
	return kind{x.path, x.Bytes}
}

// countKinds counts the kinds of the records that can be read. changed is how many of these may be damaged.
func countKinds(held []heldRecord) (times map[kind]int, changed int) {
	times = map[kind]int{}
	for i := range held {
		switch x := &held[i]; {
		case !x.err:
			times[x.kind()]++
		case x.inside && !x.prose:
			changed += changedPerLost
		}
	}
	return times, changed
}

// settle decides on the held records of a dump that does not add up.
func (r *reconciler) settle(held []heldRecord, said announced, most uint64, have profile.Value) (counts []pendingRecord, _ announced, restored, left int64) {
	times, changed := countKinds(held)
	sum := have
	fits := func(h *pendingRecord) bool {
		return sum.Count < said.n && (!said.hasB || sum.Bytes+h.Bytes <= said.b) && h.Bytes <= most
	}
	take := func(h pendingRecord) {
		counts = append(counts, h)
		sum.Add(h.Value)
	}
	frequent := func(x *heldRecord) int { return times[x.kind()] }
	order := make([]*heldRecord, len(held))
	for i := range held {
		order[i] = &held[i]
	}
	slices.SortStableFunc(order, func(a, b *heldRecord) int { return frequent(b) - frequent(a) })
	var rest []*heldRecord
	like := map[*heldRecord]bool{} // that are like a much more frequent kind
	for _, x := range order {
		n := min(frequent(x), possible(x.Bytes, most)) // 0 as if it could not be read
		h, text, ok := r.restore(x, n)
		switch {
		case ok && fits(&h) && (n == 0 || changed >= n):
			restored++
			changed -= n
			r.restored(&h, text)
			take(h)
		case ok && n > 0: // too many of them to be damaged, or it does not fit
			like[x] = true
			rest = append(rest, x)
		case n > 1 && fits(&x.pendingRecord):
			r.fact(x.text, &x.pendingRecord)
			take(x.pendingRecord)
		case !x.prose:
			rest = append(rest, x)
		}
	}
	var one *heldRecord // that was left out
	var single []int    // indexes in counts of records whose kind no other dump has
	for _, x := range rest {
		key := kind{x.path, x.Bytes}
		seen := r.once[key]
		unlikely := !x.err && !seen && changed > 0 && len(r.last) > 0
		if !x.err && len(r.once) < maxKinds {
			r.once[key] = true
		}
		if !fits(&x.pendingRecord) || unlikely || x.err && !x.readable() {
			left++
			one = x
			changed -= min(changed, frequent(x))
			continue
		}
		if !x.err && seen && !like[x] {
			r.fact(x.text, &x.pendingRecord)
		} else if !x.err {
			single = append(single, len(counts))
		}
		take(x.pendingRecord)
	}
	if left == 1 && sum.Count+1 == said.n && said.hasB && r.knows(one.path) { // its size is what the sum says
		one.Bytes, one.cut, one.noSize, one.restored = said.b-sum.Bytes, 0, 0, true
		take(one.pendingRecord)
		restored, left = restored+1, 0
	} else if len(single) == 1 && sum.Count == said.n {
		restored += counts[single[0]].resize(said, sum)
	}
	return counts, said, restored, left
}

// resize gives a record whose size was changed the size that the sum says. It returns the number of restored records.
func (h *pendingRecord) resize(said announced, sum profile.Value) int64 {
	if !said.hasB || sum.Bytes == said.b {
		return 0
	}
	h.Bytes, h.restored = h.Bytes+said.b-sum.Bytes, true
	return 1
}

// knows reports whether accepted records of the boot have a call path.
func (r *reconciler) knows(p profile.Path) bool {
	for k := range r.kinds {
		if k.path == p {
			return true
		}
	}
	return false
}

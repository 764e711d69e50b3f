package heaplog

import "slices"

const (
	// beginningMost is the number of distinct records compared, beginningFew the minimum
	// for a decision.
	beginningMost, beginningFew = 8, 3
)

// repetition holds pending records, which may repeat the beginning of the current dump.
type repetition struct {
	held    []uint64 // hashes of the pending records
	heldAt  Place    // of the first one
	matched int      // number of pending records that are in beginning
	missed  int      // number of records that are in only one of beginning and held
	at      int      // index in beginning.hashes
}

// beginning holds the hashes of the first distinct records of a dump.
type beginning struct {
	hashes []uint64
	broken bool // other text interrupted it before it had enough records
	done   bool
}

// endsAtText ends the beginning where other text follows, if the beginning has enough
// records.
func (b *beginning) endsAtText() {
	switch n := len(b.hashes); {
	case n == 0 || b.broken:
	case n >= beginningFew:
		b.done = true
	default:
		b.broken = true // each record of this log is on its own between other text
	}
}

// add takes the next record of a dump.
func (b *beginning) add(h uint64) {
	if !b.done && !slices.Contains(b.hashes, h) {
		b.hashes = append(b.hashes, h)
		b.done = len(b.hashes) == beginningMost
	}
}

// place returns the index of a record in the beginning, searching from index from on, or
// -1.
func (b *beginning) place(h uint64, from int) int {
	for i := from; i < len(b.hashes); i++ {
		if b.hashes[i] == h {
			return i
		}
	}
	return -1
}

// compare checks whether a record and those after it repeat the beginning of the dump. A
// quarter of the records may differ: some were freed since, and some are new.
func (q *sequence) compare(it *Item, between int64) {
	ref := &q.beginning
	if between == 0 && ref.done && len(q.held) == 0 {
		return // dumps begin after other text
	}
	h := q.hash(it.Text)
	if between > 0 && len(q.held) == 0 {
		ref.endsAtText()
	}
	if len(q.held) == 0 {
		at := -1
		if ref.done && between > 0 {
			at = ref.place(h, 0)
		}
		if at < 0 || at > len(ref.hashes)/4 {
			ref.add(h)
			return
		}
		q.held, q.matched, q.missed, q.at, q.heldAt = append(q.held, h), 1, at, at+1, it.Place
		q.decide()
		return
	}
	known := h == q.held[len(q.held)-1] // a repeated record is no evidence
	q.held = append(q.held, h)
	if at := ref.place(h, q.at); at >= 0 {
		q.matched, q.missed, q.at = q.matched+1, q.missed+at-q.at, at+1
	} else if !known {
		q.missed++
	}
	q.decide()
}

// pending reports whether it is not known yet whether records are a repetition.
func (r *repetition) pending() bool { return len(r.held) > 0 }

// decide ends the comparison, if there are enough records.
func (q *sequence) decide() {
	n := len(q.beginning.hashes)
	switch {
	case q.missed > n/4 || len(q.held) > 4*beginningMost:
		q.held = q.held[:0]
	case q.matched >= n-n/4 && q.matched >= beginningFew:
		held := slices.Clone(q.held)
		d := newDump(q.heldAt)
		d.repeats = true
		q.begin(d)
		for _, h := range held {
			q.beginning.add(h)
		}
	}
}

package heaplog

import (
	"bytes"
	"hash/maphash"
	"slices"
)

const (
	runRecords = 8    // number of records that identify the end of a run
	runGap     = 5    // lines of other text that separate two long runs
	maxEnds    = 4096 // limit for runs.ends
)

// runs describes the groups of records of a boot, with other text between the groups. Where no
// marks say where dumps begin, a list that is printed newest first ends with the same records
// each time.
type runs struct {
	length  int                // records without runGap lines of other text between them
	gap     int64              // lines before these records
	long    int                // number of such groups of at least runRecords
	ends    map[uint64]int     // how often groups ended with the same records, by the hash of these records
	ended   int                // number of groups that ended
	recent  [runRecords][]byte // the last records of the group
	recents int                // number of records of the group
	seed    maphash.Seed
}

// groupEnd identifies the end of the dumps of a boot: the hash of the last 8 records.
type groupEnd struct {
	seed maphash.Seed
	hash uint64
}

// count counts a record with between lines of other text before it.
func (r *runs) count(between int64) {
	if between >= runGap {
		r.length, r.gap = 0, between
	}
	if r.length++; r.length == runRecords && r.gap >= runGap {
		r.long++
	}
}

// add adds the text of a record to the group.
func (r *runs) add(text []byte) {
	at := r.recents % runRecords
	r.recent[at] = append(r.recent[at][:0], text...)
	r.recents++
}

// end ends the group, because other text follows. It counts how often the same 8 records, in the
// same order, come last. If an earlier pass found that dumps end with these records, known is
// their end, and end reports whether the group ends so.
func (r *runs) end(known groupEnd, isKnown bool) (dumpEnds bool) {
	if r.recents > 0 {
		r.ended++
	}
	if isKnown {
		dumpEnds = r.recents >= runRecords && r.hash(known.seed) == known.hash
	} else if r.recents >= runRecords && len(r.ends) < maxEnds && r.distinct() {
		if r.ends == nil {
			r.ends, r.seed = map[uint64]int{}, maphash.MakeSeed()
		}
		r.ends[r.hash(r.seed)]++
	}
	r.recents = 0
	return dumpEnds
}

// commonEnd returns the end that most groups have, and the number of these groups.
func (r *runs) commonEnd() (n int, end groupEnd) {
	for hash, count := range r.ends {
		if count > n {
			n, end = count, groupEnd{r.seed, hash}
		}
	}
	return n, end
}

// distinct reports whether the last 8 records are different enough to recognize a dump.
func (r *runs) distinct() bool {
	n := 0
	for i := range r.recent {
		if !slices.ContainsFunc(r.recent[:i], func(o []byte) bool { return bytes.Equal(o, r.recent[i]) }) {
			n++
		}
	}
	return n >= beginningFew
}

// hash returns the hash of the last 8 records.
func (r *runs) hash(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range runRecords {
		h.Write(r.recent[(r.recents+i)%runRecords])
		h.WriteByte('\n')
	}
	return h.Sum64()
}

package callpath

import (
	"iter"
	"math"
)

// PathSum is the sum of the entries of a call path. A sum that overflows is 2^64 − 1.
type PathSum struct {
	ID                 ID
	Live, Bytes        uint64
	Allocs, AllocBytes uint64 // with Ever
	Peak               uint64 // with Peak: an upper bound if Peaks is more than 1
	Entries            int    // number of entries
	Peaks              int    // number of entries with a peak
	Saturated          bool   // a sum overflowed

	// Estimates of Live and Bytes and their variances, if the dump is sampled. (BT-DUMP-5)
	LiveEst, BytesEst, LiveVar, BytesVar float64
}

// Add adds the values of an entry. sample is the mean number of bytes between samples, 0 if
// the dump is not sampled. (BT-ENTRY-4, BT-DUMP-5)
func (s *PathSum) Add(e *Entry, sample uint64) {
	o := PathSum{Live: e.Live, Bytes: e.Bytes, Allocs: e.Allocs, AllocBytes: e.AllocBytes, Peak: e.Peak, Entries: 1}
	if e.Peak > 0 {
		o.Peaks = 1
	}
	o.scale(e, sample)
	s.merge(&o)
}

// scale estimates the live blocks and bytes of an entry, from the size of each block if the
// entry lists its blocks, else from their mean size. (BT-DUMP-5)
func (s *PathSum) scale(e *Entry, sample uint64) {
	if sample == 0 {
		return
	}
	add := func(live, bytes uint64) {
		l, b, variance := Scale(live, bytes, sample)
		s.LiveEst, s.BytesEst, s.BytesVar = s.LiveEst+l, s.BytesEst+b, s.BytesVar+variance
		if bytes > 0 && live > 0 {
			size := float64(bytes) / float64(live)
			s.LiveVar += variance / (size * size)
		}
	}
	if len(e.Blocks) == 0 {
		add(e.Live, e.Bytes)
	}
	for _, b := range e.Blocks {
		add(1, b.Size)
	}
}

// merge adds o, the sum of other entries of the same path.
func (s *PathSum) merge(o *PathSum) {
	for _, n := range []struct {
		sum *uint64
		v   uint64
	}{{&s.Live, o.Live}, {&s.Bytes, o.Bytes}, {&s.Allocs, o.Allocs}, {&s.AllocBytes, o.AllocBytes}, {&s.Peak, o.Peak}} {
		if addTo(n.sum, n.v) {
			s.Saturated = true
		}
	}
	s.Entries += o.Entries
	s.Peaks += o.Peaks
	s.Saturated = s.Saturated || o.Saturated
	s.LiveEst, s.BytesEst = s.LiveEst+o.LiveEst, s.BytesEst+o.BytesEst
	s.LiveVar, s.BytesVar = s.LiveVar+o.LiveVar, s.BytesVar+o.BytesVar
}

// Sums are sums by call path, each path once, in the order in which they were added. A Sums takes
// 24 bytes per path and 8 for its index, and more only for values that entries without flags do not
// have. That of a difference takes memory for the paths that the difference changes only, and shares
// the others with that of its base.
type Sums struct {
	live  list[liveSum]
	ever  list[everSum]  // of the first paths; the others have none
	est   list[estimate] // likewise
	index index          // by ID
	named bool           // a path, here or in base, begins with a name that was not known
	known int            // version of the Names with which the paths were resolved
	// base has the paths that follow: those that are not here and hold something. changes is the
	// number of paths of this Sums and of its bases, but for last, the last one.
	base, last *Sums
	changes    int
}

type liveSum struct {
	id          ID
	entries     uint32
	live, bytes uint64
}

type everSum struct {
	allocs, bytes, peak uint64
	peaks               uint32
	saturated           bool
}

type estimate struct{ live, bytes, liveVar, bytesVar float64 }

// Len returns the number of call paths.
func (s *Sums) Len() (n int) {
	if s.base == nil {
		return s.live.n
	}
	for range s.All() {
		n++
	}
	return n
}

// All yields the sums.
func (s *Sums) All() iter.Seq[PathSum] {
	return func(yield func(PathSum) bool) {
		for i := range s.live.n {
			if !yield(s.at(i)) {
				return
			}
		}
		known := make(map[ID]struct{}, s.changes)
		for top := s; top.base != nil; top = top.base {
			for i := range top.live.n {
				known[top.live.at(i).id] = struct{}{}
			}
			below := top.base
			for i := range below.live.n {
				l := below.live.at(i)
				if l.live == 0 && l.bytes == 0 {
					continue
				}
				if _, changed := known[l.id]; !changed && !yield(below.at(i)) {
					return
				}
			}
		}
	}
}

func (s *Sums) at(i int) PathSum {
	l := s.live.at(i)
	p := PathSum{ID: l.id, Live: l.live, Bytes: l.bytes, Entries: int(l.entries)}
	if i < s.ever.n {
		e := s.ever.at(i)
		p.Allocs, p.AllocBytes, p.Peak, p.Peaks, p.Saturated = e.allocs, e.bytes, e.peak, int(e.peaks), e.saturated
	}
	if i < s.est.n {
		e := s.est.at(i)
		p.LiveEst, p.BytesEst, p.LiveVar, p.BytesVar = e.live, e.bytes, e.liveVar, e.bytesVar
	}
	return p
}

func (s *Sums) set(i int, p *PathSum) {
	*s.live.at(i) = liveSum{p.ID, uint32(min(uint64(p.Entries), math.MaxUint32)), p.Live, p.Bytes}
	if e := (everSum{p.Allocs, p.AllocBytes, p.Peak, uint32(min(uint64(p.Peaks), math.MaxUint32)), p.Saturated}); i < s.ever.n || e != (everSum{}) {
		*s.ever.grown(i) = e
	}
	if e := (estimate{p.LiveEst, p.BytesEst, p.LiveVar, p.BytesVar}); i < s.est.n || e != (estimate{}) {
		*s.est.grown(i) = e
	}
}

// add adds an entry.
func (s *Sums) add(id ID, e *Entry, sample uint64) {
	p := PathSum{ID: id}
	p.Add(e, sample)
	s.merge(&p)
}

// merge adds the sum of other entries of a path.
func (s *Sums) merge(p *PathSum) {
	i, known := s.find(p.ID)
	if !known {
		i = s.live.n
		s.live.push(liveSum{})
		s.set(i, p)
		s.index.add(uint32(i), func(number uint32) uint32 { return hash2(uint64(s.live.at(int(number)).id), 0) })
		return
	}
	sum := s.at(i)
	sum.merge(p)
	s.set(i, &sum)
}

func (s *Sums) find(id ID) (i int, known bool) {
	number, known := s.index.find(hash2(uint64(id), 0), func(number uint32) bool { return s.live.at(int(number)).id == id })
	return int(number), known
}

// resolved returns the sums with the names resolved that n knows by now. The sums of equal paths are
// added up. If release is set, s must not be used afterwards, and is freed as far as it was read.
func (s *Sums) resolved(n *Names, release bool) *Sums {
	to := &Sums{known: n.version}
	if release {
		s.index = index{}
	}
	for i := range s.live.n {
		p := s.at(i)
		p.ID = n.Resolve(p.ID)
		to.merge(&p)
		to.named = to.named || !n.known(p.ID)
		if release && (i+1)%chunkSize == 0 {
			s.live.chunks[i/chunkSize] = nil
		}
	}
	return to
}

// copyPerChange is how many paths of bases Apply copies per path of a difference. A chain of differences
// that has more paths than the dump at its end is copied to one Sums, but only so often that the time is
// that of the differences.
const copyPerChange = 4

// Continues reports whether s is base with changes: the first paths of s are the changes, and the others
// those of base, by the same IDs.
func (s *Sums) Continues(base *Sums) bool { return s.base == base && base != nil }

// Apply applies a difference to its base: it returns the paths in changed, followed by the
// paths in base that are not in changed. changed is the result of [Dump.Paths] for the
// difference, and base the result of Paths or Apply for the base. A path in changed without
// live blocks and bytes was removed by the difference; the result still contains it.
// (BT-DUMP-3)
func (n *Names) Apply(changed, base *Sums) *Sums {
	paths := changed.resolved(n, false)
	paths.last = base.last
	if paths.last == nil {
		paths.last = base
	}
	paths.changes = base.changes + paths.live.n
	n.copied += copyPerChange * paths.live.n
	most := paths.last.live.n
	if (!base.named || base.known == n.version) && (paths.changes <= most || most+paths.changes > n.copied) {
		paths.base, paths.named = base, paths.named || base.named
		return paths
	}
	n.copied -= min(n.copied, most+paths.changes)
	paths.last, paths.changes = nil, 0
	rest := &Sums{} // with the names that are known by now
	for p := range base.All() {
		p.ID = n.Resolve(p.ID)
		rest.merge(&p)
	}
	for i := range rest.live.n {
		p := rest.at(i)
		if _, known := paths.find(p.ID); !known && (p.Live > 0 || p.Bytes > 0) {
			paths.merge(&p)
		}
		paths.named = paths.named || !n.known(p.ID)
	}
	return paths
}

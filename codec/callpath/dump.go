package callpath

import (
	"math"
	"math/bits"
	"slices"
)

// Dump adds up the entries of one dump by call path. It needs neither code addresses nor
// function names. Set Names before the first call of Add. (BT-DUMP-2)
type Dump struct {
	Names  *Names // of the boot
	Sample uint64 // mean number of bytes between samples, 0 if the dump is not sampled (BT-DUMP-5)

	Live, Bytes uint64 // sums of all entries, not scaled; at most 2^64 − 1
	Lines       int64  // lines read
	Gaps        int64  // lines missing before these, by their sequence numbers
	SameAddress int64  // blocks at the address of another block of the dump

	sums      []PathSum
	index     map[ID]int // in sums
	named     []ID       // paths of sums that begin with a name
	addresses map[uint64]struct{}
}

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

// Add adds an entry of a path. It does not retain e. Do not add definitions, which have no
// values.
func (d *Dump) Add(id ID, e *Entry) {
	addTo(&d.Live, e.Live)
	addTo(&d.Bytes, e.Bytes)
	for _, b := range e.Blocks {
		if d.addresses == nil {
			d.addresses = map[uint64]struct{}{}
		}
		if _, known := d.addresses[b.Address]; known {
			d.SameAddress++
		}
		d.addresses[b.Address] = struct{}{}
	}
	i, ok := d.index[id]
	if !ok {
		if d.index == nil {
			d.index = map[ID]int{}
		}
		i = len(d.sums)
		d.index[id] = i
		d.sums = append(d.sums, PathSum{ID: id})
		if !d.Names.known(id) {
			d.named = append(d.named, id)
		}
	}
	d.sums[i].Add(e, d.Sample)
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

// addTo adds v to a sum. It reports whether the sum overflowed; the sum is then 2^64 − 1.
func addTo(sum *uint64, v uint64) (overflow bool) {
	n, carry := bits.Add64(*sum, v, 0)
	if carry != 0 {
		n = math.MaxUint64
	}
	*sum = n
	return carry != 0
}

// Waits reports whether the dump uses names that are not known yet: a later line can define
// them and so change the paths of the dump.
func (d *Dump) Waits() bool {
	for len(d.named) > 0 && d.Names.known(d.Names.Resolve(d.named[0])) {
		d.named = d.named[1:] // a later line cannot define its name
	}
	return len(d.named) > 0
}

// Paths returns the sums by path, in the order in which the paths first occur. It resolves
// the names that are known by now; the result may change as paths are added to Names.
// (BT-NAME-2, BT-DUMP-2)
func (d *Dump) Paths() []PathSum {
	if len(d.sums) == 0 {
		return nil
	}
	return d.Names.merge(nil, d.sums)
}

// Apply applies a difference to its base: it returns the paths in changed, followed by the
// paths in base that are not in changed. changed is the result of [Dump.Paths] for the
// difference, and base the result of Paths or Apply for the base. A path in changed without
// live blocks and bytes was removed by the difference; the result still contains it.
// (BT-DUMP-3)
func (n *Names) Apply(changed, base []PathSum) []PathSum {
	mentioned := make(map[ID]bool, len(changed))
	for i := range changed {
		mentioned[n.Resolve(changed[i].ID)] = true
	}
	paths := slices.Clone(changed)
	for _, s := range n.merge(nil, base) {
		if !mentioned[s.ID] && (s.Live > 0 || s.Bytes > 0) {
			paths = append(paths, s)
		}
	}
	return paths
}

// merge appends sums to dst, and adds up the sums of equal paths.
func (n *Names) merge(dst, sums []PathSum) []PathSum {
	index := make(map[ID]int, len(sums))
	for i := range sums {
		s := sums[i]
		s.ID = n.Resolve(s.ID)
		if at, ok := index[s.ID]; ok {
			dst[at].merge(&s)
			continue
		}
		index[s.ID] = len(dst)
		dst = append(dst, s)
	}
	return dst
}

// Lost returns the number of missing lines. written is the number of lines that the writer
// wrote between begin and end of the dump. known is false if the headers do not contain
// this number; Lost then returns the gaps in the sequence numbers. (BT-DUMP-4)
func (d *Dump) Lost(written uint64, known bool) int64 {
	if !known {
		return d.Gaps
	}
	return max(0, int64(min(written, math.MaxInt64))-d.Lines)
}

// Sequence finds lost lines by the sequence numbers of the lines of a boot: [Head.Seq] or
// [EventsHead.Seq]. (BT-DUMP-4)
type Sequence struct {
	Known bool   // Next is known; at a boot header, set it, with Next 0
	Next  uint64 // number of the next line if none is lost
	Lost  int64
	Read  int64
}

// Line adds a line to Read, and returns how many lines before it were lost, which it adds to
// Lost. Lines are numbered modulo modulus, a power of 2. It returns 0 for a line that comes
// late or twice.
func (s *Sequence) Line(number, modulus uint64) (lost int64) {
	s.Read++
	gap := (number - s.Next) % modulus
	if s.Known && gap >= modulus/2 {
		return 0
	}
	if s.Known {
		lost = int64(gap)
	}
	s.Known, s.Next = true, (number+1)%modulus
	s.Lost += lost
	return lost
}

package callpath

import (
	"math"
	"math/bits"
	"slices"
)

// Dump adds up the entries of one dump by call path. It needs neither the addresses nor the
// names of functions. Names must be set before the first call of Add. (BT-DUMP-2)
type Dump struct {
	Names  *Names // of the boot
	Sample uint64 // mean of bytes between samples, 0 if the dump is not sampled (BT-DUMP-5)

	Live, Bytes uint64 // sums of all entries as they are written; at most 2^64 − 1
	Lines       int64  // lines that were read
	Gaps        int64  // lines that are missing before those, by the sequence
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
	Entries            int    // how many entries were added up
	Peaks              int    // how many of them have a peak
	Saturated          bool   // a sum overflowed

	// Estimates of Live and Bytes and their variances, if the dump is sampled. (BT-DUMP-5)
	LiveEst, BytesEst, LiveVar, BytesVar float64
}

// Add adds an entry of a path. It does not keep e. Definitions have no values: do not add
// them.
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

// Add adds the values of an entry of a dump that is sampled with a mean of sample bytes, or not
// sampled if that is 0. (BT-ENTRY-4, BT-DUMP-5)
func (s *PathSum) Add(e *Entry, sample uint64) {
	o := PathSum{Live: e.Live, Bytes: e.Bytes, Allocs: e.Allocs, AllocBytes: e.AllocBytes, Peak: e.Peak, Entries: 1}
	if e.Peak > 0 {
		o.Peaks = 1
	}
	o.scale(e, sample)
	s.merge(&o)
}

// scale estimates live blocks and bytes of an entry: by the size of each block if the entry
// has the blocks, else by their mean size. (BT-DUMP-5)
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

// merge adds the sum of other entries of the path.
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

// Waits reports whether a later line can change the paths of the dump, since it can define a
// name that is not known yet.
func (d *Dump) Waits() bool {
	return slices.ContainsFunc(d.named, func(id ID) bool { return !d.Names.known(d.Names.Resolve(id)) })
}

// Paths returns the sums by path, with the names that are known by now, in the order in which
// the lines first have the paths. The result may change as Names learns more paths.
// (BT-NAME-2, BT-DUMP-2)
func (d *Dump) Paths() []PathSum {
	if len(d.sums) == 0 {
		return nil
	}
	return d.Names.merge(nil, d.sums)
}

// Apply returns the paths of a dump that is a difference: those of changed, which is what
// [Dump.Paths] returned for it, and then those of its base that changed does not have. base is
// what Paths or Apply returned for the base. A path of changed without live blocks and bytes is
// one that the difference removes; the result still has it. (BT-DUMP-3)
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

// merge appends sums, those of equal paths added up.
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

// Lost returns the number of lines that are missing. written is the number of lines that the
// writer wrote between begin and end of the dump, if both say it; otherwise only gaps in the
// sequence count. (BT-DUMP-4)
func (d *Dump) Lost(written uint64, known bool) int64 {
	if !known {
		return d.Gaps
	}
	return max(0, int64(min(written, math.MaxInt64))-d.Lines)
}

// Sequence finds lost lines by the number that each line of a boot has: [Head.Seq], or that
// of a line of events. (BT-DUMP-4)
type Sequence struct {
	Known bool   // Next is the number of the next line: at a boot header it is, and is 0
	Next  uint64 // number of the next line if none is lost
	Lost  int64
	Read  int64
}

// Line takes the number of a line, which counts modulo a power of 2, and returns how many
// lines before it were lost. Lines that come late or twice are not counted.
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

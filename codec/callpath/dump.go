package callpath

import (
	"math"
	"math/bits"
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

	sums      Sums
	named     bool // a path of sums begins with a name
	known     int  // sums whose paths no later line can change
	addresses map[uint64]struct{}
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
	d.sums.add(id, e, d.Sample)
	d.named = d.named || !d.Names.known(id)
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
	if !d.named {
		return false
	}
	for d.known < d.sums.Len() && d.Names.known(d.Names.Resolve(d.sums.live.at(d.known).id)) {
		d.known++
	}
	return d.known < d.sums.Len()
}

// Paths returns the sums by path, in the order in which the paths first occur, valid until the
// next call of Add. It resolves the names that are known by now; the result may change as paths
// are added to Names. (BT-NAME-2, BT-DUMP-2)
func (d *Dump) Paths() *Sums {
	if !d.named { // no path can change
		return &d.sums
	}
	return d.sums.resolved(d.Names, false)
}

// Settle returns what Paths returns, for the last time: nothing may be added afterwards.
func (d *Dump) Settle() *Sums {
	if d.named {
		d.sums, d.named = *d.sums.resolved(d.Names, true), false
	}
	d.addresses, d.sums.index = nil, index{}
	return &d.sums
}

// Lost returns the number of missing lines. written is the number of lines that the writer
// wrote between begin and end of the dump. known is false if the headers do not contain
// this number; Lost then returns the gaps in the sequence numbers. (BT-DUMP-4)
func (d *Dump) Lost(written uint64, known bool) uint64 {
	if !known {
		return uint64(d.Gaps)
	}
	return written - min(written, uint64(d.Lines))
}

// Sequence finds lost lines by the sequence numbers of the lines of a boot: [Head.Seq] or
// [EventsHead.Seq]. (BT-DUMP-4)
type Sequence struct {
	Known bool   // Next is known; at a boot header, set it, with Next 0
	Next  uint64 // number of the next line if none is lost
	Lost  int64  // lines that are missing
	Read  int64  // lines read
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

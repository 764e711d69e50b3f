package callpath

import (
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/codec"
)

// Ranges maps addresses to code offsets and back. Code offsets are positions in the
// executable ranges, laid end to end. The zero Ranges is empty. (BT-CODE-1)
type Ranges struct {
	Shift uint8 // addresses count in units of 1<<Shift bytes, 0 to 4; set it before Add

	spans []span
	index []segment // by address; they do not overlap
}

// span is a range and its code offsets.
type span struct {
	codec.Range
	module string
	first  uint64 // code offset of its first unit
	units  uint64
}

// segment is the part of a span that no later span covers.
type segment struct {
	start, last uint64 // last is the last address, not the end
	span        int
}

// Add appends a range and returns its index, from 0. module names the file mapped there; it
// may be "". Adding an equal range of an equal module again returns the index of the first.
// Where ranges overlap, the last one added counts. Bytes after the last whole unit are not
// part of the range. (BT-CODE-1, BT-CODE-2, BT-CODE-3)
func (r *Ranges) Add(x codec.Range, module string) int {
	at := slices.IndexFunc(r.spans, func(s span) bool { return s.Range == x && s.module == module })
	if at < 0 {
		at = len(r.spans)
		r.spans = append(r.spans, span{x, module, r.Units(), x.Length >> r.Shift})
	}
	if s := &r.spans[at]; s.units > 0 {
		r.cover(segment{s.Start, s.Start + (s.units<<r.Shift - 1), at})
	}
	return at
}

// cover inserts a segment into the index; it replaces the parts of segments that it overlaps.
func (r *Ranges) cover(x segment) {
	var index []segment
	for _, s := range r.index {
		if s.last < x.start || s.start > x.last {
			index = append(index, s)
			continue
		}
		if s.start < x.start {
			index = append(index, segment{s.start, x.start - 1, s.span})
		}
		if s.last > x.last {
			index = append(index, segment{x.last + 1, s.last, s.span})
		}
	}
	at := sort.Search(len(index), func(i int) bool { return index[i].start > x.start })
	r.index = slices.Insert(index, at, x)
}

// Units returns the number of units of all ranges, at most 2^64 − 1. (BT-CODE-2)
func (r *Ranges) Units() (n uint64) {
	if len(r.spans) > 0 {
		s := &r.spans[len(r.spans)-1]
		n = s.first
		addTo(&n, s.units)
	}
	return n
}

// Frame returns the frame of an address: its code offset, or the address itself if it has
// none. The mode bits of the address must be cleared. (BT-CODE-2)
func (r *Ranges) Frame(address uint64) Frame {
	i := sort.Search(len(r.index), func(i int) bool { return r.index[i].start > address })
	if i > 0 && address <= r.index[i-1].last {
		s := &r.spans[r.index[i-1].span]
		in := address - s.Start
		x := s.first
		addTo(&x, in>>r.Shift)
		if in&(1<<r.Shift-1) == 0 && x < MaxOffset {
			return Frame{Value: x}
		}
	}
	return Frame{address, true}
}

// Address returns the address of a frame and the index of its range. The index is −1 if the
// frame is escaped, that is, an address itself. ok is false if no range contains the code
// offset. (BT-CODE-2)
func (r *Ranges) Address(f Frame) (address uint64, index int, ok bool) {
	if f.Escaped {
		return f.Value, -1, true
	}
	i := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].first > f.Value }) - 1
	if i < 0 || f.Value-r.spans[i].first >= r.spans[i].units {
		return 0, -1, false
	}
	s := &r.spans[i]
	return s.Start + (f.Value-s.first)<<r.Shift, i, true
}

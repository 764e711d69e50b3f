package codec

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// Search is how an encoder chooses between a literal and a delta, and which
// frame a delta is from.
type Search uint8

const (
	// Lws chooses as lws does, bit for bit. (BT-SRCH-1)
	Lws Search = iota
	// Best makes the smallest blob that every decoder of the format reads as
	// the same stack. (BT-SRCH-2)
	Best
)

func (h Search) String() string {
	switch h {
	case Lws:
		return "lws"
	case Best:
		return "best"
	}
	return fmt.Sprintf("search(%d)", uint8(h))
}

// ParseSearch reads a search's name, "lws" or "best".
func ParseSearch(name string) (Search, error) {
	switch name {
	case "lws":
		return Lws, nil
	case "best":
		return Best, nil
	}
	return 0, fmt.Errorf("search %q is neither lws nor best", name)
}

// AppendBlob appends the blob of s, as machine m would write it, to dst and
// returns the extended slice. It fails if s has more than MaxDepth frames, or a
// value that m's word cannot hold, and then returns dst as it was.
// (BT-BLOB-1, BT-FIELD-3, BT-SRCH-1, BT-SRCH-2)
func AppendBlob(dst []byte, s *Stack, m Machine, how Search) ([]byte, error) {
	if err := s.fits(m); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = slices.Grow(dst, MaxBlob+8)
	w := bitWriter{buf: dst[start : start+MaxBlob+8]}
	w.put(uint64(len(s.PCs)&(MaxDepth-1))<<spillWidth, depthBits) // 32 is written 0 (BT-DEPTH-2)
	w.frames(s.PCs, m, how)
	w.value(0, 0, s.Size, m)
	end := start + len(w.finish())
	n := end - start + lengthBytes
	return append(dst[:end], byte(n>>8), byte(n)), nil
}

// frames writes all frames. The writer's parts are kept in variables of its own,
// so that they stay in registers.
func (w *bitWriter) frames(pcs []uint64, m Machine, how Search) {
	search := newSearch(pcs, m, how)
	buf, next, acc, used := (*[MaxBlob + 8]byte)(w.buf), w.next, w.acc, w.n
	for n, v := range pcs {
		head, width := uint64(0), uint(literalHead-countBits)
		if back, delta := search.choose(n); back != 0 {
			// kind, back and sign with their spill bits; what is not above its base is below it
			head, width = 1<<7|uint64(back-1)<<3|(v-pcs[(n-back)&(MaxDepth-1)]-1)>>63<<1, deltaHead-countBits
			v = delta
		}
		count := significant(v)
		spill := uint64(0)
		if v>>31 != 0 {
			v, spill = m.lose(v, count)
		}
		head = head<<countBits | uint64(count&63)<<spillWidth
		width += countBits + count + spillWidth
		if width > windowBits {
			*w = bitWriter{w.buf, next, acc, used}
			w.put(head, width-count-spillWidth)
			w.putWide(v, count)
			w.put(spill, spillWidth)
			next, acc, used = w.next, w.acc, w.n
			continue
		}
		acc |= ((head<<(count&63)|v)<<spillWidth | spill) << ((64 - used - width) & 63)
		used += width
		binary.BigEndian.PutUint64(buf[next:], acc)
		next += int(used >> 3)
		half := used >> 3 * 4
		acc = acc << (half & 63) << (half & 63)
		used &= 7
	}
	w.next, w.acc, w.n = next, acc, used
}

// value writes headBits bits of head, then count and value of v, as m does.
// (BT-COUNT-1, BT-COUNT-2)
func (w *bitWriter) value(head uint64, headBits uint, v uint64, m Machine) {
	count := significant(v)
	spill := uint64(0)
	if v>>31 != 0 {
		v, spill = m.lose(v, count)
	}
	w.put(head<<countBits|uint64(count&63)<<spillWidth, headBits+countBits)
	w.putWide(v, count)
	w.put(spill, spillWidth)
}

// BlobBits is how many bits the fields of s take, before padding and length;
// see [BlobLen] for bytes. It fails as [AppendBlob] does.
func BlobBits(s *Stack, m Machine, how Search) (int, error) {
	if err := s.fits(m); err != nil {
		return 0, err
	}
	n := depthBits + countBits + int(significant(s.Size)) + spillWidth
	search := newSearch(s.PCs, m, how)
	for i, pc := range s.PCs {
		if back, delta := search.choose(i); back != 0 {
			n += deltaHead + int(significant(delta)) + spillWidth
		} else {
			n += literalHead + int(significant(pc)) + spillWidth
		}
	}
	return n, nil
}

// fits says whether machine m could hold s.
func (s *Stack) fits(m Machine) error {
	if int(m) >= len(machineNames) {
		panic("codec: " + m.String() + " is not a machine")
	}
	if len(s.PCs) > MaxDepth {
		return fmt.Errorf("a stack of %d frames, expected at most %d [BT-DEPTH-1]", len(s.PCs), MaxDepth)
	}
	if m.Word() == 64 {
		return nil
	}
	for n, pc := range s.PCs {
		if pc>>32 != 0 {
			return fmt.Errorf("frame %d is %#x, expected at most 32 bits on %v [BT-MACH-1]", n, pc, m)
		}
	}
	if s.Size>>32 != 0 {
		return fmt.Errorf("size is %d, expected at most 32 bits on %v [BT-MACH-1]", s.Size, m)
	}
	return nil
}

// significant is the count of v: its bits from the highest set one down, 1 for
// zero. (BT-COUNT-1)
func significant(v uint64) uint { return uint(bits.Len64(v | 1)) }

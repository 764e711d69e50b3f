//go:build linux

package record

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"
)

// record is a record that a thread wrote. more refers to the ring, which the program can
// change at any time; the other fields are copies.
type record struct {
	stamp   uint64
	kind    uint8
	address uint64
	size    uint64
	place   uint8
	frames  bool // the stack is in kept and more; if not set, it is the stack of place
	end     uint8
	kept    uint16
	more    []uint64 // return addresses in the ring, the outermost first
	lengths uint64   // of kindModule, kindImage and kindExec: word 2
	words   []uint64 // of kindModule, kindImage and kindExec: all words
}

// ring reads the records of one slot. The program may write anything at any time, even to
// words that were already checked, so each word is loaded once.
type ring struct {
	words []uint64 // with the slack
	mask  uint32   // of the ring's words without the slack
	tail  uint32   // words read
	head  uint32   // words that may be read
	stamp uint64   // of the record at tail
	past  uint64   // stamp of the previous record
	any   bool     // there was a previous record
}

// load returns word i of the record at tail. i is below ringRecordMax.
func (r *ring) load(i int) uint64 {
	return *(*uint64)(unsafe.Pointer(&r.words[int(r.tail&r.mask)+i]))
}

// publish sets the head that the program published. It returns an error if the head is
// impossible.
func (r *ring) publish(head uint32) error {
	// A record at the end of the ring may extend into the slack, but never adds more than
	// the rest of the ring to head.
	if n := head - r.tail; n > r.mask+1 {
		return fmt.Errorf("%d words in a ring of %d", n, r.mask+1)
	}
	r.head = head
	return nil
}

// peek reports whether there is a record, and sets stamp to its stamp or, if that is larger,
// to the stamp of the previous record.
func (r *ring) peek(c *clock) bool {
	if r.tail == r.head {
		return false
	}
	r.stamp = r.load(0) >> 8
	if c.bits == 32 {
		r.stamp &= 1<<32 - 1
	}
	if r.any && c.before(r.stamp, r.past) {
		r.stamp = r.past
	}
	return true
}

// next reads the record that peek found, and advances tail.
func (r *ring) next(rec *record) error {
	left := r.head - r.tail
	word := r.load(0)
	*rec = record{stamp: r.stamp, kind: uint8(word & 15)}
	frames := word>>4&ringFrames != 0
	var n uint32
	switch rec.kind {
	case kindAllocated, kindMoveEnds:
		n = 3
		rec.address = r.load(1)
		w := r.load(2)
		rec.size, rec.place = w&(1<<48-1), uint8(w>>48)
		if frames {
			w = r.load(3)
			rec.kept, rec.end = uint16(w>>16), uint8(w>>32)
			more := uint32(w & 0xffff)
			if uint32(rec.kept)+more > ringDepth {
				return fmt.Errorf("a stack of %d frames, expected %d at most", uint32(rec.kept)+more, ringDepth)
			}
			rec.frames = true
			n += 1 + more
			at := int(r.tail&r.mask) + 4
			rec.more = r.words[at : at+int(more)]
		}
	case kindFreed, kindMoveBegins:
		n = 2
		rec.address = r.load(1)
	case kindMoveFailed, kindMoveFreed, kindUnloaded, kindFork, kindElsewhere:
		n = 1
	case kindModule:
		rec.lengths = r.load(2)
		n = 3 + 2*uint32(rec.segments()) + up8(rec.idBytes()) + up8(rec.pathBytes())
	case kindImage:
		rec.lengths = r.load(2)
		n = 5 + up8(rec.pathBytes())
	case kindExec:
		rec.lengths = r.load(2)
		n = 4 + up8(rec.pathBytes())
	default:
		return fmt.Errorf("a record of kind %d", rec.kind)
	}
	if n > ringRecordMax {
		return fmt.Errorf("a record of %d words, expected %d at most", n, ringRecordMax)
	}
	if rec.kind == kindModule || rec.kind == kindImage || rec.kind == kindExec {
		at := int(r.tail & r.mask)
		rec.words = slices.Clone(r.words[at : at+int(n)])
	}
	// A record that extends into the slack ends at the end of the ring.
	if at := r.tail & r.mask; at+n > r.mask {
		n = r.mask + 1 - at
	}
	if n > left {
		return fmt.Errorf("a record of %d words, where %d are written", n, left)
	}
	r.tail += n
	r.past, r.any = r.stamp, true
	return nil
}

func (rec *record) pathBytes() int { return int(rec.lengths & 0xffff) }
func (rec *record) idBytes() int   { return int(rec.lengths >> 16 & 0xff) }
func (rec *record) segments() int  { return int(rec.lengths >> 24 & 0xff) }
func (rec *record) wordBits() int  { return int(rec.lengths>>32&0xff) * 8 }
func (rec *record) hooks() int     { return int(rec.lengths >> 40 & 0xff) }

// up8 returns the number of words for a number of bytes.
func up8(bytes int) uint32 { return uint32((bytes + 7) / 8) }

// text returns the first bytes of words as a string, and the words after them.
func text(words []uint64, bytes int) (string, []uint64) {
	n := up8(bytes)
	var b []byte
	for _, w := range words[:n] {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return string(b[:bytes]), words[n:]
}

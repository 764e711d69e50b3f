//go:build linux

package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// record is a record that a thread wrote.
type record struct {
	stamp   uint64
	kind    uint8
	address uint64
	size    uint64
	place   uint8
	frames  bool // the stack is in kept and more; if not set, it is the stack of place. Of kindModule: see ringFrames
	end     uint8
	kept    uint16
	more    []uint64 // return addresses, the outermost first
	lengths uint64   // of kindModule, kindImage and kindExec: word 2
	words   []uint64 // all words, in memory that the next record uses, too
}

// ring reads the records of one slot. The program may write anything at any time, even to
// words that were already checked, so each word is loaded once.
type ring struct {
	words []uint64 // with the slack
	mask  uint32   // of the ring's words without the slack
	seed  uint64   // of checks
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
	r.stamp = r.load(0) >> (64 - ringStampBits)
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
	words := append(rec.words[:0], r.load(0))
	load := func(n uint32) {
		for len(words) < int(n) {
			words = append(words, r.load(len(words)))
		}
	}
	*rec = record{stamp: r.stamp, kind: uint8(words[0] & 15), frames: words[0]>>4&1 != 0, words: words}
	n := uint32(1)
	switch rec.kind {
	case kindAllocated, kindMoveEnds:
		n = 3
		if rec.frames {
			load(4)
			if n += 1 + uint32(words[3]&0xffff); words[3]>>16&0xffff+words[3]&0xffff > ringDepth {
				return fmt.Errorf("a stack of %d frames, expected %d at most", words[3]>>16&0xffff+words[3]&0xffff, ringDepth)
			}
		}
	case kindFreed, kindMoveBegins:
		n = 2
	case kindMoveFailed, kindMoveFreed, kindUnloaded, kindElsewhere:
	case kindModule, kindImage, kindExec:
		load(3)
		rec.lengths = words[2]
		n = 4 + up8(rec.pathBytes())
		if rec.kind == kindModule {
			n += 2*uint32(rec.segments()) + up8(rec.idBytes()) - 1
		}
	default:
		return fmt.Errorf("a record of kind %d", rec.kind)
	}
	if n > ringRecordMax {
		return fmt.Errorf("a record of %d words, expected %d at most", n, ringRecordMax)
	}
	load(n)
	size := n
	// A record that extends into the slack ends at the end of the ring.
	if at := r.tail & r.mask; at+n > r.mask {
		size = r.mask + 1 - at
	}
	if size > left {
		return fmt.Errorf("a record of %d words, where %d are written", size, left)
	}
	if !r.intact(words) {
		return errors.New("a record with a wrong check value")
	}
	rec.words = words
	rec.fields(n)
	r.tail += size
	r.past, r.any = r.stamp, true
	return nil
}

// intact reports whether the words of the record at tail have the check value in word 0.
func (r *ring) intact(words []uint64) bool {
	const mask = (1<<ringCheckBits - 1) << 5
	h := r.seed ^ uint64(r.tail) ^ words[0]&^mask
	for _, w := range words[1:] {
		h ^= w
	}
	return h*ringCheck>>(64-ringCheckBits)<<5 == words[0]&mask
}

// fields sets the fields of a record of n words.
func (rec *record) fields(n uint32) {
	w := rec.words
	if n > 1 {
		rec.address = w[1]
	}
	if rec.kind != kindAllocated && rec.kind != kindMoveEnds {
		return
	}
	rec.size, rec.place = w[2]&(1<<48-1), uint8(w[2]>>48)
	if rec.frames {
		rec.kept, rec.end, rec.more = uint16(w[3]>>16), uint8(w[3]>>32), w[4:n]
	}
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

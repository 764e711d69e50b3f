package dump

import (
	"bytes"
	"hash/maphash"

	"github.com/lwsbt/lwsbt/codec"
)

// Sizes of a memo: the records it keeps, and how many hashes it keeps of records
// that came once.
const (
	memoSize   = 1 << 13
	memoFilter = 1 << 14
	// maxMemoLine is the longest end of a line that is kept, in bytes.
	maxMemoLine = 512
	// memoWindow is after how many records a memo is asked whether it has had 1 of
	// memoWorth; if not, the next memoPause records are not looked for.
	memoWindow = memoSize
	memoWorth  = 8
	memoPause  = 4 * memoWindow
	memoMet    = 3
)

// memo remembers records by the end of their line, from the lead-in on: dumps say
// the same again and again. A record is kept the first time it comes if its place is
// free, and if not, from the second time on once the record that is there has not been
// met as often as others that want its place.
//
// It is one object of whole pages: each entry is one line of a processor's cache, and no
// other scanner's memo shares a line with it, which another processor writes all the time.
type memo struct {
	entries [memoSize]memoEntry
	frames  [memoSize]memoFrames // of entries
	tags    [memoSize]uint32     // of entries: a part of the hash, 0 if it is free
	met     [memoSize]uint8      // of entries: how often, up to memoMet, less the others
	once    [memoFilter]uint32   // tags
	seed    maphash.Seed
	serial  uint64
	asked   int // in this window
	had     int // of asked
	pause   int // records that are not to be looked for
}

// memoEntry is what a record that is met again needs each time: 64 bytes, since memory
// that is not in a processor's cache is what takes the time.
type memoEntry struct {
	line    []byte // from the lead-in on, without its end
	number  uint64
	size    uint64
	marks   codec.Marks
	text    uint16 // bytes of line that are the record
	depth   uint8
	lenient bool
}

// memoFrames is the rest of a record.
type memoFrames struct {
	blob []byte
	pcs  []uint64
}

// Remember makes the scanner keep repeated records, in up to some 8 MB, so that they
// are not decoded again. Record.Memo identifies them. If with is not nil, the two share
// what they keep; one goroutine uses both then. If known is not nil and returns true for
// Record.Memo, the record lacks its Blob and the PCs of its Stack.
func (s *Scanner) Remember(with *Scanner, known func(number uint64) bool) {
	s.known = known
	if with != nil {
		s.memo = with.memo
		return
	}
	s.memo = &memo{seed: maphash.MakeSeed()}
}

// worth reports whether to look for the next record: where hardly any is repeated, that
// takes more time than it saves.
func (m *memo) worth() bool {
	if m.pause > 0 {
		m.pause--
		return false
	}
	if m.asked++; m.asked > memoWindow {
		if m.had < memoWindow/memoWorth {
			m.pause = memoPause
		}
		m.asked, m.had = 1, 0
	}
	return true
}

// memoRecord is newRecord for a record that may have been met before.
func (s *Scanner) memoRecord() bool {
	rest := s.buf[s.pos:min(s.end, s.pos+maxMemoLine)]
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		return s.newRecord(leadInLen)
	}
	line := rest[:n]
	m := s.memo
	h := maphash.Bytes(m.seed, line)
	if s.word() == 32 {
		h ^= 2 << 32 // another tag: it was read at another word
	}
	tag := uint32(h>>32) | 1
	slot := h % memoSize
	e, inUse := &m.entries[slot], &m.tags[slot]
	if *inUse == tag && bytes.Equal(e.line, line) {
		s.begin(Blob, int(e.text))
		m.had++
		if m.met[slot] < memoMet {
			m.met[slot]++
		}
		r := &s.rec
		if s.known == nil || !s.known(e.number) {
			rest := &m.frames[slot]
			r.Blob = rest.blob
			r.Stack.PCs = append(r.Stack.PCs, rest.pcs...)
		}
		r.Stack.Size, r.Stack.Marks = e.size, e.marks
		r.Depth, r.Lenient, r.Memo = int(e.depth), e.lenient, e.number
		return true
	}
	if once := &m.once[tag/2%memoFilter]; *inUse != 0 && *once != tag {
		*once = tag
		return s.newRecord(leadInLen)
	}
	if *inUse != 0 && m.met[slot] > 0 {
		m.met[slot]--
		return s.newRecord(leadInLen)
	}
	e.line = append(e.line[:0], line...) // the buffer may move
	*inUse = 0
	if !s.newRecord(leadInLen) {
		return false
	}
	if r := &s.rec; r.Err == nil {
		rest := &m.frames[slot]
		rest.blob, rest.pcs = append(rest.blob[:0], r.Blob...), append(rest.pcs[:0], r.Stack.PCs...)
		m.serial++
		e.number = m.serial*memoSize + slot
		e.size, e.marks = r.Stack.Size, r.Stack.Marks
		e.text, e.depth, e.lenient = uint16(len(r.Text)), uint8(r.Depth), r.Lenient
		r.Memo, *inUse = e.number, tag
	}
	return true
}

// MemoSlot returns the slot, below MemoSlots, of a [Record.Memo]. Records that are
// remembered at the same time have different slots.
func MemoSlot(number uint64) int { return int(number % memoSize) }

// MemoSlots is the number of slots: at most so many records are remembered at a time.
const MemoSlots = memoSize

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
	memoFilter = 1 << 16
	// maxMemoLine is the longest end of a line that is kept, in bytes.
	maxMemoLine = 512
)

// memo remembers records by the end of their line, from the lead-in on: dumps say
// the same again and again. A record is kept the second time it comes.
type memo struct {
	seed    maphash.Seed
	entries []memoEntry
	once    []uint32 // hashes
	serial  uint64
}

type memoEntry struct {
	line    []byte // from the lead-in on, without its end
	text    int    // bytes of it that are the record
	blob    []byte
	pcs     []uint64
	size    uint64
	marks   codec.Marks
	depth   int
	lenient bool
	number  uint64 // 0: free
}

// Remember makes the scanner keep repeated records, in up to some 8 MB, so that they
// are not decoded again. Record.Memo identifies them.
func (s *Scanner) Remember() {
	s.memo = &memo{seed: maphash.MakeSeed(), entries: make([]memoEntry, memoSize), once: make([]uint32, memoFilter)}
}

// memoRecord is newRecord for a record that may have been met before.
func (s *Scanner) memoRecord() bool {
	rest := s.buf[s.pos:min(s.end, s.pos+maxMemoLine)]
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		return s.newRecord(leadInLen)
	}
	line := rest[:n]
	h := maphash.Bytes(s.memo.seed, line)
	e := &s.memo.entries[h%memoSize]
	if e.number != 0 && bytes.Equal(e.line, line) {
		s.begin(Blob, e.text)
		r := &s.rec
		r.Blob = e.blob
		r.Stack.PCs = append(r.Stack.PCs, e.pcs...)
		r.Stack.Size, r.Stack.Marks = e.size, e.marks
		r.Depth, r.Lenient, r.Memo = e.depth, e.lenient, e.number
		return true
	}
	if once := &s.memo.once[h>>32%memoFilter]; *once != uint32(h) {
		*once = uint32(h)
		return s.newRecord(leadInLen)
	}
	e.line = append(e.line[:0], line...) // the buffer may move
	e.number = 0
	if !s.newRecord(leadInLen) {
		return false
	}
	if r := &s.rec; r.Err == nil {
		e.text, e.blob, e.pcs = len(r.Text), append(e.blob[:0], r.Blob...), append(e.pcs[:0], r.Stack.PCs...)
		e.size, e.marks, e.depth, e.lenient = r.Stack.Size, r.Stack.Marks, r.Depth, r.Lenient
		s.memo.serial++
		e.number = s.memo.serial*memoSize + h%memoSize
		r.Memo = e.number
	}
	return true
}

// MemoSlot returns the slot, below MemoSlots, of a [Record.Memo]. Records that are
// remembered at the same time have different slots.
func MemoSlot(number uint64) int { return int(number % memoSize) }

// MemoSlots is the number of slots: at most so many records are remembered at a time.
const MemoSlots = memoSize

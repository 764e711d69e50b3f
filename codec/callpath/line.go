package callpath

import (
	"math/bits"
)

// LeadIn is the lead-in of a line of call paths. (BT-PLINE-1)
const LeadIn = "~p#"

// Longest lines, in characters from the lead-in to the CRC. (BT-PLINE-3)
const (
	MaxSerial = 120 // on a serial line
	MaxLine   = 240 // elsewhere
)

// Flags select the values in the entries of a line. (BT-ENTRY-4)
type Flags uint8

const (
	Blocks Flags = 1 // address and size of each block, instead of the sum of bytes
	Ever   Flags = 2 // allocations and bytes since the boot
	Peak   Flags = 4 // largest number of live bytes since the boot

	laterField Flags = 32
)

// Head is the head of a line of call paths. (BT-PLINE-1)
type Head struct {
	Flags Flags
	Dump  uint8  // number of the dump mod 64
	Seq   uint16 // number of ~p# lines since the boot before this one, mod 4096
	Unit  uint8  // addresses are multiples of 1<<Unit bytes; 0 to MaxUnit; with Blocks only
}

// Block is a live block. (BT-ENTRY-4)
type Block struct{ Address, Size uint64 }

// Entry is a call path with its values. (BT-ENTRY-1, BT-ENTRY-4)
type Entry struct {
	Path
	Definition bool // the entry has no values, it only defines the name of its path

	Live   uint64  // live blocks
	Bytes  uint64  // of the live blocks; with Blocks their sum, at most 2^64 − 1
	Blocks []Block // with Blocks: each of the live blocks

	Allocs, AllocBytes uint64 // with Ever: since the boot
	Peak               uint64 // with Peak: largest number of live bytes since the boot
}

// Line is a line of call paths. [Line.Parse] checks a line, [Line.Next] returns its
// entries. The zero Line is ready for use. A reused Line does not allocate.
type Line struct {
	Head
	Len int // number of entries

	r     reader
	start int // digit of the first entry

	// The previous entry, and the state that the next entry refers to.
	any     bool
	base    Base
	outer   uint32
	own     []Frame
	kept    int // frames of own that the previous entry has, too
	blocks  []Block
	address uint64 // of the previous block, in units
}

// Parse reads a ~p# line, without its line end, and checks the whole line. Next then
// returns its entries. On a [*codec.Error] the line is empty. Parse does not retain
// text. (BT-PLINE-1, BT-PREJ-1)
func (l *Line) Parse(text []byte) error {
	l.Head, l.Len = Head{}, 0
	l.reset(0)
	if err := l.r.open(text, LeadIn, 4+crcDigits, crcDigits, crc16Of); err != nil {
		return err
	}
	h := Head{Flags: Flags(l.r.fixed(1)), Dump: uint8(l.r.fixed(1)), Seq: uint16(l.r.fixed(2))}
	if h.Flags&Blocks != 0 {
		h.Unit = l.r.unit()
	}
	l.Head = h
	l.reset(l.r.pos)
	var e Entry
	for l.Next(&e) {
		l.Len++
	}
	if err := l.r.error(); err != nil {
		l.Head, l.Len = Head{}, 0
		l.r.digits = l.r.digits[:0]
		l.reset(0)
		return err
	}
	l.reset(l.start)
	return nil
}

// reset makes the entry at digit start the next one.
func (l *Line) reset(start int) {
	l.start, l.r.pos = start, start
	l.any, l.base, l.outer, l.own, l.kept, l.address = false, 0, 0, l.own[:0], 0, 0
}

// Rewind makes the first entry the next one.
func (l *Line) Rewind() { l.reset(l.start) }

// Next reads the next entry into e and reports whether there was one. The frames and
// blocks of e are valid until the next call. (BT-ENTRY-1)
func (l *Line) Next(e *Entry) bool {
	r := &l.r
	if !r.more() {
		return false
	}
	*e = Entry{}
	l.frames(r)
	if v := r.number(); v == 0 {
		e.Definition = true
	} else {
		e.Live = v - 1
		l.values(r, e)
	}
	e.Path = Path{l.base, l.outer, l.own}
	l.any = true
	return r.reason == ""
}

// Kept returns how many of its outermost frames the entry that Next returned last took over from
// the entry before it. (BT-ENTRY-1)
func (l *Line) Kept() int { return l.kept }

// frames reads base and frames of an entry. (BT-ENTRY-1, BT-ENTRY-2)
func (l *Line) frames(r *reader) {
	at := r.pos
	k := r.number()
	ref := Frame{}
	if k < 4 {
		l.base, l.outer, l.own, l.kept = Base(min(k, uint64(Named))), 0, l.own[:0], 0
		if l.base == Named {
			l.outer = r.name()
		}
		if k == 2 {
			return
		}
	} else {
		drop := k - 4
		if !l.any || drop > uint64(len(l.own)) {
			r.fail(at, reasonDrop, "BT-ENTRY-1", "leaves out frames that the previous entry does not have in this line")
			return
		}
		keep := len(l.own) - int(drop)
		if drop > 0 {
			ref = l.own[keep]
		} else if keep > 0 {
			ref = l.own[keep-1]
		}
		l.own, l.kept = l.own[:keep], keep
	}
	at = r.pos
	n := r.number()
	if n > uint64(MaxDepth-len(l.own)) {
		r.fail(at, reasonDepth, "BT-ENTRY-3", "the entry has more than 1,024 frames")
		return
	}
	for ; n > 0 && r.reason == ""; n-- {
		ref = l.frame(r, ref)
	}
}

// frame reads the frame after ref. (BT-ENTRY-2)
func (l *Line) frame(r *reader, ref Frame) Frame {
	at := r.pos
	v, escaped := r.step()
	f := Frame{Escaped: escaped}
	if escaped {
		f.Value = r.number()
	} else {
		if !ref.Escaped {
			f.Value = ref.Value
		}
		if f.Value += uint64(unfold(v)); f.Value >= MaxOffset {
			r.fail(at, reasonFrame, "BT-CODE-2", "the code offset is below 0, or 2^27 or more")
			return Frame{}
		}
	}
	l.own = append(l.own, f)
	return f
}

// values reads the values of an entry with e.Live blocks. (BT-ENTRY-4)
func (l *Line) values(r *reader, e *Entry) {
	if l.Flags&Blocks != 0 {
		l.blocks = l.blocks[:0]
		for n := e.Live; n > 0 && r.reason == ""; n-- {
			l.address += uint64(unfold(r.number()))
			b := Block{l.address << l.Unit, r.number()}
			l.blocks = append(l.blocks, b)
			var carry uint64
			if e.Bytes, carry = bits.Add64(e.Bytes, b.Size, 0); carry != 0 {
				e.Bytes = 1<<64 - 1
			}
		}
		e.Blocks = l.blocks
	} else {
		e.Bytes = r.number()
	}
	if l.Flags&Ever != 0 {
		e.Allocs, e.AllocBytes = r.number(), r.number()
	}
	if l.Flags&Peak != 0 {
		e.Peak = r.number()
	}
	if l.Flags&laterField != 0 {
		r.skip(r.number())
	}
}

package callpath

import (
	"bytes"

	"github.com/lwsbt/lwsbt/codec"
)

// AppendLine appends the ~p# line of entries, without a line end, and returns the
// extended slice. An entry leaves out the frames that it shares with the previous entry
// (BT-SHARE-1). AppendLine does not check the length of the line; see [Writer]. It
// returns dst unchanged and a [*codec.Error] for an entry that cannot be encoded, with
// the reason unit (a unit over 12, or an address that is not a multiple of the unit), frame
// (a code offset of 2^27 or more), depth (more than 1,024 frames) or number (more than
// 2^64 − 2 live blocks). It panics on flags that this package does not write. (BT-PLINE-1)
func AppendLine(dst []byte, h Head, entries []Entry) ([]byte, error) {
	var enc encoder
	out := enc.begin(dst, h)
	for i := range entries {
		if err := enc.check(&entries[i]); err != nil {
			return dst, err
		}
		out = enc.entry(out, &entries[i])
	}
	if h.Unit > MaxUnit {
		return dst, refuse(reasonUnit, "BT-PLINE-1", "the unit is over 12")
	}
	return enc.end(out, len(dst)), nil
}

func refuse(reason codec.Reason, clause, expected string) *codec.Error {
	return lineError(-1, reason, clause, "%s", expected)
}

// encoder appends the entries of one line.
type encoder struct {
	head    Head
	any     bool
	base    Base
	outer   uint32
	own     []Frame // of the previous entry
	address uint64  // of the previous block, in units
}

// begin appends lead-in and head. (BT-PLINE-1)
func (enc *encoder) begin(dst []byte, h Head) []byte {
	if h.Flags&^(Blocks|Ever|Peak) != 0 {
		panic("callpath: flags that no line is written with")
	}
	*enc = encoder{head: h, own: enc.own[:0]}
	dst = append(dst, LeadIn...)
	dst = append(dst, alphabet[h.Flags], alphabet[h.Dump&63])
	dst = appendFixed(dst, uint64(h.Seq), 2)
	if h.Flags&Blocks != 0 {
		dst = append(dst, alphabet[h.Unit&63])
	}
	return dst
}

// end appends the CRC of the line that begins at start. (BT-PLINE-2)
func (enc *encoder) end(dst []byte, start int) []byte {
	return appendFixed(dst, crc16Of(dst[start+len(LeadIn):]), crcDigits)
}

// check returns an error if an entry cannot be encoded. (BT-PREJ-2)
func (enc *encoder) check(e *Entry) error {
	if len(e.Frames) > MaxDepth {
		return refuse(reasonDepth, "BT-ENTRY-3", "more than 1,024 frames")
	}
	for _, f := range e.Frames {
		if !f.Escaped && f.Value >= MaxOffset {
			return refuse(reasonFrame, "BT-CODE-2", "a code offset of 2^27 or more")
		}
	}
	if e.Definition {
		return nil
	}
	if enc.head.Flags&Blocks == 0 {
		if e.Live+1 == 0 {
			return refuse(reasonNumber, "BT-DIGIT-2", "2^64 - 1 live blocks")
		}
		return nil
	}
	if e.Live != 0 && e.Live != uint64(len(e.Blocks)) {
		return refuse(reasonNumber, "BT-ENTRY-4", "another number of live blocks than of blocks")
	}
	for _, b := range e.Blocks {
		if b.Address&(1<<enc.head.Unit-1) != 0 {
			return refuse(reasonUnit, "BT-ENTRY-4", "an address that is no multiple of the unit")
		}
	}
	return nil
}

// entry appends an entry. (BT-ENTRY-1)
func (enc *encoder) entry(dst []byte, e *Entry) []byte {
	dst = enc.frames(dst, &e.Path)
	if e.Definition {
		return append(dst, alphabet[0])
	}
	return enc.values(dst, e)
}

// frames appends base and frames. (BT-ENTRY-1)
func (enc *encoder) frames(dst []byte, p *Path) []byte {
	dst = enc.appendPath(dst, p)
	shared := max(enc.shared(p), 0)
	enc.any, enc.base, enc.outer = true, p.Base, p.outer()
	enc.own = append(enc.own[:shared], p.Frames[shared:]...)
	return dst
}

// shared returns the number of outermost frames that a path has in common with the previous
// entry, or −1 if there is no previous entry or its base or outer name differs.
func (enc *encoder) shared(p *Path) int {
	if !enc.any || enc.base != p.Base || enc.outer != p.outer() {
		return -1
	}
	return commonFrames(enc.own, p.Frames)
}

func commonFrames(a, b []Frame) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// appendPath appends base and frames. It omits the frames shared with the previous entry, if
// the two share a frame or a name. It does not change enc. (BT-SHARE-1)
func (enc *encoder) appendPath(dst []byte, p *Path) []byte {
	if shared := enc.shared(p); shared > 0 || shared == 0 && p.Base == Named {
		return enc.appendShared(dst, p, shared)
	}
	return appendAlone(dst, p)
}

// appendAlone appends a path without reference to the previous entry.
func appendAlone(dst []byte, p *Path) []byte {
	k := uint64(p.Base)
	if p.Base == Named {
		if len(p.Frames) > 0 {
			k = 3
		}
		dst = appendFixed(appendNumber(dst, k), uint64(p.Outer), nameDigits)
		if k == 2 {
			return dst
		}
	} else {
		dst = appendNumber(dst, k)
	}
	dst = appendNumber(dst, uint64(len(p.Frames)))
	return appendFrames(dst, 0, p.Frames)
}

// appendShared appends a path without the frames that it shares with the previous entry.
func (enc *encoder) appendShared(dst []byte, p *Path, shared int) []byte {
	ref := Frame{}
	if shared < len(enc.own) {
		ref = enc.own[shared]
	} else if shared > 0 {
		ref = enc.own[shared-1]
	}
	dst = appendNumber(dst, uint64(4+len(enc.own)-shared))
	dst = appendNumber(dst, uint64(len(p.Frames)-shared))
	return appendFrames(dst, ref.reference(), p.Frames[shared:])
}

// reference returns the code offset that the step to the next frame starts from. (BT-ENTRY-2)
func (f Frame) reference() uint64 {
	if f.Escaped {
		return 0
	}
	return f.Value
}

func appendFrames(dst []byte, ref uint64, frames []Frame) []byte {
	for _, f := range frames {
		dst = appendFrame(dst, ref, f)
		ref = f.reference()
	}
	return dst
}

// values appends the values of an entry. (BT-ENTRY-4)
func (enc *encoder) values(dst []byte, e *Entry) []byte {
	flags := enc.head.Flags
	if flags&Blocks != 0 {
		dst = appendNumber(dst, uint64(len(e.Blocks))+1)
		for _, b := range e.Blocks {
			dst = enc.block(dst, b)
		}
	} else {
		dst = appendNumber(appendNumber(dst, e.Live+1), e.Bytes)
	}
	if flags&Ever != 0 {
		dst = appendNumber(appendNumber(dst, e.Allocs), e.AllocBytes)
	}
	if flags&Peak != 0 {
		dst = appendNumber(dst, e.Peak)
	}
	return dst
}

// block appends address and size of a block.
func (enc *encoder) block(dst []byte, b Block) []byte {
	address := b.Address >> enc.head.Unit
	dst = appendNumber(dst, fold(int64(address-enc.address)))
	enc.address = address
	return appendNumber(dst, b.Size)
}

// outer returns the name of the outer part, 0 if there is none.
func (p *Path) outer() uint32 {
	if p.Base == Named {
		return p.Outer
	}
	return 0
}

// AppendCRC appends the CRC to a ~p# or ~v# line without one, such as a line written by
// hand for a test. It panics if line has another lead-in. (BT-PLINE-2, BT-VLINE-2)
func AppendCRC(line []byte) []byte {
	switch {
	case bytes.HasPrefix(line, []byte(LeadIn)):
		return appendFixed(line, crc16Of(line[len(LeadIn):]), crcDigits)
	case bytes.HasPrefix(line, []byte(LeadInEvents)):
		return appendFixed(line, crc32Of(line[len(LeadInEvents):]), eventsCRCDigits)
	}
	panic("callpath: AppendCRC: no lead-in of a ~p# or ~v# line")
}

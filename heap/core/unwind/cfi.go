package unwind

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// cie is a common information entry of .eh_frame or .debug_frame.
type cie struct {
	codeAlign  uint64
	dataAlign  int64
	raColumn   int
	signal     bool // augmentation S: a frame that a signal interrupted
	sized      bool // augmentation z
	pcEnc      byte // encoding of addresses in its FDEs
	code       []byte
	addrSize   int
	segmentLen int
}

// fde is a frame description entry: rules for the addresses from low to high.
type fde struct {
	low, high uint64
	cie       *cie
	code      []byte
}

// frameTable holds the entries of a file's call frame information, sorted by address.
type frameTable struct {
	list []fde
}

// Encodings of addresses in .eh_frame.
const (
	encAbs     = 0x00
	encULEB    = 0x01
	encU2      = 0x02
	encU4      = 0x03
	encU8      = 0x04
	encSLEB    = 0x09
	encS2      = 0x0a
	encS4      = 0x0b
	encS8      = 0x0c
	encPCRel   = 0x10
	encDataRel = 0x30
	encOmit    = 0xff
)

// readFrames reads a section of call frame information at address addr. It skips
// malformed entries, using their length to find the next entry.
func readFrames(b []byte, addr uint64, eh bool, order binary.ByteOrder, word int) *frameTable {
	t := &frameTable{}
	cies := map[int]*cie{}
	c := cursor{b: b, order: order}
	for c.off+4 <= len(b) {
		e, ok := readEntry(&c, eh)
		if !ok {
			break
		}
		if e.isCIE || e.body == nil {
			continue
		}
		ci, seen := cies[e.cieOff]
		if !seen {
			ci = readCIE(b, e.cieOff, addr, eh, order, word)
			cies[e.cieOff] = ci
		}
		if ci == nil {
			continue
		}
		if f, ok := readFDE(b, e, ci, addr, order, word); ok {
			t.list = append(t.list, f)
		}
	}
	slices.SortStableFunc(t.list, func(x, y fde) int { return cmp.Compare(x.low, y.low) })
	return t
}

// entry is the common start of a CIE and an FDE.
type entry struct {
	isCIE  bool
	cieOff int
	body   []byte // after the id
	off    int    // of body in the section
	wide   bool   // 64-bit DWARF
}

// readEntry reads one entry and advances c past it; ok is false at the end.
func readEntry(c *cursor, eh bool) (e entry, ok bool) {
	size := uint64(c.u32())
	if size == 0xffffffff {
		size, e.wide = c.u64(), true
	}
	if c.bad || size == 0 && !eh {
		return e, false
	}
	if size == 0 {
		return e, c.off < len(c.b) // a terminator; linkers leave some in the middle
	}
	if size > uint64(len(c.b)-c.off) {
		return e, false
	}
	end := c.off + int(size)
	idOff := c.off
	var id uint64
	if e.wide {
		id = c.u64()
	} else {
		id = uint64(c.u32())
	}
	if c.bad || c.off > end {
		c.bad, c.off = false, end
		return e, true
	}
	switch {
	case eh:
		e.isCIE = id == 0
		e.cieOff = -1
		if id <= uint64(idOff) {
			e.cieOff = idOff - int(id)
		}
	default:
		e.isCIE = id == 0xffffffff && !e.wide || id == ^uint64(0)
		e.cieOff = -1
		if id < uint64(len(c.b)) {
			e.cieOff = int(id)
		}
	}
	e.off, e.body = c.off, c.b[c.off:end]
	c.off = end
	return e, true
}

func readCIE(b []byte, off int, addr uint64, eh bool, order binary.ByteOrder, word int) *cie {
	if off < 0 || off+4 > len(b) {
		return nil
	}
	sub := cursor{b: b, off: off, order: order}
	e, ok := readEntry(&sub, eh)
	if !ok || !e.isCIE {
		return nil
	}
	ci := &cie{pcEnc: encAbs, addrSize: word}
	c := cursor{b: e.body, order: order}
	version := c.u8()
	aug := c.cstring()
	if version == 4 {
		ci.addrSize, ci.segmentLen = int(c.u8()), int(c.u8())
	}
	if len(aug) >= 2 && string(aug[:2]) == "eh" {
		c.take(word)
		aug = aug[2:]
	}
	ci.codeAlign, ci.dataAlign = c.uleb(), c.sleb()
	if version == 1 {
		ci.raColumn = int(c.u8())
	} else {
		ci.raColumn = int(min(c.uleb(), maxReg))
	}
	if len(aug) > 0 && aug[0] == 'z' {
		ci.sized = true
		data := cursor{b: c.take(int(min(c.uleb(), 1<<30))), order: order}
		for _, a := range aug[1:] {
			switch a {
			case 'R':
				ci.pcEnc = data.u8()
			case 'L':
				data.u8()
			case 'P':
				skipEncoded(&data, data.u8(), word)
			case 'S':
				ci.signal = true
			}
		}
	} else if len(aug) > 0 {
		return nil // not readable without the length
	}
	if c.bad || version != 1 && version != 3 && version != 4 {
		return nil
	}
	ci.code = e.body[c.off:]
	return ci
}

// skipEncoded skips an encoded address.
func skipEncoded(c *cursor, enc byte, word int) { readEncoded(c, enc, 0, 0, word) }

// readEncoded reads an encoded address. at is the address of the first byte of c.b,
// data the base of data-relative addresses.
func readEncoded(c *cursor, enc byte, at, data uint64, word int) (uint64, bool) {
	if enc == encOmit {
		return 0, false
	}
	pc := at + uint64(c.off)
	var v uint64
	switch form := enc & 0xf; form {
	case encAbs:
		v = c.uint(word)
	case encULEB:
		v = c.uleb()
	case encSLEB:
		v = uint64(c.sleb())
	case encU2, encU4, encU8, encS2, encS4, encS8:
		size := 1 << (form&7 - 1)
		if v = c.uint(size); form >= encS2 {
			v = uint64(signed(int64(v), 8*size))
		}
	default:
		return 0, false
	}
	switch enc & 0x70 {
	case 0:
	case encPCRel:
		v += pc
	case encDataRel:
		v += data
	default:
		return 0, false
	}
	if word == 4 {
		v &= 0xffffffff
	}
	return v, !c.bad
}

func readFDE(b []byte, e entry, ci *cie, addr uint64, order binary.ByteOrder, word int) (f fde, ok bool) {
	c := cursor{b: b[:e.off+len(e.body)], off: e.off, order: order}
	c.take(ci.segmentLen)
	if ci.addrSize != 4 && ci.addrSize != 8 {
		return f, false
	}
	f.low, ok = readEncoded(&c, ci.pcEnc, addr, 0, ci.addrSize)
	size, ok2 := readEncoded(&c, ci.pcEnc&0xf, 0, 0, ci.addrSize)
	if ci.sized {
		c.take(int(min(c.uleb(), 1<<30)))
	}
	if !ok || !ok2 || c.bad || size == 0 || f.low+size < f.low {
		return f, false
	}
	f.high, f.cie, f.code = f.low+size, ci, c.b[c.off:]
	return f, true
}

// find returns the entry that covers addr. If several do, it returns the one with the highest
// start, since entries of code that the linker dropped begin at address 0.
func (t *frameTable) find(addr uint64) *fde {
	if t == nil {
		return nil
	}
	i := sort.Search(len(t.list), func(i int) bool { return t.list[i].low > addr })
	for n := 0; i > 0 && n < 4; n++ {
		i--
		if f := &t.list[i]; addr < f.high {
			return f
		}
	}
	return nil
}

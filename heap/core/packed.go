package core

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// packedMark is LWSBT_MARK of heaps with packed stacks (LWSBT_PACKED of device/), without its lowest byte.
const packedMark = mark + 0x100

// packing holds the parameters to read the packed stacks of an owner.
type packing struct {
	code  *callpath.Ranges // nil if the owner has no code ranges: all frames are addresses
	width int              // bits of an offset
	units uint64           // length of the code
}

// packing returns the packing of an owner. It reads the packing once:
//
//	… │ mark │ pointer to the code │ …
//	ranges │ count, shift (8 bits)
func (f *finder) packing(owner uint64) *packing {
	if p := f.packings[owner]; p != nil {
		return p
	}
	p := f.m.readPacking(owner, f.code, f.shift)
	f.packings[owner] = p
	return p
}

// readPacking reads the packing of an owner. It uses code and shift if the owner's own code
// ranges are not in the image.
func (m *Image) readPacking(owner uint64, code []codec.Range, shift int) *packing {
	ptr := uint64(m.PointerSize())
	at, ok := m.Pointer(owner + 2*ptr + 16)
	if ok && at == 0 {
		return &packing{}
	}
	p := &Profile{Addr: owner, Code: code, Shift: shift}
	if b, ok := m.Bytes(at, ptr+2); ok {
		c := cursor{b: b, word: m.Word, order: m.Order}
		ranges, count, shift := c.ptr(), c.uint(1), c.uint(1)
		if m.readCode(p, ranges, count, int(min(shift, 4))) != nil {
			p.Code = nil
		}
	}
	out := &packing{code: p.ranges()}
	for _, x := range p.Code {
		out.units += x.Length
	}
	out.units >>= p.Shift
	out.width = min(max(1, bits.Len64(out.units)), 28)
	return out
}

// packingAt returns the packing of the stack before a node, or nil. It is the packing of the
// owner of the current list, or else of the owner that the node points to.
func (f *finder) packingAt(node uint64) *packing {
	if f.o != nil {
		return f.o.packing
	}
	n, ok := f.readNode(node)
	if !ok {
		return nil
	}
	o, _ := f.readOwner(n.owner)
	return o.packing
}

var errPacked = errors.New("packed stack: a field reaches beyond the length")

// unpack reads the stack of a packed block, whose bytes end with the length:
//
//	depth │ short │ count │ size  │ frame │ …
//	5       1       6       count   width, or a word
//
// If short is set, frames are code offsets, and an offset of all ones is followed by an
// address. unpack returns the stack as a blob.
func (p *packing) unpack(s *codec.Stack, b []byte, word int) ([]byte, error) {
	r := packedBits{b: b[:len(b)-2]}
	depth, short, count := r.next(5), r.next(1) == 1, int(r.next(6)-1)&63+1
	width := 0
	if short {
		if p.code == nil {
			return nil, errors.New("packed stack: offsets, but the heap has no code ranges")
		}
		width = p.width
	}
	if count > word {
		return nil, fmt.Errorf("packed stack: size of %d bits", count)
	}
	s.Size = r.next(count)
	s.PCs = s.PCs[:0]
	for range depth {
		v := r.next(width)
		if v == 1<<width-1 {
			s.PCs = append(s.PCs, r.next(word))
			continue
		}
		address, _, ok := p.code.Address(callpath.Frame{Value: v})
		if !ok {
			return nil, fmt.Errorf("packed stack: code offset %#x is in no code range", v)
		}
		s.PCs = append(s.PCs, address)
	}
	if r.bad {
		return nil, errPacked
	}
	return codec.Encoder{Machine: machineOf(word), Search: codec.SearchBest}.AppendBlob(nil, s, nil)
}

// machineOf returns the exact machine with this word size in bits.
func machineOf(word int) codec.Machine {
	if word == 32 {
		return codec.MachineExact32
	}
	return codec.MachineExact64
}

// packedBits reads bits, the highest of a byte first.
type packedBits struct {
	b   []byte
	pos int
	bad bool // a read went past the end
}

func (r *packedBits) next(n int) (v uint64) {
	if r.pos+n > 8*len(r.b) {
		r.bad = true
		return 0
	}
	for range n {
		v = v<<1 | uint64(r.b[r.pos/8]>>(7-r.pos%8)&1)
		r.pos++
	}
	return v
}

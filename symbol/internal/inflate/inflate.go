// Package inflate decompresses zlib data from memory to memory, as far as a caller needs it. It takes half of
// the time of readers that return the data in pieces: debug information of several megabytes is most of the
// work for a short recording.
package inflate

import (
	"encoding/binary"
	"errors"
	"hash/adler32"
)

// ErrCorrupt is the error for data that no compressor writes, or that ends early.
var ErrCorrupt = errors.New("the compressed data is damaged")

// Reader decompresses one stream. (RFC 1950)
type Reader struct {
	bits
	out    int  // bytes that are decompressed
	last   bool // the current block is the last one
	coded  bool // in a block of codes
	stored int  // remaining bytes of a block without codes

	lens      [maxLit + maxDist]uint8 // bits of each code
	lit, dist table
}

// NewReader returns a reader of a stream.
func NewReader(src []byte) (*Reader, error) {
	if len(src) < 2 || src[0]&15 != 8 || binary.BigEndian.Uint16(src)%31 != 0 || src[1]&32 != 0 {
		return nil, ErrCorrupt
	}
	return &Reader{bits: bits{src: src, pos: 2}, lit: table{width: 11}, dist: table{width: 9}}, nil
}

// Fill decompresses at least the first n bytes of dst, unless they are there, and returns how many are. All
// calls have the same dst.
func (r *Reader) Fill(dst []byte, n int) (ready int, err error) {
	for r.out < n && err == nil {
		switch {
		case r.stored > 0:
			err = r.copy(dst)
		case r.coded:
			err = r.decode(dst, n)
		case r.last:
			err = ErrCorrupt
		default:
			err = r.begin()
		}
	}
	return r.out, err
}

// Check returns an error if the stream has more than dst, which is full, or if its checksum is another one.
func (r *Reader) Check(dst []byte) error {
	for !r.last || r.coded || r.stored > 0 {
		if r.stored > 0 {
			return ErrCorrupt
		}
		if r.coded {
			e := r.next(&r.lit)
			if r.coded = false; e&kind != end || r.n < 0 {
				return ErrCorrupt
			}
		} else if err := r.begin(); err != nil {
			return err
		}
	}
	r.take(uint(r.n) & 7)
	r.fill()
	if r.take(32); r.n < 0 {
		return ErrCorrupt
	}
	if sum := binary.BigEndian.Uint32(r.src[r.pos-r.n/8-4:]); sum != adler32.Checksum(dst) {
		return errors.New("the checksum of the compressed data is wrong")
	}
	return nil
}

// copy copies bytes of a block without codes.
func (r *Reader) copy(dst []byte) error {
	r.pos, r.acc, r.n = r.pos-r.n/8, 0, 0
	n := copy(dst[r.out:], r.src[r.pos:min(len(r.src), r.pos+r.stored)])
	r.pos, r.out, r.stored = r.pos+n, r.out+n, r.stored-n
	if n == 0 {
		return ErrCorrupt
	}
	return nil
}

// begin reads the header of a block. (RFC 1951, 3.2.3)
func (r *Reader) begin() error {
	r.fill()
	r.last = r.take(1) == 1
	switch r.take(2) {
	case 0:
		r.take(uint(r.n) & 7)
		r.fill()
		r.stored = int(r.take(16))
		if r.take(16) != uint64(r.stored)^0xffff || r.n < 0 {
			return ErrCorrupt
		}
		return nil
	case 1:
		return r.codes(fixed[:maxLit], fixed[maxLit:])
	case 2:
		return r.readLengths()
	}
	return ErrCorrupt
}

// fixed is the lengths of the fixed codes. (RFC 1951, 3.2.6)
var fixed = func() (lens [maxLit + maxDist]uint8) {
	for i := range lens {
		switch {
		case i >= maxLit:
			lens[i] = 5
		case i < 144 || i >= 280:
			lens[i] = 8
		case i < 256:
			lens[i] = 9
		default:
			lens[i] = 7
		}
	}
	return lens
}()

// lengthOrder is the order of the lengths of the codes for lengths.
var lengthOrder = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readLengths reads the lengths of codes, which are themselves coded. (RFC 1951, 3.2.7)
func (r *Reader) readLengths() error {
	lits, dists, n := int(r.take(5))+257, int(r.take(5))+1, int(r.take(4))+4
	var first [len(lengthOrder)]uint8
	for _, at := range lengthOrder[:n] {
		r.fill()
		first[at] = uint8(r.take(3))
	}
	if lits > maxLit || dists > maxDist || !r.dist.build(first[:], func(symbol int) uint32 { return uint32(symbol) << 16 }) {
		return ErrCorrupt
	}
	for i := 0; i < lits+dists; {
		r.fill()
		e := r.next(&r.dist)
		length, times := uint8(e>>16), 1
		switch {
		case e&kind != 0 || r.n < 0 || length == 16 && i == 0:
			return ErrCorrupt
		case length == 16:
			length, times = r.lens[i-1], 3+int(r.take(2))
		case length == 17:
			length, times = 0, 3+int(r.take(3))
		case length == 18:
			length, times = 0, 11+int(r.take(7))
		}
		if i+times > lits+dists {
			return ErrCorrupt
		}
		for range times {
			r.lens[i] = length
			i++
		}
	}
	return r.codes(r.lens[:lits], r.lens[lits:lits+dists])
}

func (r *Reader) codes(lits, dists []uint8) error {
	if r.coded = r.n >= 0 && r.lit.build(lits, litEntry) && r.dist.build(dists, distEntry); !r.coded {
		return ErrCorrupt
	}
	return nil
}

// decode decodes a block up to its end, or until the first n bytes of dst are there. (RFC 1951, 3.2.3)
func (r *Reader) decode(dst []byte, n int) error {
	b, out := r.bits, r.out
	defer func() { r.bits, r.out = b, out }()
	for out < n {
		b.fill()
		e := b.next(&r.lit)
		if e&kind == literal {
			dst[out] = byte(e >> 16)
			out++
			continue
		}
		if e&kind != 0 {
			if r.coded = false; e&kind == end && b.n >= 0 {
				return nil
			}
			return ErrCorrupt
		}
		length := int(e>>16) + int(b.take(uint(e>>8&15)))
		d := b.next(&r.dist)
		far := int(d>>16) + int(b.take(uint(d>>8&15)))
		if d&kind != 0 || b.n < 0 || far > out || length > len(dst)-out {
			return ErrCorrupt
		}
		from, to := dst[out-far:], dst[out:]
		if out += length; far >= 8 && len(to) >= length+8 {
			for i := 0; i < length; i += 8 {
				binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
			}
			continue
		}
		for i := range length {
			to[i] = from[i]
		}
	}
	if b.n < 0 {
		return ErrCorrupt
	}
	return nil
}

package profile

import (
	"encoding/binary"
	"hash/maphash"
)

// LocationID is the number of a location in its profile.
type LocationID uint32

// PathID is the number of a call path in its profile.
type PathID uint32

// chunk is how many elements of a growing array are allocated at once: such an
// array never moves, and nothing of it is garbage.
const chunk = 1 << 16

// array grows without moving what it holds.
type array[T any] struct {
	chunks [][]T
	n      int
}

func (a *array[T]) push(v T) {
	if a.n%chunk == 0 {
		size := chunk
		if a.n == 0 {
			size = 256 // most profiles are small
		}
		a.chunks = append(a.chunks, make([]T, 0, size))
	}
	last := &a.chunks[len(a.chunks)-1]
	*last = append(*last, v)
	a.n++
}

func (a *array[T]) at(i int) *T { return &a.chunks[i/chunk][i%chunk] }

// index is an open hash table of numbers; the caller compares keys.
type index struct {
	slots []uint32 // 1 + number; 0 is free
	used  int
}

// full reports whether the table is to be grown before a number is added.
func (x *index) full() bool { return x.used >= len(x.slots)/4*3 }

// grow doubles the table; hash returns the hash of a number's key.
func (x *index) grow(hash func(i uint32) uint64) {
	old := x.slots
	x.slots = make([]uint32, max(1024, 2*len(old)))
	mask := uint64(len(x.slots) - 1)
	for _, s := range old {
		if s != 0 {
			h := hash(s-1) & mask
			for x.slots[h] != 0 {
				h = (h + 1) & mask
			}
			x.slots[h] = s
		}
	}
}

// locations interns return addresses. A tag distinguishes equal addresses that
// mean different things: of another boot, another map, or other trust.
type locations struct {
	keys   array[addrKey]
	detail []*Location // by number, as far as any is known
	index  index
}

// addrKey is an address and its tag.
type addrKey struct {
	addr uint64
	tag  uint32
}

func hashAddr(addr uint64, tag uint32) uint64 {
	h := (addr ^ uint64(tag)<<48 ^ uint64(tag)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// intern returns the number of an address, and whether it is new.
func (l *locations) intern(addr uint64, tag uint32) (id LocationID, fresh bool) {
	if l.index.full() {
		l.index.grow(func(i uint32) uint64 { k := l.keys.at(int(i)); return hashAddr(k.addr, k.tag) })
	}
	mask := uint64(len(l.index.slots) - 1)
	h := hashAddr(addr, tag) & mask
	for ; l.index.slots[h] != 0; h = (h + 1) & mask {
		i := int(l.index.slots[h] - 1)
		if k := l.keys.at(i); k.addr == addr && k.tag == tag {
			return LocationID(i), false
		}
	}
	id = LocationID(l.keys.n)
	l.keys.push(addrKey{addr, tag})
	l.index.slots[h] = uint32(id) + 1
	l.index.used++
	return id, true
}

// arenaBlock is how many bytes of call paths are allocated at once; a path lies in
// one block.
const arenaBlock = 1 << 20

// paths interns sequences of locations, each as the differences of their numbers.
type paths struct {
	blocks [][]byte
	start  array[uint64] // block<<32 | offset
	hashes array[uint32]
	index  index
	seed   maphash.Seed
	key    []byte
}

// encode leaves the key of a path in p.key. Numbers of neighbouring frames are often
// near each other, since they were met together.
func (p *paths) encode(frames []LocationID) {
	k := p.key[:0]
	last := uint32(0)
	for _, f := range frames {
		d := int32(uint32(f) - last)
		k = binary.AppendUvarint(k, uint64(uint32(d<<1)^uint32(d>>31)))
		last = uint32(f)
	}
	p.key = k
}

// find looks for the key in p.key: its number, or the slot for it.
func (p *paths) find() (id PathID, hash uint32, slot uint64, found bool) {
	if p.index.slots == nil {
		p.seed = maphash.MakeSeed()
	}
	if p.index.full() {
		p.index.grow(func(i uint32) uint64 { return uint64(*p.hashes.at(int(i))) })
	}
	hash = uint32(maphash.Bytes(p.seed, p.key))
	mask := uint64(len(p.index.slots) - 1)
	slot = uint64(hash) & mask
	for ; p.index.slots[slot] != 0; slot = (slot + 1) & mask {
		i := p.index.slots[slot] - 1
		if *p.hashes.at(int(i)) == hash && string(p.bytes(PathID(i))) == string(p.key) {
			return PathID(i), hash, slot, true
		}
	}
	return 0, hash, slot, false
}

// add adds the key in p.key at the slot that find returned.
func (p *paths) add(hash uint32, slot uint64) PathID {
	id := PathID(p.start.n)
	need := len(p.key) + binary.MaxVarintLen16
	if n := len(p.blocks); n == 0 || cap(p.blocks[n-1])-len(p.blocks[n-1]) < need {
		size := arenaBlock
		if n == 0 {
			size = 4096
		}
		p.blocks = append(p.blocks, make([]byte, 0, max(size, need)))
	}
	b := &p.blocks[len(p.blocks)-1]
	p.start.push(uint64(len(p.blocks)-1)<<32 | uint64(len(*b)))
	p.hashes.push(hash)
	*b = binary.AppendUvarint(*b, uint64(len(p.key)))
	*b = append(*b, p.key...)
	p.index.slots[slot] = uint32(id) + 1
	p.index.used++
	return id
}

// bytes is the key of a path.
func (p *paths) bytes(id PathID) []byte {
	at := *p.start.at(int(id))
	b := p.blocks[at>>32][uint32(at):]
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)]
}

// append appends the locations of a path to dst.
func (p *paths) append(dst []LocationID, id PathID) []LocationID {
	last := uint32(0)
	for b := p.bytes(id); len(b) > 0; {
		v, n := binary.Uvarint(b)
		b = b[n:]
		last += uint32(v>>1) ^ -uint32(v&1)
		dst = append(dst, LocationID(last))
	}
	return dst
}

package profile

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
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

func (a *array[T]) at(i int) *T { return &a.chunks[uint(i)/chunk][uint(i)%chunk] }

// locations interns return addresses. A tag distinguishes equal addresses that
// mean different things: of another boot, another map, or other trust.
type locations struct {
	keys   array[addrKey]
	detail []*Location // by number, as far as any is known
	index  Index
}

// addrKey is an address and its tag.
type addrKey struct {
	addr uint64
	tag  uint32
}

// intern returns the number of an address, and whether it is new.
func (l *locations) intern(addr uint64, tag uint32) (id LocationID, fresh bool) {
	if id, ok := l.index.Get(addr, tag); ok {
		return LocationID(id), false
	}
	id = LocationID(l.keys.n)
	l.keys.push(addrKey{addr, tag})
	l.index.Put(addr, tag, uint32(id))
	return id, true
}

// arenaBlock is how many bytes of call paths are allocated at once; a path lies in
// one block.
const arenaBlock = 1 << 20

// paths interns sequences of locations.
type paths struct {
	blocks [][]byte
	start  array[uint64] // block<<32 | offset
	index  hashTable
	key    []byte
}

// hashTable is an open hash table of numbers; the caller compares keys.
type hashTable struct {
	slots []hashSlot // a power of 2, at most 3/4 full
	used  int
}

// hashSlot is a hash and 1 + a number: 0 if the slot is free.
type hashSlot struct{ hash, number uint32 }

// reserve grows the table if it has no place for one more.
func (t *hashTable) reserve() {
	if t.used < len(t.slots)/4*3 {
		return
	}
	old := t.slots
	times := 4
	if len(old) >= 1<<20 {
		times = 2 // what is not used counts, too
	}
	t.slots = make([]hashSlot, max(1024, times*len(old)))
	for _, s := range old {
		if s.number != 0 {
			at := t.start(s.hash)
			for t.slots[at].number != 0 {
				at = t.next(at)
			}
			t.slots[at] = s
		}
	}
}

// start returns where the search for a hash begins, and next where it goes on.
func (t *hashTable) start(hash uint32) int { return int(hash) & (len(t.slots) - 1) }

func (t *hashTable) next(at int) int { return (at + 1) & (len(t.slots) - 1) }

// put fills a free slot.
func (t *hashTable) put(at int, hash, number uint32) {
	t.slots[at] = hashSlot{hash, number + 1}
	t.used++
}

// appendKey appends the key of a path: the numbers of its locations, in as many bytes
// each as the largest takes, and behind them that number of bytes.
func appendKey(k []byte, frames []LocationID) []byte {
	all := LocationID(0)
	for _, f := range frames {
		all |= f
	}
	width := max(1, (bits.Len32(uint32(all))+7)/8)
	n := len(k)
	k = slices.Grow(k, 4*len(frames)+4)[:n+width*len(frames)+4]
	for _, f := range frames {
		binary.LittleEndian.PutUint32(k[n:], uint32(f)) // the next one, or the width, covers what is too much
		n += width
	}
	k[n] = byte(width)
	return k[:n+1]
}

var seed = maphash.MakeSeed()

func hashKey(key []byte) uint32 { return uint32(maphash.Bytes(seed, key)) }

// encode leaves the key of a path in p.key.
func (p *paths) encode(frames []LocationID) { p.key = appendKey(p.key[:0], frames) }

// find looks for the key in p.key: its number, or the slot for it.
func (p *paths) find() (id PathID, hash uint32, slot int, found bool) {
	hash = hashKey(p.key)
	id, slot, found = p.findKey(p.key, hash)
	return id, hash, slot, found
}

// findKey is find for another key.
func (p *paths) findKey(key []byte, hash uint32) (id PathID, slot int, found bool) {
	t := &p.index
	t.reserve()
	for slot = t.start(hash); ; slot = t.next(slot) {
		s := t.slots[slot]
		if s.number == 0 {
			return 0, slot, false
		}
		if s.hash == hash && string(p.bytes(PathID(s.number-1))) == string(key) {
			return PathID(s.number - 1), slot, true
		}
	}
}

// touch reads the slots of several hashes, so that the processor waits for memory once
// and not for each.
func (p *paths) touch(hashes []uint32) (sum uint32) {
	if t := &p.index; len(t.slots) > 0 {
		for _, h := range hashes {
			sum += t.slots[t.start(h)].number
		}
	}
	return sum
}

// add adds the key in p.key at the slot that find returned.
func (p *paths) add(hash uint32, slot int) PathID { return p.addKey(p.key, hash, slot) }

// addKey is add for another key.
func (p *paths) addKey(key []byte, hash uint32, slot int) PathID {
	id := PathID(p.start.n)
	need := len(key) + binary.MaxVarintLen16
	if n := len(p.blocks); n == 0 || cap(p.blocks[n-1])-len(p.blocks[n-1]) < need {
		size := arenaBlock
		if n == 0 {
			size = 4096
		}
		p.blocks = append(p.blocks, make([]byte, 0, max(size, need)))
	}
	b := &p.blocks[len(p.blocks)-1]
	p.start.push(uint64(len(p.blocks)-1)<<32 | uint64(len(*b)))
	*b = binary.AppendUvarint(*b, uint64(len(key)))
	*b = append(*b, key...)
	p.index.put(slot, hash, uint32(id))
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
	b := p.bytes(id)
	width, b := int(b[len(b)-1]), b[:len(b)-1]
	mask := uint32(1<<(8*width) - 1)
	for ; len(b) >= 4; b = b[width:] {
		dst = append(dst, LocationID(binary.LittleEndian.Uint32(b)&mask))
	}
	if len(b) > 0 { // at most 3 locations
		var end [8]byte
		copy(end[:], b)
		for i := 0; i < len(b); i += width {
			dst = append(dst, LocationID(binary.LittleEndian.Uint32(end[i:])&mask))
		}
	}
	return dst
}

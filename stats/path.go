package stats

import (
	"bytes"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// path is a call path. It stores its addresses encoded, either as recorded or in the shortest
// encoding, and decodes them on every use; the encoding takes a third of the memory of the
// addresses. A path takes 24 bytes, its bits, and 40 bytes for each width of size.
type path struct {
	bits     uint64 // position in the memory of the table; see pathTable.bitsOf
	lossy    uint32 // frames of which only the low 31 bits are known
	sizes    int32  // index of the first sizeClass, -1 if none
	end      uint16 // bit after the frames
	length   uint16 // length of the stored blob in bytes
	word     uint8  // word size at which the bits are decoded
	recorded bool   // the bits are those of the path's first blob
}

// sizeClass counts the allocations of a path whose size has a given number of
// significant bits.
type sizeClass struct {
	bits    uint8
	next    int32  // index of the next class of the path, -1 if none
	count   uint64 // all allocations
	blobs   uint64 // allocations recorded as blobs
	regular uint64 // blobs with the bits of the path, and only padding after the size
	bytes   uint64 // sum of the sizes; saturates
}

const (
	chunkPaths = 1 << 12
	chunkBits  = 1 << 20 // bytes
)

// pathTable holds distinct call paths, at most 2^31, and finds them by hash.
type pathTable struct {
	index   slotTable
	chunks  [][]path // of chunkPaths, the last one shorter
	classes []sizeClass
	bits    [][]byte // of chunkBits, the last one shorter

	stack codec.Stack // scratch
	blob  []byte      // scratch
}

func (t *pathTable) len() int { return t.index.used }

func (t *pathTable) path(n int) *path { return &t.chunks[n/chunkPaths][n%chunkPaths] }

// at returns the path in a slot of the index.
func (t *pathTable) at(slot int) *path { return t.path(t.index.number(slot)) }

// add adds an empty path with this hash.
func (t *pathTable) add(hash uint32) *path {
	n := t.len()
	t.index.insert(hash, n)
	if n%chunkPaths == 0 {
		t.chunks = append(t.chunks, make([]path, 0, chunkPaths))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, path{sizes: -1})
	return &(*last)[len(*last)-1]
}

// slotTable maps hashes to numbers of paths. Several paths may have the same hash; the
// caller compares them.
type slotTable struct {
	slots []slot // open addressing, a power of 2, at most 3/4 full
	used  int
}

// slot is a hash and the number of a path, plus one; 0 if the slot is free.
type slot struct{ hash, path uint32 }

// number returns the number of the path in a slot.
func (t *slotTable) number(at int) int { return int(t.slots[at].path - 1) }

// first returns the first slot with this hash; next returns the next one after slot at. ok is
// false if there is none.
func (t *slotTable) first(hash uint32) (at int, ok bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	return t.find(hash, int(hash)&(len(t.slots)-1))
}

func (t *slotTable) next(hash uint32, at int) (int, bool) {
	return t.find(hash, (at+1)&(len(t.slots)-1))
}

func (t *slotTable) find(hash uint32, at int) (int, bool) {
	for ; t.slots[at].path != 0; at = (at + 1) & (len(t.slots) - 1) {
		if t.slots[at].hash == hash {
			return at, true
		}
	}
	return 0, false
}

func (t *slotTable) insert(hash uint32, path int) {
	if 4*(t.used+1) > 3*len(t.slots) {
		old := t.slots
		t.slots = make([]slot, max(1024, 2*len(old)))
		for _, s := range old {
			if s.path != 0 {
				t.put(s)
			}
		}
	}
	t.put(slot{hash, uint32(path + 1)})
	t.used++
}

func (t *slotTable) put(s slot) {
	at := int(s.hash) & (len(t.slots) - 1)
	for t.slots[at].path != 0 {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at] = s
}

// keep stores the frames of a blob, which end at bit end, as the frames of p, which are
// decoded at this word size. The stored form is a blob with a size of 0.
func (t *pathTable) keep(p *path, blob []byte, end, word int) {
	b := append(t.blob[:0], blob[:(end+7)/8]...)
	if used := end % 8; used != 0 {
		b[len(b)-1] &= 0xff << (8 - used)
	}
	for len(b) < codec.BlobLen(end+sizeBits(1))-2 {
		b = append(b, 0)
	}
	// A size of 0: count 1 in 6 bits and a spill bit, the value 0 and a spill bit.
	b[(end+5)/8] |= 1 << (7 - (end+5)%8)
	b = append(b, byte((len(b)+2)>>8), byte(len(b)+2))
	t.blob = b
	p.end, p.word = uint16(end), uint8(word)
	t.store(p, b)
}

// encode stores the addresses of a path that was not recorded as a blob.
func (t *pathTable) encode(p *path, pcs []uint64) {
	s := codec.Stack{PCs: pcs}
	b, err := codec.AppendBlob(t.blob[:0], &s, codec.MachineExact64, codec.SearchBest)
	if err != nil {
		panic("stats: " + err.Error()) // more than MaxDepth frames: a bug in the caller
	}
	t.blob = b
	p.word = 64
	t.store(p, b)
}

// store copies b to the table's memory.
func (t *pathTable) store(p *path, b []byte) {
	if len(t.bits) == 0 || cap(t.bits[len(t.bits)-1])-len(t.bits[len(t.bits)-1]) < len(b) {
		t.bits = append(t.bits, make([]byte, 0, chunkBits))
	}
	last := &t.bits[len(t.bits)-1]
	p.bits, p.length = uint64(len(t.bits)-1)*chunkBits+uint64(len(*last)), uint16(len(b))
	*last = append(*last, b...)
}

// bitsOf returns the stored blob of a path: its frames, and a size of 0.
func (t *pathTable) bitsOf(p *path) []byte {
	at := p.bits % chunkBits
	return t.bits[p.bits/chunkBits][at : at+uint64(p.length)]
}

// decode reads the addresses of a path into s.
func (t *pathTable) decode(s *codec.Stack, p *path) {
	if err := codec.DecodeWord(s, t.bitsOf(p), int(p.word)); err != nil {
		panic("stats: a path that was kept: " + err.Error())
	}
}

// equal reports whether a path has these addresses.
func (t *pathTable) equal(p *path, pcs []uint64) bool {
	t.decode(&t.stack, p)
	return slices.Equal(t.stack.PCs, pcs)
}

// sizeOf returns the class for sizes of n bits of a path.
func (t *pathTable) sizeOf(p *path, n int) *sizeClass {
	for i := p.sizes; i >= 0; i = t.classes[i].next {
		if int(t.classes[i].bits) == n {
			return &t.classes[i]
		}
	}
	t.classes = append(t.classes, sizeClass{bits: uint8(n), next: p.sizes})
	p.sizes = int32(len(t.classes) - 1)
	return &t.classes[p.sizes]
}

// eachSize calls do with each class of a path.
func (t *pathTable) eachSize(p *path, do func(s *sizeClass)) {
	for i := p.sizes; i >= 0; i = t.classes[i].next {
		do(&t.classes[i])
	}
}

// regular reports whether a blob consists of the stored bits of the path, a size of n
// bits, padding and length.
func (p *path) regular(kept, blob []byte, n int) bool {
	end := int(p.end)
	whole, rest := end/8, end%8
	if len(blob) != codec.BlobLen(end+sizeBits(n)) || !bytes.Equal(blob[:whole], kept[:whole]) ||
		(blob[whole]^kept[whole])>>(8-rest) != 0 {
		return false
	}
	at := uint(blob[whole])<<8 | uint(blob[whole+1])
	return int((at<<rest>>10)&63) == n&63 && zeroFill(blob, end+sizeBits(n))
}

// zeroFill reports whether the bits of blob from bit pos to the end of that byte are 0.
func zeroFill(blob []byte, pos int) bool {
	return pos%8 == 0 || blob[pos/8]<<(pos%8) == 0
}

package stats

import (
	"iter"
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
)

// path is a call path. It stores its addresses as a blob, either the first recorded one or the
// shortest one, and decodes them on every use: a blob takes a third of the memory of the
// addresses.
type path struct {
	at       int    // position of the blob in pathTable.blobs
	length   uint16 // of the blob, in bytes
	end      uint16 // bit of the blob after the frames, 0 if it was not recorded
	sizes    int32  // index of the first sizeClass, -1 if there is none
	lossy    uint32 // frames of which only the low 31 bits are known
	word     uint8  // word size at which the blob is decoded
	recorded bool   // the blob is the first blob of the path
}

// sizeClass counts the allocations of a path whose size has a given number of
// significant bits.
type sizeClass struct {
	bits  uint8
	next  int32  // index of the next class of the path, -1 if there is none
	count uint64 // all allocations
	blobs uint64 // allocations recorded as blobs
}

// pathTable holds distinct call paths, at most 2^31. It contains no pointers to its paths, so that
// the garbage collector need not visit them.
type pathTable struct {
	all     list[path]
	index   map[uint64]int32 // by hash: index in all
	classes list[sizeClass]
	blobs   [][]byte // of blobChunk bytes, which never move
	buf     []byte   // reused
}

const blobChunk = 1 << 16

// list is a growing list, whose elements never move. A slice would take up to three times the memory
// while it grows.
type list[T any] struct {
	chunks [][]T
	n      int
}

const listChunk = 1 << 10

func (l *list[T]) at(i int) *T { return &l.chunks[i/listChunk][i%listChunk] }

func (l *list[T]) push(v T) {
	if l.n%listChunk == 0 {
		l.chunks = append(l.chunks, make([]T, listChunk))
	}
	l.n++
	*l.at(l.n - 1) = v
}

// find returns the path of s. If the path is new, find adds it, without a blob.
func (t *pathTable) find(s *codec.Stack) *path {
	hash := hashOf(s.PCs)
	n, known := t.index[hash]
	if !known {
		n = int32(t.all.n)
		t.index[hash] = n
		t.all.push(path{sizes: -1, lossy: s.Marks.Lossy})
	}
	return t.all.at(int(n))
}

// hashOf returns a hash of a call path. Paths are distinguished by their hashes alone: two of
// ten million paths have the same one with a probability under one in 100,000.
func hashOf(pcs []uint64) uint64 {
	h := uint64(len(pcs)) + 0x9e3779b97f4a7c15
	for _, pc := range pcs {
		hi, lo := bits.Mul64(h^pc, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	return h
}

// keep stores a blob that is decoded at this word size as that of a path.
func (t *pathTable) keep(p *path, blob []byte, word int) {
	last := len(t.blobs) - 1
	if last < 0 || len(t.blobs[last])+len(blob) > blobChunk {
		t.blobs = append(t.blobs, make([]byte, 0, blobChunk))
		last++
	}
	p.at, p.length, p.word = last*blobChunk+len(t.blobs[last]), uint16(len(blob)), uint8(word)
	t.blobs[last] = append(t.blobs[last], blob...)
}

// encode stores the addresses of a path that was not recorded as a blob.
func (t *pathTable) encode(p *path, pcs []uint64) {
	blob, err := codec.Encoder{Search: codec.SearchBest}.AppendBlob(t.buf[:0], &codec.Stack{PCs: pcs}, nil)
	if err != nil {
		panic("stats: " + err.Error()) // more than MaxDepth frames: a bug in the caller
	}
	t.keep(p, blob, 64)
	t.buf = blob
}

// blob returns the blob of a path.
func (t *pathTable) blob(p *path) []byte { return t.blobs[p.at/blobChunk][p.at%blobChunk:][:p.length] }

// decode reads the addresses of a path into s.
func (t *pathTable) decode(s *codec.Stack, p *path) {
	if err := (codec.Decoder{Word: int(p.word)}).Decode(s, nil, t.blob(p)); err != nil {
		panic("stats: a path that was kept: " + err.Error())
	}
}

// sizeOf returns the class for sizes of n bits of a path.
func (t *pathTable) sizeOf(p *path, n int) *sizeClass {
	for class := range t.sizes(p) {
		if int(class.bits) == n {
			return class
		}
	}
	t.classes.push(sizeClass{bits: uint8(n), next: p.sizes})
	p.sizes = int32(t.classes.n - 1)
	return t.classes.at(int(p.sizes))
}

// sizes yields each class of a path.
func (t *pathTable) sizes(p *path) iter.Seq[*sizeClass] {
	return func(yield func(*sizeClass) bool) {
		for i := p.sizes; i >= 0; i = t.classes.at(int(i)).next {
			if !yield(t.classes.at(int(i))) {
				return
			}
		}
	}
}

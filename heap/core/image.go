package core

import (
	"cmp"
	"container/heap"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// Image is the memory of a program at one moment. The zero Image is empty and ready for
// [Image.AddFile], [Image.AddRAM] and [Image.AddELF]. Where these overlap, the memory
// added first counts.
//
// Once Segments has been called and nothing more is added, several goroutines may read an
// Image.
type Image struct {
	// Word is 32 or 64 bits, 0 if not known.
	Word int
	// Order is the byte order, nil if not known.
	Order   binary.ByteOrder
	Machine elf.Machine
	// Threads are the threads of a core file or the processors of a guest. The thread
	// that crashed is first.
	Threads []Thread
	// Maps is the memory map of the process, by address, with the mapped files. It
	// includes memory that the core file omits.
	Maps []Map
	// PID and Program identify the process, 0 and "" if not known.
	PID     int
	Program string
	// Auxv is the auxiliary vector that the kernel passed to the process.
	Auxv map[uint64]uint64
	// About has what a crash dump says of itself, one sentence each.
	About []string
	// Guest reports whether the image is of a virtual machine: addresses are physical.
	Guest bool

	notes   notes
	files   []Map // mapped files, from the notes
	pieces  []piece
	sorted  []Segment // nil until Segments computes it from pieces
	sources []*source
	passed  uint64 // bytes that were read since the last Release
}

// Map is a mapped range of addresses of a process.
type Map struct {
	Start, End  uint64
	Write, Exec bool
	File        string // path, "" if not known
	Offset      uint64 // of Start in File, in bytes

	buildID string // from a minidump
	absent  bool   // from a list of mapped files, which does not contain Write and Exec
	empty   bool   // the core file has none of its bytes, by its header
}

// Segment is memory with known bytes. Segments do not overlap and are sorted by
// address; adjacent ones may differ in permissions.
type Segment struct {
	Addr        uint64
	Data        []byte // must not be written
	Write, Exec bool
	ELF         bool // read from an executable file, not from the memory of the program

	src *source
	off int64 // offset of Data in src
}

// End returns the address after the segment's last byte, modulo 2^64.
func (s *Segment) End() uint64 { return s.Addr + uint64(len(s.Data)) }

// piece is a range of memory that was added; pieces may overlap.
type piece struct {
	Segment
	rank int // where pieces overlap, the lowest rank counts
}

// maxPieces limits the number of segments. Linux limits a process to 65,530 maps.
const maxPieces = 1 << 20

// add adds memory. It cuts off bytes past the end of the address space.
func (m *Image) add(s Segment) {
	if n := -s.Addr; s.Addr != 0 && uint64(len(s.Data)) > n {
		m.notes.add("memory at %#x passes the end of the address space: cut", s.Addr)
		s.Data = s.Data[:n]
	}
	if len(s.Data) == 0 {
		return
	}
	if len(m.pieces) == maxPieces {
		m.notes.add("more than %d segments: what follows is left out", maxPieces)
		return
	}
	m.pieces = append(m.pieces, piece{s, len(m.pieces)})
	m.sorted = nil
}

// Segments returns all memory with known bytes.
func (m *Image) Segments() []Segment {
	if m.sorted == nil && len(m.pieces) > 0 {
		m.arrange()
	}
	return m.sorted
}

// arrange computes the sorted segments. It sweeps over the address space, with a heap, ordered
// by rank, of the pieces that begin at or before the current position.
func (m *Image) arrange() {
	in := slices.Clone(m.pieces)
	slices.SortStableFunc(in, func(a, b piece) int { return cmp.Compare(a.Addr, b.Addr) })
	var active ranks
	var from *piece // of the last segment
	m.sorted = make([]Segment, 0, len(in))
	last := func(p *piece) uint64 { return p.Addr + uint64(len(p.Data)) - 1 }
	emit := func(p *piece, pos, to uint64) { // to is the last address
		off := pos - p.Addr
		if n := len(m.sorted) - 1; from == p && m.sorted[n].End() == pos {
			start := m.sorted[n].Addr - p.Addr
			m.sorted[n].Data = p.Data[start : to-p.Addr+1]
			return
		}
		s := p.Segment
		s.Addr, s.Data, s.off = pos, p.Data[off:to-p.Addr+1], p.off+int64(off)
		m.sorted = append(m.sorted, s)
		from = p
	}
	for i, pos := 0, uint64(0); i < len(in) || len(active) > 0; {
		if len(active) == 0 {
			pos = max(pos, in[i].Addr)
		}
		for ; i < len(in) && in[i].Addr <= pos; i++ {
			heap.Push(&active, &in[i])
		}
		top := active[0]
		if last(top) < pos {
			heap.Pop(&active)
			continue
		}
		to := last(top)
		if i < len(in) && in[i].Addr <= to {
			to = in[i].Addr - 1
		}
		emit(top, pos, to)
		if to == ^uint64(0) {
			break
		}
		pos = to + 1
	}
	m.countTwice()
}

// countTwice adds a note on how many bytes were added more than once, with different values.
func (m *Image) countTwice() {
	twice := 0
	for i := range m.pieces {
		p := &m.pieces[i]
		for off := uint64(0); !p.ELF && off < uint64(len(p.Data)); {
			s := m.Find(p.Addr + off)
			b := s.Data[p.Addr+off-s.Addr:]
			a := p.Data[off:][:min(uint64(len(b)), uint64(len(p.Data))-off)]
			if off += uint64(len(a)); s.ELF || &a[0] == &b[0] {
				continue
			}
			for k := range a {
				if a[k] != b[k] {
					twice++
				}
			}
		}
	}
	if twice > 0 {
		m.notes.add("%d bytes are in the image more than once, with different values: the first counts", twice)
	}
}

// ranks is a heap of pieces by rank.
type ranks []*piece

func (r ranks) Len() int           { return len(r) }
func (r ranks) Less(i, j int) bool { return r[i].rank < r[j].rank }
func (r ranks) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranks) Push(x any)        { *r = append(*r, x.(*piece)) }
func (r *ranks) Pop() any {
	old := *r
	x := old[len(old)-1]
	*r = old[:len(old)-1]
	return x
}

// Find returns the segment that contains addr, or nil if the byte at addr is not known.
func (m *Image) Find(addr uint64) *Segment {
	list := m.Segments()
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr > addr }) - 1
	if i >= 0 && addr-list[i].Addr < uint64(len(list[i].Data)) {
		return &list[i]
	}
	return nil
}

// Read copies memory that begins at addr into p, up to the first unknown byte, and returns
// the number of bytes copied.
func (m *Image) Read(p []byte, addr uint64) int {
	n := 0
	for n < len(p) {
		at := addr + uint64(n)
		if at < addr { // past the end of the address space
			break
		}
		s := m.Find(at)
		if s == nil {
			break
		}
		n += copy(p[n:], s.Data[at-s.Addr:])
	}
	return n
}

// Bytes returns the n bytes that begin at addr, and whether all of them are known. If they are
// in one segment, the result is a subslice of the image and must not be modified.
func (m *Image) Bytes(addr, n uint64) ([]byte, bool) {
	s := m.Find(addr)
	if s == nil {
		return nil, n == 0
	}
	if d := s.Data[addr-s.Addr:]; uint64(len(d)) >= n {
		return d[:n:n], true
	}
	// The bytes are in several segments. Check that all exist before allocating n bytes.
	have := uint64(0)
	for s := s; s != nil && have < n; s = m.Find(addr + have) {
		have += uint64(len(s.Data)) - (addr + have - s.Addr)
		if addr+have < addr {
			break
		}
	}
	if have < n {
		return nil, false
	}
	p := make([]byte, n)
	return p, m.Read(p, addr) == len(p)
}

// Uint reads an unsigned number of 1, 2, 4 or 8 bytes.
func (m *Image) Uint(addr uint64, size int) (uint64, bool) {
	p, ok := m.Bytes(addr, uint64(size))
	if !ok {
		return 0, false
	}
	return uintOf(p, m.ByteOrder()), true
}

// Pointer reads an address of Word bits.
func (m *Image) Pointer(addr uint64) (uint64, bool) { return m.Uint(addr, m.PointerSize()) }

// PointerSize returns the size of an address in bytes, 4 or 8.
func (m *Image) PointerSize() int {
	if m.Word == 64 {
		return 8
	}
	return 4
}

// ByteOrder returns Order, or little-endian if it is not known.
func (m *Image) ByteOrder() binary.ByteOrder {
	if m.Order == nil {
		return binary.LittleEndian
	}
	return m.Order
}

// Notes returns messages about parts of the files that were rejected, each once.
func (m *Image) Notes() []string { return m.notes.list() }

// Close closes the files. The image and its memory must not be used afterwards.
func (m *Image) Close() {
	for _, s := range m.sources {
		s.close()
	}
	*m = Image{}
}

// Words reads addresses from bytes of an image.
type Words struct{ wide, little bool }

// Words returns a reader for the words of the image.
func (m *Image) Words() Words { return Words{m.Word == 64, m.ByteOrder() == binary.LittleEndian} }

// Word reads the address that b begins with.
func (w Words) Word(b []byte) uint64 {
	switch {
	case w.wide && w.little:
		return binary.LittleEndian.Uint64(b)
	case w.little:
		return uint64(binary.LittleEndian.Uint32(b))
	case w.wide:
		return binary.BigEndian.Uint64(b)
	}
	return uint64(binary.BigEndian.Uint32(b))
}

func uintOf(p []byte, order binary.ByteOrder) uint64 {
	switch len(p) {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(order.Uint16(p))
	case 4:
		return uint64(order.Uint32(p))
	}
	return order.Uint64(p)
}

// notes collects messages about rejected input, each text once and at most maxNotes of
// them.
type notes struct {
	texts []string
	seen  map[string]bool
	more  int
}

const maxNotes = 100

func (n *notes) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case n.seen[text]:
	case len(n.texts) == maxNotes:
		n.more++
	default:
		if n.seen == nil {
			n.seen = map[string]bool{}
		}
		n.seen[text] = true
		n.texts = append(n.texts, text)
	}
}

func (n *notes) list() []string {
	if n.more == 0 {
		return n.texts
	}
	return append(slices.Clip(n.texts), fmt.Sprintf("and %d notes more", n.more))
}

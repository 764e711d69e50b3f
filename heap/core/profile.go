package core

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Profile is a struct lwsbt_profile of device/: a table of call paths with their values.
//
//	heap │ node │ entry │ nodes, entries (16 bits) │ ranges │ count, shift (8 bits) │ sample │ random │ history │ cut │ failed
type Profile struct {
	Addr    uint64
	Name    string // of the variable, "" if not known
	Heap    uint64 // address of its struct lwsbt_heap; the list in it is not used
	Sample  uint32 // mean bytes between sample points, 0 if all blocks are counted
	Code    []codec.Range
	Shift   int
	Entries []ProfileEntry // entries with live blocks or a history
	History bool           // the entries have Allocs, AllocBytes and Peak
	// Found is the number of blocks of the table that were found in memory, by their check bytes.
	Found int

	count   uint64 // blocks that the heap counts
	entries int
	node    []uint64
}

// ProfileEntry is a call path of a table.
type ProfileEntry struct {
	Number int
	Cut    bool // blocks of longer paths are counted here, or the path was damaged
	Live   uint64
	Bytes  uint64

	Allocs, AllocBytes, Peak uint64 // since the boot, if the table has a history

	// The path. Frames are return addresses, outermost first.
	Base   callpath.Base
	Frames []uint64

	found      uint64 // blocks, and their bytes
	foundBytes uint64
}

// Limits of device/include/lwsbt/profile.h, and bits of an entry, of device/src/profile.h.
const (
	minNodes, maxNodes            = 16, 16382
	minTableEntries, tableEntries = 17, 65534

	entryUsed  = 1
	entryCut   = 2
	entryBits  = 64 // higher bits are not used
	firstNode  = 2  // number of the first node
	emptyNode  = 0  // never used
	removed    = 1  // free again
	alignedTag = 0xffff
)

// FindProfiles reads the tables of call paths at candidates. [Image.Notes] reports damaged
// parts. code and shift are used for a table whose own ranges are not in the image, because
// they are in flash, for example. The result is empty if no candidate is a table.
func (m *Image) FindProfiles(candidates []Symbol, code []codec.Range, shift int) (list []*Profile) {
	if m.Word == 0 || m.Order == nil {
		return nil
	}
	seen := map[uint64]bool{}
	for _, s := range candidates {
		if seen[s.Addr] {
			continue
		}
		seen[s.Addr] = true
		p, err := m.readProfile(s.Addr, code, shift)
		if err != nil {
			if !errors.Is(err, errUnused) {
				m.notes.add("the profile %s at %#x: %v", s.Name, s.Addr, err)
			}
			continue
		}
		p.Name = s.Name
		list = append(list, p)
	}
	if len(list) == 1 { // a block does not identify its table
		m.findProfileBlocks(list[0])
	}
	for _, p := range list {
		m.checkProfile(p)
	}
	return list
}

var errUnused = errors.New("not in use")

// readProfile reads the table at addr.
func (m *Image) readProfile(addr uint64, code []codec.Range, shift int) (*Profile, error) {
	ptr := uint64(m.PointerSize())
	b, ok := m.Bytes(addr, 7*ptr+16)
	if !ok || addr == 0 || addr%ptr != 0 {
		return nil, errors.New("not in the image")
	}
	c := cursor{b: b, word: m.Word, order: m.Order}
	p := &Profile{Addr: addr, Heap: c.ptr(), Shift: shift, Code: code}
	node, entry := c.ptr(), c.ptr()
	nodes, entries := int(c.u16()), int(c.u16())
	c.off = int(4 * ptr)
	ranges, count, unit := c.ptr(), c.uint(1), c.uint(1)
	c.off = int(6 * ptr)
	p.Sample = uint32(c.u32())
	p.entries = entries
	switch {
	case node == 0 && entry == 0:
		return nil, errUnused
	case nodes < minNodes || nodes > maxNodes || entries < minTableEntries || entries > tableEntries:
		return nil, fmt.Errorf("%d nodes, %d entries: expected %d to %d, %d to %d", nodes, entries, minNodes, maxNodes, minTableEntries, tableEntries)
	case unit > 4 || p.Sample >= 1<<27:
		return nil, fmt.Errorf("shift %d, sample %d: expected up to 4, below 2^27", unit, p.Sample)
	case node%ptr != 0 || entry%ptr != 0:
		return nil, errors.New("its arrays are not aligned")
	}
	if err := m.readCode(p, ranges, count, int(unit)); err != nil {
		return nil, err
	}
	nb, ok := m.Bytes(node, uint64(nodes)*ptr)
	if !ok {
		return nil, errors.New("its nodes are not in the image")
	}
	nc := cursor{b: nb, word: m.Word, order: m.Order}
	p.node = make([]uint64, nodes)
	for i := range p.node {
		p.node[i] = nc.ptr() &^ (1 << (m.Word - 1)) // without the mark
	}
	eb, ok := m.Bytes(entry, uint64(entries)*(8+ptr))
	if !ok {
		return nil, errors.New("its entries are not in the image")
	}
	p.count, _ = m.Uint(p.Heap+2*ptr, 4)
	c.off = int(6*ptr + 8)
	m.readEntries(p, eb, m.readHistory(p, c.ptr()))
	return p, nil
}

// readHistory returns the bytes of the table's history at address at, or nil if there is none.
func (m *Image) readHistory(p *Profile, at uint64) []byte {
	if at == 0 {
		return nil
	}
	b, ok := m.Bytes(at, uint64(p.entries)*3*uint64(m.PointerSize()))
	if !ok {
		m.notes.add("the history of the profile at %#x is not in the image: left out", p.Addr)
		return nil
	}
	return b
}

// readCode reads the code ranges of a table. If they are not in the image, p keeps the ranges
// of the ELF file.
func (m *Image) readCode(p *Profile, at, count uint64, shift int) error {
	ptr := uint64(m.PointerSize())
	b, ok := m.Bytes(at, 2*ptr*count)
	switch {
	case count == 0:
		p.Code, p.Shift = nil, shift
		return nil
	case !ok && len(p.Code) == 0:
		return errors.New("its code ranges are not in the image")
	case !ok:
		m.notes.add("the code ranges of the profile at %#x are not in the image: those of the ELF file are used", p.Addr)
		return nil
	}
	p.Code, p.Shift = nil, shift
	c := cursor{b: b, word: m.Word, order: m.Order}
	for range count {
		start, end := c.ptr(), c.ptr()
		if end < start || (start|end)&(1<<shift-1) != 0 {
			return fmt.Errorf("code from %#x to %#x, with shift %d", start, end, shift)
		}
		if end > start {
			p.Code = append(p.Code, codec.Range{Start: start, Length: end - start})
		}
	}
	return nil
}

// ranges returns the code of a table.
func (p *Profile) ranges() *callpath.Ranges {
	r := &callpath.Ranges{Shift: uint8(p.Shift)}
	for _, x := range p.Code {
		r.Add(x, "")
	}
	return r
}

// readEntries reads the entries with live blocks or a history. If the path of an entry is
// damaged, it counts the entry under a path without frames, so that no bytes are lost.
func (m *Image) readEntries(p *Profile, b, history []byte) {
	code := p.ranges()
	c := cursor{b: b, word: m.Word, order: m.Order}
	p.History = history != nil
	for i := range p.entries {
		key, live, size := c.u32(), c.u32(), c.ptr()
		node, flags := key&0xffff, key>>24 // and a size class of 8 bits between
		if flags&entryUsed == 0 && live == 0 && size == 0 {
			continue
		}
		if flags&entryUsed == 0 || flags >= entryBits || live == 0 && size != 0 {
			m.notes.add("entry %d of the profile at %#x was overwritten: left out", i, p.Addr)
			continue
		}
		e := ProfileEntry{Number: i, Cut: flags&entryCut != 0, Live: live, Bytes: size}
		if p.History { // a count of 32 bits, in a word, and two words
			h := cursor{b: history, off: 3 * i * m.PointerSize(), word: m.Word, order: m.Order}
			e.Allocs = h.u32()
			h.off = (3*i + 1) * m.PointerSize()
			e.AllocBytes, e.Peak = h.ptr(), h.ptr()
		}
		if live == 0 && e.Allocs == 0 {
			continue
		}
		if err := p.path(&e, int(node), m.Word, code); err != nil {
			m.notes.add("entry %d of the profile at %#x: %v: its %d blocks are counted under no path", i, p.Addr, err, live)
			e.Cut, e.Base, e.Frames = true, callpath.Cut, nil
		}
		p.Entries = append(p.Entries, e)
	}
}

// path sets base and frames of an entry from its innermost node.
//
//	node   | offset + 1 | number of the caller's node |
//
// A frame outside the code takes two nodes, outermost first: upper half + 1; lower half + escape,
// which is more than any offset + 1.
func (p *Profile) path(e *ProfileEntry, node, word int, code *callpath.Ranges) error {
	parentBits := bits.Len(uint(len(p.node) + firstNode - 1))
	half := word / 2
	escape := uint64(1)<<(word-1-parentBits) - 1<<half
	read := func() (v uint64, err error) {
		if node < firstNode || node-firstNode >= len(p.node) {
			return 0, fmt.Errorf("node %d of %d", node, len(p.node))
		}
		x := p.node[node-firstNode]
		if x == emptyNode || x == removed {
			return 0, fmt.Errorf("node %d is not in use", node)
		}
		v, node = x>>parentBits, int(x&(1<<parentBits-1))
		if v == 0 {
			return 0, errors.New("a node has no offset")
		}
		return v, nil
	}
	var inner []uint64 // innermost first
	for node >= firstNode {
		if len(inner) == callpath.MaxDepth {
			return fmt.Errorf("more than %d frames, or a loop", callpath.MaxDepth)
		}
		v, err := read()
		if err != nil {
			return err
		}
		if v >= escape {
			high, err := read()
			if err != nil {
				return err
			}
			if high > 1<<half {
				return errors.New("the upper half of an address is too large")
			}
			inner = append(inner, (high-1)<<half|(v-escape))
			continue
		}
		address, _, ok := code.Address(callpath.Frame{Value: v - 1})
		if !ok {
			return fmt.Errorf("code offset %#x is in no code range", v-1)
		}
		inner = append(inner, address)
	}
	e.Base = callpath.Base(node) // callpath.Whole and callpath.Cut
	for i := len(inner) - 1; i >= 0; i-- {
		e.Frames = append(e.Frames, inner[i])
	}
	return nil
}

// findProfileBlocks finds the blocks of a table:
//
//	size │ check, number │ the program's bytes …
//
// The check is a hash of address, size and number.
func (m *Image) findProfileBlocks(p *Profile) {
	at := make(map[uint64]*ProfileEntry, len(p.Entries))
	for i := range p.Entries {
		at[uint64(p.Entries[i].Number)] = &p.Entries[i]
	}
	for _, s := range m.Segments() {
		if s.ELF || !s.Write {
			continue
		}
		for from, b := range s.extents() {
			m.profileBlocks(p, b, s.Addr+uint64(from), func(number, size uint64) {
				p.Found++
				if e := at[number]; e != nil {
					e.found++
					e.foundBytes = addSize(e.foundBytes, size)
				}
			})
		}
	}
}

// profileBlocks calls visit for each block in b, the bytes at addr. number is the number of the
// block's entry.
func (m *Image) profileBlocks(p *Profile, b []byte, addr uint64, visit func(number, size uint64)) {
	ptr := m.PointerSize()
	for off := int(-addr & uint64(ptr-1)); off+2*ptr <= len(b); off += ptr {
		tag := uintOf(b[off+ptr:][:ptr], m.Order)
		number := tag & 0xffff
		if tag&0x10000 == 0 || number >= uint64(p.entries) && number != alignedTag {
			continue
		}
		size, q := uintOf(b[off:][:ptr], m.Order), addr+uint64(off+2*ptr)
		if tag != m.blockTag(q, size, number) {
			continue
		}
		if number == alignedTag { // the number is in the preceding words
			number, _ = m.Pointer(q - 3*uint64(ptr))
		}
		if number < uint64(p.entries) {
			visit(number, size)
		}
	}
}

// blockTag returns the check and number of the block at q, like tag_of in device/src/profile.c.
func (m *Image) blockTag(q, size, number uint64) uint64 {
	const golden = 0x9e3779b1
	mask := ^uint64(0) >> (64 - m.Word)
	h := (((q^number)*golden ^ size) * golden) & mask
	h ^= h >> 15
	return h*golden&mask&^0xffff | 0x10000 | number
}

// checkProfile compares the entries of a table with the blocks found and with the heap's count.
func (m *Image) checkProfile(p *Profile) {
	memory := uint64(0)
	for _, s := range m.Segments() {
		if s.Write {
			memory += uint64(len(s.Data))
		}
	}
	sum, overhead := uint64(0), 2*uint64(m.PointerSize())
	for i := range p.Entries {
		e := &p.Entries[i]
		switch {
		case e.Bytes > memory || e.Live > memory/overhead:
			m.notes.add("entry %d of the profile at %#x counts %d blocks of %d bytes, more than there is memory: the %d blocks of %d bytes that were found are counted",
				e.Number, p.Addr, e.Live, e.Bytes, e.found, e.foundBytes)
			e.Live, e.Bytes = e.found, e.foundBytes
		case p.Found > 0 && (e.found != e.Live || e.foundBytes != e.Bytes):
			m.notes.add("entry %d of the profile at %#x counts %d blocks of %d bytes, %d of %d bytes were found",
				e.Number, p.Addr, e.Live, e.Bytes, e.found, e.foundBytes)
		}
		sum += e.Live
	}
	if sum != p.count {
		m.notes.add("the heap of the profile at %#x counts %d blocks, its entries %d", p.Addr, p.count, sum)
	}
}

// Live returns the live blocks that the table counts, and their bytes, saturated at 2^64-1.
func (p *Profile) Live() (blocks, bytes uint64) {
	for i := range p.Entries {
		blocks = addSize(blocks, p.Entries[i].Live)
		bytes = addSize(bytes, p.Entries[i].Bytes)
	}
	return blocks, bytes
}

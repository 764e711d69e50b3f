package types

import (
	"debug/dwarf"
	"encoding/binary"
	"fmt"
	"slices"
)

// global is a variable at a fixed address.
type global struct {
	name string
	addr uint64 // in the file
	at   dwarf.Offset
}

// Variable is a struct in a variable at a fixed address.
type Variable struct {
	Name string // of the variable
	Addr uint64 // of the struct, in the file
}

// Holding returns the structs with a name that are variables of a file, or members or elements of them.
func Holding(path, name string) (found []Variable, err error) {
	err = open(path, func(r *reader) error {
		for {
			e, err := r.next()
			if err != nil || e == nil {
				break // more entries than are read
			}
			r.global(e)
		}
		for _, g := range r.globals {
			f := fields{reader: r, steps: maxFields}
			f.visit = func(tag string, off int64) {
				if tag == name {
					found = append(found, Variable{g.name, g.addr + uint64(off)})
				}
			}
			f.add(g.at, 0, 0)
		}
		return nil
	}, name)
	return found, err
}

// global adds a variable whose location is an address.
func (r *reader) global(e *dwarf.Entry) {
	const address, indexed = 0x03, 0xa1 // DW_OP_addr, DW_OP_addrx
	if e.Tag == dwarf.TagCompileUnit {
		base, _ := e.Val(dwarf.AttrAddrBase).(int64)
		r.unitAddrs = r.addrs[min(max(base, 0), int64(len(r.addrs))):]
	}
	place, _ := e.Val(dwarf.AttrLocation).([]byte)
	if e.Tag != dwarf.TagVariable || len(place) < 2 {
		return
	}
	b := place[1:]
	if place[0] == indexed {
		n, size := binary.Uvarint(b)
		if size != len(b) || n >= uint64(len(r.unitAddrs))/uint64(r.word) {
			return
		}
		b = r.unitAddrs[n*uint64(r.word):][:r.word]
	} else if place[0] != address {
		return
	}
	name, at, ok := r.typeOf(e)
	switch {
	case !ok || int64(len(b)) != r.word:
	case r.word == 8:
		r.globals = append(r.globals, global{name, r.order.Uint64(b), at})
	default:
		r.globals = append(r.globals, global{name, uint64(r.order.Uint32(b)), at})
	}
}

// Memory is the image of a program.
type Memory struct {
	Pointer func(addr uint64) (v uint64, ok bool) // reads a word
	Has     func(addr uint64) bool                // reports whether an address is of the program
	Place   func(addr uint64) uint64              // of an address in the file
	Exact   bool                                  // blocks have the requested size
}

// Reached calls label with the blocks that typed pointers reach, and their names: from the variables of the program, and
// from there through members of structs. A pointer T * that holds the start of a block gives the block the type T, if
// the size of the block fits, its pointers are 0 or addresses, and no pointer to another type that
// fits holds the same address. A struct that is the first member or base of another one, or whose members are the first of
// another one, gives no name, because a pointer to it may point to the larger one; nor does one that ends with an array without length.
func (i *Info) Reached(blocks Blocks, m Memory, label func(block int, name string)) (err error) {
	if i.reader == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil { // a panic of debug/dwarf
			err = fmt.Errorf("malformed debug information: %v", r)
		}
	}()
	w := walk{Memory: m, reader: i.reader, blocks: blocks, found: make([][maxTypes]uint16, blocks.Len), structs: []*Struct{nil}, number: map[*Struct]uint16{}}
	for _, g := range i.globals {
		f := fields{reader: i.reader, steps: maxFields}
		f.add(g.at, 0, 0)
		w.follow(m.Place(g.addr), f.pointers)
	}
	for len(w.work) > 0 {
		x := w.work[len(w.work)-1]
		w.work = w.work[:len(w.work)-1]
		w.follow(blocks.At(int(x.block)).Addr, w.structs[x.number].pointers)
	}
	for k := range w.found {
		s := w.structs[w.found[k][0]]
		if s == nil || w.found[k][1] != 0 || s.open || i.reader.begins[s.members] {
			continue
		}
		if c := i.classes[s.plain]; !c.first && !c.base {
			label(k, s.Name)
		}
	}
	return nil
}

// walk follows typed pointers.
type walk struct {
	Memory
	*reader
	blocks  Blocks
	structs []*Struct // those found; the first is nil
	number  map[*Struct]uint16
	found   [][maxTypes]uint16 // types of each block, indexes of structs
	work    []typedBlock       // whose pointers were not followed
}

type typedBlock struct {
	block  int32
	number uint16 // of structs
}

// maxTypes is the most types whose pointers are followed in a block.
const maxTypes = 4

// follow follows the pointers of a variable or block.
func (w *walk) follow(addr uint64, pointers []pointer) {
	for _, p := range pointers {
		v, ok := w.Pointer(addr + p.off)
		if !ok || v == 0 || p.to == 0 {
			continue
		}
		k, in := w.blocks.Find(v)
		if !in {
			continue
		}
		b := w.blocks.At(k)
		s := w.target(p.to)
		if b.Addr != v || b.Size == 0 || s == nil {
			continue
		}
		n, known := w.number[s]
		if !known && len(w.structs) < 1<<16-1 {
			n = uint16(len(w.structs))
			w.number[s], w.structs = n, append(w.structs, s)
		}
		free := slices.Index(w.found[k][:], 0)
		if n != 0 && free >= 0 && !slices.Contains(w.found[k][:free], n) && w.fits(s, &b) {
			w.found[k][free] = n
			w.work = append(w.work, typedBlock{int32(k), n})
		}
	}
}

// rounding is the number of words to which allocators round sizes up.
const rounding = 2

// fits reports whether a block can have a type. It must be too small for two.
func (w *walk) fits(s *Struct, b *Block) bool {
	more := b.Size - s.Size
	switch {
	case b.Size < s.Size:
		return false
	case s.open || more == 0:
	case w.Exact || more >= rounding*uint64(w.word) || b.Size >= 2*s.Size:
		return false
	}
	return s.Fits(func(off uint64) (uint64, bool) { return w.Pointer(b.Addr + off) }, w.Has)
}

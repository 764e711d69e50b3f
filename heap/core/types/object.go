package types

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// Table is constant data to which the first word of a block can point, so that it names the block: the vtable of
// a C++ class, or in C a constant struct with pointers to functions.
type Table struct {
	Name  string // of the class, or of the data
	Addr  uint64
	Size  uint64 // in bytes
	Class bool   // a vtable group of the C++ ABI: with those of bases
}

// Block is a block of a heap.
type Block struct{ Addr, Size uint64 }

// Blocks are those of a heap.
type Blocks struct {
	Len  int
	At   func(i int) Block                  // its size is 0 if the block is not to be labelled
	Find func(addr uint64) (i int, ok bool) // the block that holds an address
}

// Names are the labels of blocks, "" for those without one. Heaps have millions of blocks, of few types.
type Names struct {
	of   []uint32 // index of list
	list []string
	at   map[string]uint32
}

// NewNames returns the labels of n blocks, all "".
func NewNames(n int) *Names {
	return &Names{of: make([]uint32, n), list: []string{""}, at: map[string]uint32{"": 0}}
}

// At returns the label of a block.
func (n *Names) At(i int) string { return n.list[n.of[i]] }

// Set sets the label of a block.
func (n *Names) Set(i int, name string) {
	k, ok := n.at[name]
	if !ok {
		k = uint32(len(n.list))
		n.at[name], n.list = k, append(n.list, name)
	}
	n.of[i] = k
}

// Objects returns the names of the blocks whose first word points to a table. pointer reads a word of
// the image, of size word. info is the debug information of the program.
//
// A vtable has the class of the whole object; its address must be that of an address point with offset 0 to the top
// of the object (Itanium C++ ABI, 2.5.2). The class is the name of a block if debug information has its size, and
// the block has this size, up to the slack of the allocator; if the class is not also the first member of a
// struct; and if the vtable is in the block only once, so that it is no array. Else the block is one that "begins
// with" the class.
//
// A block with a table of functions is an "object of" the table. A block with two of them is an array of pointers, and
// gets no name.
func Objects(blocks Blocks, tables []Table, word uint64, pointer func(addr uint64) (uint64, bool), info ...*Info) *Names {
	o := objects{tables: slices.Clone(tables), word: word, pointer: pointer}
	slices.SortStableFunc(o.tables, func(a, b Table) int { return cmp.Compare(a.Addr, b.Addr) })
	classes := map[*Table]class{}
	names := NewNames(blocks.Len)
	for i := range blocks.Len {
		b := blocks.At(i)
		t, again := o.table(&b)
		switch {
		case t == nil:
		case t.Class:
			c, seen := classes[t]
			if !seen {
				c = classOf(t.Name, info)
				classes[t] = c
			}
			if again || c.first || !c.fits(b.Size, word) {
				names.Set(i, "begins with "+t.Name)
			} else {
				names.Set(i, t.Name)
			}
		case !again:
			names.Set(i, "object of "+t.Name)
		}
	}
	return names
}

// slack limits by how many words a block can be larger than the request: glibc rounds up to two, and leaves no rest
// below four.
const slack = 5

// fits reports whether a block of a size can have the class.
func (c *class) fits(size, word uint64) bool {
	return slices.ContainsFunc(c.sizes, func(n uint64) bool { return size >= n && size-n < slack*word })
}

// classOf returns the class of a name.
func classOf(name string, info []*Info) (c class) {
	for _, x := range info {
		of := x.classes[unqualified(name)]
		c.sizes, c.first = append(c.sizes, of.sizes...), c.first || of.first
	}
	return c
}

// unqualified returns the name of a class without its namespaces, as debug information has it.
func unqualified(name string) string {
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch {
		case strings.IndexByte(">)", name[i]) >= 0:
			depth++
		case strings.IndexByte("<(", name[i]) >= 0:
			depth--
		case depth == 0 && name[i] == ':' && name[i-1] == ':':
			return name[i+1:]
		}
	}
	return name
}

// objects finds the tables of blocks.
type objects struct {
	tables  []Table // by address
	word    uint64
	pointer func(addr uint64) (uint64, bool)
}

// table returns the table of a block, nil if it has none. again reports whether the block has the vtable once more, or
// another table of functions.
func (o *objects) table(b *Block) (t *Table, again bool) {
	if b.Size < o.word {
		return nil, false
	}
	first, _ := o.pointer(b.Addr)
	if t = o.at(first); t == nil {
		return nil, false
	}
	for off := o.word; off <= b.Size-o.word && !again; off += o.word {
		v, ok := o.pointer(b.Addr + off)
		if !ok {
			break
		}
		x := o.at(v)
		again = x != nil && (v == first || !t.Class && !x.Class)
	}
	return t, again
}

// at returns the table to which a word points, nil if there is none.
func (o *objects) at(v uint64) *Table {
	i := sort.Search(len(o.tables), func(i int) bool { return o.tables[i].Addr > v }) - 1
	if i < 0 || v == 0 { // nothing was written; firmware has a table at address 0
		return nil
	}
	t := &o.tables[i]
	off := v - t.Addr
	switch {
	case off > t.Size || t.Size < o.word:
		return nil
	case !t.Class && off == 0:
		return t
	case !t.Class || off < 2*o.word || off%o.word != 0:
		return nil
	}
	top, ok := o.pointer(v - 2*o.word)
	if !ok { // not in the image
		if off == 2*o.word {
			return t
		}
		return nil
	}
	if top != 0 {
		return nil
	}
	return t
}

// Package types labels blocks with the type that they probably have.
//
//	ELF ─Read→ Info; call stack, requested size ─Info.Struct→ Struct ─Fits→ label of a block
//	blocks, tables of symbols ─Objects→ labels by the first word: vtables
//	blocks, Info ─Info.Reached→ labels by typed pointers
//
// By its call stack, a block has the type T if the allocating function has local variables T *, of one T alone with the
// requested size. The allocating function is the innermost one of the call stack that does not return void *:
// functions that do are wrappers of an allocator, and those with a parameter size_t have variables of the allocator.
// A struct that ends with an array without length has blocks of any size: then no other type is sure.
//
// Labels are for display. They must not decide which block is reachable.
//
// Debug information is not trusted: errors and panics of debug/dwarf are returned as errors, and what is read
// is limited.
package types

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"

	"github.com/lwsbt/lwsbt/heap/core/internal/debuginfo"
)

// Limits of the depth of scopes, and of structs in structs.
const (
	maxDepth  = 256
	maxFields = 1 << 10 // of a struct, with those of structs in it
)

// Struct is a type that a block can have.
type Struct struct {
	Name     string // with "struct", if it has no typedef
	Size     uint64 // in bytes
	plain    string // Name without "struct"
	pointers []pointer
	members  uint64 // hash of them
	open     bool   // its last member is an array without length
}

// Info is what the debug information of a file tells about the functions that allocate.
type Info struct {
	functions []*scope // by address
	classes   map[string]class
	globals   []global
	reader    *reader
}

// class is what debug information tells about the structs and classes of a name without its namespaces.
type class struct {
	sizes []uint64
	first bool // one is the first member of another type
	base  bool // one is a base class
}

// scope is a function, or one that was inlined into it.
type scope struct {
	ranges  [][2]uint64
	wrapper bool // it returns void *
	sized   bool // and has a parameter of the type size_t: its variables are the allocator's
	structs []*Struct
	inlined []*scope
}

func (s *scope) holds(pc uint64) bool {
	return slices.ContainsFunc(s.ranges, func(r [2]uint64) bool { return pc >= r[0] && pc < r[1] })
}

// Read reads the debug information of an ELF file. The Info is empty if there is none, or too much.
func Read(path string) (info *Info, err error) {
	defer func() {
		if r := recover(); r != nil { // panics of debug/elf and debug/dwarf
			info, err = nil, fmt.Errorf("%s: malformed debug information: %v", path, r)
		}
	}()
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if some, ok := debuginfo.Check(f); !some || !ok {
		return &Info{}, nil
	}
	d, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("%s: debug information: %w", path, err)
	}
	r := &reader{d: d, entries: d.Reader(), left: debuginfo.MaxEntries, word: 4, order: f.ByteOrder, types: map[dwarf.Offset]*Struct{}, targets: map[dwarf.Offset]*Struct{}, begins: map[uint64]bool{}, known: map[identity]*Struct{}}
	if f.Class == elf.ELFCLASS64 {
		r.word = 8
	}
	info = &Info{classes: map[string]class{}, reader: r}
	if err := r.units(info); err != nil {
		return nil, fmt.Errorf("%s: debug information: %w", path, err)
	}
	sort.Slice(info.functions, func(i, j int) bool { return info.functions[i].ranges[0][0] < info.functions[j].ranges[0][0] })
	return info, nil
}

// reader reads entries of debug information.
type reader struct {
	d       *dwarf.Data
	entries *dwarf.Reader
	left    int                      // entries
	word    int64                    // bytes of a pointer
	types   map[dwarf.Offset]*Struct // of the type of a variable; nil if it is no pointer to a struct
	targets map[dwarf.Offset]*Struct // of a type; nil if it is no struct
	known   map[identity]*Struct
	order   binary.ByteOrder
	globals []global
	begins  map[uint64]bool // hashes of members with which a struct begins, and has more
}

// identity identifies a type: each unit of debug information has its own copies.
type identity struct {
	name string
	size uint64
}

func (r *reader) next() (*dwarf.Entry, error) {
	if r.left--; r.left < 0 {
		return nil, fmt.Errorf("more than %d entries", debuginfo.MaxEntries)
	}
	return r.entries.Next()
}

// units reads all functions.
func (r *reader) units(info *Info) error {
	for {
		e, err := r.next()
		if err != nil || e == nil {
			info.globals = r.globals
			return err
		}
		r.class(info, e)
		r.global(e)
		if e.Tag != dwarf.TagSubprogram {
			continue
		}
		s, err := r.scope(e, 0)
		if err != nil {
			return err
		}
		if len(s.ranges) > 0 {
			info.functions = append(info.functions, s)
		}
	}
}

// class adds the size of a struct or class, or the type of a first member.
func (r *reader) class(info *Info, e *dwarf.Entry) {
	switch e.Tag {
	case dwarf.TagStructType, dwarf.TagClassType:
		name, _ := e.Val(dwarf.AttrName).(string)
		size, _ := e.Val(dwarf.AttrByteSize).(int64)
		if c := info.classes[name]; size > 0 && name != "" && !slices.Contains(c.sizes, uint64(size)) {
			c.sizes = append(c.sizes, uint64(size))
			info.classes[name] = c
		}
		r.beginnings(e, size)
	case dwarf.TagMember:
		at, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		off, _ := e.Val(dwarf.AttrDataMemberLoc).(int64) // none in a union
		if !ok || off != 0 || e.Val(dwarf.AttrDeclaration) != nil {
			return
		}
		if name := r.structName(at); name != "" {
			c := info.classes[name]
			c.first = true
			info.classes[name] = c
		}
	case dwarf.TagInheritance:
		if at, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok {
			name := r.structName(at)
			c := info.classes[name]
			c.base = true
			info.classes[name] = c
		}
	}
}

// maxMembers is the most members of a struct that are compared with all members of others.
const maxMembers = 64

// members calls visit with a hash of the members of a struct up to each of them.
func (r *reader) members(e *dwarf.Entry, visit func(hash uint64)) {
	f := fields{reader: r, steps: maxMembers}
	h := fnv.New64a()
	f.children(e, func(x *dwarf.Entry) {
		if x.Tag == dwarf.TagMember {
			name, _ := x.Val(dwarf.AttrName).(string)
			off, _ := x.Val(dwarf.AttrDataMemberLoc).(int64)
			fmt.Fprintf(h, "%s %d ", name, off)
			visit(h.Sum64())
		}
	})
}

// beginnings adds what a struct begins with to the beginnings of structs: those of a struct that repeats the members of
// another one as its header, instead of having it as first member.
func (r *reader) beginnings(e *dwarf.Entry, size int64) {
	if size <= 0 {
		return
	}
	last := uint64(0)
	r.members(e, func(hash uint64) {
		if last != 0 {
			r.begins[last] = true
		}
		last = hash
	})
}

// structName returns the name of a struct or class, without "struct", "" for other types.
func (r *reader) structName(at dwarf.Offset) string {
	t, name := r.plain(at)
	if t == nil || t.Tag != dwarf.TagStructType && t.Tag != dwarf.TagClassType {
		return ""
	}
	if tag, ok := t.Val(dwarf.AttrName).(string); ok {
		return tag
	}
	return name
}

// scope reads a function with its children.
func (r *reader) scope(e *dwarf.Entry, depth int) (*scope, error) {
	s := &scope{}
	s.ranges, _ = r.d.Ranges(e) // none if it was inlined everywhere
	s.ranges = slices.DeleteFunc(s.ranges, func(x [2]uint64) bool { return x[0] >= x[1] })
	at, ok := r.typeOf(e)
	s.wrapper = ok && r.isVoidPointer(at)
	if !e.Children {
		return s, nil
	}
	return s, r.children(s, depth)
}

// children reads the children of a function or block up to the end of the list.
func (r *reader) children(s *scope, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d scopes in one another", maxDepth)
	}
	for {
		e, err := r.next()
		switch {
		case err != nil:
			return err
		case e == nil || e.Tag == 0:
			return nil
		}
		if err := r.child(s, e, depth); err != nil {
			return err
		}
	}
}

// child reads a child of a function or block, with its own children.
func (r *reader) child(s *scope, e *dwarf.Entry, depth int) error {
	switch e.Tag {
	case dwarf.TagInlinedSubroutine, dwarf.TagSubprogram:
		in, err := r.scope(e, depth+1)
		if err == nil {
			s.inlined = append(s.inlined, in)
		}
		return err
	case dwarf.TagLexDwarfBlock:
		if e.Children {
			return r.children(s, depth+1)
		}
		return nil
	}
	if e.Children {
		defer r.entries.SkipChildren()
	}
	at, ok := r.typeOf(e)
	switch {
	case !ok:
	case e.Tag == dwarf.TagVariable:
		r.global(e)
		if t := r.pointee(at); t != nil && !slices.Contains(s.structs, t) {
			s.structs = append(s.structs, t)
		}
	case e.Tag == dwarf.TagFormalParameter && s.wrapper:
		s.sized = s.sized || r.isSize(at)
	}
	return nil
}

// typeOf returns the type of an entry, or of its origin.
func (r *reader) typeOf(e *dwarf.Entry) (dwarf.Offset, bool) {
	for range 4 { // a variable, its origin, the origin's specification
		if at, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok {
			return at, true
		}
		from, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			from, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			break
		}
		if e = r.entry(from); e == nil {
			break
		}
	}
	return 0, false
}

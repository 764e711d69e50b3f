// Package types labels blocks with the type that they probably have.
//
//	blocks, tables of symbols ─Objects→ labels by the first word: vtables
//	ELF ─Read→ Info; blocks ─Info.Reached→ labels by typed pointers
//
// Labels are for display. They must not decide which block is reachable.
//
// Debug information is not trusted: errors and panics of debug/dwarf are returned as errors, and what is read
// is limited.
package types

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core/internal/debuginfo"
	"github.com/lwsbt/lwsbt/symbol"
)

// Limits of the depth of types in types, and of structs in structs.
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

// Info is what the debug information of a file tells about types and variables.
type Info struct {
	classes map[string]class
	globals []global
	reader  *reader
}

// class is what debug information tells about the structs and classes of a name without its namespaces.
type class struct {
	sizes []uint64
	first bool // one is the first member of another type
	base  bool // one is a base class
}

// Read reads the debug information of an ELF file, or of its separate debug file. The Info is empty if there is none, or too
// much.
func Read(path string) (info *Info, err error) {
	info = &Info{classes: map[string]class{}}
	err = open(path, func(r *reader) error {
		info.reader = r
		return r.units(info)
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// open calls use with a reader of the debug information of a file, or of its separate debug file; not if there is none that
// mentions one of the names, if any.
func open(path string, use func(r *reader) error, names ...string) (err error) {
	defer func() {
		if r := recover(); r != nil { // panics of debug/elf and debug/dwarf
			err = fmt.Errorf("%s: malformed debug information: %v", path, r)
		}
	}()
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	some, ok := debuginfo.Check(f)
	if !some {
		if other := debugFile(path); other != "" && other != path {
			return open(other, use, names...)
		}
	}
	if !some || !ok || !mentions(f, names) {
		return nil
	}
	d, err := f.DWARF()
	if err != nil {
		return fmt.Errorf("%s: debug information: %w", path, err)
	}
	r := &reader{d: d, entries: d.Reader(), left: debuginfo.MaxEntries, word: 4, order: f.ByteOrder, targets: map[dwarf.Offset]*Struct{}, begins: map[uint64]bool{}, known: map[identity]*Struct{}}
	if f.Class == elf.ELFCLASS64 {
		r.word = 8
	}
	if s := f.Section(".debug_addr"); s != nil {
		r.addrs, _ = s.Data() // without it, the variables have no address
	}
	if err := use(r); err != nil {
		return fmt.Errorf("%s: debug information: %w", path, err)
	}
	return nil
}

// debugFile returns the separate debug file of an ELF file, "" if there is none.
func debugFile(path string) string {
	f, err := symbol.Open(path, symbol.DebugDirs())
	if err != nil {
		return ""
	}
	defer f.Close()
	return f.DebugPath()
}

// mentions reports whether debug information contains one of the names, or there are no names.
func mentions(f *elf.File, names []string) bool {
	for _, s := range f.Sections {
		switch s.Name {
		case ".debug_str", ".zdebug_str", ".debug_info", ".zdebug_info":
			b, _ := s.Data() // what cannot be read contains nothing
			if slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(b, []byte(name+"\x00")) }) {
				return true
			}
		}
	}
	return len(names) == 0
}

// reader reads entries of debug information.
type reader struct {
	d                *dwarf.Data
	entries          *dwarf.Reader
	left             int                      // entries
	word             int64                    // bytes of a pointer
	targets          map[dwarf.Offset]*Struct // of a type; nil if it is no struct
	known            map[identity]*Struct
	order            binary.ByteOrder
	globals          []global
	addrs, unitAddrs []byte          // .debug_addr, and the addresses of the current unit
	begins           map[uint64]bool // hashes of members with which a struct begins, and has more
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

// units reads all entries.
func (r *reader) units(info *Info) error {
	for {
		e, err := r.next()
		if err != nil || e == nil {
			info.globals = r.globals
			return err
		}
		r.class(info, e)
		r.global(e)
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

// typeOf returns the name and the type of a variable, or of its origin.
func (r *reader) typeOf(e *dwarf.Entry) (name string, at dwarf.Offset, ok bool) {
	for range 4 { // a variable, its origin, the origin's specification
		if name == "" {
			name, _ = e.Val(dwarf.AttrName).(string)
		}
		if at, ok = e.Val(dwarf.AttrType).(dwarf.Offset); ok {
			break
		}
		from, there := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !there {
			from, there = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !there {
			break
		}
		if e = r.entry(from); e == nil {
			break
		}
	}
	return name, at, ok
}

package core

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"

	"github.com/lwsbt/lwsbt/heap/core/internal/debuginfo"
	"github.com/lwsbt/lwsbt/symbol"
)

// The names of the structs in device/ that hold a list of blocks, and a table of call paths.
const (
	heapType    = "lwsbt_heap"
	profileType = "lwsbt_profile"
)

// HeapVariables returns the variables of an ELF file whose type is struct lwsbt_heap, or
// which have such a member or element, from the debug information of the file. bias is
// the address in memory minus the address in the file. The list is empty if the file has no
// debug information.
func (m *Image) HeapVariables(path string, bias uint64) ([]Symbol, error) {
	return m.variablesOf(heapType, path, bias)
}

// ProfileVariables is like [Image.HeapVariables], for struct lwsbt_profile.
func (m *Image) ProfileVariables(path string, bias uint64) ([]Symbol, error) {
	return m.variablesOf(profileType, path, bias)
}

// variablesOf returns the variables of a struct type, or with a member or element of this type.
func (m *Image) variablesOf(name, path string, bias uint64) (found []Symbol, err error) {
	defer func() {
		if r := recover(); r != nil { // panics of debug/elf and debug/dwarf
			err = fmt.Errorf("%s: malformed debug information: %v", path, r)
		}
	}()
	list, err := m.structs(path)
	if err != nil {
		return nil, err
	}
	for _, v := range list[name] {
		if v.Addr != 0 {
			found = append(found, Symbol{v.Name, path, m.wrap(v.Addr + bias), 0})
			continue
		}
		known, _ := m.Variables(path, bias, v.Name)
		for _, k := range known {
			found = append(found, Symbol{v.Name, path, m.wrap(k.Addr + v.Size), 0})
		}
	}
	return found, nil
}

// structs returns the variables of a file that contain one of the structs, by the name of
// the struct. It reads the debug information of the file or of its separate debug file.
// This is slow, so the result is cached.
func (m *Image) structs(path string) (map[string][]Symbol, error) {
	if list, ok := m.typed[path]; ok {
		return list, nil
	}
	list, err := typedVariables(path)
	if err == nil && len(list) == 0 {
		if p := debugFile(path); p != "" {
			list, err = typedVariables(p)
		}
	}
	if err != nil {
		return nil, err
	}
	if m.typed == nil {
		m.typed = map[string]map[string][]Symbol{}
	}
	m.typed[path] = list
	return list, nil
}

// debugFile returns the separate debug file of path, or "" if there is none.
func debugFile(path string) string {
	f, err := symbol.Open(path, symbol.DebugDirs())
	if err != nil {
		return ""
	}
	defer f.Close()
	if p := f.DebugPath(); p != path {
		return p
	}
	return ""
}

// typedVariables returns the variables of one file, by the name of the struct. If the debug
// information contains no constant address, Addr is 0 and Size is the offset of the struct in
// the variable.
func typedVariables(path string) (found map[string][]Symbol, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	if !mentions(f, heapType, profileType) {
		return nil, nil
	}
	d, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("%s: debug information: %w", path, err)
	}
	found = map[string][]Symbol{}
	offsets := map[dwarf.Offset][]member{} // of the structs in the variables of a type
	r := d.Reader()
	for range debuginfo.MaxEntries {
		e, err := r.Next()
		if err != nil {
			return found, fmt.Errorf("%s: debug information: %w", path, err)
		}
		if e == nil {
			break
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		at, typed := e.Val(dwarf.AttrType).(dwarf.Offset)
		if e.Tag != dwarf.TagVariable || !typed || name == "" {
			continue
		}
		list, seen := offsets[at]
		if !seen {
			if t, err := d.Type(at); err == nil {
				list = structsIn(t, 0, 0, nil)
			}
			offsets[at] = list
		}
		loc, _ := e.Val(dwarf.AttrLocation).([]byte)
		for _, m := range list {
			if addr, ok := plainAddress(loc, f); ok {
				found[m.name] = append(found[m.name], Symbol{Name: name, File: path, Addr: addr + m.off})
			} else if loc != nil {
				found[m.name] = append(found[m.name], Symbol{Name: name, File: path, Size: m.off})
			}
		}
	}
	return found, nil
}

// mentions reports whether debug information contains the name of one of the types. It
// returns false if the debug information exceeds the limits.
func mentions(f *elf.File, names ...string) bool {
	found := false
	if _, ok := debuginfo.Check(f); !ok {
		return false
	}
	for _, s := range f.Sections {
		switch s.Name {
		case ".debug_str", ".zdebug_str", ".debug_info", ".zdebug_info":
			b, err := s.Data()
			for _, name := range names {
				found = found || err == nil && bytes.Contains(b, []byte(name+"\x00"))
			}
		}
	}
	return found
}

// plainAddress returns the operand of a location that consists only of DW_OP_addr.
func plainAddress(loc []byte, f *elf.File) (uint64, bool) {
	const opAddr = 3
	size := 4
	if f.Class == elf.ELFCLASS64 {
		size = 8
	}
	if len(loc) != 1+size || loc[0] != opAddr {
		return 0, false
	}
	return uintOf(loc[1:], f.ByteOrder), true
}

// Limits for structs within a variable.
const (
	maxNesting  = 4
	maxElements = 64
)

// member is a struct at an offset in a variable.
type member struct {
	name string // of the struct
	off  uint64
}

// structsIn appends the structs in a variable of type t at offset off.
func structsIn(t dwarf.Type, off uint64, depth int, list []member) []member {
	if depth > maxNesting || len(list) >= maxElements {
		return list
	}
	switch t := t.(type) {
	case *dwarf.TypedefType:
		return structsIn(t.Type, off, depth, list)
	case *dwarf.QualType:
		return structsIn(t.Type, off, depth, list)
	case *dwarf.ArrayType:
		size := t.Type.Size()
		for i := int64(0); i < min(t.Count, maxElements) && size > 0; i++ {
			list = structsIn(t.Type, off+uint64(i*size), depth+1, list)
		}
	case *dwarf.StructType:
		if t.StructName == heapType || t.StructName == profileType {
			list = append(list, member{t.StructName, off})
		}
		if t.StructName == heapType {
			return list
		}
		for _, x := range t.Field {
			list = structsIn(x.Type, off+uint64(x.ByteOffset), depth+1, list)
		}
	}
	return list
}

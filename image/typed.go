package image

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"

	"github.com/lwsbt/lwsbt/symbol"
)

// The names of the structs in device/ that hold a list of blocks, and a table of call paths.
const (
	heapType    = "lwsbt_heap"
	profileType = "lwsbt_profile"
)

// Limits for debug information: total size of its sections in bytes, compression ratio,
// and number of entries.
const (
	maxDebug   = 1 << 28
	maxInflate = 100
	maxEntries = 1 << 22
)

// HeapVariables returns the variables of an ELF file that are a struct lwsbt_heap, or
// have one as a member or element, from its debug information. bias is the address in
// memory minus the address in the file. The list is empty if the file has no debug
// information.
func (m *Image) HeapVariables(path string, bias uint64) ([]Symbol, error) {
	return m.variablesOf(heapType, path, bias)
}

// ProfileVariables is HeapVariables for variables that are, or have, a struct
// lwsbt_profile.
func (m *Image) ProfileVariables(path string, bias uint64) ([]Symbol, error) {
	return m.variablesOf(profileType, path, bias)
}

// variablesOf returns the variables that are, or have, a struct of the name.
func (m *Image) variablesOf(name, path string, bias uint64) (found []Symbol, err error) {
	defer func() {
		if r := recover(); r != nil { // panics of debug/elf and debug/dwarf
			err = fmt.Errorf("%s: malformed debug information: %v", path, r)
		}
	}()
	for _, p := range append([]string{path}, debugFile(path)...) {
		list, err := typedVariables(p, name)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			if v.Addr == 0 {
				known, _ := m.Variables(path, bias, v.Name)
				for _, k := range known {
					found = append(found, Symbol{v.Name, path, m.wrap(k.Addr + v.Size), 0})
				}
				continue
			}
			found = append(found, Symbol{v.Name, path, m.wrap(v.Addr + bias), 0})
		}
		if len(found) > 0 {
			break
		}
	}
	return found, nil
}

// debugFile returns the file that has the debug information of path, if it is another file.
func debugFile(path string) []string {
	f, err := symbol.Open(path, symbol.DebugDirs())
	if err != nil {
		return nil
	}
	defer f.Close()
	if p := f.DebugPath(); p != "" && p != path {
		return []string{p}
	}
	return nil
}

// typedVariables returns the variables of one file. If debug information gives no
// constant address, Addr is 0 and Size is the offset of the struct in the variable.
func typedVariables(path, structName string) (found []Symbol, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !mentions(f, structName) {
		return nil, nil
	}
	d, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("%s: debug information: %w", path, err)
	}
	offsets := map[dwarf.Offset][]uint64{} // of the structs in the variables of a type
	r := d.Reader()
	for range maxEntries {
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
				list = structsIn(t, structName, 0, 0, nil)
			}
			offsets[at] = list
		}
		loc, _ := e.Val(dwarf.AttrLocation).([]byte)
		for _, off := range list {
			if addr, ok := plainAddress(loc, f); ok {
				found = append(found, Symbol{Name: name, File: path, Addr: addr + off})
			} else if loc != nil {
				found = append(found, Symbol{Name: name, File: path, Size: off})
			}
		}
	}
	return found, nil
}

// mentions reports whether debug information contains the name of the type. It returns
// false if the debug information exceeds the limits.
func mentions(f *elf.File, structName string) bool {
	total, found := uint64(0), false
	for _, s := range f.Sections {
		if len(s.Name) < 7 || s.Name[:7] != ".debug_" && s.Name[:7] != ".zdebug" {
			continue
		}
		if total += s.Size; total > maxDebug || s.Size/maxInflate > s.FileSize {
			return false
		}
		switch s.Name {
		case ".debug_str", ".zdebug_str", ".debug_info", ".zdebug_info":
			b, err := s.Data()
			found = found || err == nil && bytes.Contains(b, []byte(structName+"\x00"))
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

// structsIn appends the offsets of structs of the name in a variable of type t at offset off.
func structsIn(t dwarf.Type, name string, off uint64, depth int, list []uint64) []uint64 {
	if depth > maxNesting || len(list) >= maxElements {
		return list
	}
	switch t := t.(type) {
	case *dwarf.TypedefType:
		return structsIn(t.Type, name, off, depth, list)
	case *dwarf.QualType:
		return structsIn(t.Type, name, off, depth, list)
	case *dwarf.ArrayType:
		size := t.Type.Size()
		for i := int64(0); i < min(t.Count, maxElements) && size > 0; i++ {
			list = structsIn(t.Type, name, off+uint64(i*size), depth+1, list)
		}
	case *dwarf.StructType:
		if t.StructName == name {
			return append(list, off)
		}
		for _, x := range t.Field {
			list = structsIn(x.Type, name, off+uint64(x.ByteOffset), depth+1, list)
		}
	}
	return list
}

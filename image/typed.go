package image

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"

	"github.com/lwsbt/lwsbt/symbol"
)

// heapType is the struct of device/ that holds a list of blocks.
const heapType = "lwsbt_heap"

// Bounds on what is read of debug information: bytes of all its sections, how much they may
// inflate, and entries.
const (
	maxDebug   = 1 << 28
	maxInflate = 100
	maxEntries = 1 << 22
)

// HeapVariables returns the variables of an ELF file that are a struct lwsbt_heap, or have one as
// member or element, by its debug information. bias is what its addresses differ from those
// in memory. Of a file without debug information there are none.
func (m *Image) HeapVariables(path string, bias uint64) (found []Symbol, err error) {
	defer func() {
		if r := recover(); r != nil { // of debug/elf and debug/dwarf
			err = fmt.Errorf("%s: malformed debug information: %v", path, r)
		}
	}()
	for _, p := range append([]string{path}, debugFile(path)...) {
		list, err := typedVariables(p)
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

// debugFile returns the file that has the debug information of path, if that is another one.
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

// typedVariables returns the variables of one file. Where debug information has no plain
// address, Addr is 0, and Size the offset of the heap in the variable.
func typedVariables(path string) (found []Symbol, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !mentions(f) {
		return nil, nil
	}
	d, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("%s: debug information: %w", path, err)
	}
	offsets := map[dwarf.Offset][]uint64{} // of heaps in the variables of a type
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
				list = heapsIn(t, 0, 0, nil)
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

// mentions reports whether debug information of bounded size has the name of the type.
func mentions(f *elf.File) bool {
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
			found = found || err == nil && bytes.Contains(b, []byte(heapType+"\x00"))
		}
	}
	return found
}

// plainAddress returns the operand of a location that is DW_OP_addr alone.
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

// Bounds on heaps within a variable.
const (
	maxNesting  = 4
	maxElements = 64
)

// heapsIn appends the offsets of heaps in a variable of type t, which is at off.
func heapsIn(t dwarf.Type, off uint64, depth int, list []uint64) []uint64 {
	if depth > maxNesting || len(list) >= maxElements {
		return list
	}
	switch t := t.(type) {
	case *dwarf.TypedefType:
		return heapsIn(t.Type, off, depth, list)
	case *dwarf.QualType:
		return heapsIn(t.Type, off, depth, list)
	case *dwarf.ArrayType:
		size := t.Type.Size()
		for i := int64(0); i < min(t.Count, maxElements) && size > 0; i++ {
			list = heapsIn(t.Type, off+uint64(i*size), depth+1, list)
		}
	case *dwarf.StructType:
		if t.StructName == heapType {
			return append(list, off)
		}
		for _, x := range t.Field {
			list = heapsIn(x.Type, off+uint64(x.ByteOffset), depth+1, list)
		}
	}
	return list
}

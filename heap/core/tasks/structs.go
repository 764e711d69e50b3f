package tasks

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core/internal/debuginfo"
)

// maxDepth is the depth of structs in structs.
const maxDepth = 4

// structure has the fields of a struct by name; those of structs in it are "base.state". Those of an anonymous struct or
// union have no prefix.
type structure struct {
	size   uint64
	fields map[string]field
}

// field is a field of a struct. size is that of an element, bytes that of all.
type field struct {
	off, bytes uint64
	size       int
	names      map[int64]string // of the values, if it is an enumeration
}

func (s *structure) field(name string) (x field, ok bool) {
	if s == nil {
		return x, false
	}
	x, ok = s.fields[name]
	return x, ok && slices.Contains([]int{1, 2, 4, 8}, x.size)
}

// offset returns the offset of a field of any type.
func (s *structure) offset(name string) (uint64, bool) {
	if s == nil {
		return 0, false
	}
	x, ok := s.fields[name]
	return x.off, ok
}

// attrDwoName are the attributes that name the file with the rest of a unit: DW_AT_dwo_name, and GNU's before DWARF 5.
var attrDwoName = []dwarf.Attr{0x76, 0x2130}

// readStructs reads structs from the debug information of an ELF file. Structs that it does not have are not in the result.
// split is a file of -gsplit-dwarf that may have them and is not read, "" if there is none.
func readStructs(path string, names []string) (found map[string]*structure, split string, err error) {
	defer func() {
		if r := recover(); r != nil { // panics of debug/elf and debug/dwarf
			found, split, err = nil, "", fmt.Errorf("%s: malformed debug information: %v", path, r)
		}
	}()
	f, err := elf.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	if _, ok := debuginfo.Check(f); !ok {
		return nil, "", fmt.Errorf("%s: more than %d bytes of debug information", path, debuginfo.MaxBytes)
	}
	found = map[string]*structure{}
	if f.Section(".debug_info") == nil && f.Section(".zdebug_info") == nil {
		return found, split, nil
	}
	d, err := f.DWARF()
	if err != nil {
		return nil, "", fmt.Errorf("%s: debug information: %w", path, err)
	}
	r := d.Reader()
	for range debuginfo.MaxEntries {
		e, err := r.Next()
		if err != nil || e == nil {
			return found, split, err
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		for _, a := range attrDwoName {
			if file, ok := e.Val(a).(string); ok {
				split = file
			}
		}
		var t dwarf.Type
		switch {
		case name == "" || found[name] != nil || !slices.Contains(names, name):
			continue
		case e.Tag == dwarf.TagStructType || e.Tag == dwarf.TagTypedef:
			if t, err = d.Type(e.Offset); err != nil {
				return nil, "", fmt.Errorf("%s: debug information: %w", path, err)
			}
		}
		if s, ok := plain(t).(*dwarf.StructType); ok && !s.Incomplete {
			x := &structure{uint64(max(0, s.ByteSize)), map[string]field{}}
			x.flatten(s, "", 0, 0)
			found[name] = x
		}
	}
	return found, split, nil
}

// plain returns a type without typedefs and qualifiers.
func plain(t dwarf.Type) dwarf.Type {
	for range 16 {
		switch x := t.(type) {
		case *dwarf.TypedefType:
			t = x.Type
		case *dwarf.QualType:
			t = x.Type
		default:
			return t
		}
	}
	return nil
}

func (s *structure) flatten(t *dwarf.StructType, prefix string, at uint64, depth int) {
	for _, x := range t.Field {
		if depth > maxDepth || len(s.fields) > 1<<12 {
			return
		}
		name, off := prefix+x.Name, at+uint64(x.ByteOffset)
		inner := plain(x.Type)
		f := field{off: off}
		if a, ok := inner.(*dwarf.ArrayType); ok {
			f.size = int(plainSize(a.Type))
			f.bytes = uint64(max(0, a.Count)) * uint64(f.size)
		} else {
			f.size = int(plainSize(inner))
			f.bytes = uint64(f.size)
		}
		if e, ok := inner.(*dwarf.EnumType); ok {
			f.names = map[int64]string{}
			for _, v := range e.Val {
				if f.names[v.Val] == "" { // others with this value are aliases
					f.names[v.Val] = v.Name
				}
			}
		}
		if x.Name != "" {
			s.fields[name] = f
		}
		if y, ok := inner.(*dwarf.StructType); ok {
			if x.Name != "" {
				name += "."
			}
			s.flatten(y, name, off, depth+1)
		}
	}
}

func plainSize(t dwarf.Type) int64 {
	if t = plain(t); t == nil {
		return 0
	}
	return max(0, t.Size())
}

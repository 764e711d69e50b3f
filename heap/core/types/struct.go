package types

import "debug/dwarf"

// entry returns the entry at an offset, nil if there is none.
func (r *reader) entry(at dwarf.Offset) *dwarf.Entry {
	if r.left--; r.left < 0 {
		return nil
	}
	d := r.d.Reader()
	d.Seek(at)
	e, err := d.Next()
	if err != nil {
		return nil
	}
	return e
}

// plain returns the entry of a type without typedefs and qualifiers, and the name of the first typedef. It returns
// nil for void.
func (r *reader) plain(at dwarf.Offset) (e *dwarf.Entry, name string) {
	for range maxDepth {
		if e = r.entry(at); e == nil {
			return nil, ""
		}
		switch e.Tag {
		case dwarf.TagTypedef:
			if name == "" {
				name, _ = e.Val(dwarf.AttrName).(string)
			}
		case dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType, dwarf.TagAtomicType:
		default:
			return e, name
		}
		var ok bool
		if at, ok = e.Val(dwarf.AttrType).(dwarf.Offset); !ok {
			return nil, ""
		}
	}
	return nil, ""
}

// target returns the struct of a type, nil if it is no struct of known size.
func (r *reader) target(at dwarf.Offset) *Struct {
	s, seen := r.targets[at]
	if !seen {
		s = r.newStruct(at)
		r.targets[at] = s
	}
	return s
}

func (r *reader) newStruct(at dwarf.Offset) *Struct {
	e, name := r.plain(at)
	if e == nil || e.Tag != dwarf.TagStructType && e.Tag != dwarf.TagClassType {
		return nil
	}
	size, _ := e.Val(dwarf.AttrByteSize).(int64)
	plain := name
	if tag, ok := e.Val(dwarf.AttrName).(string); ok {
		plain, name = tag, "struct "+tag
		if e.Tag == dwarf.TagClassType {
			name = "class " + tag
		}
	}
	if size <= 0 || name == "" { // only declared, or without a name
		return nil
	}
	k := identity{name, uint64(size)}
	if r.known[k] == nil {
		f := fields{reader: r, steps: maxFields}
		f.add(e.Offset, 0, 0)
		whole := uint64(0)
		r.members(e, func(hash uint64) { whole = hash })
		r.known[k] = &Struct{name, k.size, plain, f.pointers, whole, f.open}
	}
	return r.known[k]
}

// fields collects the offsets of pointers in a struct, except those in unions.
type fields struct {
	*reader
	steps    int                         // left
	visit    func(tag string, off int64) // of each struct, if not nil
	pointers []pointer
	open     bool
}

// pointer is a pointer in a variable or struct.
type pointer struct {
	off uint64       // in bytes
	to  dwarf.Offset // type of its target, 0 for void
}

// add adds the pointers of a type at an offset.
func (f *fields) add(at dwarf.Offset, off int64, depth int) {
	e, _ := f.plain(at)
	if f.steps--; e == nil || f.steps < 0 || depth > maxDepth || off < 0 {
		return
	}
	switch e.Tag {
	case dwarf.TagPointerType:
		to, _ := e.Val(dwarf.AttrType).(dwarf.Offset)
		f.pointers = append(f.pointers, pointer{uint64(off), to})
	case dwarf.TagArrayType:
		element, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		size, n := f.sizeOf(element), f.count(e)
		f.open = f.open || n == 0
		if x, _ := f.plain(element); x != nil && x.Tag == dwarf.TagBaseType {
			return
		}
		for i := int64(0); ok && size > 0 && i < n && f.steps > 0; i++ {
			f.add(element, off+i*size, depth+1)
		}
	case dwarf.TagStructType, dwarf.TagClassType:
		if f.visit != nil {
			tag, _ := e.Val(dwarf.AttrName).(string)
			f.visit(tag, off)
		}
		f.children(e, func(x *dwarf.Entry) {
			place, ok := x.Val(dwarf.AttrDataMemberLoc).(int64)
			t, typed := x.Val(dwarf.AttrType).(dwarf.Offset)
			if ok && typed && (x.Tag == dwarf.TagMember || x.Tag == dwarf.TagInheritance) {
				f.add(t, off+place, depth+1)
			}
		})
	}
}

// children calls visit for each child of an entry.
func (f *fields) children(e *dwarf.Entry, visit func(*dwarf.Entry)) {
	if !e.Children {
		return
	}
	d := f.d.Reader()
	d.Seek(e.Offset)
	d.Next()
	for f.steps > 0 && f.left > 0 {
		x, err := d.Next()
		if err != nil || x == nil || x.Tag == 0 {
			return
		}
		f.steps, f.left = f.steps-1, f.left-1
		visit(x)
		if x.Children {
			d.SkipChildren()
		}
	}
}

// count returns the number of elements of an array, 0 if it is not known.
func (f *fields) count(e *dwarf.Entry) (n int64) {
	f.children(e, func(x *dwarf.Entry) {
		if x.Tag != dwarf.TagSubrangeType {
			return
		}
		c, ok := x.Val(dwarf.AttrCount).(int64)
		if last, isLast := x.Val(dwarf.AttrUpperBound).(int64); !ok && isLast {
			c = last + 1
		}
		if n = max(n, 1) * max(c, 0); n > maxFields { // of all dimensions
			n = maxFields
		}
	})
	return n
}

// sizeOf returns the size of a type in bytes, 0 if it is not known.
func (f *fields) sizeOf(at dwarf.Offset) int64 {
	e, _ := f.plain(at)
	if e == nil {
		return 0
	}
	size, ok := e.Val(dwarf.AttrByteSize).(int64)
	if !ok && e.Tag == dwarf.TagPointerType {
		return f.word
	}
	return size
}

// Fits reports whether a block can have the type by its content: each pointer is 0, or an address of memory.
func (s *Struct) Fits(pointer func(off uint64) (uint64, bool), memory func(addr uint64) bool) bool {
	for _, p := range s.pointers {
		v, ok := pointer(p.off)
		if !ok || v != 0 && !memory(v) {
			return false
		}
	}
	return true
}

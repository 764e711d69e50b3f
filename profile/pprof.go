package profile

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"slices"
)

// writePprof writes a heap profile as pprof reads it: live objects and bytes, a
// location per address, at the call. The message is written piece by piece, since
// pprof's own package holds all of it, several times.
//
// Field numbers are those of github.com/google/pprof/proto/profile.proto.
func writePprof(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) (notes []string, err error) {
	z := gzip.NewWriter(w)
	p := &pprofWriter{w: z, names: n, strings: map[string]uint64{"": 0}, order: []string{""},
		modules: map[*Module]uint64{}, functions: map[pprofFunction]uint64{}}
	p.valueType(1, "inuse_objects", "count")
	p.valueType(1, "inuse_space", "bytes")
	var used []uint64 // bit set of LocationID
	clamped := false
	err = n.locationStacks(d, func(path []LocationID, v Value) error {
		p.inner = p.inner[:0]
		ids := p.scratch[:0]
		for _, l := range path {
			if n.allHidden(l) {
				continue
			}
			for int(l)/64 >= len(used) {
				used = append(used, 0)
			}
			used[l/64] |= 1 << (l % 64)
			ids = binary.AppendUvarint(ids, uint64(l)+1)
		}
		p.scratch = ids
		p.inner = appendBytes(p.inner, 1, ids)
		count, over1 := clamp(v.Count)
		bytes, over2 := clamp(v.Bytes)
		clamped = clamped || over1 || over2
		values := binary.AppendUvarint(p.scratch2[:0], uint64(count))
		values = binary.AppendUvarint(values, uint64(bytes))
		p.scratch2 = values
		p.inner = appendBytes(p.inner, 2, values)
		return p.emit(2, p.inner)
	})
	if err != nil {
		return nil, err
	}
	// Readers take the first mapping for the program: the lowest, in a process.
	var modules []*Module
	each := func(yield func(LocationID)) {
		for i, word := range used {
			for b := range 64 {
				if word>>b&1 != 0 {
					yield(LocationID(i*64 + b))
				}
			}
		}
	}
	each(func(l LocationID) {
		if m := n.prof.LocationAt(l).Module; m != nil && p.modules[m] == 0 {
			modules = append(modules, m)
			p.modules[m] = 1
		}
	})
	slices.SortStableFunc(modules, func(a, b *Module) int { return cmp.Compare(a.Start, b.Start) })
	for i, m := range modules {
		p.modules[m] = uint64(i + 1)
		p.mapping(uint64(i+1), m)
	}
	each(func(l LocationID) { p.location(l) })
	p.inner = appendVarint(appendVarint(p.inner[:0], 1, p.str("space")), 2, p.str("bytes"))
	p.emit(11, p.inner)
	p.emitVarint(12, 1) // period
	p.emitVarint(14, p.str("inuse_space"))
	if d.Name != "" {
		p.emitVarint(13, p.str(d.Name))
	}
	for _, s := range p.order {
		p.emit(6, []byte(s))
	}
	if clamped {
		notes = append(notes, "pprof: sums over 2^63-1 are written as 2^63-1, the most the format holds")
	}
	return notes, cmp.Or(p.err, z.Close())
}

type pprofFunction struct{ name, linkage, file string }

type pprofWriter struct {
	w         *gzip.Writer
	err       error
	names     *Names
	strings   map[string]uint64
	order     []string
	modules   map[*Module]uint64
	functions map[pprofFunction]uint64

	out, inner, scratch, scratch2 []byte
}

// str is the number of a string in the table.
func (p *pprofWriter) str(s string) uint64 {
	i, ok := p.strings[s]
	if !ok {
		i = uint64(len(p.order))
		p.strings[s] = i
		p.order = append(p.order, s)
	}
	return i
}

// Wire types of protocol buffers.
const (
	wireVarint = 0
	wireBytes  = 2
)

func appendVarint(b []byte, field, v uint64) []byte {
	if v == 0 {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, field<<3|wireVarint), v)
}

func appendBytes(b []byte, field uint64, data []byte) []byte {
	b = binary.AppendUvarint(b, field<<3|wireBytes)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// emit writes a field of the profile itself.
func (p *pprofWriter) emit(field uint64, data []byte) error {
	p.out = appendBytes(p.out[:0], field, data)
	if _, err := p.w.Write(p.out); err != nil && p.err == nil {
		p.err = err
	}
	return p.err
}

func (p *pprofWriter) emitVarint(field, v uint64) {
	p.out = appendVarint(p.out[:0], field, v)
	if _, err := p.w.Write(p.out); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *pprofWriter) valueType(field uint64, kind, unit string) {
	p.inner = appendVarint(appendVarint(p.inner[:0], 1, p.str(kind)), 2, p.str(unit))
	p.emit(field, p.inner)
}

func (p *pprofWriter) mapping(id uint64, m *Module) {
	b := p.inner[:0]
	for i, v := range []uint64{id, m.Start, m.Limit, m.Offset, p.str(m.Path), p.str(m.BuildID)} {
		b = appendVarint(b, uint64(i+1), v)
	}
	for i, has := range []bool{m.HasFuncs, m.HasFiles, m.HasLines, m.HasInlineInfo} {
		if has {
			b = appendVarint(b, uint64(i+7), 1)
		}
	}
	p.inner = b
	p.emit(3, b)
}

func (p *pprofWriter) location(id LocationID) {
	l := p.names.prof.LocationAt(id)
	var lines []byte
	if len(l.Frames) > 0 {
		for _, f := range p.names.Shown(id) {
			p.scratch = appendVarint(appendVarint(p.scratch[:0], 1, p.function(f)), 2, uint64(f.Line))
			lines = appendBytes(lines, 4, p.scratch)
		}
	}
	b := appendVarint(p.inner[:0], 1, uint64(id)+1)
	if l.Module != nil {
		b = appendVarint(b, 2, p.modules[l.Module])
	}
	b = appendVarint(b, 3, l.Call)
	b = append(b, lines...)
	p.inner = b
	p.emit(4, b)
}

func (p *pprofWriter) function(f Frame) uint64 {
	key := pprofFunction{f.Func, f.Linkage, f.File}
	id := p.functions[key]
	if id == 0 {
		id = uint64(len(p.functions) + 1)
		p.functions[key] = id
		b := appendVarint(p.scratch2[:0], 1, id)
		b = appendVarint(b, 2, p.str(f.Func))
		b = appendVarint(b, 3, p.str(f.Linkage))
		b = appendVarint(b, 4, p.str(f.File))
		p.scratch2 = b
		p.emit(5, b)
	}
	return id
}

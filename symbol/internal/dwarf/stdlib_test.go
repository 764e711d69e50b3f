package dwarf

import (
	"cmp"
	stddwarf "debug/dwarf"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"testing"
)

// stdlibReader does what Data does, as far as debug/dwarf goes: an index of units by
// their ranges, and for each unit that an address needs, its lines and its functions
// with what was inlined into them.
type stdlibReader struct {
	data    *stddwarf.Data
	units   []stdlibRange // by low
	entries map[*stddwarf.Entry]*stdlibUnit
}

type stdlibRange struct {
	low, high uint64
	unit      *stddwarf.Entry
}

type stdlibUnit struct {
	dir       string
	sequences []stdlibSequence
	files     []*stddwarf.LineFile
	scopes    []stdlibScope // by low, outer ones first
}

// stdlibSequence is rows by address; the last one ends it.
type stdlibSequence []stddwarf.LineEntry

type stdlibScope struct {
	low, high      uint64
	name           string
	depth          int
	inlined        bool
	callFile, line int64
}

// openStdlib reads the units of a program, and the ranges of each.
func openStdlib(t testing.TB, p *program) *stdlibReader {
	t.Helper()
	r := &stdlibReader{entries: map[*stddwarf.Entry]*stdlibUnit{}}
	var err error
	if r.data, err = p.elf.DWARF(); err != nil {
		t.Fatal(err)
	}
	rd := r.data.Reader()
	for {
		e, err := rd.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		rd.SkipChildren()
		if e.Tag != stddwarf.TagCompileUnit {
			continue
		}
		ranges, err := r.data.Ranges(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range ranges {
			if x[0] < x[1] && p.isLoaded(x[0], x[1]) {
				r.units = append(r.units, stdlibRange{x[0], x[1], e})
			}
		}
	}
	slices.SortStableFunc(r.units, func(a, b stdlibRange) int { return cmp.Compare(a.low, b.low) })
	return r
}

// unit reads the lines and scopes of a unit, once.
func (r *stdlibReader) unit(t testing.TB, e *stddwarf.Entry) *stdlibUnit {
	u := r.entries[e]
	if u == nil {
		u = &stdlibUnit{}
		u.dir, _ = e.Val(stddwarf.AttrCompDir).(string)
		r.readLines(t, u, e)
		r.readScopes(t, u, e)
		r.entries[e] = u
	}
	return u
}

func (r *stdlibReader) readLines(t testing.TB, u *stdlibUnit, e *stddwarf.Entry) {
	lr, err := r.data.LineReader(e)
	if err != nil {
		t.Fatal(err)
	}
	if lr == nil {
		return
	}
	var rows stdlibSequence
	for {
		var le stddwarf.LineEntry
		if err := lr.Next(&le); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if rows = append(rows, le); le.EndSequence {
			u.sequences, rows = append(u.sequences, rows), nil
		}
	}
	u.files = lr.Files()
}

func (r *stdlibReader) readScopes(t testing.TB, u *stdlibUnit, e *stddwarf.Entry) {
	rd := r.data.Reader()
	rd.Seek(e.Offset)
	for depth := 0; ; {
		d, err := rd.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch d.Tag {
		case 0:
			depth--
		case stddwarf.TagSubprogram, stddwarf.TagInlinedSubroutine:
			r.readScope(t, u, d, depth)
		}
		if d.Children {
			depth++
		}
		if depth == 0 {
			break
		}
	}
	slices.SortStableFunc(u.scopes, func(a, b stdlibScope) int { return cmp.Compare(a.low, b.low) })
}

func (r *stdlibReader) readScope(t testing.TB, u *stdlibUnit, d *stddwarf.Entry, depth int) {
	ranges, err := r.data.Ranges(d)
	if err != nil {
		t.Fatal(err)
	}
	s := stdlibScope{depth: depth, inlined: d.Tag == stddwarf.TagInlinedSubroutine}
	if len(ranges) > 0 {
		s.name = r.name(t, d)
	}
	s.callFile, _ = d.Val(stddwarf.AttrCallFile).(int64)
	s.line, _ = d.Val(stddwarf.AttrCallLine).(int64)
	for _, x := range ranges {
		s.low, s.high = x[0], x[1]
		u.scopes = append(u.scopes, s)
	}
}

func (r *stdlibReader) name(t testing.TB, d *stddwarf.Entry) string {
	for range 16 {
		if s, ok := d.Val(stddwarf.AttrLinkageName).(string); ok {
			return s
		}
		at, ok := d.Val(stddwarf.AttrAbstractOrigin).(stddwarf.Offset)
		if !ok {
			if at, ok = d.Val(stddwarf.AttrSpecification).(stddwarf.Offset); !ok {
				break
			}
		}
		rd := r.data.Reader()
		rd.Seek(at)
		var err error
		if d, err = rd.Next(); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := d.Val(stddwarf.AttrName).(string)
	return s
}

// unitAt returns the unit of an address, nil if no unit claims it.
func (r *stdlibReader) unitAt(pc uint64) *stddwarf.Entry {
	i := sort.Search(len(r.units), func(i int) bool { return r.units[i].low > pc }) - 1
	if i < 0 || pc >= r.units[i].high {
		return nil
	}
	return r.units[i].unit
}

// path returns the path of a source file. debug/dwarf leaves out the unit's directory if
// that is relative, as in Debian's C library.
func (u *stdlibUnit) path(f *stddwarf.LineFile) string {
	switch {
	case f == nil:
		return ""
	case path.IsAbs(f.Name):
		return path.Clean(f.Name)
	}
	return path.Join(u.dir, f.Name)
}

// place is the file and line of an address.
func (u *stdlibUnit) place(pc uint64) (file string, line int) {
	for _, s := range u.sequences {
		if s[0].Address <= pc && pc < s[len(s)-1].Address {
			row := s[sort.Search(len(s), func(i int) bool { return s[i].Address > pc })-1]
			return u.path(row.File), row.Line
		}
	}
	return "", 0
}

// lookup returns the frames at an address as "function file:line".
func (r *stdlibReader) lookup(t testing.TB, pc uint64) (out []string) {
	e := r.unitAt(pc)
	if e == nil {
		return nil
	}
	u := r.unit(t, e)
	file, line := u.place(pc)
	var around []stdlibScope // inner ones first
	for i := sort.Search(len(u.scopes), func(i int) bool { return u.scopes[i].low > pc }) - 1; i >= 0; i-- {
		if s := u.scopes[i]; pc < s.high {
			if around = append(around, s); !s.inlined {
				break
			}
		}
	}
	if len(around) == 0 && line > 0 {
		return []string{fmt.Sprintf(" %s:%d", file, line)}
	}
	slices.SortStableFunc(around, func(a, b stdlibScope) int { return cmp.Compare(b.depth, a.depth) })
	for _, s := range around {
		out = append(out, fmt.Sprintf("%s %s:%d", s.name, file, line))
		if file, line = "", int(s.line); 0 <= s.callFile && s.callFile < int64(len(u.files)) {
			file = u.path(u.files[s.callFile])
		}
	}
	return out
}

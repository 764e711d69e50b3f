package symbol

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Frame is one call in source. What is not known is "" or 0.
type Frame struct {
	Func          string // linkage name
	Name          string // the same for people; a [Resolver] fills it in
	File          string
	Line          int
	Discriminator int  // distinguishes pieces of code of one line
	Inlined       bool // into the frame that follows
}

// Lookup appends the frames at an address of the file to dst, the innermost
// first: more than one where calls were inlined. It appends nothing where
// neither a function nor a line is known. The error says what of the file could
// not be read; frames may be found all the same.
func (f *File) Lookup(dst []Frame, pc uint64) (frames []Frame, err error) {
	frames = dst
	defer f.faulted(debug.SetPanicOnFault(true), &err)
	pc = f.arch.Strip(pc)
	if f.dwarf != nil {
		if frames, err = f.dwarf.lookup(dst, pc); err != nil {
			err = fmt.Errorf("%s: %w", f.DebugPath(), err)
		}
	}
	if len(frames) > len(dst) && frames[len(frames)-1].Func != "" {
		return frames, err
	}
	name, file, ok := f.symbolAt(pc)
	if !ok {
		return frames, err
	}
	if len(frames) == len(dst) {
		return append(frames, Frame{Func: name, File: file}), err
	}
	frames[len(frames)-1].Func = name
	return frames, err
}

func (d *dwarf) lookup(dst []Frame, pc uint64) ([]Frame, error) {
	u := d.unitFor(pc)
	if u == nil {
		return dst, nil
	}
	lines, err := u.lineTable()
	at := Frame{}
	var row *lineRow
	if lines != nil {
		if row = lines.find(pc); row != nil {
			at.File, at.Line, at.Discriminator = lines.path(row.file), int(row.line), int(row.disc)
		}
	}
	sc, err2 := u.loadScopes()
	if err == nil {
		err = err2
	}
	n := sc.innermost(pc)
	if n < 0 {
		if row != nil {
			dst = append(dst, at)
		}
		return dst, err
	}
	for n >= 0 {
		s := &sc.list[n]
		at.Func, at.Inlined = d.nameOf(s.die), s.parent >= 0
		if s.parent < 0 && u.isCPlusPlus() {
			at.Func = d.symbolName(at.Func, s.low)
		}
		dst = append(dst, at)
		at = Frame{Line: int(s.callLine)}
		if lines != nil {
			at.File = lines.path(s.callFile)
		}
		n = s.parent
	}
	return dst, err
}

// symbolName is the symbol at a function's start, for functions of C++ that have
// no linkage name because only their own unit sees them: "disc" says less than
// shapes::(anonymous namespace)::disc::disc(double).
func (d *dwarf) symbolName(name string, start uint64) string {
	if strings.HasPrefix(name, "_Z") {
		return name
	}
	if s := d.file.symbolOf(start); strings.HasPrefix(s, "_Z") {
		return s
	}
	return name
}

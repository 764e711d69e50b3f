package symbol

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// Lookup appends the frames at an address of the file to dst, innermost first. There are
// several frames if calls were inlined, and none if neither function nor line is known. The
// error names the part of the file that could not be read; Lookup may find frames despite
// an error.
func (f *File) Lookup(dst []Frame, pc uint64) (frames []Frame, err error) {
	frames = dst
	defer f.faulted(debug.SetPanicOnFault(true), &err)
	pc = f.arch.Strip(pc)
	if f.debug != nil {
		frames, err = f.lookupDebug(dst, pc)
	}
	if len(frames) > len(dst) && frames[len(frames)-1].Func != "" {
		return frames, err
	}
	name, file, ok := f.symbolAt(pc)
	if !ok {
		if why := f.symtab().why(); why != "" {
			f.why = why
		}
		return frames, err
	}
	if len(frames) == len(dst) {
		return append(frames, Frame{Func: name, File: file}), err
	}
	frames[len(frames)-1].Func = name
	return frames, err
}

// lookupDebug looks up an address in the debug information. If the budget is exceeded, it
// discards the debug information.
func (f *File) lookupDebug(dst []Frame, pc uint64) ([]Frame, error) {
	var err error
	f.found, err = f.debug.Lookup(f.found[:0], pc)
	for _, g := range f.found {
		dst = append(dst, Frame{Func: g.Func, File: g.File, Line: g.Line, Discriminator: g.Discriminator, Inlined: g.Inlined})
	}
	if errors.Is(err, dwarf.ErrBudget) {
		f.debug, f.why = nil, err.Error()+"; functions are named from the symbol table, without lines"
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f.DebugPath(), err)
	}
	return dst, err
}

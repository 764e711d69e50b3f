package symbol

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// SplitNote returns a message if functions or inlined calls are missing because they are in split debug information
// (-gsplit-dwarf) that could not be read, otherwise "".
func (f *File) SplitNote() string {
	if f.debug == nil || f.debug.Split() == nil {
		return ""
	}
	return fmt.Sprintf("inlined calls are missing: split debug information (-gsplit-dwarf): %v", f.debug.Split())
}

// openSplit opens the files that may have the split unit of a skeleton, until read accepts one: the package beside f, as dwp
// names it, the unit's own file where the compiler wrote it, and that file beside f. A file that has another unit is not used.
func (f *File) openSplit(compDir, name string, read func(dwarf.SplitFile) error) error {
	dir, dwo := filepath.Dir(f.name), filepath.Join(compDir, name)
	if filepath.IsAbs(name) {
		dwo = name
	}
	dwp := strings.TrimSuffix(f.name, ".debug") + ".dwp"
	var failed error
	for _, path := range []string{dwp, f.name + ".dwp", dwo, filepath.Join(dir, name), filepath.Join(dir, filepath.Base(name))} {
		s, ok := f.split[path]
		if !ok {
			s = f.openSplitFile(path)
			f.split[path] = s
		}
		err := s.err
		if err == nil {
			if err = read(s.SplitFile); err == nil {
				return nil
			}
			err = fmt.Errorf("%s: %w", s.Path, err)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			failed = cmp.Or(failed, err)
		}
	}
	return cmp.Or(failed, fmt.Errorf("no file %s: put it beside the program, or %s, which dwp makes",
		printable.Text(f.tree.path(dwo)), printable.Text(filepath.Base(dwp))))
}

// splitFile is a file of split debug information, or the error of opening it.
type splitFile struct {
	dwarf.SplitFile
	err error
}

// openSplitFile opens a file, whose units take memory and time from the budget of f.
func (f *File) openSplitFile(path string) (s splitFile) {
	g, err := openELF(f.tree, path)
	if err != nil {
		s.err = err
		return s
	}
	f.close = append(f.close, g.Close)
	f.budget.Grow(int64(len(g.image)))
	s.Path = g.Path
	s.Sections, err = g.debugSections(".dwo")
	for i := range s.Sections { // units share them
		b, e := s.Sections[i].All(f.budget)
		s.Sections[i], err = dwarf.Plain(b), cmp.Or(err, e)
	}
	if err != nil {
		s.err = fmt.Errorf("%s: %w", s.Path, err)
	}
	return s
}

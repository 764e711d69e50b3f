package symbol

import (
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// readDebug returns the debug information in f itself, nil if there is none.
func (f *File) readDebug() (*dwarf.Data, error) {
	s, err := f.debugSections("")
	if err != nil || s[dwarf.Info].Empty() || s[dwarf.Abbrev].Empty() {
		return nil, err
	}
	o := f.debugOptions()
	if o.Alt, err = f.openAlt(); err != nil {
		return nil, err
	}
	o.OpenSplit = f.openSplit
	return dwarf.New(s, o), nil
}

// debugSections returns the sections of debug information, whose names end in suffix.
func (f *File) debugSections(suffix string) (s dwarf.Sections, err error) {
	for i := range s {
		name := dwarf.Section(i).String()
		if dwarf.Section(i) != dwarf.CUIndex {
			name += suffix
		}
		if s[i], err = f.content(name); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (f *File) debugOptions() dwarf.Options {
	return dwarf.Options{BigEndian: f.bigEndian(), Symbol: f.symbolOf, Budget: f.budget,
		Loaded: func(low, high uint64) bool { return len(f.loads) == 0 || f.loadedSpans.holds(low, high) }}
}

// openAlt opens the file that holds debug information shared by several files, as written by
// dwz. It returns nil if f names no such file.
func (f *File) openAlt() (*dwarf.Data, error) {
	link, err := f.section(".gnu_debugaltlink")
	name := stringAt(link, 0)
	if err != nil || len(name) == 0 || len(name) >= len(link) {
		return nil, err
	}
	id := hex.EncodeToString(link[len(name)+1:])
	path := string(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.name), path)
	}
	var g *File
	if f.mayShare(path) {
		g, err = openELF(f.tree, path)
	} else {
		err = fmt.Errorf("%s is neither beside the file that names it nor in a directory of debug files (--debug-dir)", printable.Text(path))
	}
	for _, d := range f.debugPlaces() {
		if err != nil && len(id) > 2 {
			if h, e := openELF(d.tree, buildIDPath(d.path, id)); e == nil {
				g, err = h, nil
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("shared debug information: %w", err)
	}
	alt, err := g.readAlt(id)
	if err != nil {
		g.Close()
		return nil, fmt.Errorf("shared debug information %s: %w", g.Path, err)
	}
	f.close = append(f.close, g.Close)
	return alt, nil
}

// mayShare reports whether f may take shared debug information from the file at path. The
// content of f is not trusted: without a sysroot, which confines f.tree, path must be below
// the directory of f or a directory of debug files.
func (f *File) mayShare(path string) bool {
	if f.tree.root != "" {
		return true
	}
	for _, dir := range append([]string{filepath.Dir(f.name)}, f.debugDirs...) {
		if rest, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rest) {
			return true
		}
	}
	return false
}

// readAlt reads f as a file of shared debug information. It returns an error if the build-id
// of f is not id.
func (f *File) readAlt(id string) (*dwarf.Data, error) {
	if f.BuildID != id {
		return nil, fmt.Errorf("build-id %s, expected %s", orNone(f.BuildID), id)
	}
	s, err := f.debugSections("")
	if err != nil {
		return nil, err
	}
	return dwarf.New(s, f.debugOptions()), nil
}

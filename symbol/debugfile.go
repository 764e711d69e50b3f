package symbol

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// openDebug finds debug information, in the file or beside it.
func (f *File) openDebug() (err error) {
	defer f.faulted(debug.SetPanicOnFault(true), &err)
	d, err := f.readDebug()
	if d != nil || err != nil {
		f.debug = d
		return err
	}
	candidates := f.debugCandidates()
	var failed error
	other := "" // a file with the right name but from another build
	for _, c := range candidates {
		g, err := openELF(c.tree, c.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failed = cmp.Or(failed, err)
		case !c.fits(f, g):
			g.Close()
			other = g.Path
		default:
			g.debugDirs = f.debugDirs
			err := f.attach(g)
			if err == nil {
				return nil
			}
			failed = cmp.Or(failed, err)
			g.Close()
		}
	}
	switch {
	case failed != nil:
		return fmt.Errorf("its debug file: %w", failed)
	case other != "":
		return fmt.Errorf("its debug file %s is of another build", other)
	case len(f.symtab().functions) == 0:
		return fmt.Errorf("it has neither debug information nor symbols%s", lookedFor(candidates))
	}
	return fmt.Errorf("it has no debug information, so functions have no lines%s", lookedFor(candidates))
}

// attach makes g the debug file of f. Closing f then also closes g. It returns an error if
// g has no debug information.
func (f *File) attach(g *File) (err error) {
	defer f.faulted(debug.SetPanicOnFault(true), &err)
	d := g.debug
	if d == nil {
		if d, err = g.readDebug(); err != nil {
			return fmt.Errorf("%s: %w", g.Path, err)
		}
	}
	if d == nil {
		return fmt.Errorf("%s: no debug information in it either", g.Path)
	}
	f.debug, f.debugFile, f.why = d, g.Path, ""
	f.close = append(f.close, g.Close)
	if len(f.symtab().functions) == 0 || len(g.symtab().functions) > len(f.symtab().functions) {
		f.symbols = g.symtab()
	}
	return nil
}

// debugCandidate is a place where a separate debug file may be.
type debugCandidate struct {
	tree tree
	name string
	crc  *uint32 // CRC-32 from .gnu_debuglink, nil if unknown
	byID bool    // name is made from the build-id
}

// fits reports whether g is the debug file of f.
func (c debugCandidate) fits(f, g *File) bool {
	if g.Machine != f.Machine || g.Word != f.Word {
		return false
	}
	if f.BuildID != "" && g.BuildID != "" {
		return f.BuildID == g.BuildID
	}
	if c.crc != nil {
		return crc32.ChecksumIEEE(g.image) == *c.crc
	}
	return f.sameLayout(g)
}

// sameLayout reports whether two files have loaded sections with the same names, addresses
// and sizes. It is used for files without a build-id.
func (f *File) sameLayout(g *File) bool {
	list := func(f *File) (out []string) {
		for _, s := range f.sections {
			if s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOTE {
				out = append(out, fmt.Sprint(s.Name, s.Addr, s.Size))
			}
		}
		return out
	}
	a := list(f)
	return len(a) > 0 && slices.Equal(a, list(g))
}

// debugDir is a directory of debug files.
type debugDir struct {
	tree
	path string
}

// debugPlaces returns the directories of debug files for f: the caller's directories on this
// machine and, if f is in a sysroot, the default directories of the sysroot.
func (f *File) debugPlaces() (list []debugDir) {
	for _, d := range f.debugDirs {
		list = append(list, debugDir{tree{}, d})
	}
	if f.tree.root != "" {
		for _, d := range DebugDirs() {
			list = append(list, debugDir{f.tree, d})
		}
	}
	return list
}

// debugCandidates returns the places where gdb looks for the debug file. It adds the same
// places with the name of f plus ".debug".
func (f *File) debugCandidates() (list []debugCandidate) {
	dirs := f.debugPlaces()
	if len(f.BuildID) > 2 {
		for _, d := range dirs {
			list = append(list, debugCandidate{tree: d.tree, name: buildIDPath(d.path, f.BuildID), byID: true})
		}
	}
	add := func(base string, crc *uint32) {
		dir := filepath.Dir(f.name)
		for _, d := range []string{dir, filepath.Join(dir, ".debug")} {
			if n := filepath.Join(d, base); n != filepath.Clean(f.name) {
				list = append(list, debugCandidate{tree: f.tree, name: n, crc: crc})
			}
		}
		abs := dir
		if f.tree.root == "" {
			if a, err := filepath.Abs(dir); err == nil {
				abs = a
			}
		}
		for _, d := range dirs {
			list = append(list, debugCandidate{tree: d.tree, name: filepath.Join(d.path, abs, base), crc: crc},
				debugCandidate{tree: d.tree, name: filepath.Join(d.path, base), crc: crc})
		}
	}
	link, err := f.section(".gnu_debuglink")
	name := string(stringAt(link, 0))
	if sum := (len(name) + 4) &^ 3; err == nil && name != "" && len(link) >= sum+4 {
		crc := f.order.Uint32(link[sum:])
		add(filepath.Base(name), &crc)
	}
	if own := filepath.Base(f.name) + ".debug"; own != name {
		add(own, nil)
	}
	return list
}

// lookedFor returns a message with the names and directories of the candidates, "" if there
// are none.
func lookedFor(list []debugCandidate) string {
	var names, dirs []string
	for _, c := range list {
		dir, base := filepath.Split(c.tree.path(c.name))
		if c.byID {
			dir, base = "", c.tree.path(c.name)
		}
		if !slices.Contains(names, base) {
			names = append(names, base)
		}
		if dir = filepath.Clean(dir); !c.byID && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (looked for %s in %s)", strings.Join(names, ", "), strings.Join(dirs, ", "))
}

// buildIDPath returns the path of the debug file with a build-id below dir.
func buildIDPath(dir, id string) string {
	return filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug")
}

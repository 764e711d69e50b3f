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
	other := "" // a file of the right name and another build
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

// attach takes the debug information of g, which holds that of f, and from then
// on closes g with f. It fails if there is none.
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
	f.debug, f.debugPath, f.why = d, g.Path, ""
	f.close = append(f.close, g.Close)
	if len(f.symtab().functions) == 0 || len(g.symtab().functions) > len(f.symtab().functions) {
		f.symtab = g.symtab
	}
	return nil
}

// debugCandidate is a place where a separate debug file may be.
type debugCandidate struct {
	tree tree
	name string
	crc  *uint32 // that .gnu_debuglink says, nil if it does not
	byID bool    // a name that is made of the build-id
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

// sameLayout reports whether two files have the same loaded sections, by name,
// address and size: what is left to compare where neither has a build-id.
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

// debugTree is directories of debug files, and the tree in which they are.
type debugTree struct {
	tree
	dirs []string
}

// debugTrees lists the directories of debug files for f: those of this machine that
// the caller named and, where f is in a sysroot, the sysroot's own.
func (f *File) debugTrees() []debugTree {
	trees := []debugTree{{tree{}, f.debugDirs}}
	if f.tree.sysroot != "" {
		trees = append(trees, debugTree{f.tree, DebugDirs()})
	}
	return trees
}

// debugCandidates lists where the debug file may be, as gdb looks for it, and
// under the file's own name with .debug.
func (f *File) debugCandidates() (list []debugCandidate) {
	trees := f.debugTrees()
	for _, t := range trees {
		for _, d := range t.dirs {
			if len(f.BuildID) > 2 {
				list = append(list, debugCandidate{tree: t.tree, name: buildIDPath(d, f.BuildID), byID: true})
			}
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
		if f.tree.sysroot == "" {
			if a, err := filepath.Abs(dir); err == nil {
				abs = a
			}
		}
		for _, t := range trees {
			for _, d := range t.dirs {
				list = append(list, debugCandidate{tree: t.tree, name: filepath.Join(d, abs, base), crc: crc},
					debugCandidate{tree: t.tree, name: filepath.Join(d, base), crc: crc})
			}
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

// lookedFor says which files were looked for, and where.
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

// openCode returns the program of which f is the debug file, with f attached;
// nil, and what was looked for, if it is not there.
func (f *File) openCode() (*File, string) {
	base, dir := filepath.Base(f.name), filepath.Dir(f.name)
	name := strings.TrimSuffix(base, ".debug")
	var looked []string
	for _, d := range []string{dir, filepath.Dir(dir)} {
		path := filepath.Join(d, name)
		if name == base && d == dir || d != dir && filepath.Base(dir) != ".debug" {
			continue
		}
		looked = append(looked, f.tree.path(path))
		g, err := openELF(f.tree, path)
		if err != nil {
			continue
		}
		if !g.noCode && !g.object && (debugCandidate{}).fits(g, f) && g.attach(f) == nil {
			g.debugDirs = f.debugDirs
			return g, ""
		}
		g.Close()
	}
	return nil, strings.Join(looked, ", ")
}

// buildIDPath is where a directory of debug files keeps the one of a build-id.
func buildIDPath(dir, id string) string {
	return filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug")
}

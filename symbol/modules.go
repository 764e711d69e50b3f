package symbol

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Limits for a log: modules that are cached, and files that are opened.
const (
	maxModules = 1 << 14
	maxOpened  = 1 << 10
)

var errNoFiles = errors.New("files are not opened")

// module opens the file of a module, once.
func (p *Process) module(m *Module) *object {
	if o := p.modules[*m]; o != nil {
		return o
	}
	if p.config.NoFiles {
		return &object{err: errNoFiles}
	}
	o := p.findModule(m)
	if p.modules == nil || len(p.modules) >= maxModules {
		p.modules = map[Module]*object{}
	}
	p.modules[*m] = o
	if o.err != nil && !strings.HasPrefix(m.Name, "[") {
		p.note("%v", o.err)
	}
	return o
}

// place is where the file of a module may be.
type place struct {
	tree
	name   string
	exact  bool // only with the module's build-id
	inode  bool // only with the module's inode number
	silent bool // path made from the build-id: a missing file is not reported
}

// findModule finds the file of a module: an added file with the build-id or name of the
// module, else the file at the module's path below a sysroot, else a file of this machine. A
// file of this machine must have the build-id in the log or, if a memory map names it, the
// inode number in the map.
func (p *Process) findModule(m *Module) *object {
	name := printable.Text(m.Name)
	var wrong error // why a file with the right name is not used
	fits := func(f *File, exact bool) bool {
		err := p.accepts(f)
		switch {
		case err != nil:
		case m.BuildID == f.BuildID && m.BuildID != "", !exact && (m.BuildID == "" || f.BuildID == ""):
			return true
		default:
			err = fmt.Errorf("%s: build-id %s, but what was loaded had %s", f.Path, orNone(f.BuildID), orNone(m.BuildID))
		}
		if wrong == nil {
			wrong = err
		}
		return false
	}
	if m.BuildID != "" {
		for _, o := range p.added {
			if o.file.BuildID == m.BuildID { // whatever the boot says
				o.same = true
				return o
			}
		}
	}
	for _, o := range p.added {
		if o.out == "" && filepath.Base(o.Path) == filepath.Base(m.Name) && fits(o.file, false) {
			return o
		}
	}
	if strings.HasPrefix(m.Name, "[") { // [vdso], [heap]
		return &object{err: fmt.Errorf("%s is not a file", name)}
	}
	places, foreign := p.places(m)
	var looked []string
	for _, at := range places {
		o, err := p.openModule(at, m, func(f *File) bool { return fits(f, at.exact) })
		switch {
		case err == nil:
			o.same = m.BuildID != "" && o.file.BuildID == m.BuildID
			return o
		case errors.Is(err, errNotIt):
		case !at.silent:
			looked = append(looked, printable.Text(at.path(at.name)))
			if !errors.Is(err, fs.ErrNotExist) && !at.exact && wrong == nil {
				wrong = err
			}
		}
	}
	switch {
	case wrong != nil:
	case foreign:
		wrong = fmt.Errorf("%s: not looked for on this machine, since the log is of %s: give --sysroot, or -e", name, p.machine())
	case len(looked) > 0:
		wrong = fmt.Errorf("%s: no such file (looked for %s)", name, strings.Join(looked, ", "))
	case m.Logged && m.BuildID == "":
		wrong = fmt.Errorf("%s: the log has no build-id for it, so give the file by -e or --sysroot", name)
	default:
		wrong = fmt.Errorf("%s: no such file: give -e, or --sysroot", name)
	}
	return &object{err: wrong}
}

// places returns where the file of a module may be. foreign reports that files of this
// machine are omitted because the log comes from another kind of machine.
func (p *Process) places(m *Module) (list []place, foreign bool) {
	for _, root := range p.config.Sysroots {
		list = append(list, place{tree: tree{root}, name: m.Name}, place{tree: tree{root}, name: filepath.Base(m.Name)})
	}
	if len(p.config.Sysroots) == 0 && filepath.IsAbs(m.Name) && (!m.Logged || m.BuildID != "") {
		if foreign = p.config.Machine != elf.EM_NONE && p.config.Machine != hostMachine; !foreign {
			list = append(list, place{name: m.Name, exact: m.Logged, inode: !m.Logged})
		}
	}
	if len(m.BuildID) > 2 && isHex(m.BuildID) {
		for _, d := range p.config.DebugDirs {
			list = append(list, place{name: buildIDPath(d, m.BuildID), exact: true, silent: true})
		}
	}
	return list, foreign
}

// errNotIt is the error for a file that does not match a module.
var errNotIt = errors.New("another file")

// openModule opens the file at a place if fits accepts its headers. A file with several
// names is opened once.
func (p *Process) openModule(at place, m *Module, fits func(*File) bool) (*object, error) {
	file, err := at.tree.open(at.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if at.inode {
		if n, ok := inode(info); !ok || n != m.Inode || m.Inode == 0 {
			return nil, fmt.Errorf("%s: not the file that was mapped, by its inode number: give --sysroot / to use it, or -e",
				printable.Text(m.Name))
		}
	}
	for _, o := range p.opened {
		if os.SameFile(o.file.info, info) {
			if !fits(o.file) {
				return nil, errNotIt
			}
			return o, nil
		}
	}
	if len(p.opened) >= maxOpened {
		return nil, fmt.Errorf("%s: not opened: %d files are open already", at.path(at.name), len(p.opened))
	}
	f, err := openFile(at.tree, at.name, p.config.DebugDirs, func(f *File) error {
		if !fits(f) {
			return errNotIt
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	o := &object{FileSpec: FileSpec{Path: f.Path}, file: f}
	p.opened = append(p.opened, o)
	return o, nil
}

// isHex reports whether s has only hexadecimal digits. It may be empty.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// hostMachine is the machine that this program runs on, 0 if it is not known.
var hostMachine = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64,
	"arm": elf.EM_ARM, "arm64": elf.EM_AARCH64,
	"loong64": elf.EM_LOONGARCH,
	"mips":    elf.EM_MIPS, "mipsle": elf.EM_MIPS, "mips64": elf.EM_MIPS, "mips64le": elf.EM_MIPS,
	"ppc64": elf.EM_PPC64, "ppc64le": elf.EM_PPC64,
	"riscv64": elf.EM_RISCV,
	"s390x":   elf.EM_S390,
}[runtime.GOARCH]

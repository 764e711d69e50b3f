package symbol

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Config is what a [Process] is made of. The zero value knows no files.
type Config struct {
	Files     []FileSpec // ELF files of the program
	Sysroots  []string   // below which the paths of modules are looked for, first to last
	DebugDirs []string   // where separate debug files are looked for
	Adjust    Adjust
	NoFiles   bool // open no file: addresses get a module and an offset, and no frames
	Lossless  bool // the encoder keeps every bit, so loss flags mean nothing

	// Machine is that of the program, 0 if it is not known; the first of Files tells it.
	// Files for another machine are refused.
	Machine elf.Machine
	Word    int    // bits of an address in the program, 0 if not known
	WordBy  string // where Word is from, for messages
}

// Process finds functions and lines for the addresses of one process. It knows the
// process's memory map at the time of the next record, and the ELF files. It opens a
// file of the memory map when an address first needs it.
//
// Names of functions, files and modules are safe to print: what could control a terminal
// or begin a line is escaped.
//
// A Process is for one goroutine at a time.
type Process struct {
	config     Config
	maps       timeline
	markup     []byte // from a '{' on, what may become an element
	bases      []Base // where the files of the configuration are loaded, as far as known
	generation int
	recoverer  recoverer

	added   []*object          // files of the configuration
	opened  []*object          // files of modules
	modules map[Module]*object // by the module as the map tells it
	outside int                // distinct addresses in none of added

	locations map[addrKey]*Location // of this generation
	cached    int                   // addresses that are cached at most, or less than minCached
	shared    map[Module]*Module    // modules of Locations
	unknown   map[string]*Location  // with only Missing set
	frames    map[frameKey]foundFrames
	kept      int // frames in frames
	scratch   []Frame
	demangler Demangler
	shown     map[string]string // names, printable
	notes     []string
}

// NewProcess opens the files of a configuration. The error is that of the first file
// that cannot be used, and begins with the file's path.
func NewProcess(c Config) (*Process, error) {
	p := &Process{config: c}
	for _, spec := range c.Files {
		if c.NoFiles {
			break
		}
		if err := p.addFile(spec); err != nil {
			p.Close()
			return nil, err
		}
	}
	p.SetBases(nil)
	return p, nil
}

// addFile adds an ELF file that the user names.
func (p *Process) addFile(spec FileSpec) error {
	f, err := Open(spec.Path, p.config.DebugDirs)
	if err != nil {
		return err
	}
	if err := p.accepts(f); err != nil {
		f.Close()
		return err
	}
	if p.config.Machine == elf.EM_NONE {
		p.config.Machine = f.Machine
	}
	if !p.pair(f, spec) {
		p.added = append(p.added, &object{FileSpec: spec, file: f})
	}
	if f.note != "" {
		p.note("%s: %s", f.Path, f.note)
	}
	return nil
}

// pair attaches a debug file to the program it belongs to, where both were added.
func (p *Process) pair(f *File, spec FileSpec) bool {
	for _, o := range p.added {
		switch {
		case o.file.noCode == f.noCode || !(debugCandidate{}).fits(o.file, f):
		case f.noCode && o.file.debug == nil && o.file.attach(f) == nil:
			return true
		case o.file.noCode && f.debug == nil && f.attach(o.file) == nil:
			f.note = ""
			if spec.Load == LoadAsLinked {
				spec.Load, spec.Addr = o.Load, o.Addr
			}
			o.FileSpec, o.file = spec, f
			return true
		}
	}
	return false
}

// accepts returns an error for a file that cannot be of the process.
func (p *Process) accepts(f *File) error {
	c := &p.config
	switch {
	case c.Word != 0 && f.Word != c.Word:
		return fmt.Errorf("%s: %s, but the log is of a %d-bit machine (%s)", f.Path, f.kind(), c.Word, c.WordBy)
	case c.Machine != elf.EM_NONE && f.Machine != c.Machine:
		return fmt.Errorf("%s: %s, but the log is of %s", f.Path, f.kind(), p.machine())
	}
	return nil
}

// machine names the program's machine, with the file that tells it if one does.
func (p *Process) machine() string {
	if len(p.added) > 0 {
		f := p.added[0].file
		return fmt.Sprintf("%s (%s)", f.kind(), f.Path)
	}
	return machineName(p.config.Machine)
}

// Files returns the files of the configuration, in order. A program and its debug file
// are one.
func (p *Process) Files() (list []*File) {
	for _, o := range p.added {
		list = append(list, o.file)
	}
	return list
}

// SetWord sets how many bits an address has in the program, 0 if that is not known. by
// says where the number is from, for messages. SetWord fails if a file of the
// configuration has addresses of another width. Files of modules with such addresses are
// refused when they are opened.
func (p *Process) SetWord(bits int, by string) error {
	if p.config.Word == bits {
		return nil
	}
	p.config.Word, p.config.WordBy = bits, by
	p.modules = nil
	p.change()
	for _, o := range p.added {
		if err := p.accepts(o.file); err != nil {
			return err
		}
	}
	return nil
}

// Map replaces the memory map by a snapshot, as [ReadMaps] returns it. Where mappings
// overlap, the later one counts.
func (p *Process) Map(list []Mapping) { p.maps.set(list) }

// Mapped reports whether anything is known of the memory map.
func (p *Process) Mapped() bool { return p.maps.known() }

// MapWord returns 64 if a mapping passes 32 bits, and 0 if the memory map does not tell
// how many bits an address has.
func (p *Process) MapWord() int {
	if p.maps.wide {
		return 64
	}
	return 0
}

// Reset forgets the memory map and the bases: the next record comes from a new process, or
// from the same device after a reboot. The files stay open.
func (p *Process) Reset() {
	p.maps.reset()
	p.markup = p.markup[:0]
	p.SetBases(nil)
}

// Unplaced returns the files that may have been loaded anywhere, whether or not a base
// has been set for them.
func (p *Process) Unplaced() (list []*File) {
	for _, o := range p.added {
		if _, known := o.bias(o.file); !known {
			list = append(list, o.file)
		}
	}
	return list
}

// SetBases sets where the files of [Process.Unplaced] are loaded, as [InferBases] found
// it. Bases that are not sound, and those of other files, have no effect. Bases are used
// only while there is no memory map.
func (p *Process) SetBases(found []Base) {
	var bases []Base
	unplaced := p.Unplaced()
	for _, b := range found {
		if b.Sound() && slices.Contains(unplaced, b.File) {
			bases = append(bases, b)
		}
	}
	for _, o := range p.added {
		if bias, known := o.bias(o.file); known {
			bases = append(bases, Base{File: o.file, Bias: bias, Exact: true})
		}
	}
	if !slices.Equal(bases, p.bases) {
		p.bases = bases
		p.change()
	}
}

// Generation returns a number that changes whenever the same address may resolve
// otherwise than before: with the memory map, a base, or the word. A memory map that a
// log repeats unchanged does not change it.
func (p *Process) Generation() int {
	if p.maps.settle() {
		p.change()
	}
	return p.generation
}

// change begins a generation.
func (p *Process) change() {
	p.generation++
	p.locations = nil
}

// Resolve appends an Addr for each address of a record to dst. It recovers the upper bits
// that the encoder lost where only one address is possible. It does not change s. blob is
// the blob that s was decoded from; without it, a memory map recovers no bits.
func (p *Process) Resolve(dst []Addr, s *codec.Stack, blob []byte) []Addr {
	p.Generation()
	from := len(dst)
	dst = slices.Grow(dst, len(s.PCs))
	for _, pc := range s.PCs {
		dst = append(dst, Addr{PC: pc})
	}
	addrs, ambiguous := dst[from:], uint32(0)
	switch {
	case s.Marks.Lossy == 0 || p.config.Lossless:
	case p.maps.known():
		p.recoverer.plausible = p.plausible
		ambiguous = p.recoverer.recover(addrs, s.Marks.Lossy, blob, &p.maps.space)
	default:
		ambiguous = p.recoverByBase(addrs, s.Marks.Lossy)
	}
	if !p.maps.known() && len(p.added) == 0 {
		return dst
	}
	for i := range addrs {
		switch a := &addrs[i]; {
		case a.State == Lost && ambiguous>>i&1 != 0:
			a.Location = p.because(reasonAmbiguous)
		case a.State != Lost && a.Location == nil:
			a.Location = p.locate(a.PC)
		}
	}
	return dst
}

// Locate returns the Addr of one address.
func (p *Process) Locate(pc uint64) Addr {
	p.Generation()
	return Addr{PC: pc, Location: p.locate(pc)}
}

// Close closes all files. Locations remain valid, except for the files of their modules.
func (p *Process) Close() {
	for _, o := range slices.Concat(p.added, p.opened) {
		o.file.Close()
	}
	p.added, p.opened, p.modules, p.bases, p.locations, p.frames = nil, nil, nil, nil, nil, nil
}

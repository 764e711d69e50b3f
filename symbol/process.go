package symbol

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// Config is the configuration of a [Process]. The zero value has no files.
type Config struct {
	Files     []FileSpec // ELF files of the program
	Sysroots  []string   // directories under which the paths of modules are searched, in this order
	DebugDirs []string   // directories of separate debug files
	NoFiles   bool       // open no file: addresses have a module and an offset but no frames
	Lossless  bool       // the encoder keeps every bit: ignore loss flags
	Check     bool       // take no names from Files that do not match the addresses

	// Machine is the machine of the program. If it is 0, the first of Files determines it.
	// Files for another machine are rejected.
	Machine elf.Machine
	Word    int    // bits of an address in the program, 0 if not known
	WordBy  string // the source of Word, for messages
}

// Process resolves the addresses of one process to functions and lines. It holds the ELF
// files and the memory map at the time of the next record. It opens a file of the memory
// map when an address first needs it.
//
// Names of functions, files and modules are safe to print: characters that could control a
// terminal or start a line are escaped.
//
// Only one goroutine at a time may use a Process.
type Process struct {
	config     Config
	maps       timeline
	choice     Choice
	bases      []Base // known load bases of the files of the configuration
	generation int
	recoverer  recoverer

	added   []*object          // files of the configuration
	opened  []*object          // files of modules
	modules map[Module]*object // by the module in the memory map
	outside int                // distinct addresses in none of added

	locations map[addrKey]*Location // of this generation
	cached    int                   // limit for cached addresses, at least minCached
	shared    map[Module]*Module    // modules of Locations
	unknown   map[string]*Location  // with only Missing set
	frames    map[frameKey]foundFrames
	kept      int // frames in frames
	scratch   []Frame
	demangler Demangler
	shown     map[string]string // names, printable
	notes     []string
}

// NewProcess opens the files of a configuration. It returns the error of the first unusable
// file; the message begins with the path of the file.
func NewProcess(c Config) (*Process, error) {
	switch {
	case c.Word != 0 && c.Word != 32 && c.Word != 64:
		return nil, fmt.Errorf("Config.Word is %d, expected 0, 32 or 64", c.Word)
	}
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
	p.findVersions()
	p.SetBases(nil)
	return p, nil
}

// addFile adds an ELF file that the user names.
func (p *Process) addFile(spec FileSpec) error {
	if spec.Load > LoadBias {
		return fmt.Errorf("%s: Load is %d, expected at most %d", spec.Path, spec.Load, LoadBias)
	}
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

// pair attaches an added debug file to its program, if that was added too.
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

// accepts returns an error if the file cannot belong to the process.
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

// machine returns the name of the program's machine, with the file that determined it, if
// any.
func (p *Process) machine() string {
	if len(p.added) > 0 {
		f := p.added[0].file
		return fmt.Sprintf("%s (%s)", f.kind(), f.Path)
	}
	return machineName(p.config.Machine)
}

// Files returns the files of the configuration, in order. A program and its debug file
// count as one.
func (p *Process) Files() (list []*File) {
	for _, o := range p.added {
		list = append(list, o.file)
	}
	return list
}

// SetWord sets the number of bits of an address in the program, 0 if it is not known. by is
// the source of the number, for messages. SetWord fails if a file of the configuration has
// another address size. Files of modules with another address size are rejected when they
// are opened.
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

// Map replaces the memory map. Where mappings overlap, the later mapping takes precedence.
func (p *Process) Map(list []Mapping) { p.maps.set(list) }

// Add adds a mapping to the memory map, for example of a library that the process loads
// later. Where mappings overlap, the new one takes precedence. Add returns an error if the
// process has 65,536 mappings.
func (p *Process) Add(m Mapping) error { return p.maps.add(m) }

// Unplaced returns the files of the boot that may have been loaded anywhere, including files whose base
// has been set.
func (p *Process) Unplaced() (list []*File) {
	for _, o := range p.added {
		if _, known := o.bias(o.file); !known && o.out == "" {
			list = append(list, o.file)
		}
	}
	return list
}

// SetBases sets the load bases of the [Process.Unplaced] files, as returned by
// [InferBases]. It ignores bases that are not sound and bases of other files. Bases are
// used only while there is no memory map.
func (p *Process) SetBases(found []Base) {
	var bases []Base
	unplaced := p.Unplaced()
	for _, b := range found {
		if b.Sound() && slices.Contains(unplaced, b.File) {
			bases = append(bases, b)
		}
	}
	for _, o := range p.added {
		if bias, known := o.bias(o.file); known && o.out == "" {
			bases = append(bases, Base{File: o.file, Bias: bias, Exact: true})
		}
	}
	if !slices.Equal(bases, p.bases) {
		p.bases = bases
		p.change()
	}
}

// Generation returns a number that changes whenever the same address may resolve
// differently: after a change of the memory map, a base, or the word size. A log that
// repeats its memory map unchanged does not change the number.
func (p *Process) Generation() int {
	if p.maps.settle() {
		p.change()
	}
	return p.generation
}

// change starts a new generation.
func (p *Process) change() {
	p.generation++
	p.locations, p.unknown = nil, nil
}

// Resolve appends an Addr to dst for each address of a record. It recovers upper bits that
// the encoder lost if exactly one address is possible. s is not modified. blob is the blob
// that s was decoded from; without blob, a memory map recovers no bits.
func (p *Process) Resolve(dst []Addr, s *codec.Stack, blob []byte) []Addr {
	if s == nil {
		return dst
	}
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

// Locate returns the Addr of a single address.
func (p *Process) Locate(pc uint64) Addr {
	p.Generation()
	return Addr{PC: pc, Location: p.locate(pc)}
}

// LocateMapping returns the Addr of an address in a mapping, even if the mapping is no longer
// in the memory map.
func (p *Process) LocateMapping(m *Mapping, pc uint64) Addr {
	return Addr{PC: pc, Location: p.locateMapped(m, pc)}
}

// LocateIn returns the Addr of an address of a file of the configuration, as in the file's
// program headers. If the load base of the file is known, the PC of the Addr is the address
// in memory. For any other file, the Addr has no Location.
func (p *Process) LocateIn(f *File, own uint64) Addr {
	p.Generation()
	if o := p.objectOf(f); o == nil {
		return Addr{PC: own}
	} else if o.out != "" {
		return Addr{PC: own, Location: p.because(o.out)}
	}
	for i := range p.bases {
		if b := &p.bases[i]; b.File == f && b.Exact {
			return Addr{PC: own + b.Bias, Location: p.locate(own + b.Bias)}
		}
	}
	return Addr{PC: own, Location: p.locateOwn(f, own)}
}

// Close closes all files. Locations stay valid, except for the File of their modules.
func (p *Process) Close() {
	for _, o := range slices.Concat(p.added, p.opened) {
		o.file.Close()
	}
	p.added, p.opened, p.modules, p.bases, p.locations, p.frames = nil, nil, nil, nil, nil, nil
}

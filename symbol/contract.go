package symbol

import (
	"debug/elf"
	"errors"

	"github.com/lwsbt/lwsbt/codec"
)

// Config is what a [Process] is made of. The zero value knows no files.
type Config struct {
	Files     []FileSpec // ELF files of the program
	Sysroots  []string   // below which the paths of modules are looked for, first to last
	DebugDirs []string   // where separate debug files are looked for
	Adjust    Adjust
	NoFiles   bool // open no file: addresses get a module and an offset, and no frames
	Lossless  bool // the encoder keeps every bit, so that loss flags mean nothing

	// Machine is that of the program, 0 if it is not known; the first of Files tells it.
	Machine elf.Machine
	Word    int    // bits of an address in the program, 0 if not known
	WordBy  string // where Word is from, for messages
}

// Process finds functions and lines for the addresses of one process: it knows what is
// loaded at the time of the next record, and the files. Between two boots it is Reset.
//
// A Process is for one goroutine at a time.
type Process struct {
	old    oldProcess
	markup MarkupWriter
	bad    []error
	none   bool
	gen    int
	space  *Space
}

// NewProcess opens the files of a configuration. The error is that of the first file
// that cannot be used; it begins with the file's path.
func NewProcess(c Config) (*Process, error) {
	p := &Process{none: c.NoFiles}
	p.markup = MarkupWriter{Timeline: &p.old.Maps, Bad: func(err error) { p.bad = append(p.bad, err) }}
	f := &p.old.Files
	f.DebugDirs, f.Sysroots, f.Adjust, f.Machine = c.DebugDirs, c.Sysroots, c.Adjust, c.Machine
	p.old.Lossless = c.Lossless
	if err := p.SetWord(c.Word, c.WordBy); err != nil {
		return nil, err
	}
	for _, spec := range c.Files {
		if err := f.AddFile(spec); err != nil {
			p.Close()
			return nil, err
		}
	}
	f.SetBases(nil)
	return p, nil
}

// Files returns the files of the configuration, in order; a program and its debug file
// are one.
func (p *Process) Files() []*File { return p.old.Files.Files() }

// Map replaces the memory map by a snapshot, as [ReadMaps] returns it. Where mappings
// overlap, the later one counts.
func (p *Process) Map(list []Mapping) { p.old.Maps.Set(list) }

// Mapped reports whether anything is known of the memory map.
func (p *Process) Mapped() bool { return p.old.Maps.Space() != nil }

// MapWord returns 64 if a mapping passes 32 bits, and 0 if the map does not tell how many
// bits an address has.
func (p *Process) MapWord() int { return p.old.Maps.Word() }

// Markup applies what a part of a log says in LLVM's symbolizer markup: {{{reset}}},
// {{{module:ID:NAME:elf:BUILDID}}} and {{{mmap:ADDR:SIZE:load:MODULE:FLAGS:RELATIVE}}}.
// Other text is skipped. An element may come in several calls, but ends at a line end.
// The error joins those of all invalid elements; invalid elements change nothing.
func (p *Process) Markup(text []byte) error {
	p.bad = p.bad[:0]
	p.markup.Write(text)
	return errors.Join(p.bad...)
}

// Reset forgets the memory map and the bases: the next record is of a new process, or
// of the same device started again. The files stay.
func (p *Process) Reset() {
	p.old.Reset()
	p.markup.Reset()
	p.gen++
}

// SetWord sets how many bits an address has in the program, 0 if that is not known. by
// says where the number is from, for messages. SetWord fails if a file of the
// configuration has addresses of another width. Files of modules with such addresses are
// refused when they are opened.
func (p *Process) SetWord(bits int, by string) error {
	if bits == p.old.Files.Word() {
		return nil
	}
	p.gen++
	return p.old.Files.SetWord(bits, by)
}

// Close closes all files. Locations remain valid, but for their Module.File.
func (p *Process) Close() { p.old.Close() }

// Unplaced returns the files that may have been loaded anywhere, whether or not a base
// has been set for them.
func (p *Process) Unplaced() []*File { return p.old.Files.FilesWithoutBase() }

// SetBases sets where the files of Unplaced are loaded, as [InferBases] found it. Bases
// that are not sound, and those of other files, have no effect.
func (p *Process) SetBases(found []Base) {
	var sound []Base
	for _, b := range found {
		if b.Sound() {
			sound = append(sound, b)
		}
	}
	p.old.Files.SetBases(sound)
	p.gen++
}

// Generation returns a number that changes whenever the same address may resolve
// otherwise than before: at a change of the memory map, of a base, or of the word.
func (p *Process) Generation() int {
	if s := p.old.Maps.Space(); s != p.space {
		p.space = s
		p.gen++
	}
	return p.gen
}

// Resolve appends what is known of each address of a record to dst. It recovers the bits
// that the encoder lost as far as they are certain; s stays as it is. blob is what s was
// decoded from, nil if there is none.
func (p *Process) Resolve(dst []Addr, s *codec.Stack, blob []byte) []Addr {
	c := *s
	c.PCs = append([]uint64(nil), s.PCs...)
	list, _ := p.old.Resolve(nil, &c, blob)
	for _, f := range list {
		dst = append(dst, newAddr(f))
	}
	return dst
}

// Locate returns what is known of one address of the process.
func (p *Process) Locate(pc uint64) Addr {
	return newAddr(oldFrameAddr{p.old.Files.Locate(p.old.Maps.Space(), pc), Exact})
}

// Notes returns why symbols are missing, and which files do not match the log, each
// thing once.
func (p *Process) Notes() []string { return p.old.Files.Notes() }

func newAddr(f oldFrameAddr) Addr {
	a := Addr{PC: f.PC, State: f.State}
	switch {
	case f.Reason == reasonAmbiguous:
		a.Location = &locationAmbiguous
	case f.Reason == reasonNothing, f.Reason == reasonLost:
	default:
		l := &Location{Own: f.ObjAddr, Call: f.LookupPC, Frames: f.Frames, Missing: f.Reason}
		if f.Module != "" {
			m := &Module{Name: f.Module, BuildID: f.BuildID, File: f.File}
			switch {
			case f.Mapping != nil:
				m.Start, m.End, m.Offset = f.Mapping.Start, f.Mapping.End, f.Mapping.Offset
			case f.File != nil:
				low, high := f.File.Span()
				m.Start, m.End = low+f.PC-f.ObjAddr, high+f.PC-f.ObjAddr
			}
			l.Module = m
		}
		a.Location = l
	}
	return a
}

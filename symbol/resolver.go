package symbol

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Resolver finds functions and lines for the addresses of a process. It opens
// files when an address first needs them.
//
// Names of functions, files and modules that it returns are safe to print: what
// could control a terminal or begin a line is escaped.
type Resolver struct {
	DebugDirs []string // where separate debug files are looked for
	Sysroots  []string // where the paths of modules are looked for, first to last
	Adjust    Adjust

	// Machine is that of the program that wrote the log, 0 if it is not known. Files
	// for another are refused. The first file added sets it.
	Machine elf.Machine
	word    int    // bits of an address of that program, likewise
	wordBy  string // what says so

	added   []*object
	outside int // distinct addresses in none of them
	modules map[Module]*object
	opened  []*object // for modules
	bases   []Base

	locations map[locationKey]*oldLocation
	frames    map[frameKey]foundFrames
	kept      int // frames in frames
	scratch   []Frame
	demangler Demangler
	shown     map[string]string // names, printable
	notes     []string
}

// object is a file in use, or why there is none.
type object struct {
	FileSpec
	file *File
	err  error

	used            bool // an address of it was looked up
	told            bool // its splitNote
	seen, afterCall int  // distinct return addresses in its code
}

type locationKey struct {
	space int
	pc    uint64
	base  int // 1 + index of the base that the address belongs to; 0: an address in memory
}

// frameKey is an address of a file.
type frameKey struct {
	object *object
	addr   uint64
}

type foundFrames struct {
	lookup uint64 // the file's address that was looked up
	frames []Frame
	reason string
}

// maxCached is how many addresses are remembered, each some 300 bytes; and maxFrames
// how many frames of them.
const (
	maxCached = 1 << 17
	maxFrames = 1 << 20
)

// AddFile adds an ELF file that the user names.
func (r *Resolver) AddFile(spec FileSpec) error {
	f, err := Open(spec.Path, r.DebugDirs)
	if err != nil {
		return err
	}
	if err := r.accepts(f); err != nil {
		f.Close()
		return err
	}
	if r.Machine == elf.EM_NONE {
		r.Machine = f.Machine
	}
	if !r.pair(f, spec) {
		r.added = append(r.added, &object{FileSpec: spec, file: f})
	}
	if f.note != "" {
		r.note("%s: %s", f.Path, f.note)
	}
	r.forget()
	return nil
}

// pair attaches a debug file to the program it belongs to, where both were added.
func (r *Resolver) pair(f *File, spec FileSpec) bool {
	for _, o := range r.added {
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

// SetWord sets how many bits an address has in the program that wrote the log, 0 if
// that is not known. by says where the number is from, for messages. SetWord fails if a
// file that the user named has addresses of another width. Files of modules with such
// addresses are refused when they are opened.
func (r *Resolver) SetWord(word int, by string) error {
	if r.word, r.wordBy = word, by; word == 0 {
		return nil
	}
	r.modules = nil
	r.forget()
	for _, o := range r.added {
		if err := r.accepts(o.file); err != nil {
			return err
		}
	}
	return nil
}

// Word returns what SetWord has set.
func (r *Resolver) Word() int { return r.word }

// accepts returns an error for a file that cannot be of the process.
func (r *Resolver) accepts(f *File) error {
	switch {
	case r.word != 0 && f.Word != r.word:
		return fmt.Errorf("%s: %s, but the log is of a %d-bit machine (%s)", f.Path, f.kind(), r.word, r.wordBy)
	case r.Machine != elf.EM_NONE && f.Machine != r.Machine:
		return fmt.Errorf("%s: %s, but the log is of %s", f.Path, f.kind(), r.machine())
	}
	return nil
}

// machine names what wrote the log, by the file that says so if one does.
func (r *Resolver) machine() string {
	if len(r.added) > 0 {
		f := r.added[0].file
		return fmt.Sprintf("%s (%s)", f.kind(), f.Path)
	}
	return machineName(r.Machine)
}

// Files returns what was added, in order.
func (r *Resolver) Files() (list []*File) {
	for _, o := range r.added {
		list = append(list, o.file)
	}
	return list
}

// FilesWithoutBase returns the files added that may have been loaded anywhere,
// whether or not a base was inferred for them since.
func (r *Resolver) FilesWithoutBase() (list []*File) {
	for _, o := range r.added {
		if _, known := o.bias(o.file); !known {
			list = append(list, o.file)
		}
	}
	return list
}

// SetBases sets where files without a base are loaded, as [InferBases] found it.
// It has no effect on other files.
func (r *Resolver) SetBases(found []Base) {
	r.bases = slices.Clone(found)
	for _, o := range r.added {
		if bias, known := o.bias(o.file); known {
			r.bases = append(r.bases, Base{File: o.file, Bias: bias, Exact: true})
		}
	}
	r.forget()
}

// Bases returns where files are loaded, those that were inferred first.
func (r *Resolver) Bases() []Base { return r.bases }

// forget drops what was remembered of addresses.
func (r *Resolver) forget() { r.locations = nil }

// Locate resolves an address in a space; space is nil where there is no map. The
// oldLocation must not be changed.
func (r *Resolver) Locate(space *Space, pc uint64) *oldLocation {
	key := locationKey{pc: pc}
	if space != nil {
		key.space = space.ID
	}
	if l := r.locations[key]; l != nil {
		return l
	}
	l := &oldLocation{PC: pc, LookupPC: pc}
	if space == nil {
		r.locateAdded(l)
	} else {
		r.locateMapped(l, space)
	}
	l.Module = printable.Text(l.Module)
	r.remember(key, l)
	return l
}

// locateInFile resolves an address of the file itself whose base, with this index
// in Bases, is not known exactly.
func (r *Resolver) locateInFile(base int, addr uint64) *oldLocation {
	key := locationKey{pc: addr, base: base + 1}
	if l := r.locations[key]; l != nil {
		return l
	}
	l := &oldLocation{PC: addr, LookupPC: addr, ObjAddr: addr}
	if o := r.objectOf(r.bases[base].File); o != nil {
		r.lookup(l, o)
	}
	r.remember(key, l)
	return l
}

func (r *Resolver) remember(key locationKey, l *oldLocation) {
	if r.locations == nil || len(r.locations) >= maxCached {
		r.locations = map[locationKey]*oldLocation{}
	}
	r.locations[key] = l
}

func (r *Resolver) objectOf(f *File) *object {
	for _, o := range r.added {
		if o.file == f {
			return o
		}
	}
	return nil
}

// locateAdded finds the file that an address belongs to when there is no map.
func (r *Resolver) locateAdded(l *oldLocation) {
	if len(r.added) == 0 {
		l.Reason = reasonNothing
		return
	}
	for i := range r.bases {
		b := &r.bases[i]
		if addr, ok := b.ObjAddr(ReturnAddr{PC: l.PC}); ok && b.Exact {
			l.ObjAddr = addr
			r.lookup(l, r.objectOf(b.File))
			return
		}
	}
	l.Reason = reasonNoFile
	for _, o := range r.added {
		bias, known := o.bias(o.file)
		switch addr, fits := o.file.objAddr(l.PC, bias); {
		case !fits:
			l.Reason = fmt.Sprintf("over 32 bits, but %s is %s", o.file.Path, o.file.kind())
			r.note("%s: %s, but addresses of the log have over 32 bits", o.file.Path, o.file.kind())
		case o.file.Loaded(addr) || o.file.Loaded(addr-1):
			l.ObjAddr = addr
			r.lookup(l, o)
			return
		case !known && l.Reason == reasonNoFile && !slices.ContainsFunc(r.bases, func(b Base) bool { return b.File == o.file }):
			l.Reason = fmt.Sprintf("the load base of %s is not known", o.file.Path)
		}
	}
	if l.Reason == reasonNoFile {
		r.outside++
	}
}

// locateMapped finds the module of an address in a map.
func (r *Resolver) locateMapped(l *oldLocation, space *Space) {
	m := space.Find(l.PC)
	switch {
	case m == nil:
		l.Reason = reasonUnmapped
		return
	case m.Module == nil:
		l.Reason = reasonAnonymous
		return
	}
	l.Mapping, l.Module, l.BuildID = m, m.Module.Name, m.Module.BuildID
	l.ObjAddr, l.LookupPC = l.PC-m.Start+m.Offset, l.PC-1
	o := r.module(m.Module)
	if o.err != nil {
		l.Reason = o.err.Error()
		return
	}
	if l.BuildID == "" {
		l.BuildID = o.file.BuildID
	}
	if !m.Relative {
		first, ok := o.file.AddrOfOffset(m.Offset)
		if !ok {
			l.File = o.file
			l.Reason = fmt.Sprintf("%s: no segment of it holds file offset %#x, where it was mapped: the file does not match the map",
				o.file.Path, m.Offset)
			r.note("%s", l.Reason)
			return
		}
		l.ObjAddr = l.PC - m.Start + first
	}
	r.lookup(l, o)
}

// lookup finds the frames of l.ObjAddr in a file.
func (r *Resolver) lookup(l *oldLocation, o *object) {
	f := o.file
	o.used = true
	l.File = f
	if l.Module == "" {
		l.Module, l.BuildID = o.Path, f.BuildID
	}
	key := frameKey{o, l.ObjAddr}
	found, ok := r.frames[key]
	if !ok {
		found = r.find(o, l.ObjAddr)
		if r.kept += len(found.frames); r.frames == nil || len(r.frames) >= maxCached || r.kept > maxFrames {
			r.frames, r.kept = map[frameKey]foundFrames{}, len(found.frames)
			r.forget() // its entries share the frames
		}
		r.frames[key] = found
	}
	l.LookupPC = l.PC - (l.ObjAddr - found.lookup)
	l.Frames, l.Reason = found.frames, found.reason
}

// find looks an address of a file up.
func (r *Resolver) find(o *object, addr uint64) (found foundFrames) {
	f := o.file
	follows := f.FollowsCall(addr)
	if f.Text(addr) && f.CanTellCalls() {
		o.seen++
		if follows {
			o.afterCall++
		}
	}
	found.lookup = addr
	if r.Adjust == AdjustAll || r.Adjust == AdjustAuto && follows {
		found.lookup = f.CallAddr(addr)
	}
	var err error
	r.scratch, err = f.Lookup(r.scratch[:0], found.lookup)
	if err != nil {
		r.note("%v", err)
	}
	found.frames = slices.Clone(r.scratch)
	lines := false
	for i := range found.frames {
		fr := &found.frames[i]
		lines = lines || fr.Line > 0
		fr.Name = r.printable(r.demangler.Demangle(fr.Func))
		fr.Func, fr.File = r.printable(fr.Func), r.printable(fr.File)
	}
	if !o.told {
		o.told = true
		if why := f.splitNote(); why != "" {
			r.note("%s: %s", f.Path, why)
		}
	}
	if why := r.demangler.Why(); why != "" {
		r.note("%s", why)
	}
	switch why := f.Why(); {
	case len(found.frames) > 0 && lines:
		return found
	case err != nil:
		found.reason = err.Error()
	case why != "":
		found.reason = why
	case len(found.frames) > 0:
		found.reason = reasonNoLines
	default:
		found.reason = reasonNoSymbol
	}
	if why := f.Why(); why != "" {
		if !slices.Contains(r.added, o) { // not the user's to provide: in short
			why, _, _ = strings.Cut(why, " (looked for ")
		}
		r.note("%s: %s", f.Path, why)
	}
	return found
}

// printable returns a name made safe to print. It looks at each name once: very many
// addresses can have one very long name.
func (r *Resolver) printable(name string) string {
	p, ok := r.shown[name]
	if !ok {
		p = printable.Text(name)
		if r.shown == nil {
			r.shown = map[string]string{}
		}
		r.shown[name] = p
	}
	return p
}

// plausible reports whether an address can be a return address, as far as the
// file it is in is available: it is for [Recoverer].
func (r *Resolver) plausible(space *Space, addr uint64) bool {
	m := space.Find(addr)
	if m == nil || m.Module == nil {
		return false
	}
	o := r.module(m.Module)
	if o.err != nil {
		return true
	}
	own := addr - m.Start + m.Offset
	if !m.Relative {
		first, ok := o.file.AddrOfOffset(m.Offset)
		if !ok {
			return true
		}
		own = addr - m.Start + first
	}
	return o.file.FollowsCall(own)
}

// Close closes all files.
func (r *Resolver) Close() {
	for _, o := range slices.Concat(r.added, r.opened) {
		o.file.Close()
	}
	r.added, r.opened, r.modules, r.locations, r.frames = nil, nil, nil, nil, nil
}

package symbol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// object is an open file, or the reason why it could not be opened.
type object struct {
	FileSpec
	file *File
	err  error

	used            bool   // an address of it was looked up
	out             string // why this boot does not use it, "" if it does
	versions        int    // see Module.Versions
	excluded        bool   // a boot did not use it
	same            bool   // the log has its build-id
	wrong           bool   // it does not match, and has no names therefore
	seen, afterCall int    // distinct return addresses in its code
}

// addrKey is an address in memory, or one of a file whose base is not known exactly.
type addrKey struct {
	pc   uint64
	file *File // nil: an address in memory
}

// frameKey is an address of a file.
type frameKey struct {
	object *object
	addr   uint64
}

type foundFrames struct {
	lookup  uint64 // the file's address that was looked up
	frames  []Frame
	missing string
}

// minCached is the default number of cached addresses, of about 300 bytes each.
// framesPerAddr limits the cached frames per address, on average.
const (
	minCached     = 1 << 17
	framesPerAddr = 8
)

// locate returns the Location of an address in memory, nil if there are neither files nor a
// memory map.
func (p *Process) locate(pc uint64) *Location {
	key := addrKey{pc: pc}
	l := p.locations[key]
	switch mapped := p.maps.known(); {
	case l != nil || !mapped && len(p.added) == 0:
		return l
	case mapped:
		l = p.locateMapped(p.maps.find(pc), pc)
	default:
		l = p.locateAdded(pc)
	}
	p.remember(key, l)
	return l
}

// locateOwn returns the Location of an address of a file whose base is not known exactly.
func (p *Process) locateOwn(f *File, own uint64) *Location {
	key := addrKey{own, f}
	l := p.locations[key]
	if l == nil {
		l = p.lookupWhole(p.objectOf(f), own, own)
		p.remember(key, l)
	}
	return l
}

func (p *Process) remember(key addrKey, l *Location) {
	if p.locations == nil || len(p.locations) >= max(p.cached, minCached) {
		p.locations = map[addrKey]*Location{}
	}
	p.locations[key] = l
}

// Remember sets the number of addresses that the Process caches: n, or 131,072 if n is
// less. A cached address takes about 300 bytes. Callers that keep the Locations anyway can
// set a large n.
func (p *Process) Remember(n int) { p.cached = n }

// objectOf returns the object of a file of the configuration, nil for other files.
func (p *Process) objectOf(f *File) *object {
	for _, o := range p.added {
		if o.file == f {
			return o
		}
	}
	return nil
}

// because returns a Location without frames that gives a reason.
func (p *Process) because(reason string) *Location {
	l := p.unknown[reason]
	if l == nil {
		if p.unknown == nil {
			p.unknown = map[string]*Location{}
		}
		l = &Location{Missing: reason, Build: p.choice.boot.Build}
		p.unknown[reason] = l
	}
	return l
}

// locateAdded finds the file that an address belongs to when there is no map.
func (p *Process) locateAdded(pc uint64) *Location {
	for i := range p.bases {
		b := &p.bases[i]
		if own, ok := b.ownAddr(ReturnAddr{PC: pc}); ok && b.Exact {
			return p.lookupWhole(p.objectOf(b.File), pc, own)
		}
	}
	reason, excluded := reasonNoFile, ""
	for _, o := range p.added {
		bias, known := o.bias(o.file)
		if o.out != "" {
			if own, fits := o.file.ownAddr(pc, bias); fits && o.file.loaded(own) || !known {
				excluded = o.out
			}
			continue
		}
		switch own, fits := o.file.ownAddr(pc, bias); {
		case !fits:
			reason = fmt.Sprintf("over 32 bits, but %s is %s", o.file.Path, o.file.kind())
			p.note("%s: %s, but addresses of the log have over 32 bits", o.file.Path, o.file.kind())
		case o.file.loaded(own) || o.file.loaded(own-1):
			return p.lookupWhole(o, pc, own)
		case !known && reason == reasonNoFile && !slices.ContainsFunc(p.bases, func(b Base) bool { return b.File == o.file }):
			reason = fmt.Sprintf("the load base of %s is not known", o.file.Path)
		}
	}
	switch {
	case excluded != "":
		reason = excluded
	case reason == reasonNoFile:
		p.outside++
	}
	return p.because(reason)
}

// locateMapped returns the Location of an address in a mapping, or in none if m is nil.
func (p *Process) locateMapped(m *Mapping, pc uint64) *Location {
	switch {
	case m == nil:
		return p.because(reasonUnmapped)
	case m.Module == nil:
		return p.because(reasonAnonymous)
	}
	o := p.module(m.Module)
	own, err := o.ownAddr(m, pc)
	if err == nil {
		return p.lookup(o, p.moduleOf(o, m), pc, own)
	}
	if o.err == nil {
		p.note("%v", err)
	}
	return &Location{Module: p.moduleOf(o, m), Own: own, Call: pc - 1, Missing: err.Error()}
}

// ownAddr returns the file's own address for one in memory. If that is not known, it
// returns an error and the offset in the file.
func (o *object) ownAddr(m *Mapping, pc uint64) (uint64, error) {
	own := pc - m.Start + m.Offset
	if o.err != nil || m.Relative {
		return own, o.err
	}
	first, ok := o.file.addrOfOffset(m.Offset)
	if !ok {
		return own, fmt.Errorf("%s: no segment of it holds file offset %#x, where it was mapped: the file does not match the map",
			o.file.Path, m.Offset)
	}
	return pc - m.Start + first, nil
}

// moduleOf returns the module of a mapping.
func (p *Process) moduleOf(o *object, m *Mapping) *Module {
	mod := Module{Name: printable.Text(m.Module.Name), BuildID: m.Module.BuildID, File: o.file, Start: m.Start, End: m.End,
		Offset: m.Offset, Logged: m.Module.Logged, Inode: m.Module.Inode, Versions: o.versions}
	if mod.BuildID == "" && o.file != nil {
		mod.BuildID = o.file.BuildID
	}
	return p.share(mod)
}

// lookupWhole is lookup without a memory map: the module is the whole file.
func (p *Process) lookupWhole(o *object, pc, own uint64) *Location {
	low, high := o.file.extent()
	bias := pc - own
	return p.lookup(o, p.share(Module{Name: printable.Text(o.Path), BuildID: o.file.BuildID, File: o.file,
		Start: low + bias, End: high + bias, Versions: o.versions}), pc, own)
}

// share returns the one Module that has these values.
func (p *Process) share(m Module) *Module {
	s := p.shared[m]
	if s == nil {
		if p.shared == nil || len(p.shared) >= maxModules {
			p.shared = map[Module]*Module{}
		}
		s = &m
		p.shared[m] = s
	}
	return s
}

// lookup returns the Location of pc in module m, whose file is o. own is the file's own
// address of pc.
func (p *Process) lookup(o *object, m *Module, pc, own uint64) *Location {
	o.used = true
	key := frameKey{o, own}
	found, ok := p.frames[key]
	if !ok {
		found = p.find(o, own)
		most := max(p.cached, minCached)
		if p.kept += len(found.frames); p.frames == nil || len(p.frames) >= most || p.kept > framesPerAddr*most {
			p.frames, p.kept = map[frameKey]foundFrames{}, len(found.frames)
			p.locations = nil // its Locations share the frames
		}
		p.frames[key] = found
	}
	if wrong := p.config.Check && p.maps.known() && p.isAdded(o) && o.mismatch() != ""; wrong != o.wrong {
		o.wrong = wrong
		p.change() // what was located has other names
	}
	if o.wrong {
		found = foundFrames{lookup: found.lookup, missing: "ELF does not match the log"}
	}
	return &Location{Module: m, Own: own, Call: pc - (own - found.lookup), Frames: found.frames, Missing: found.missing}
}

// find looks up an address of a file, without the cache.
func (p *Process) find(o *object, addr uint64) (found foundFrames) {
	f := o.file
	follows := f.FollowsCall(addr)
	if p.maps.known() && f.Executable(addr) && f.CanTellCalls() {
		o.seen++
		if follows {
			o.afterCall++
		}
	}
	found.lookup = addr
	if follows { // otherwise, as in the caller of a signal handler, the address itself
		found.lookup = f.arch.CallAddr(addr)
	}
	var err error
	p.scratch, err = f.Lookup(p.scratch[:0], found.lookup)
	if err != nil {
		p.note("%v", err)
	}
	found.frames = slices.Clone(p.scratch)
	lines := false
	for i := range found.frames {
		fr := &found.frames[i]
		lines = lines || fr.Line > 0
		fr.Name = p.printable(p.demangler.Demangle(fr.Func))
		fr.Func, fr.File = p.printable(fr.Func), p.printable(fr.File)
	}
	if why := f.SplitNote(); why != "" {
		p.note("%s: %s", f.Path, why)
	}
	if why := p.demangler.Why(); why != "" {
		p.note("%s", why)
	}
	if len(found.frames) == 0 || !lines {
		found.missing = p.whyMissing(o, len(found.frames) > 0, err)
	}
	return found
}

// whyMissing returns why an address has no frames, or no frame with a line.
func (p *Process) whyMissing(o *object, named bool, err error) string {
	why := o.file.Why()
	if why != "" {
		short := why
		if !slices.Contains(p.added, o) { // not named by the user
			short, _, _ = strings.Cut(why, " (looked for ")
		}
		p.note("%s: %s", o.file.Path, short)
	}
	switch {
	case err != nil:
		return err.Error()
	case why != "":
		return why
	case named:
		return reasonNoLines
	}
	return reasonNoSymbol
}

// printable returns a name made safe to print. It caches the result, because many addresses
// can have one very long name.
func (p *Process) printable(name string) string {
	s, ok := p.shown[name]
	if !ok {
		s = printable.Text(name)
		if p.shown == nil {
			p.shown = map[string]string{}
		}
		p.shown[name] = s
	}
	return s
}

// plausible reports whether an address can be a return address. It returns true if the file
// that holds the address is not available.
func (p *Process) plausible(addr uint64) bool {
	m := p.maps.find(addr)
	if m == nil || m.Module == nil {
		return false
	}
	o := p.module(m.Module)
	own, err := o.ownAddr(m, addr)
	return err != nil || o.file.FollowsCall(own)
}

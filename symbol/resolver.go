package symbol

import (
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Resolver turns addresses of a process into places in source. It opens files
// when an address first needs them and resolves each address once.
type Resolver struct {
	DebugDirs []string
	Sysroots  []string // where the paths of modules are looked for, first to last
	Adjust    Adjust

	given   []*loaded
	modules map[moduleKey]*loaded
	spots   map[spotKey]*Spot
	frames  []Frame
	bases   []Base
	notes   []string
	names   map[string]string // demangled
}

type moduleKey struct{ name, id string }

// loaded is a file in use, or why there is none.
type loaded struct {
	Given
	file  *File
	err   error
	stats struct{ seen, afterCall int } // distinct return addresses in its code
}

type spotKey struct {
	space int
	pc    uint64
	base  int // 1 + index of the base that the address belongs to; 0: as it is
}

// Spot is what is known of an address.
type Spot struct {
	PC uint64
	// Module is the file the address is in, as the process or the user calls it,
	// "" if that is not known, and Own the module's own address (or the offset in
	// its file, if the file is not at hand).
	Module  string
	Own     uint64
	BuildID string
	File    *File
	// CallAt is the address in memory that was looked up.
	CallAt uint64
	// Mapping is the mapping it is in, nil without a map.
	Mapping *Mapping
	// Frames is what was found, innermost first; empty if nothing was.
	Frames []Frame
}

// Give adds an ELF file by name.
func (r *Resolver) Give(g Given) error {
	f, err := Open(g.Path, r.DebugDirs)
	if err != nil {
		return err
	}
	r.given = append(r.given, &loaded{Given: g, file: f})
	return nil
}

// Files lists what was given, in order.
func (r *Resolver) Files() (list []*File) {
	for _, l := range r.given {
		list = append(list, l.file)
	}
	return list
}

// Floating lists the given files that may have been loaded anywhere.
func (r *Resolver) Floating() (list []*File) {
	for _, l := range r.given {
		if l.file.PIE && !l.Based {
			list = append(list, l.file)
		}
	}
	return list
}

// SetBases says where floating files are loaded, as FindBase found it. Where the
// other given files are is known without.
func (r *Resolver) SetBases(found []Base) {
	r.bases = slices.Clone(found)
	for _, l := range r.given {
		if l.Based || !l.file.PIE {
			r.bases = append(r.bases, Base{File: l.file, Low: l.Base & lowMask, Full: l.Base, Whole: true})
		}
	}
}

// Bases is where files are loaded, those that were found first.
func (r *Resolver) Bases() []Base { return r.bases }

// At resolves an address in a space; space is nil where there is no map. The
// result is the same every time and must not be changed.
func (r *Resolver) At(space *Space, pc uint64) *Spot {
	key := spotKey{pc: pc}
	if space != nil {
		key.space = space.ID
	}
	if s := r.spots[key]; s != nil {
		return s
	}
	s := r.locate(space, pc)
	r.keep(key, s)
	return s
}

// AtBase resolves the own address of a file whose base was found: index base in
// Bases.
func (r *Resolver) AtBase(base int, own uint64) *Spot {
	key := spotKey{pc: own, base: base + 1}
	if s := r.spots[key]; s != nil {
		return s
	}
	b := &r.bases[base]
	s := &Spot{PC: own, Module: b.File.Path, Own: own, File: b.File, BuildID: b.File.BuildID}
	for _, l := range r.given {
		if l.file == b.File {
			r.look(s, l)
		}
	}
	r.keep(key, s)
	return s
}

func (r *Resolver) keep(key spotKey, s *Spot) {
	if r.spots == nil {
		r.spots = map[spotKey]*Spot{}
	}
	r.spots[key] = s
}

// locate finds the module of an address, and in it the frames.
func (r *Resolver) locate(space *Space, pc uint64) *Spot {
	s := &Spot{PC: pc, CallAt: pc}
	if space == nil {
		if l, own, ok := r.givenAt(pc); ok {
			s.Module, s.Own, s.File, s.BuildID = l.Path, own, l.file, l.file.BuildID
			r.look(s, l)
		}
		return s
	}
	m := space.Find(pc)
	if m == nil || m.Module == nil {
		return s
	}
	s.Mapping, s.Module, s.BuildID = m, m.Module.Name, m.Module.BuildID
	s.Own, s.CallAt = pc-m.Start+m.Offset, pc-1
	l := r.module(m.Module)
	if l.err != nil {
		return s
	}
	s.File = l.file
	if s.BuildID == "" {
		s.BuildID = l.file.BuildID
	}
	if !m.Own {
		own, ok := l.file.AddrOfOffset(m.Offset)
		if !ok {
			r.note("%s: no segment of it holds file offset %#x, where it was mapped: another build?",
				l.Path, m.Offset)
			return s
		}
		s.Own = pc - m.Start + own
	}
	r.look(s, l)
	return s
}

// givenAt finds the given file that an address belongs to when there is no map.
func (r *Resolver) givenAt(pc uint64) (*loaded, uint64, bool) {
	for i := range r.bases {
		b := &r.bases[i]
		if own, ok := b.Own(Seen{PC: pc}); ok && b.Whole {
			for _, l := range r.given {
				if l.file == b.File {
					return l, own, true
				}
			}
		}
	}
	for _, l := range r.given {
		own := pc - l.Base
		if l.file.Word == 32 {
			own = uint64(uint32(own))
		}
		if own = l.file.windowed(own); l.file.Loaded(own) || l.file.Loaded(own-1) {
			return l, own, true
		}
	}
	return nil, 0, false
}

// windowed gives an Xtensa return address its top bits back: the processor keeps
// the size of the caller's register window there.
func (f *File) windowed(addr uint64) uint64 {
	if f.Machine != elf.EM_XTENSA || f.Loaded(addr) {
		return addr
	}
	for top := range uint64(4) {
		if a := addr&0x3fffffff | top<<30; f.Text(a) {
			return a
		}
	}
	return addr
}

// look finds the frames of an own address.
func (r *Resolver) look(s *Spot, l *loaded) {
	f := l.file
	at := f.CallAt(s.Own)
	follows := f.FollowsCall(s.Own)
	if f.Text(s.Own) && f.CanTellCalls() {
		l.stats.seen++
		if follows {
			l.stats.afterCall++
		}
	}
	if r.Adjust == AdjustNone || r.Adjust == AdjustAuto && !follows {
		at = s.Own
	}
	s.CallAt = s.PC - (s.Own - at)
	var err error
	r.frames, err = f.Lookup(r.frames[:0], at)
	if err != nil {
		r.note("%v", err)
	}
	s.Frames = slices.Clone(r.frames)
	for i := range s.Frames {
		s.Frames[i].Name = r.readable(s.Frames[i].Func)
	}
	if w := f.Why(); w != "" {
		r.note("%s: %s", f.Path, w)
	}
}

// readable demangles a name, once.
func (r *Resolver) readable(name string) string {
	if !strings.HasPrefix(name, "_") {
		return name
	}
	s, ok := r.names[name]
	if !ok {
		if r.names == nil {
			r.names = map[string]string{}
		}
		s = Demangle(name)
		r.names[name] = s
	}
	return s
}

// module opens the file of a module, once: a given one that has its build-id or
// its name, else the one at its path below a sysroot.
func (r *Resolver) module(m *Module) *loaded {
	key := moduleKey{m.Name, m.BuildID}
	if l := r.modules[key]; l != nil {
		return l
	}
	l := r.find(m)
	if r.modules == nil {
		r.modules = map[moduleKey]*loaded{}
	}
	r.modules[key] = l
	if l.err != nil && !strings.HasPrefix(m.Name, "[") {
		r.note("%v", l.err)
	}
	return l
}

func (r *Resolver) find(m *Module) *loaded {
	base := filepath.Base(m.Name)
	var other error // a file of the right name and the wrong build
	fits := func(f *File) bool {
		if m.BuildID == "" || f.BuildID == "" || f.BuildID == m.BuildID {
			return true
		}
		if other == nil {
			other = fmt.Errorf("%s: build-id %s, but what was loaded had %s", f.Path, f.BuildID, m.BuildID)
		}
		return false
	}
	if m.BuildID != "" {
		for _, l := range r.given {
			if l.file.BuildID == m.BuildID {
				return l
			}
		}
	}
	for _, l := range r.given {
		if filepath.Base(l.Path) == base && fits(l.file) {
			return l
		}
	}
	if strings.HasPrefix(m.Name, "[") { // [vdso], [heap]
		return &loaded{err: fmt.Errorf("%s is not a file", m.Name)}
	}
	var paths []string
	for _, root := range r.Sysroots {
		paths = append(paths, filepath.Join(root, m.Name), filepath.Join(root, base))
	}
	if len(r.Sysroots) == 0 && filepath.IsAbs(m.Name) {
		paths = append(paths, m.Name)
	}
	if len(m.BuildID) > 2 {
		for _, d := range r.DebugDirs {
			paths = append(paths, buildIDPath(d, m.BuildID))
		}
	}
	var failed error
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			continue
		}
		f, err := Open(p, r.DebugDirs)
		if err != nil {
			failed = err
			continue
		}
		if fits(f) {
			return &loaded{Given: Given{Path: p}, file: f}
		}
		f.Close()
	}
	return &loaded{err: cmp.Or(other, failed, fmt.Errorf("%s: no such file", m.Name))}
}

// Plausible says whether an address can be a return address, as far as the file
// it is in is at hand: it is for [Repairer].
func (r *Resolver) Plausible(space *Space, addr uint64) bool {
	m := space.Find(addr)
	if m == nil || m.Module == nil {
		return false
	}
	l := r.module(m.Module)
	if l.err != nil {
		return true
	}
	own := addr - m.Start + m.Offset
	if !m.Own {
		first, ok := l.file.AddrOfOffset(m.Offset)
		if !ok {
			return true
		}
		own = addr - m.Start + first
	}
	return l.file.FollowsCall(own)
}

// note keeps what the user should hear, each thing once.
func (r *Resolver) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !slices.Contains(r.notes, s) && len(r.notes) < 50 {
		r.notes = append(r.notes, s)
	}
}

// minCalls is how many addresses say anything about whether a file is the right
// one, and wrongShare the share of them after calls below which it is not.
const (
	minCalls   = 5
	wrongShare = 0.7
)

// Notes is why places are missing, and which files look wrong, each thing once.
func (r *Resolver) Notes() []string {
	notes := slices.Clone(r.notes)
	all := slices.Clone(r.given)
	for _, l := range r.modules {
		if l.file != nil && !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b *loaded) int { return cmp.Compare(a.Path, b.Path) })
	for _, l := range all {
		if s := l.stats; s.seen >= minCalls && float64(s.afterCall) < wrongShare*float64(s.seen) {
			notes = append(notes, fmt.Sprintf(
				"%s: only %d of %d addresses in its code follow a call: is this the build that ran?",
				l.Path, s.afterCall, s.seen))
		}
	}
	return notes
}

// Close closes all files.
func (r *Resolver) Close() {
	for _, l := range r.given {
		l.file.Close()
	}
	for _, l := range r.modules {
		if l.file != nil {
			l.file.Close()
		}
	}
	r.given, r.modules, r.spots = nil, nil, nil
}

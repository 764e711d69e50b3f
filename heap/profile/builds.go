package profile

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/symbol"
)

// This file compares the builds of one program by name. A function that moved has the same call sites at other
// lines, perhaps in a file of another name. So the call sites of a function in each build are aligned with those
// in the newest build that has the function, and appear as those. A function of another name is another
// function.

// source is a place in a function of a build.
type source struct {
	file string
	line int
}

// buildFrame is a frame of a build.
type buildFrame struct {
	build int // index in builds
	name  string
	source
}

// builds are the frames of the builds of programs, as they appear in the newest build.
type builds struct {
	numbers map[file]int // of each build, in the order of the log
	frames  map[buildFrame]symbol.Frame
	names   map[file]bool // builds whose file has the base name of another one
	// mixed has the programs of which some builds have lines, and others have names alone: inlined calls of the
	// latter are not known, so those of the former are left out.
	mixed map[int]bool
}

// newBuilds aligns the frames of addresses. It returns nil if no program has several builds.
func newBuilds(all []*symbol.Addr) *builds {
	b := &builds{numbers: map[file]int{}, frames: map[buildFrame]symbol.Frame{}, names: map[file]bool{}, mixed: map[int]bool{}}
	groups := map[int][]int{} // the builds of a program
	for _, a := range all {
		if m := programModule(a); m != nil {
			id := file{m.Name, m.BuildID}
			if _, known := b.numbers[id]; !known {
				groups[m.Versions] = append(groups[m.Versions], len(b.numbers))
				b.numbers[id] = len(b.numbers)
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(groups)), func(list []int) bool { return len(list) > 1 }) {
		return nil
	}
	for x := range b.numbers {
		for y := range b.numbers {
			b.names[x] = b.names[x] || x != y && base(x.name) == base(y.name)
		}
	}
	b.findMixed(all, groups)
	sites := map[buildFunc]map[source]symbol.Frame{}
	for _, a := range all {
		m := programModule(a)
		if m == nil {
			continue
		}
		for _, f := range b.outer(a.Frames(), a) {
			key := buildFunc{m.Versions, b.numbers[file{m.Name, m.BuildID}], plainName(f.Name)}
			if sites[key] == nil {
				sites[key] = map[source]symbol.Frame{}
			}
			sites[key][source{f.File, f.Line}] = f
		}
	}
	for key, list := range sites {
		for _, newer := range slices.Backward(groups[key.versions]) {
			if in := sites[buildFunc{key.versions, newer, key.name}]; newer > key.build && in != nil {
				b.align(key.build, list, in)
				break
			}
		}
	}
	return b
}

// findMixed sets mixed.
func (b *builds) findMixed(all []*symbol.Addr, groups map[int][]int) {
	named, lines := map[int]bool{}, map[int]bool{} // builds
	for _, a := range all {
		if m := programModule(a); m != nil {
			for _, f := range a.Frames() {
				n := b.numbers[file{m.Name, m.BuildID}]
				named[n], lines[n] = true, lines[n] || f.File != ""
			}
		}
	}
	for program, list := range groups {
		with := slices.ContainsFunc(list, func(n int) bool { return lines[n] })
		b.mixed[program] = with && slices.ContainsFunc(list, func(n int) bool { return named[n] && !lines[n] })
	}
}

// outer returns the frames of an address that all builds of its program know.
func (b *builds) outer(frames []symbol.Frame, a *symbol.Addr) []symbol.Frame {
	if m := programModule(a); b != nil && m != nil && b.mixed[m.Versions] && len(frames) > 1 {
		return frames[len(frames)-1:]
	}
	return frames
}

// InliningUnknown reports whether a program has builds with lines and builds with names alone. Of all its builds, the
// profile then leaves out inlined calls.
func (p *Profile) InliningUnknown() bool {
	b := p.names().builds
	return b != nil && slices.Contains(slices.Collect(maps.Values(b.mixed)), true)
}

// buildFunc is a function of a build of a program.
type buildFunc struct {
	versions, build int
	name            string
}

// programModule returns the module of an address if it is one of several builds of a program.
func programModule(a *symbol.Addr) *symbol.Module {
	if a.Location == nil || a.Location.Module == nil || a.Location.Module.Versions == 0 {
		return nil
	}
	return a.Location.Module
}

// clone is what gcc and clang append to the name of a function that they have changed.
var clone = regexp.MustCompile(`(\.(constprop|isra|part|cold|lto_priv|llvm|localalias)(\.\d+)*)+$|( \[clone [^]]*])+$`)

// plainName returns the name of a function without what compilers append to it.
func plainName(name string) string { return clone.ReplaceAllString(name, "") }

// align makes the call sites of a function in a build appear as those of a newer build.
func (b *builds) align(build int, old, new map[source]symbol.Frame) {
	from, to := sortedSources(old), sortedSources(new)
	to, from = sameFiles(to, from)
	for _, pair := range pairs(from, to) {
		f := old[pair[0]]
		b.frames[buildFrame{build, f.Name, pair[0]}] = new[pair[1]]
	}
}

func sortedSources(m map[source]symbol.Frame) (list []source) {
	for s := range m {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b source) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	return list
}

// sameFiles leaves out the sources of files that only one of the lists has, if a function of the name is in
// several files of a list.
func sameFiles(a, b []source) (x, y []source) {
	several := func(list []source) bool {
		return slices.ContainsFunc(list, func(s source) bool { return base(s.file) != base(list[0].file) })
	}
	if !several(a) && !several(b) {
		return a, b
	}
	in := func(list []source) func(source) bool {
		return func(s source) bool {
			return !slices.ContainsFunc(list, func(o source) bool { return base(o.file) == base(s.file) })
		}
	}
	return slices.DeleteFunc(slices.Clone(a), in(b)), slices.DeleteFunc(slices.Clone(b), in(a))
}

// pairs returns which call sites of a function are the same in two builds: in order, if there are equally
// many, else those with the distance in lines that most have.
func pairs(old, new []source) (list [][2]source) {
	if len(old) == len(new) {
		for i := range old {
			list = append(list, [2]source{old[i], new[i]})
		}
		return list
	}
	count := map[int]int{}
	for _, o := range old {
		for _, n := range new {
			count[n.line-o.line]++
		}
	}
	best, most := 0, 0
	for shift, n := range count {
		if n > most || n == most && math.Abs(float64(shift)) < math.Abs(float64(best)) {
			best, most = shift, n
		}
	}
	for _, o := range old {
		if i := slices.IndexFunc(new, func(n source) bool { return n.line == o.line+best }); i >= 0 {
			list = append(list, [2]source{o, new[i]})
		}
	}
	return list
}

// frame returns a frame of an address as it appears in the newest build. An address without a name is told
// apart from those of other builds.
func (b *builds) frame(f symbol.Frame, a *symbol.Addr) symbol.Frame {
	m := programModule(a)
	if b == nil || m == nil {
		return f
	}
	id := file{m.Name, m.BuildID}
	if len(a.Frames()) == 0 {
		if b.names[id] {
			f.Name += " (build " + m.BuildID[:min(12, len(m.BuildID))] + ")"
		}
		return f
	}
	if newest, ok := b.frames[buildFrame{b.numbers[id], f.Name, source{f.File, f.Line}}]; ok {
		return newest
	}
	return f
}

// Nameless reports whether the site is an address, in a file or not, of which the function is not known.
func (s Site) Nameless() bool {
	return strings.HasPrefix(s.Func, "0x") || s.File == "" && strings.Contains(s.Func, "+0x")
}

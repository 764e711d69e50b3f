package profile

import (
	"fmt"
	"regexp"
	"strings"
)

// Granularity decides which frames are the same call site.
type Granularity uint8

const (
	ByLine     Granularity = iota // a line of a function
	ByFunction                    // all lines of a function
	ByFile                        // a source file
	ByModule                      // an ELF file
	ByAddress                     // an address
)

var granularities = []string{"line", "function", "file", "module", "address"}

// Granularities lists the names that ParseGranularity reads.
func Granularities() []string { return append([]string(nil), granularities...) }

// ParseGranularity reads the name of a granularity.
func ParseGranularity(name string) (Granularity, error) {
	for i, g := range granularities {
		if g == name || g+"s" == name {
			return Granularity(i), nil
		}
	}
	return 0, fmt.Errorf("%q, expected %s", name, strings.Join(granularities, ", "))
}

// String returns the name, as ParseGranularity reads it.
func (g Granularity) String() string { return granularities[g] }

// Site is a frame as reports name it. What the granularity leaves out is "" or 0.
type Site struct {
	Func   string // or the address, where no function is known
	File   string
	Line   int
	Module string // base name of the ELF file
}

// String returns "function file:line", or as much of it as there is.
func (s Site) String() string {
	where := s.File
	if where != "" && s.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, s.Line)
	}
	switch {
	case s.Func == "" && where == "":
		return s.Module
	case s.Func == "":
		return where
	case where == "":
		return s.Func
	}
	return s.Func + " " + where
}

// View decides which frames and call paths of a profile are shown, and by what
// name. The zero View shows everything, by line. Expressions mean what they do to
// pprof: each is matched against the names of functions, source files and modules.
type View struct {
	By        Granularity
	Focus     *regexp.Regexp // show only call paths with a frame that matches
	Ignore    *regexp.Regexp // leave out call paths with a frame that matches
	Hide      *regexp.Regexp // leave out frames that match
	Show      *regexp.Regexp // leave out frames that do not match
	Basenames bool           // file names without directories
	FullNames bool           // C++ names with template and function arguments
}

// SiteID is the number of a site in its Names.
type SiteID uint32

// Names numbers the sites of a profile as a view shows them.
type Names struct {
	// Matched is which expressions of the view have matched a frame.
	Matched struct{ Focus, Ignore, Hide, Show bool }

	view  *View
	prof  *Profile
	known []seen // by LocationID
	bySit map[Site]SiteID
	sites array[siteRef]
	lists [][]SiteID // frames of locations that show other than one
	named []Site
	path  []LocationID
	text  map[string]string // full name → short
}

// siteRef is what a site is: an address alone, or an element of named.
type siteRef struct {
	n     uint32
	named bool
}

// seen is what is known of a location: its frames and how they match.
type seen struct {
	site  uint32 // the one site, or an index into lists
	flags uint8
}

const (
	isKnown uint8 = 1 << iota
	isList
	isFocused
	isIgnored
)

// Names returns the names of a profile under the view, which must not change
// while they are used.
func (v *View) Names(p *Profile) *Names {
	return &Names{view: v, prof: p, bySit: map[Site]SiteID{}, text: map[string]string{}}
}

// Site returns a site by its number.
func (n *Names) Site(id SiteID) Site {
	r := *n.sites.at(int(id))
	if r.named {
		return n.named[r.n]
	}
	return Site{Func: n.prof.LocationAt(LocationID(r.n)).Name()}
}

// Sites returns how many sites have been numbered so far.
func (n *Names) Sites() int { return n.sites.n }

// AppendStack appends the sites of a call path, innermost first, and reports
// whether the view shows the path at all.
func (n *Names) AppendStack(dst []SiteID, id PathID) (stack []SiteID, shown bool) {
	n.path = n.prof.AppendPath(n.path[:0], id)
	return n.appendPathSites(dst, n.path)
}

// appendPathSites is AppendStack for the locations of a call path.
func (n *Names) appendPathSites(dst []SiteID, path []LocationID) (stack []SiteID, shown bool) {
	shown = n.view.Focus == nil
	for _, l := range path {
		var s seen
		if int(l) < len(n.known) {
			s = n.known[l]
		}
		if s.flags == isKnown { // one site, and nothing else to know
			dst = append(dst, SiteID(s.site))
			continue
		}
		if s.flags == 0 {
			s = n.name(l)
		}
		if s.flags&isIgnored != 0 {
			return dst, false
		}
		if s.flags&isFocused != 0 {
			shown = true
		}
		if s.flags&isList == 0 {
			dst = append(dst, SiteID(s.site))
		} else {
			dst = append(dst, n.lists[s.site]...)
		}
	}
	return dst, shown
}

// Shown returns how the frames of a location appear: those that are not hidden,
// innermost first, with the name that the view gives them.
func (n *Names) Shown(id LocationID) (frames []Frame) {
	l := n.prof.LocationAt(id)
	for _, f := range n.frames(l) {
		if !n.hidden(&f, l) {
			f.Func = n.short(f.Func)
			f.File = n.file(f.File)
			frames = append(frames, f)
		}
	}
	return frames
}

// frames is a location's frames; one named by its address if it has none.
func (n *Names) frames(l *Location) []Frame {
	if len(l.Frames) == 0 {
		return []Frame{{Func: l.Name()}}
	}
	for i := range l.Frames {
		if l.Frames[i].Func == "" {
			l.Frames[i].Func = l.Name()
		}
	}
	return l.Frames
}

func (n *Names) location(id LocationID) seen {
	if int(id) < len(n.known) && n.known[id].flags&isKnown != 0 {
		return n.known[id]
	}
	return n.name(id)
}

// name finds the sites of a location and keeps them.
func (n *Names) name(id LocationID) seen {
	if more := n.prof.Locations() - len(n.known); more > 0 {
		n.known = append(n.known, make([]seen, more)...)
	}
	n.known[id] = n.look(id)
	return n.known[id]
}

// numberAll numbers the sites of all locations, so that goroutines may call appendPathSites.
// It returns false if the view is to tell what its expressions match: that depends on
// the call paths that are looked at.
func (n *Names) numberAll() bool {
	if v := n.view; v.Focus != nil || v.Ignore != nil || v.Hide != nil || v.Show != nil {
		return false
	}
	for id := range n.prof.Locations() {
		n.location(LocationID(id))
	}
	return true
}

// look finds the sites of a location.
func (n *Names) look(id LocationID) (s seen) {
	s.flags = isKnown
	v := n.view
	if n.prof.described(id) == nil && v.Focus == nil && v.Ignore == nil && v.Hide == nil && v.Show == nil && v.By != ByFile && v.By != ByModule {
		s.site = uint32(n.address(id))
		return s
	}
	l := n.prof.LocationAt(id)
	frames := n.frames(l)
	var list []SiteID
	for i := range frames {
		f := &frames[i]
		if n.match(n.view.Focus, f, l) {
			s.flags |= isFocused
			n.Matched.Focus = true
		}
		if n.match(n.view.Ignore, f, l) {
			s.flags |= isIgnored
			n.Matched.Ignore = true
		}
		if !n.hidden(f, l) {
			list = append(list, n.site(f, l, id))
		}
	}
	if n.view.By >= ByFile { // inlined calls of one file are one site
		list = dedupe(list)
	}
	if len(list) == 1 {
		s.site = uint32(list[0])
		return s
	}
	s.flags |= isList
	s.site = uint32(len(n.lists))
	n.lists = append(n.lists, list)
	return s
}

func dedupe(list []SiteID) []SiteID {
	out := list[:0]
	for i, s := range list {
		if i == 0 || s != list[i-1] {
			out = append(out, s)
		}
	}
	return out
}

func (n *Names) hidden(f *Frame, l *Location) bool {
	if n.match(n.view.Hide, f, l) {
		n.Matched.Hide = true
		return true
	}
	if n.view.Show != nil {
		if !n.match(n.view.Show, f, l) {
			return true
		}
		n.Matched.Show = true
	}
	return false
}

func (n *Names) match(re *regexp.Regexp, f *Frame, l *Location) bool {
	return re != nil && (re.MatchString(f.Func) || f.File != "" && re.MatchString(f.File) ||
		l.Module != nil && re.MatchString(l.Module.Path))
}

// address is the number of a site that is an address alone: its name is made when
// it is asked for.
func (n *Names) address(id LocationID) SiteID {
	n.sites.push(siteRef{n: uint32(id)})
	return SiteID(n.sites.n - 1)
}

// site is the number of a frame's site.
func (n *Names) site(f *Frame, l *Location, id LocationID) SiteID {
	var s Site
	module := ""
	if l.Module != nil {
		module = base(l.Module.Path)
	}
	switch n.view.By {
	case ByFunction:
		s = Site{Func: n.short(f.Func)}
	case ByLine:
		s = Site{Func: n.short(f.Func), File: n.file(f.File), Line: f.Line}
	case ByFile:
		if s = (Site{File: n.file(f.File)}); s.File == "" {
			s.Module = or(module, "(unknown file)")
		}
	case ByModule:
		s = Site{Module: or(module, "(unknown module)")}
	case ByAddress:
		s = Site{Func: l.Name()}
		if len(l.Frames) > 0 {
			s = Site{Func: l.Name() + " " + n.short(f.Func), File: n.file(f.File), Line: f.Line}
		}
	}
	if len(l.Frames) == 0 && n.view.By != ByFile && n.view.By != ByModule && n.prof.described(id) == nil {
		return n.address(id)
	}
	if known, ok := n.bySit[s]; ok {
		return known
	}
	n.named = append(n.named, s)
	n.sites.push(siteRef{n: uint32(len(n.named) - 1), named: true})
	n.bySit[s] = SiteID(n.sites.n - 1)
	return SiteID(n.sites.n - 1)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (n *Names) file(path string) string {
	if n.view.Basenames {
		return base(path)
	}
	return path
}

func (n *Names) short(name string) string {
	if n.view.FullNames || !strings.ContainsAny(name, "<(") {
		return name
	}
	s, ok := n.text[name]
	if !ok {
		s = Shorten(name)
		n.text[name] = s
	}
	return s
}

// Shorten returns a C++ or Rust name without its template and function arguments:
// "std::vector<…>::push_back". Other names stay as they are.
func Shorten(name string) string {
	if !strings.Contains(name, "::") && !strings.HasSuffix(name, ")") && !strings.HasSuffix(name, ">") {
		return name
	}
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); {
		rest := name[i:]
		if depth == 0 {
			kept := ""
			for _, whole := range []string{"(anonymous namespace)", "operator()", "operator<<", "operator<=>", "operator<=", "operator<",
				"operator->*", "operator->", "operator>>", "operator>=", "operator>", "{lambda", "<impl", "{closure"} {
				if strings.HasPrefix(rest, whole) && (whole[0] != 'o' || i == 0 || !isWord(name[i-1])) {
					kept = whole
					break
				}
			}
			if kept == "<impl" || strings.HasPrefix(rest, "<") && i == 0 {
				return name // Rust's <T as Trait>::f loses its meaning
			}
			if kept != "" {
				b.WriteString(kept)
				i += len(kept)
				continue
			}
		}
		switch c := name[i]; {
		case c == '<' || c == '(':
			depth++
		case (c == '>' || c == ')') && depth > 0:
			if depth--; depth == 0 && c == '>' && i+1 < len(name) && name[i+1] == ':' {
				b.WriteString("<…>")
			}
		case depth == 0:
			b.WriteByte(c)
		}
		i++
	}
	s := b.String()
	if depth != 0 || s == "" {
		return name // not as a name is written
	}
	for _, tail := range []string{" const", " volatile", " &", " &&"} {
		s = strings.TrimSuffix(s, tail)
	}
	return s
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// allHidden reports whether the view shows no frame of a location.
func (n *Names) allHidden(id LocationID) bool {
	s := n.location(id)
	return s.flags&isList != 0 && len(n.lists[s.site]) == 0
}

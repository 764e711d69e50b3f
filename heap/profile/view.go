package profile

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/lwsbt/lwsbt/symbol"
)

// Granularity decides which frames are the same call site.
type Granularity uint8

const (
	ByLine     Granularity = iota // a line of a function
	ByFunction                    // all lines of a function
	ByModule                      // an ELF file
)

// Site is a call site: a frame as reports show it. Fields that the granularity omits are ""
// or 0.
type Site struct {
	Func   string `json:"function,omitempty"` // or the address, if no function is known
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Module string `json:"module,omitempty"` // base name of the ELF file
}

// String returns "function file:line", or the known part of it.
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

// View selects which frames and call paths of a profile are shown, and under which names.
// The zero View shows everything, by line. C++ names lack their arguments.
type View struct {
	By        Granularity
	Filter    Filter
	Basenames bool // file names without directories
	Modules   bool // sites by line have their module
	Fold      bool // leave out allocators and their wrappers at the inner end of call paths (see [Allocator]), and _start, __libc_start_* and addresses without names at the outer end
}

// Filter leaves out frames and call paths, as the options of pprof with the same names
// do. Each expression is matched against the names of functions, source files and
// modules; nil is no expression. The zero Filter leaves out nothing.
type Filter struct {
	Hide          *regexp.Regexp // leave out frames that match Hide
	Ignore, Focus *regexp.Regexp // leave out call paths with a frame that matches Ignore, and call paths without a frame that matches Focus
	Suppress      *regexp.Regexp // as Ignore, but a default list
}

// Frames appends those frames of an address that the filter shows, innermost first, and
// reports whether Ignore or Suppress, and whether Focus, matches a frame of it. An address without
// symbol has one frame, with the address as its name. A call path is to be left out if ignored is
// true, or if Focus is given and focused is true at none of its addresses.
func (f *Filter) Frames(dst []symbol.Frame, a symbol.Addr) (list []symbol.Frame, ignored, focused bool) {
	module := ""
	if l := a.Location; l != nil && l.Module != nil {
		module = l.Module.Name
	}
	frames := a.Frames()
	if len(frames) == 0 {
		frames = []symbol.Frame{{}}
	}
	for _, frame := range frames {
		if frame.Name == "" {
			frame.Name = addrName(a)
		}
		match := func(re *regexp.Regexp) bool {
			return re != nil && (re.MatchString(frame.Name) || frame.File != "" && re.MatchString(frame.File) || module != "" && re.MatchString(module))
		}
		ignored = ignored || f != nil && (match(f.Ignore) || match(f.Suppress))
		focused = focused || f != nil && match(f.Focus)
		if f == nil || !match(f.Hide) {
			dst = append(dst, frame)
		}
	}
	return dst, ignored, focused
}

// any reports whether the filter has an expression.
func (f *Filter) any() bool { return *f != Filter{} }

// addrName returns the address as reports show it where no function is known:
// "app+0x1234", "0x401234", or "?1234" if the upper bits are lost.
func addrName(a symbol.Addr) string {
	if l := a.Location; l != nil && len(l.Frames) > 0 {
		a.Location = &symbol.Location{Module: l.Module, Own: l.Own}
	}
	return a.String()
}

// base returns the last element of a path of any system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

package main

import (
	"regexp"

	"github.com/lwsbt/lwsbt/symbol"
)

// filter is --hide, --show, --ignore and --focus for output record by record; they
// mean what they do to pprof. profile.View does the same for what is added up.
type filter struct {
	hide, show, ignore, focus *regexp.Regexp
	matched                   struct{ hide, show, ignore, focus bool }
}

func (f *filter) any() bool {
	return f.hide != nil || f.show != nil || f.ignore != nil || f.focus != nil
}

// match reports whether a frame matches: its function, source file or module.
func match(re *regexp.Regexp, fr *symbol.Frame, module string) bool {
	return re.MatchString(fr.Name) || fr.File != "" && re.MatchString(fr.File) || module != "" && re.MatchString(module)
}

// hidden reports whether a frame is left out.
func (f *filter) hidden(fr *symbol.Frame, module string) bool {
	if f.hide != nil && match(f.hide, fr, module) {
		f.matched.hide = true
		return true
	}
	if f.show != nil {
		if !match(f.show, fr, module) {
			return true
		}
		f.matched.show = true
	}
	return false
}

// keeps reports whether a stack is shown at all.
func (f *filter) keeps(addrs []symbol.FrameAddr) bool {
	if f.ignore == nil && f.focus == nil {
		return true
	}
	focused := f.focus == nil
	each := func(fr *symbol.Frame, module string) bool {
		if f.ignore != nil && match(f.ignore, fr, module) {
			f.matched.ignore = true
			return false
		}
		if f.focus != nil && match(f.focus, fr, module) {
			f.matched.focus, focused = true, true
		}
		return true
	}
	for _, a := range addrs {
		if len(a.Frames) == 0 && !each(&symbol.Frame{Name: hex(a.PC)}, a.Module) {
			return false
		}
		for i := range a.Frames {
			if !each(&a.Frames[i], a.Module) {
				return false
			}
		}
	}
	return focused
}

package main

import (
	"regexp"

	"github.com/lwsbt/lwsbt/internal/logs"
	"github.com/lwsbt/lwsbt/symbol"
)

// filter is the flags for output record by record. profile.View does the same for
// what is added up.
type filter struct {
	logs.Filter
	matched logs.Matched
}

// match reports whether a frame matches: its function, source file or module.
func match(re *regexp.Regexp, fr *symbol.Frame, module string) bool {
	return re.MatchString(fr.Name) || fr.File != "" && re.MatchString(fr.File) || module != "" && re.MatchString(module)
}

// hidden reports whether a frame is left out.
func (f *filter) hidden(fr *symbol.Frame, module string) bool {
	if f.Hide != nil && match(f.Hide, fr, module) {
		f.matched.Hide = true
		return true
	}
	if f.Show != nil {
		if !match(f.Show, fr, module) {
			return true
		}
		f.matched.Show = true
	}
	return false
}

// keeps reports whether a stack is shown at all.
func (f *filter) keeps(addrs []symbol.FrameAddr) bool {
	if f.Ignore == nil && f.Focus == nil {
		return true
	}
	focused := f.Focus == nil
	each := func(fr *symbol.Frame, module string) bool {
		if f.Ignore != nil && match(f.Ignore, fr, module) {
			f.matched.Ignore = true
			return false
		}
		if f.Focus != nil && match(f.Focus, fr, module) {
			f.matched.Focus, focused = true, true
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

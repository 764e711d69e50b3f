package mutant

import (
	"regexp"
	"sync"
)

// forms are the regular expressions of a part of a text by the name of the bug; the
// right one is that of "".
type forms map[string]string

var compiled sync.Map // of regular expressions, by their text

// pattern returns the form for the mutant's bug, or the right one.
func (b impl) pattern(f forms) *regexp.Regexp {
	text, ok := f[b.bug]
	if !ok {
		text = f[""]
	}
	if re, ok := compiled.Load(text); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(text)
	compiled.Store(text, re)
	return re
}

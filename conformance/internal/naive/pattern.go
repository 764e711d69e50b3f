package naive

import (
	"regexp"
	"sync"
)

// forms maps the names of bugs to regular expressions for a part of a text; "" maps to the
// correct one.
type forms map[string]string

var compiled sync.Map // of regular expressions, by their text

// pattern returns the regular expression for the mutant's bug, or the correct one.
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

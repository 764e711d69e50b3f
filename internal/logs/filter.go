package logs

import (
	"regexp"

	"github.com/spf13/pflag"
)

// Filter is --hide, --show, --ignore and --focus, as pprof means them; nil is not
// given. They match functions, source files and modules.
type Filter struct {
	Hide, Show    *regexp.Regexp // frames
	Ignore, Focus *regexp.Regexp // call paths
}

// AddFlags adds the flags.
func (f *Filter) AddFlags(flags *pflag.FlagSet) {
	flags.Var(Regexp{&f.Hide}, "hide", "leave out frames that match `REGEX`")
	flags.Var(Regexp{&f.Show}, "show", "leave out frames that do not match `REGEX`")
	flags.Var(Regexp{&f.Ignore}, "ignore", "leave out call paths with a frame that matches\n`REGEX`")
	flags.Var(Regexp{&f.Focus}, "focus", "leave out call paths with no frame that matches\n`REGEX`")
}

// Any reports whether any of them is given.
func (f *Filter) Any() bool {
	return f.Hide != nil || f.Show != nil || f.Ignore != nil || f.Focus != nil
}

// Matched is which expressions of a [Filter] have matched a frame.
type Matched struct{ Focus, Ignore, Hide, Show bool }

// Note reports the expressions that matched nothing.
func (f *Filter) Note(m Matched, note func(format string, args ...any)) {
	for _, e := range []struct {
		flag    string
		re      *regexp.Regexp
		matched bool
	}{{"--hide", f.Hide, m.Hide}, {"--show", f.Show, m.Show}, {"--ignore", f.Ignore, m.Ignore}, {"--focus", f.Focus, m.Focus}} {
		if e.re != nil && !e.matched {
			note("%s %s: matches no frame", e.flag, e.re)
		}
	}
}

// Regexp is the value of a flag: a regular expression, nil if it is empty.
type Regexp struct{ To **regexp.Regexp }

// Set compiles the expression.
func (r Regexp) Set(s string) (err error) {
	if *r.To = nil; s != "" {
		*r.To, err = regexp.Compile(s)
	}
	return err
}

// String returns the expression.
func (r Regexp) String() string {
	if r.To == nil || *r.To == nil {
		return ""
	}
	return (*r.To).String()
}

// Type returns the name that help has for the value.
func (r Regexp) Type() string { return "REGEX" }

package main

import "flag"

// pprofFlags is the flag set for pprof's driver. Its arguments are fixed, because the user's
// arguments are for btheap.
type pprofFlags struct {
	*flag.FlagSet
	args  []string
	usage string
}

func newPprofFlags(args []string) *pprofFlags {
	return &pprofFlags{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError), args: args}
}

// StringList is a flag that may be given several times.
func (f *pprofFlags) StringList(name, def, usage string) *[]*string {
	list := &[]*string{}
	f.FlagSet.Func(name, usage, func(s string) error { *list = append(*list, &s); return nil })
	return list
}

func (f *pprofFlags) ExtraUsage() string         { return f.usage }
func (f *pprofFlags) AddExtraUsage(usage string) { f.usage += usage }

// Parse parses the fixed arguments and returns the arguments that are not flags.
func (f *pprofFlags) Parse(usage func()) []string {
	f.FlagSet.Usage = usage
	if err := f.FlagSet.Parse(f.args); err != nil {
		return nil
	}
	return f.FlagSet.Args()
}

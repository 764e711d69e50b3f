// Package logflags has the flags that all commands that read logs share, and finds the logs among
// their arguments.
package logflags

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// Stdin is the name of the log on standard input, and Arguments that of the records among the
// arguments.
const (
	Stdin     = "<stdin>"
	Arguments = "<arguments>"
)

// Flags holds the values of flags. A command adds the flags that it reads by [Flags.Add];
// others keep their defaults.
type Flags struct {
	Exes, Maps, DebugDirs []string
	Machine               string
	Follow, Strict        bool
	Force                 bool
	machine               codec.Machine
}

// define maps the name of a flag to the function that adds it.
var define = map[string]func(f *Flags, s *pflag.FlagSet){
	"exe": func(f *Flags, s *pflag.FlagSet) {
		s.StringArrayVarP(&f.Exes, "exe", "e", nil, "ELF `FILE`; FILE@0xADDR if loaded at 0xADDR, FILE@+0xBIAS if loaded 0xBIAS above the addresses in it (repeatable)")
	},
	"force": func(f *Flags, s *pflag.FlagSet) {
		s.BoolVar(&f.Force, "force", false, "take names from ELF files that do not match the log")
	},
	"maps": func(f *Flags, s *pflag.FlagSet) {
		s.StringArrayVarP(&f.Maps, "maps", "m", nil, "copy `FILE` of /proc/PID/maps (repeatable)")
	},
	"debug-dir": func(f *Flags, s *pflag.FlagSet) {
		s.StringArrayVar(&f.DebugDirs, "debug-dir", symbol.DebugDirs(), "look for debug files, by build-id or path, below `DIR`")
	},
	"machine": func(f *Flags, s *pflag.FlagSet) {
		s.StringVar(&f.Machine, "machine", "", "`NAME` of the machine that encoded the log, such as wrap64 (SPEC.md, Machines)")
	},
	"follow": func(f *Flags, s *pflag.FlagSet) {
		s.BoolVar(&f.Follow, "follow", false, "go on reading as the log grows, until interrupted")
	},
	"strict": func(f *Flags, s *pflag.FlagSet) {
		s.BoolVar(&f.Strict, "strict", false, "exit with 1 if a record could not be read")
	},
}

// Add adds flags to a command, as a group in its help.
func (f *Flags) Add(c *cobra.Command, group string, names ...string) {
	s := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, name := range names {
		f.Define(s, name)
	}
	cli.AddFlags(c, group, s)
}

// Define adds a flag to a set.
func (f *Flags) Define(s *pflag.FlagSet, name string) { define[name](f, s) }

// Regexp is the value of a flag: a regular expression.
type Regexp struct{ To **regexp.Regexp }

// Set compiles the expression.
func (r Regexp) Set(s string) (err error) {
	if s == "" {
		return errors.New("expected a regular expression")
	}
	*r.To, err = regexp.Compile(s)
	return err
}

// String returns the expression.
func (r Regexp) String() string {
	if r.To == nil || *r.To == nil {
		return ""
	}
	return (*r.To).String()
}

// Type returns the name of the value in help.
func (r Regexp) Type() string { return "REGEX" }

// Check reads the values of the flags; args are the logs.
func (f *Flags) Check(args []string) (err error) {
	if f.Machine != "" {
		if f.machine, err = codec.ParseMachine(f.Machine); err != nil {
			return cli.BadArgsf("--machine: %w", err)
		}
	}
	switch {
	case slices.Contains(args, ""):
		return cli.BadArgsf("the name of a log is empty")
	case f.Follow && (len(args) != 1 || args[0] == cli.Stdio || IsRecord(args[0])):
		return cli.BadArgsf("--follow needs one log FILE")
	}
	return nil
}

// Named reports whether the command line names files with symbols.
func (f *Flags) Named() bool { return len(f.Exes)+len(f.Maps) > 0 }

// CodecMachine returns the value of --machine, and whether it was given.
func (f *Flags) CodecMachine() (m codec.Machine, given bool) { return f.machine, f.Machine != "" }

// Log is a log that the arguments name: a file or, if Stream is not nil, a stream.
type Log struct {
	Name   string
	Stream io.Reader
}

// Logs returns the logs that args name. Arguments that are records are one log, after all others.
func Logs(args []string, stdin io.Reader) (list []Log, err error) {
	var records strings.Builder
	for _, a := range args {
		_, err := os.Stat(a)
		switch {
		case a == cli.Stdio:
			list = append(list, Log{Stdin, stdin})
		case IsRecord(a):
			records.WriteString(a + "\n")
		case err == nil && isELF(a):
			return nil, fmt.Errorf("%s: an ELF file, expected a log: give it with -e", a)
		case err == nil:
			list = append(list, Log{Name: a})
		case isBareRecord(a):
			records.WriteString(codec.LeadIn + a + "\n")
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: no such file; nor is it a record, which begins with %s", a, codec.LeadIn)
		default:
			return nil, err
		}
	}
	if records.Len() > 0 {
		list = append(list, Log{Arguments, strings.NewReader(records.String())})
	}
	return list, nil
}

// isELF reports whether a regular file is an ELF file.
func isELF(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // reading a FIFO takes its data
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == elf.ELFMAG
}

// IsRecord reports whether an argument is a record and not the name of a log.
func IsRecord(arg string) bool {
	return strings.HasPrefix(arg, codec.LeadIn) || strings.HasPrefix(arg, codec.LeadInDecoded)
}

// isBareRecord reports whether an argument is a record without its lead-in.
func isBareRecord(arg string) bool {
	blob, err := codec.Decoder{Lenient: true}.ParseLine(nil, []byte(arg))
	var s codec.Stack
	return err == nil && codec.Decoder{}.Decode(&s, nil, blob) == nil
}

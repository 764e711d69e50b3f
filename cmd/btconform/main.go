// Btconform holds implementations of compressed backtraces to SPEC.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit codes, as everywhere in this module.
const (
	exitOK    = 0
	exitShort = 1 // a vector failed, coverage has a gap
	exitUsage = 2 // usage, unreadable input, nothing to do
	exitSelf  = 3 // the testee or this program failed
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is what the first argument can be; each has a file of its own.
type command struct {
	name  string
	about string // one line for help
	run   func(s streams, args []string) int
}

// commands in the order that help lists them.
func commands() []command {
	return []command{
		listCommand,
		coverageCommand,
		mutantsCommand,
		matrixCommand,
		serveCommand,
		stacksCommand,
		benchCommand,
		{"help", "this text", func(s streams, args []string) int { return help(s) }},
	}
}

// streams are what a command reads from and writes to.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := streams{stdin, stdout, stderr}
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(s, args[1:])
			}
		}
	}
	return test(s, args)
}

func help(s streams) int {
	fmt.Fprint(s.out, helpText)
	fmt.Fprintln(s.out, "\nCommands (btconform COMMAND --help says more):")
	for _, c := range commands() {
		fmt.Fprintf(s.out, "  %-9s %s\n", c.name, c.about)
	}
	fmt.Fprint(s.out, "\nFlags:\n", testFlags(&testOptions{}).FlagUsagesWrapped(80))
	return exitOK
}

// parseFlags reads args; done says that there is nothing left to do, and code
// is how to exit then. Help is usage and the flags.
func parseFlags(s streams, flags *pflag.FlagSet, args []string, usage string) (code int, done bool) {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(s.out, usage)
		if flags.HasFlags() {
			fmt.Fprint(s.out, "\nFlags:\n", flags.FlagUsagesWrapped(80))
		}
		return exitOK, true
	}
	if err != nil {
		return s.usage("%v; see btconform help", err), true
	}
	return exitOK, false
}

// usage says what is wrong with the arguments or the input.
func (s streams) usage(format string, args ...any) int {
	fmt.Fprintf(s.err, "btconform: "+format+"\n", args...)
	return exitUsage
}

// fail says that the testee or this program failed.
func (s streams) fail(err error) int {
	if closedPipe(err) {
		return exitOK
	}
	fmt.Fprintf(s.err, "btconform: %v\n", err)
	return exitSelf
}

// closedPipe says whether whoever read our output stopped reading, which is
// nobody's fault.
func closedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

const helpText = `btconform holds implementations of libwebsockets' compressed backtraces to
SPEC.md: any program that speaks BTP/1, in any language.

Usage:
  btconform [flags] [VECTORS...] [-- TESTEE args...]
  btconform COMMAND ...

VECTORS are .btv files, directories of them, or - for stdin; without any, the
vectors built in. Without TESTEE, the codec of this module is tested.

Examples:
  btconform                              the codec, on the vectors built in
  btconform ./ref-c/vectors              on what the real library wrote
  btconform -- ./decoder --fast          your program
  btconform --run 'delta/*' -- ./decoder
  btconform --format junit -- ./decoder > report.xml
  btconform --exec-style lws -- lws-api-test-backtrace --stdin /dev/stdin

Exit code: 0 all as expected, 1 something failed, 2 usage or nothing to do,
3 the testee cannot be run.
`

// Package cli has the code that all commands share: exit codes, the help layout,
// terminals, colours, and output files.
//
//	root := cli.Root(&cobra.Command{Use: "btfoo [flags] FILE...", …})
//	os.Exit(cli.Run(root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//
// A command's RunE returns an error; [Run] prints it and turns it into an exit
// code. A failed write exits with Failed even if the command ignored the error. If the
// reader closes the output pipe, the command ends quietly.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// output keeps the first write error.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// memoryLimit is the heap in bytes from which the garbage collector works harder, so
// that a profile of 10 million call paths stays below 4 GB. $GOMEMLIMIT overrides it.
const memoryLimit = 3 << 30

// garbage is the percentage of the live heap that may be garbage. Go's default of 100 lets a profile
// of many call paths take twice its memory.
const garbage = 50

func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// Collect frees what only reading the logs needed, before a command makes its report. The collector
// would wait until the heap has grown by half beyond all that lived while the logs were read, and the
// report would come on top of that: for many call paths, the tables of reading are as large as the rest.
func Collect() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > collectFrom {
		runtime.GC()
	}
}

// collectFrom is the heap in bytes from which Collect collects: less is not worth the time.
const collectFrom = 64 << 20

// Run executes a root command with these arguments and streams and returns its
// exit code. RunE reads cmd.InOrStdin and writes to cmd.OutOrStdout and
// cmd.ErrOrStderr.
//
// Run cannot detect a standard output that was closed at the start (>&-): Go's runtime
// opens /dev/null in its place.
func Run(root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// A write to a closed pipe must not end the process, so that temporary files are
	// removed.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	limitMemory()
	out := &output{w: stdout}
	root.SetArgs(args)
	if args == nil {
		root.SetArgs([]string{})
	}
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if out.err != nil {
		if ClosedPipe(out.err) {
			return OK
		}
		err = &Error{Failed, fmt.Errorf("cannot write: %w", out.err)}
	}
	code := Code(err)
	var e *Error
	if code == OK || errors.As(err, &e) && e.Err == nil {
		return code
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), Message(err))
	var u *usageError
	if errors.As(err, &u) {
		fmt.Fprintf(stderr, "Try '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

// usageError is an error in the command line itself.
type usageError struct{ error }

func (u *usageError) Unwrap() error { return u.error }

// BadArgs marks err as an error in the command line: it exits with Usage, and the
// message points to --help.
func BadArgs(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

// BadArgsf formats an error and marks it as BadArgs does.
func BadArgsf(format string, args ...any) error { return BadArgs(fmt.Errorf(format, args...)) }

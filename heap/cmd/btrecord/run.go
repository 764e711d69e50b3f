//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/record"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// Exit codes for failures of btrecord itself, as for env and timeout.
const (
	notRecorded = 125
	notRunnable = 126
	notFound    = 127
)

type options struct {
	output, library, cc, sample                                                     string
	events, addresses, atPeak, children, inherited, lossy, startOff, quiet, verbose bool
	interval, duration                                                              time.Duration
	pid                                                                             int
	rate                                                                            uint64
}

func (o *options) run(c *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	debug.SetGCPercent(25) // the recorder keeps large tables, and makes little garbage
	if c.Flags().Changed("pid") {
		return o.attach(c)
	}
	t, err := findTarget(args[0])
	if err != nil {
		return err
	}
	if err := o.sameAs(t); err != nil {
		return err
	}
	if t.warning != "" {
		fmt.Fprintf(c.ErrOrStderr(), "btrecord: %s %s; it runs, but is not recorded\n", cli.Printable(t.path), t.warning)
		p, err := start(args, os.Environ())
		if err != nil {
			return err
		}
		code, err := p.wait()
		if err == nil && code == 0 {
			return failed(notRecorded, "%s %s: nothing was recorded", t.path, t.warning)
		}
		return ends(code, err)
	}
	library, err := o.findLibrary(t)
	if err != nil {
		return err
	}
	return o.record(c, args, library)
}

// check checks the options.
func (o *options) check() (err error) {
	switch {
	case o.interval < 0 || o.interval > 0 && o.interval < time.Millisecond:
		return cli.BadArgsf("--interval %v: expected 1ms or more", o.interval)
	case o.library != "" && o.cc != "":
		return cli.BadArgsf("--cc has no effect with --library: nothing is built")
	case o.duration < 0 || o.duration > 0 && o.pid == 0:
		return cli.BadArgsf("--duration %v: expected a time, with --pid", o.duration)
	case o.inherited && !o.children:
		return cli.BadArgsf("--inherited has no effect without --children")
	case o.children && o.output == cli.Stdio:
		return cli.BadArgsf("--children writes a file for each process, expected a name for -o")
	}
	if o.sample != "" {
		o.rate, err = parseRate(o.sample)
	}
	return err
}

// parseRate reads the mean number of bytes between samples.
func parseRate(s string) (uint64, error) {
	n, err := cli.ParseSize(s)
	if err != nil || n == 0 || n > 1<<40 {
		return 0, cli.BadArgsf("--sample %q: expected a number of bytes from 1 to 1024G, such as 512K", s)
	}
	return n, nil
}

func failed(code int, format string, args ...any) error {
	return &cli.Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// findLibrary returns the path of the library to preload.
func (o *options) findLibrary(t *target) (path string, err error) {
	if o.library == "" {
		path, err = t.findLibrary(o.cc)
	} else if path, err = filepath.Abs(o.library); err == nil {
		err = t.checkLibrary(path)
	}
	if err == nil && strings.ContainsAny(path, " :") {
		err = cli.Usagef("%s: the loader cannot preload a library with a space or colon in its path", path)
	}
	return path, err
}

// record runs a program and records it.
func (o *options) record(c *cobra.Command, args []string, library string) error {
	note := o.noter(c)
	output, path, err := o.createOutput(args[0])
	if err != nil {
		return err
	}
	r, err := o.newRecorder(nil, output, path)
	if err != nil {
		return err
	}
	defer r.Close()
	if old := os.Getenv("LD_PRELOAD"); old != "" {
		library += ":" + old
	}
	p, err := start(args, append(os.Environ(), "LD_PRELOAD="+library, r.Variable()))
	if err != nil {
		return err
	}
	var code int
	var waitErr error
	go func() {
		code, waitErr = p.wait()
		r.Ended(p.Process.Pid)
	}()
	n, err := o.finish(r, path, note)
	if err == nil && n == 0 {
		err = failed(notRecorded, "nothing was recorded: the program did not load the library")
	}
	if code != 0 || waitErr != nil {
		if err != nil {
			note("%v", err)
		}
		return ends(code, waitErr)
	}
	return err
}

// noter returns a function that prints notes.
func (o *options) noter(c *cobra.Command) func(format string, args ...any) {
	return func(format string, args ...any) {
		if !o.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "btrecord: %s\n", cli.Printable(fmt.Sprintf(format, args...)))
		}
	}
}

// newRecorder returns a recorder that writes to output, the file at path, and to path.PID for
// other processes. file is the memory to use, or nil.
func (o *options) newRecorder(file, output *os.File, path string) (*record.Recorder, error) {
	r, err := record.New(record.Config{Events: o.events, Addresses: o.addresses, AtPeak: o.atPeak, Children: o.children,
		Inherited: o.inherited, Lossy: o.lossy, StartOff: o.startOff, Sample: o.rate, File: file,
	}, func(pid int, root bool) (io.WriteCloser, error) {
		if root {
			return output, nil
		}
		return os.Create(childPath(path, pid))
	})
	if err != nil {
		return nil, failed(notRecorded, "%w", err)
	}
	return r, nil
}

func childPath(path string, pid int) string { return fmt.Sprintf("%s.%d", path, pid) }

// finish records until the end, and prints the results. It returns the number of recordings, and
// an error if one is incomplete.
func (o *options) finish(r *record.Recorder, path string, note func(string, ...any)) (n int, err error) {
	recorded, notes := r.Run(o.interval)
	for _, text := range notes {
		note("%s", text)
	}
	for _, s := range recorded {
		file := path
		if !s.Root {
			file = childPath(path, s.PID)
		}
		if s.Err != nil {
			err = failed(notRecorded, "%s: the recording is not complete: %w", file, s.Err)
			continue
		}
		note("%s: %s", file, s.Text)
	}
	if o.verbose {
		note("%s", r.Memory())
	}
	return len(recorded), err
}

// ends returns the error that makes btrecord end as the program did.
func ends(code int, err error) error {
	if err != nil {
		return failed(notRecorded, "%w", err)
	}
	return cli.Exit(code)
}

// sameAs returns an error if the recording would overwrite the program, its
// script or the library.
func (o *options) sameAs(t *target) error {
	output, err := os.Stat(o.output)
	if o.output == "" || err != nil {
		return nil
	}
	for _, path := range []string{t.path, t.script, o.library} {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, output) {
			return cli.Usagef("%s: is the same file as %s; it would be lost", o.output, path)
		}
	}
	return nil
}

// createOutput creates an empty recording, so that a path that cannot be written is
// reported before the program runs.
func (o *options) createOutput(program string) (f *os.File, path string, err error) {
	switch {
	case o.output == cli.Stdio:
		return os.Stdout, "standard output", nil
	case o.output == "":
		f, err = createNew(filepath.Base(program))
	default:
		if info, err := os.Stat(o.output); err == nil && info.IsDir() {
			return nil, "", cli.Usagef("%s: is a directory, expected a file to write", o.output)
		}
		f, err = os.Create(o.output)
	}
	if err != nil {
		return nil, "", failed(notRecorded, "%w", err)
	}
	path, err = filepath.Abs(f.Name())
	return f, path, err
}

// createNew creates base.rec, or base.2.rec and so on if that exists.
func createNew(base string) (*os.File, error) {
	for n := 1; n < 10000; n++ {
		name := base + ".rec"
		if n > 1 {
			name = fmt.Sprintf("%s.%d.rec", base, n)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("%s.rec and all its numbered names exist; see -o", base)
}

// program is a running program with the streams of this process.
type program struct {
	*exec.Cmd
	signals chan os.Signal
}

// start starts the program.
func start(args, env []string) (*program, error) {
	p := &program{exec.Command(args[0], args[1:]...), make(chan os.Signal, 8)}
	p.Env = env
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A terminal sends its interrupt and quit signals to the program, too. The others are
	// forwarded.
	signal.Notify(p.signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := p.Start(); err != nil {
		return nil, failed(notRunnable, "%w", err)
	}
	return p, nil
}

// wait waits for the program and returns its exit code, or 128 + the number of the signal
// that ended it.
func (p *program) wait() (code int, err error) {
	go func() {
		for s := range p.signals {
			if s != os.Interrupt && s != syscall.SIGQUIT {
				p.Process.Signal(s)
			}
		}
	}()
	err = p.Wait()
	signal.Stop(p.signals)
	if p.ProcessState == nil {
		return 0, err
	}
	if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return p.ProcessState.ExitCode(), nil
}

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
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
	output, preload, sample                                       string
	events, addresses, atPeak, children, startOff, quiet, verbose bool
	interval, duration                                            time.Duration
	pid                                                           int
	rate                                                          uint64
}

func (o *options) run(c *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := record.CheckLimits(); err != nil {
		return exit(err)
	}
	// The recorder keeps large tables, and makes little garbage. Short programs end before that matters.
	time.AfterFunc(time.Second/4, func() { debug.SetGCPercent(25) })
	if c.Flags().Changed("pid") {
		return o.attach(c)
	}
	t, err := record.FindTarget(args[0], args[1:]...)
	if err != nil {
		return exit(err)
	}
	if err := o.sameAs(t); err != nil {
		return err
	}
	if t.Warning != "" {
		fmt.Fprintf(c.ErrOrStderr(), "btrecord: %s %s; it runs, but is not recorded\n", cli.Printable(t.Path), cli.Printable(t.Warning))
		p, err := record.Start(args, os.Environ(), false)
		if err != nil {
			return exit(err)
		}
		if err := p.Wait(func() {}, func() {}); err != nil {
			return failed(notRecorded, "%w", err)
		}
		if p.ExitCode() == 0 {
			return failed(notRecorded, "%s %s: nothing was recorded", t.Path, t.Warning)
		}
		return cli.Exit(p.ExitCode())
	}
	library, err := t.Library(context.Background(), o.preload)
	if err != nil {
		return exit(err)
	}
	return o.record(c, args, t, library)
}

// check checks the options.
func (o *options) check() (err error) {
	switch {
	case o.interval < 0 || o.interval > 0 && o.interval < time.Millisecond:
		return cli.BadArgsf("--interval %v: expected 1ms or more", o.interval)
	case o.duration < 0 || o.duration > 0 && o.pid == 0:
		return cli.BadArgsf("--duration %v: expected a time, with --pid", o.duration)
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

// exit returns the error that makes btrecord end for a reason of package record.
func exit(err error) error { return exitFailed(err, notRecorded) }

// exitFailed is exit for a command with another code where the system or a compiler failed.
func exitFailed(err error, failed int) error {
	var e *record.Error
	if !errors.As(err, &e) {
		return err
	}
	codes := map[record.Reason]int{record.NotRecorded: notRecorded, record.NotRunnable: notRunnable, record.NotFound: notFound,
		record.Unusable: cli.Usage, record.Failed: failed}
	if e.Reason == record.BadArgument {
		return cli.BadArgs(e.Err)
	}
	return &cli.Error{Code: codes[e.Reason], Err: e.Err}
}

// record runs a program and records it.
func (o *options) record(c *cobra.Command, args []string, t *record.Target, library string) error {
	note := o.noter(c)
	files, err := o.createOutput(args[0])
	if err != nil {
		return err
	}
	r, err := o.newRecorder(t, nil, files)
	if err != nil {
		return err
	}
	defer r.Close()
	if old := os.Getenv("LD_PRELOAD"); old != "" {
		library += ":" + old
	}
	p, err := record.Start(args, append(os.Environ(), "LD_PRELOAD="+library, r.Variable()), o.children)
	if err != nil {
		return exit(err)
	}
	go func() {
		if err := p.Wait(func() { r.Left(p.Process.Pid) }, r.Over); err != nil {
			note("%v", err)
		}
		r.Over()
	}()
	n, err := o.finish(r, files, note)
	switch {
	case err == nil && n == 0 && t.Hint != "":
		err = failed(notRecorded, "nothing was recorded: the program %s", t.Hint)
	case err == nil && n == 0:
		err = failed(notRecorded, "nothing was recorded: the program did not load the library")
	}
	if err != nil {
		if p.ExitCode() != 0 {
			note("the program ended with status %d", p.ExitCode())
		}
		return err
	}
	return cli.Exit(p.ExitCode())
}

// attach records a running process, until it ends, a signal comes, or the time is over.
func (o *options) attach(c *cobra.Command) error {
	t, err := record.AttachTarget(o.pid)
	if err != nil {
		return exit(err)
	}
	name, err := os.Readlink(t.Path)
	if err != nil {
		return failed(notRecorded, "process %d: %w", o.pid, err)
	}
	ctx, stop := cli.Interruptible(context.Background())
	defer stop()
	library, err := t.Library(ctx, o.preload)
	if err != nil {
		return exit(err)
	}
	files, err := o.createOutput(strings.TrimSuffix(name, " (deleted)"))
	if err != nil {
		return err
	}
	a, err := record.Attach(o.pid, library, func(memory *os.File) (*record.Recorder, error) { return o.newRecorder(nil, memory, files) })
	if err != nil {
		files.remove()
		return exit(err)
	}
	defer a.Close()
	note := o.noter(c)
	note("recording process %d into %s; Ctrl-C ends it", o.pid, files.path)
	if o.duration > 0 {
		ctx, stop = context.WithTimeout(ctx, o.duration)
		defer stop()
	}
	go func() {
		if err := a.Wait(ctx); err != nil {
			note("%v", err)
		}
	}()
	_, err = o.finish(a.Recorder, files, note)
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

// newRecorder returns a recorder that writes to files. t is the program to be started, memory the
// memory to use, or nil.
func (o *options) newRecorder(t *record.Target, memory *os.File, files *outputs) (*record.Recorder, error) {
	r, err := record.New(record.Config{Events: o.events, Addresses: o.addresses, AtPeak: o.atPeak, Children: o.children,
		StartOff: o.startOff, Sample: o.rate, Target: t, File: memory,
	}, files.create)
	if err != nil {
		return nil, failed(notRecorded, "%w", err)
	}
	return r, nil
}

// finish records until the end, and prints the results. It returns the number of recordings, and
// an error if one is incomplete.
func (o *options) finish(r *record.Recorder, files *outputs, note func(string, ...any)) (n int, err error) {
	result := r.Run(o.interval)
	for _, text := range result.Notes {
		note("%s", text)
	}
	for _, s := range result.Processes {
		file := files.path
		if !s.Root {
			file = filepath.Join(filepath.Dir(file), s.Name)
		}
		if s.Text != "" {
			note("%s: %s", file, s.Text)
		}
		if s.Err != nil {
			if err != nil {
				note("%v", err)
			}
			err = failed(notRecorded, "%s: the recording is not complete: %w", file, s.Err)
		}
	}
	if result.Err != nil {
		if err != nil {
			note("%v", err)
		}
		err = failed(notRecorded, "the recording is not complete: %w", result.Err)
	}
	if o.verbose {
		note("%s", r.Memory())
	}
	return len(result.Processes), err
}

// sameAs returns an error if the recording would overwrite the program, its
// script or the library.
func (o *options) sameAs(t *record.Target) error {
	output, err := os.Stat(o.output)
	if o.output == "" || err != nil {
		return nil
	}
	for _, path := range []string{t.Path, t.Script, o.preload} {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, output) {
			return cli.Usagef("%s: is the same file as %s; it would be lost", o.output, path)
		}
	}
	return nil
}

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/record"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// attached is a running process that has loaded the library.
type attached struct {
	pid        int
	handle     string   // of the library, for GDB
	memory     *os.File // for its records
	descriptor int      // of the memory, in the process
}

// attach records a running process, until it ends, a signal comes, or the time is over.
func (o *options) attach(c *cobra.Command) error {
	t, err := attachTarget(o.pid)
	if err != nil {
		return err
	}
	name, err := os.Readlink(t.path)
	if err != nil {
		return failed(notRecorded, "process %d: %w", o.pid, err)
	}
	library, err := o.findLibrary(t)
	if err != nil {
		return err
	}
	output, path, err := o.createOutput(strings.TrimSuffix(name, " (deleted)"))
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(context.Background())
	defer stop()
	note := o.noter(c)
	a := &attached{pid: o.pid}
	r, err := a.hook(o, library, output, path)
	if err != nil {
		output.Close()
		if output != os.Stdout {
			os.Remove(path)
		}
		return err
	}
	defer r.Close()
	note("recording process %d into %s; Ctrl-C ends it", o.pid, path)
	if o.duration > 0 {
		ctx, stop = context.WithTimeout(ctx, o.duration)
		defer stop()
	}
	go a.wait(ctx, r, note)
	_, err = o.finish(r, path, note)
	return err
}

// attachTarget returns the program of a running process, or an error if the process cannot be
// recorded.
func attachTarget(pid int) (*target, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return nil, failed(notFound, "no process %d", pid)
	}
	for line := range bytes.Lines(status) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case string(key) == "State" && bytes.HasPrefix(value, []byte("Z")):
			return nil, failed(notFound, "process %d has ended", pid)
		case string(key) == "Tgid" && string(value) != fmt.Sprint(pid):
			return nil, cli.BadArgsf("--pid %d: it is a thread of process %s", pid, value)
		case string(key) == "TracerPid" && string(value) != "0":
			return nil, failed(notRecorded, "process %d is traced by process %s: only one can", pid, value)
		}
	}
	if by := record.Recorded(pid); by != 0 {
		return nil, failed(notRecorded, "process %d is recorded by process %d", pid, by)
	}
	ours, err := os.Readlink("/proc/self/ns/pid")
	theirs, theirErr := os.Readlink(proc + "ns/pid")
	if errors.Is(theirErr, os.ErrPermission) {
		return nil, failed(notRecorded, "process %d: of another user; try as root", pid)
	}
	if err == nil && theirErr == nil && ours != theirs {
		return nil, failed(notRecorded, "process %d is in a container: run btrecord there, with the PID that the process has there", pid)
	}
	t := &target{path: proc + "exe"}
	t.read()
	switch {
	case t.warning != "":
		return nil, failed(notRecorded, "process %d %s", pid, t.warning)
	case t.musl:
		return nil, failed(notRecorded, "process %d has musl as its C library, where a library cannot be loaded later: start it under btrecord", pid)
	}
	return t, t.runsHere()
}

// hook loads the library into the process, which then writes records for the returned recorder.
// The process is stopped meanwhile.
func (a *attached) hook(o *options, library string, output *os.File, path string) (*record.Recorder, error) {
	root := fmt.Sprintf("/proc/%d/root", a.pid)
	copied, err := copyLibrary(library, filepath.Join(root, "tmp"))
	if err != nil {
		return nil, failed(notRecorded, "%w", err)
	}
	defer os.Remove(copied)
	g, err := stopProcess(a.pid)
	if err != nil {
		return nil, err
	}
	defer g.close()
	if err := a.load(g, strings.TrimPrefix(copied, root)); err != nil {
		return nil, failed(notRecorded, "process %d: %w", a.pid, err)
	}
	r, err := o.newRecorder(a.memory, output, path)
	if err != nil {
		return nil, err
	}
	switch slots, e := g.number(a.handle, "lwsbt_attach", a.descriptor); {
	case e != nil:
		err = failed(notRecorded, "%w", e)
	case slots == -1:
		err = failed(notRecorded, "process %d was started under btrecord: use btrecord ctl %d on", a.pid, a.pid)
	case slots == -2:
		err = failed(notRecorded, "process %d cannot map the memory for its records", a.pid)
	case slots == 0:
		err = failed(notRecorded, "process %d has no calls of malloc that can be recorded", a.pid)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// copyLibrary copies a library into dir and returns the path of the copy: the process may have
// another root directory, and the dynamic linker loads a file only once, but the process may have
// been recorded before.
func copyLibrary(library, dir string) (path string, err error) {
	text, err := os.ReadFile(library)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "liblwsbt-*.so")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// load makes the process load the library and create the memory for its records, which it may be
// unable to open if btrecord creates it: the process may belong to another user.
func (a *attached) load(g *gdb, library string) (err error) {
	if a.handle, err = g.load(library); err != nil {
		return err
	}
	if a.descriptor, err = g.number(a.handle, "lwsbt_memory", os.Getpid()); err != nil {
		return err
	}
	if a.descriptor < 0 {
		return errors.New("it cannot make memory for its records (memfd_create)")
	}
	a.memory, err = os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", a.pid, a.descriptor), os.O_RDWR, 0)
	return err
}

// wait waits until the recording is to end, and ends it.
func (a *attached) wait(ctx context.Context, r *record.Recorder, note func(string, ...any)) {
	for record.Running(a.pid) {
		select {
		case <-ctx.Done():
			a.detach(r, note)
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	r.Ended(a.pid)
}

// detach puts the functions of the C library back.
func (a *attached) detach(r *record.Recorder, note func(string, ...any)) {
	defer r.Detached()
	g, err := stopProcess(a.pid)
	if err == nil {
		defer g.close()
		_, err = g.number(a.handle, "lwsbt_detach", 0)
	}
	if err != nil {
		note("the hooks stay in process %d, and record nothing: %v", a.pid, err)
	}
}

//go:build linux

package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// attached is a running process that has loaded the library.
type attached struct {
	pid        int
	handle     string   // of the library, for GDB
	memory     *os.File // for its records
	descriptor int      // of the memory, in the process
}

// Attachment is a running process that has loaded the library, and its recorder.
type Attachment struct {
	*Recorder
	attached
}

// Attach has a running process load a library, which then writes records for the recorder of the
// result. The process is stopped meanwhile. make makes that recorder, from a configuration with
// the memory to use.
func Attach(pid int, library string, make func(memory *os.File) (*Recorder, error)) (*Attachment, error) {
	a := &Attachment{attached: attached{pid: pid}}
	g, err := stopProcess(pid)
	if err != nil {
		return nil, err
	}
	defer g.close()
	if err := a.load(g, library); err != nil {
		return nil, fail(NotRecorded, "process %d: %w", pid, err)
	}
	r, err := make(a.attached.memory)
	if err != nil {
		return nil, err
	}
	switch slots, e := g.number(a.handle, "lwsbt_attach", a.descriptor); {
	case e != nil:
		err = fail(NotRecorded, "%w", e)
	case slots == -1:
		err = fail(NotRecorded, "process %d was started under btrecord: use btrecord ctl %d on", pid, pid)
	case slots == -2:
		err = fail(NotRecorded, "process %d cannot map the memory for its records", pid)
	case slots == -3:
		err = fail(NotRecorded, "process %d has a malloc of its own, which can be recorded only from its start: start it under btrecord", pid)
	case slots == 0:
		err = fail(NotRecorded, "process %d has no calls of malloc that can be recorded", pid)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	a.Recorder = r
	return a, nil
}

// AttachTarget returns the program of a running process, or an error if the process cannot be
// recorded.
func AttachTarget(pid int) (*Target, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return nil, fail(NotFound, "no process %d", pid)
	}
	for line := range bytes.Lines(status) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case string(key) == "State" && bytes.HasPrefix(value, []byte("Z")):
			return nil, fail(NotFound, "process %d has ended", pid)
		case string(key) == "State" && bytes.HasPrefix(value, []byte("T")):
			return nil, fail(NotRecorded, "process %d is stopped (SIGSTOP): continue it first, by kill -CONT %d", pid, pid)
		case string(key) == "Tgid" && string(value) != fmt.Sprint(pid):
			return nil, fail(BadArgument, "--pid %d: it is a thread of process %s", pid, value)
		case string(key) == "TracerPid" && string(value) != "0":
			return nil, fail(NotRecorded, "process %d is traced by process %s: only one can", pid, value)
		}
	}
	if by := Recorded(pid); by != 0 {
		return nil, fail(NotRecorded, "process %d is recorded by process %d", pid, by)
	}
	ours, err := os.Readlink("/proc/self/ns/pid")
	theirs, theirErr := os.Readlink(proc + "ns/pid")
	if errors.Is(theirErr, os.ErrPermission) {
		return nil, fail(NotRecorded, "process %d: of another user; try as root", pid)
	}
	if err == nil && theirErr == nil && ours != theirs {
		return nil, fail(NotRecorded, "process %d is in a container: run btrecord there, with the PID that the process has there", pid)
	}
	t := &Target{Path: proc + "exe"}
	t.read()
	switch {
	case t.Warning != "":
		return nil, fail(NotRecorded, "process %d %s", pid, t.Warning)
	case t.musl:
		return nil, fail(NotRecorded, "process %d has musl as its C library, where a library cannot be loaded later: start it under btrecord", pid)
	}
	return t, t.runsHere()
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

// Wait waits until the process ends, or ctx is done, and ends the recording. The hooks may stay
// in the process: then the error tells why.
func (a *Attachment) Wait(ctx context.Context) error {
	for Running(a.pid) {
		select {
		case <-ctx.Done():
			a.call(func() { a.turn(false) }) // gdb may take its time
			defer a.Detached()
			g, err := stopProcess(a.pid)
			if err == nil {
				defer g.close()
				_, err = g.number(a.handle, "lwsbt_detach", 0)
			}
			if err != nil {
				err = fmt.Errorf("the hooks stay in process %d, and record nothing: %w", a.pid, err)
			}
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	a.Ended(a.pid)
	return nil
}

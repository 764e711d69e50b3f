//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func dumpCommand() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use:   "dump [flags] PID...",
		Short: "dump the heap of a running program now",
		Long: `
dump makes recorded programs write a dump of their live allocations now. These
are programs that run under btrecord, or with its library preloaded. dump sends
them the signal for a dump (btrecord --signal), waits until the dump is written,
and prints the name of the recording.`,
		Example: `
btrecord dump 1234`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.BadArgsf("expected the PID of a program")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			for _, arg := range args {
				pid, err := strconv.Atoi(arg)
				if err != nil || pid <= 0 {
					return cli.BadArgsf("%q: expected the PID of a program", arg)
				}
				text, err := requestDump(pid, wait)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.ErrOrStderr(), "btrecord: %s\n", cli.Printable(text))
			}
			return nil
		},
	}
	c.Flags().DurationVar(&wait, "wait", 10*time.Second, "wait up to `TIME` for the dump to be written")
	return c
}

// requestDump asks a process for a dump, and returns the place of the dump.
func requestDump(pid int, wait time.Duration) (string, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	maps, err := os.ReadFile(proc + "maps")
	if errors.Is(err, fs.ErrNotExist) {
		return "", cli.Usagef("no process %d", pid)
	}
	if err != nil {
		return "", cli.Usagef("process %d: %w", pid, err)
	}
	if !bytes.Contains(maps, []byte("liblwsbt")) {
		return "", cli.Usagef("process %d is not recorded: it does not have %s loaded", pid, libraryName)
	}
	number := syscall.SIGUSR1
	environ, err := os.ReadFile(proc + "environ")
	if err != nil {
		return "", cli.Usagef("process %d: %w", pid, err)
	}
	for v := range strings.SplitSeq(string(environ), "\x00") {
		if s, ok := strings.CutPrefix(v, "LWSBT_SIGNAL="); ok {
			if n, err := strconv.Atoi(s); err == nil {
				number = syscall.Signal(n)
			}
		}
	}
	if !caught(proc, number) {
		return "", cli.Usagef("process %d does not handle signal %d (%v), which would end it; see --signal", pid, int(number), number)
	}
	path := recordingOf(proc)
	var from int64
	if info, err := os.Stat(path); err == nil {
		from = info.Size()
	}
	if err := syscall.Kill(pid, number); err != nil {
		return "", cli.Failedf("process %d: %w", pid, err)
	}
	if path == "" {
		return fmt.Sprintf("process %d was asked for a dump", pid), nil
	}
	for until := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		if h := dumpSince(path, from); h != nil {
			n, _ := h.Uint("n")
			b, _ := h.Uint("b")
			return fmt.Sprintf("%s: dump %d, %d allocations, %d bytes", path, h.Number, n, b), nil
		}
		if time.Now().After(until) {
			return "", cli.Failedf("process %d wrote no dump within %v", pid, wait)
		}
	}
}

// caught reports whether a process has a handler for a signal.
func caught(proc string, s syscall.Signal) bool {
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "SigCgt:")
	word, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	mask, err := strconv.ParseUint(word, 16, 64)
	return err == nil && 0 < s && s <= 64 && mask>>(s-1)&1 == 1
}

// recordingOf returns the path of the recording that a process has open. It opens no
// other file of the process: opening a pipe may block, and opening a device may reset it.
func recordingOf(proc string) string {
	entries, _ := os.ReadDir(proc + "fd")
	for _, e := range entries {
		path, err := os.Readlink(proc + "fd/" + e.Name())
		if err != nil || !strings.HasPrefix(path, "/") {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		first := make([]byte, 8)
		f.ReadAt(first, 0)
		f.Close()
		if string(first) == codec.LeadInHeader+"boot " {
			return path
		}
	}
	return ""
}

// dumpSince returns the end of the first dump after an offset, nil if there is none yet.
func dumpSince(path string, from int64) *codec.Header {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, from, 1<<62))
	if err != nil {
		return nil
	}
	_, rest, ok := bytes.Cut(text, []byte(codec.LeadInHeader+codec.VerbEnd+" "))
	line, _, whole := bytes.Cut(rest, []byte("\n"))
	h := new(codec.Header)
	if !ok || !whole || codec.ParseHeader(h, append([]byte(codec.LeadInHeader+codec.VerbEnd+" "), line...)) != nil {
		return nil
	}
	return h
}

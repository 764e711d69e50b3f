//go:build linux

package record

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is a running program with the streams of this process.
type Program struct {
	*exec.Cmd
	signals chan os.Signal
	adopt   bool
	ended   atomic.Bool
	code    int
}

// Start starts a program. With adopt, this process becomes the parent of processes whose parent
// ends, so that it can wait for them.
func Start(args, env []string, adopt bool) (*Program, error) {
	p := &Program{Cmd: exec.Command(args[0], args[1:]...), signals: make(chan os.Signal, 8), adopt: adopt}
	p.Env = env
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr
	if adopt {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // before Linux 3.4, those are not waited for
	}
	// A terminal sends its interrupt and quit signals to the program, too. The others are
	// forwarded.
	signal.Notify(p.signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := p.Cmd.Start(); err != nil {
		if errors.Is(err, unix.EMFILE) {
			err = fmt.Errorf("%w: btrecord needs 14, see ulimit -n", err)
		}
		return nil, fail(NotRunnable, "%w", err)
	}
	return p, nil
}

// Wait waits for the program and then for all processes that it left behind, if they were adopted.
// It calls ended as the program ends, and interrupted if the user wants to wait no longer for the others.
func (p *Program) Wait(ended, interrupted func()) error {
	go func() {
		for s := range p.signals {
			switch {
			case !p.ended.Load():
				if s != os.Interrupt && s != syscall.SIGQUIT {
					p.Process.Signal(s)
				}
			case s == os.Interrupt || s == syscall.SIGQUIT || s == syscall.SIGTERM:
				interrupted()
			}
		}
	}()
	defer signal.Stop(p.signals)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			return err
		case pid == p.Process.Pid:
			if p.code = status.ExitStatus(); status.Signaled() {
				p.code = 128 + int(status.Signal())
			}
			p.ended.Store(true)
			if ended(); !p.adopt {
				return nil
			}
		}
	}
}

// ExitCode returns the exit code of the program once it has ended, or 128 + the number of the
// signal that ended it.
func (p *Program) ExitCode() int { return p.code }

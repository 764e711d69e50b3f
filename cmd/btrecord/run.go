//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
)

type options struct {
	output, library, cc             string
	events, atPeak, children, quiet bool
	interval                        time.Duration
	signal                          int
}

func (o *options) run(c *cobra.Command, args []string) error {
	note := func(format string, args ...any) {
		if !o.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "btrecord: %s\n", cli.Printable(fmt.Sprintf(format, args...)))
		}
	}
	if o.interval < 0 || o.interval > 0 && o.interval < time.Millisecond {
		return cli.BadArgsf("--interval %v: expected 1ms or more", o.interval)
	}
	switch {
	case o.library != "" && o.cc != "":
		return cli.BadArgsf("--cc has no effect with --library: nothing is built")
	case o.signal < 0 || o.signal > 64:
		return cli.BadArgsf("--signal %d: expected 1 to 64", o.signal)
	case o.signal == int(syscall.SIGKILL) || o.signal == int(syscall.SIGSTOP):
		return cli.BadArgsf("--signal %d: no program can catch it (%v)", o.signal, syscall.Signal(o.signal))
	}
	t, err := findTarget(args[0])
	if err != nil {
		return err
	}
	if err := o.sameAs(t); err != nil {
		return err
	}
	library := o.library
	switch {
	case t.warning != "":
	case library == "":
		library, err = t.findLibrary(o.cc)
	default:
		if library, err = filepath.Abs(library); err == nil {
			err = t.checkLibrary(library)
		}
	}
	if err != nil {
		return err
	}
	env := os.Environ()
	var path string
	if t.warning == "" {
		if strings.ContainsAny(library, " :") {
			return cli.Usagef("%s: the loader cannot preload a library with a space or colon in its path", library)
		}
		if path, err = o.createOutput(args[0]); err != nil {
			return err
		}
		env = append(env, o.environment(library, path)...)
	} else {
		fmt.Fprintf(c.ErrOrStderr(), "btrecord: %s %s; it runs, but is not recorded\n", cli.Printable(t.path), t.warning)
	}
	status, err := runProgram(c, args, env)
	if err != nil {
		return err
	}
	if t.warning != "" {
		return cli.Failedf("%s %s: nothing was recorded", t.path, t.warning)
	}
	said, cut, err := summary(path)
	switch {
	case err != nil:
		return err
	case cut && status == "":
		return cli.Failedf("%s: %s, though the program ended by itself", path, said)
	}
	note("%s: %s", path, said)
	if status != "" {
		return cli.Failedf("%s: %s", args[0], status)
	}
	return nil
}

// environment returns the variables for the preloaded library.
func (o *options) environment(library, path string) []string {
	if old := os.Getenv("LD_PRELOAD"); old != "" {
		library += ":" + old
	}
	env := []string{"LD_PRELOAD=" + library, "LWSBT_OUT=" + strings.ReplaceAll(path, "%", "%%")}
	add := func(name string, on bool, value string) {
		if on {
			env = append(env, name+"="+value)
		}
	}
	add("LWSBT_EVENTS", o.events, "1")
	add("LWSBT_AT_PEAK", o.atPeak, "1")
	add("LWSBT_CHILDREN", o.children, "1")
	add("LWSBT_INTERVAL", o.interval > 0, strconv.FormatFloat(o.interval.Seconds(), 'f', 6, 64))
	add("LWSBT_SIGNAL", o.signal > 0, strconv.Itoa(o.signal))
	return env
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
// reported before the program runs. It returns the absolute path.
func (o *options) createOutput(program string) (string, error) {
	if o.output == cli.Stdio {
		return fmt.Sprintf("/proc/%d/fd/1", os.Getpid()), nil
	}
	if o.output != "" {
		path, err := filepath.Abs(o.output)
		if err != nil {
			return "", err
		}
		switch info, err := os.Stat(path); {
		case err == nil && info.IsDir():
			return "", cli.Usagef("%s: is a directory, expected a file to write", o.output)
		case err == nil && info.Mode()&fs.ModeNamedPipe != 0:
			return path, nil
		}
		f, err := os.Create(path)
		if err != nil {
			return "", &cli.Error{Code: cli.Failed, Err: err}
		}
		return path, f.Close()
	}
	base := filepath.Base(program)
	for n := 1; n < 10000; n++ {
		name := base + ".rec"
		if n > 1 {
			name = fmt.Sprintf("%s.%d.rec", base, n)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", &cli.Error{Code: cli.Failed, Err: err}
		}
		f.Close()
		return filepath.Abs(name)
	}
	return "", cli.Failedf("%s.rec and all its numbered names exist; see -o", base)
}

// runProgram runs the program with this process's streams. It returns a description of
// the failure, or "".
func runProgram(c *cobra.Command, args, env []string) (status string, err error) {
	p := exec.Command(args[0], args[1:]...)
	p.Env = env
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A terminal sends its interrupt and quit signals to the program, too. The others are
	// forwarded.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	if err := p.Start(); err != nil {
		return "", &cli.Error{Code: cli.Failed, Err: err}
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				if s != os.Interrupt && s != syscall.SIGQUIT {
					p.Process.Signal(s)
				}
			case <-done:
				return
			}
		}
	}()
	err = p.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.String(), nil
	}
	return "", err
}

// summary returns a sentence with the last total of a recording, and whether the recording
// lacks its end, for example after the disk was full. It fails if nothing was recorded.
func summary(path string) (said string, cut bool, err error) {
	info, err := os.Stat(path) // before it is opened: a pipe would wait for a writer
	if err == nil && !info.Mode().IsRegular() {
		return "not a regular file, so its contents are not checked", false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false, &cli.Error{Code: cli.Failed, Err: err}
	}
	defer f.Close()
	if info.Size() == 0 {
		return "", false, cli.Failedf("nothing was recorded: the program did not load the library")
	}
	total, complete, err := lastTotal(f)
	switch {
	case err != nil:
		return "", false, err
	case total == nil:
		return fmt.Sprintf("%d bytes, without a dump at the end", info.Size()), true, nil
	}
	n := func(key string) uint64 { v, _ := total.Uint(key); return v }
	text := fmt.Sprintf("%d allocations, %d frees, peak %d bytes, %d bytes in %d allocations at the end",
		n("allocs"), n("frees"), n("peak"), n("live"), n("allocs")-n("frees"))
	if !complete {
		text += "; the last dump was cut"
	}
	return text, !complete, nil
}

// lastTotal returns the last ~h#total of a recording, and whether a whole dump follows.
func lastTotal(r io.ReadSeeker) (total *codec.Header, complete bool, err error) {
	rest, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, false, err
	}
	// Read backwards, in pieces that overlap by more than a header.
	const piece, overlap = 1 << 20, 512
	for rest > 0 {
		from := max(0, rest-piece)
		text := make([]byte, rest-from)
		if _, err := r.Seek(from, io.SeekStart); err != nil {
			return nil, false, err
		}
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, false, err
		}
		complete = complete || bytes.Contains(text, []byte("~h#end "))
		if i := bytes.LastIndex(text, []byte("~h#total ")); i >= 0 {
			line, _, _ := bytes.Cut(text[i:], []byte("\n"))
			total = new(codec.Header)
			if codec.ParseHeader(total, line) == nil {
				return total, complete, nil
			}
		}
		if from == 0 {
			break
		}
		rest = from + overlap
	}
	return nil, complete, nil
}

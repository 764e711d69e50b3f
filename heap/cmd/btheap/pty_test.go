//go:build linux

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A device on a serial port writes a dump each time that the user presses Enter. The user sees the leak, and
// interrupts.
func TestLiveOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	keys, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer keys.Close()
	defer tty.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	device, port := serialPort(t)
	var seen cmdtest.Buffer
	go io.Copy(&seen, keys)
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run([]string{"live", "--serial", port, "--ask", "dump now"}, tty, tty, &errs)
	}()
	wait := func(text string) {
		t.Helper()
		for start := time.Now(); !strings.Contains(seen.String(), text); time.Sleep(5 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatalf("%q never came: %q %q", text, seen.String(), errs.String())
			}
		}
	}
	wait("no dump yet")
	for _, want := range []string{"dump 1, 1 h", "dump 2, 2 h", "dump 12, 12 h"} {
		keys.WriteString("\n")
		wait(want)
	}
	wait(" in 12 dumps over 11 h")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-code:
		if got != 0 {
			t.Errorf("exit code %d: %s", got, errs.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("an interrupt does not end it")
	}
	if err := <-device; err != nil {
		t.Error(err)
	}
}

// serialPort returns the name of a pseudo-terminal, at whose other end a device writes dumps 1, 2 and 3 to 12
// when it reads the line "dump now".
func serialPort(t *testing.T) (result <-chan error, port string) {
	t.Helper()
	end, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { end.Close(); tty.Close() })
	if _, err := term.MakeRaw(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	dumps := strings.SplitAfter(device(t, 12, 0), "~h#end ")
	for i := range dumps { // the number behind ~h#end belongs to its line
		number, rest, _ := strings.Cut(dumps[i], "\n")
		if i > 0 {
			dumps[i-1] += number + "\n"
			dumps[i] = rest
		}
	}
	done := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(end)
		for _, text := range []string{dumps[0], dumps[1], strings.Join(dumps[2:], "")} {
			for lines.Scan() && lines.Text() != "dump now" {
			}
			if _, err := io.WriteString(end, text); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return done, tty.Name()
}

// At the end of standard input, live ends, and leaves the screen.
func TestLiveEndsWithTheFile(t *testing.T) {
	for _, c := range []struct{ name, log, term, want string }{
		{"a terminal", device(t, 12, 0), "xterm-256color", "dump 12, 12 h: 12,936 bytes in 312 blocks"},
		{"lines", device(t, 12, 0), "dumb", "dump 12, 12 h: 12,936 bytes in 312 blocks"},
		{"no dump", "booting\n", "xterm-256color", "no dump yet"},
		{"no dump, lines", "booting\n", "dumb", "no dump yet"},
		{"reports only", freeHeap(9), "xterm-256color", "report 9, 1.33 h: 40,200 free; leak, N %; +600 bytes per hour (597 to 603);\r\n  exhausted in 2.79 days (2.78 days to 2.81 days)\r\n"},
		{"reports only, lines", freeHeap(9), "dumb", "report 9, 1.33 h: 40,200 free; leak, N %; +600 bytes per hour (597 to 603); exhausted in 2.79 days (2.78 days to 2.81 days)\r\n"},
	} {
		t.Setenv("TERM", c.term)
		keys, tty, err := pty.Open()
		if err != nil {
			t.Skip(err)
		}
		var seen, errs cmdtest.Buffer
		go io.Copy(&seen, keys)
		code := make(chan int, 1)
		go func() {
			code <- run([]string{"live", "-"}, strings.NewReader(c.log), tty, &errs)
		}()
		select {
		case <-code:
		case <-time.After(time.Minute):
			t.Fatalf("%s: live does not end: %q", c.name, seen.String())
		}
		for start := time.Now(); !strings.Contains(withoutPercents(seen.String()+errs.String()), c.want); time.Sleep(5 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatalf("%s: no %q in %q, %q", c.name, c.want, seen.String(), errs.String())
			}
		}
		tty.Close()
		keys.Close()
	}
}

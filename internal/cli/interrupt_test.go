package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A process that is interrupted while it writes a file leaves nothing of it: at the
// first signal, or at the second if the first one asks it to end well.
func TestInterruptedOutput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals here")
	}
	if path := os.Getenv("LWSBT_TEST_OUTPUT"); path != "" {
		if os.Getenv("LWSBT_TEST_GRACEFUL") != "" {
			ctx, _ := Interruptible(context.Background())
			context.AfterFunc(ctx, func() { fmt.Println("first") })
		}
		o, err := CreateOutput(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Write([]byte("part"))
		fmt.Println("ready")
		time.Sleep(time.Minute)
		os.Exit(9)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as under nohup
			interruptWriter(t, s, "")
			interruptWriter(t, s, "1")
		}
	}
}

// interruptWriter starts a process that writes a file and ends it by a signal, or by two
// if it is graceful.
func interruptWriter(t *testing.T, s syscall.Signal, graceful string) {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestInterruptedOutput$")
	c.Env = append(os.Environ(), "LWSBT_TEST_OUTPUT="+filepath.Join(dir, "out"), "LWSBT_TEST_GRACEFUL="+graceful)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	said.Scan()
	if left, _ := os.ReadDir(dir); said.Text() != "ready" || len(left) != 1 {
		t.Fatalf("said %q, %d files", said.Text(), len(left))
	}
	c.Process.Signal(s)
	if graceful != "" {
		if said.Scan(); said.Text() != "first" {
			t.Errorf("%v: said %q", s, said.Text())
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%v: removed at the first signal", s)
		}
		time.Sleep(2 * together)
		c.Process.Signal(s)
	}
	c.Wait()
	if w := c.ProcessState.Sys().(syscall.WaitStatus); !w.Signaled() || w.Signal() != s {
		t.Errorf("%v: ended with %v", s, c.ProcessState)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v: %s is left", s, left[0].Name())
	}
}

// Signals that come together are one: timeout(1) sends two.
func TestSignalsTogether(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals here")
	}
	if os.Getenv("LWSBT_TEST_TOGETHER") != "" {
		ctx, stop := Interruptible(context.Background())
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGTERM)
		}
		<-ctx.Done()
		stop()
		if err == nil {
			err = self.Signal(syscall.SIGTERM)
		}
		time.Sleep(together / 2) // the report is written
		if err != nil {
			os.Exit(8)
		}
		os.Exit(7)
	}
	// On a busy machine, there may be more between them than there should.
	var state *os.ProcessState
	for range 10 {
		c := exec.Command(os.Args[0], "-test.run=^TestSignalsTogether$")
		c.Env = append(os.Environ(), "LWSBT_TEST_TOGETHER=1")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		c.Wait()
		if state = c.ProcessState; state.ExitCode() == 7 {
			return
		}
	}
	t.Errorf("ended with %v, want exit code 7", state)
}

package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// interrupts returns the signals by which a user ends a command, except ignored ones, as
// under nohup.
func interrupts() []os.Signal {
	list := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

// together is the time within which two interrupts count as one: timeout(1) signals the
// process, and then its group.
const together = 200 * time.Millisecond

// ending holds the clean-up for an interrupt that ends the process.
var ending struct {
	sync.Mutex
	temporary map[string]bool    // files to remove
	watched   bool               // watch receives interrupts
	cancel    context.CancelFunc // of Interruptible's context, nil after the first interrupt
	first     time.Time          // time of the first interrupt
}

// watchInterrupts sends all later interrupts to watch.
func watchInterrupts() {
	if ending.watched {
		return
	}
	ending.watched = true
	c := make(chan os.Signal, 4)
	signal.Notify(c, interrupts()...)
	go watch(c)
}

// removeAtInterrupt registers a temporary file. If an interrupt ends the process before
// keepAtInterrupt is called, the file is removed.
func removeAtInterrupt(path string) {
	ending.Lock()
	defer ending.Unlock()
	if ending.temporary == nil {
		ending.temporary = map[string]bool{}
	}
	ending.temporary[path] = true
	watchInterrupts()
}

func keepAtInterrupt(path string) {
	ending.Lock()
	defer ending.Unlock()
	delete(ending.temporary, path)
}

// watch cancels Interruptible's context at the first interrupt. At a second one, it removes
// temporary files and ends the process as the signal would have.
func watch(c <-chan os.Signal) {
	for s := range c {
		ending.Lock()
		if ending.cancel != nil {
			ending.first = time.Now()
			ending.cancel()
			ending.cancel = nil
			ending.Unlock()
			continue
		}
		if time.Since(ending.first) < together {
			ending.Unlock()
			continue
		}
		for path := range ending.temporary {
			os.Remove(path)
		}
		signal.Reset(s)
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			p.Signal(s)
		}
		time.Sleep(time.Second)
		os.Exit(Failed) // where there are no signals
	}
}

// Interruptible returns a context that is done at the first interrupt (Ctrl-C), TERM
// or HUP; a second one, 0.2 s later or more, ends the process as usual, without its
// temporary files.
func Interruptible(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	ending.Lock()
	defer ending.Unlock()
	ending.cancel = cancel
	watchInterrupts()
	return ctx, func() {
		ending.Lock()
		ending.cancel = nil
		ending.Unlock()
		cancel()
	}
}

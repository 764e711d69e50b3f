package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// interrupts returns the signals by which a user ends a command: not those that are
// ignored, as nohup has it.
func interrupts() []os.Signal {
	list := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

// together is how long after an interrupt another is taken for the same: timeout(1)
// signals the process, and then its group.
const together = 200 * time.Millisecond

// ending holds the clean-up for an interrupt that ends the process.
var ending struct {
	sync.Mutex
	temporary map[string]bool    // files to remove
	watched   bool               // interrupts come to watch
	cancel    context.CancelFunc // of Interruptible's context, nil once the first has come
	first     time.Time          // when that was
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

// watch gives the first interrupt to Interruptible's context. At another it removes
// temporary files, and ends the process as the signal would have.
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

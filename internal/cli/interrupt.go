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

// ending is what is left to do when an interrupt ends the process.
var ending struct {
	sync.Mutex
	temporary map[string]bool // files to remove
	watched   bool            // interrupts come to watch
	graceful  bool            // the next one is for Interruptible's context
}

// removeAtInterrupt has a temporary file removed if an interrupt ends the process
// before keepAtInterrupt is called.
func removeAtInterrupt(path string) {
	ending.Lock()
	defer ending.Unlock()
	if ending.temporary == nil {
		ending.temporary = map[string]bool{}
	}
	ending.temporary[path] = true
	if !ending.watched {
		ending.watched = true
		c := make(chan os.Signal, 4)
		signal.Notify(c, interrupts()...)
		go watch(c)
	}
}

func keepAtInterrupt(path string) {
	ending.Lock()
	defer ending.Unlock()
	delete(ending.temporary, path)
}

// watch removes temporary files at an interrupt, and ends the process as the signal
// would have.
func watch(c <-chan os.Signal) {
	for s := range c {
		ending.Lock()
		if ending.graceful {
			ending.graceful = false
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
// or HUP; a second one ends the process as usual, without its temporary files.
func Interruptible(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	set := func(graceful bool) {
		ending.Lock()
		defer ending.Unlock()
		ending.graceful = graceful
	}
	set(true)
	ctx, cancel := signal.NotifyContext(parent, interrupts()...)
	context.AfterFunc(ctx, func() {
		ending.Lock()
		if !ending.watched { // else watch was given the same signal
			ending.graceful = false
		}
		ending.Unlock()
		cancel()
	})
	return ctx, func() {
		set(false)
		cancel()
	}
}

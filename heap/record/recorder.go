//go:build linux

// Package recorder records the heap of running programs. A library in the program writes
// records of allocations into rings of shared memory, one for each thread, as
// heap/record/preload/ring.h describes them. A Recorder reads the rings, adds up, and writes
// recordings.
//
//	ring.go ──record──> merge.go ──> thread.go ──> process.go ──> output.go
//	one ring            all rings,   stacks,       blocks, paths,
//	                    by stamp     moves         totals, text
//
// A process is recorded from its first record, the image (lifecycle.go), to its end. Its blocks
// are in live.go, its call paths in paths.go, their sums in account.go. dump.go writes the
// sums. Two things cut across these files: prune.go renumbers call paths, and forks.go keeps
// the blocks of a parent for a child.
package record

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Recorder records the processes that share its memory.
type Recorder struct {
	config  Config
	memory  *memory
	control net.Listener // nil if it takes no requests
	create  func(pid int, root bool) (io.WriteCloser, error)

	threads   []*thread // by slot, nil if it is free
	top       int       // slots from here on were never taken
	merge     []*thread // threads with records to merge, a heap by stamp
	processes map[processKey]*process
	outputs   map[uint32]*output // by PID
	ended     []Summary
	root      uint32
	over      bool // the first process has ended or is detached
	on        bool
	scanned   time.Time // last scan
	notes     []string
	calls     chan func() // for the loop of Run
}

// Summary is the result of the recording of one process.
type Summary struct {
	PID  int
	Root bool
	Text string // totals
	Err  error  // why the recording is incomplete, or nil
	out  *output
}

// New creates the shared memory and listens for requests. create opens the recording of a
// process.
func New(c Config, create func(pid int, root bool) (io.WriteCloser, error)) (*Recorder, error) {
	m, err := newMemory(c)
	if err != nil {
		return nil, err
	}
	r := &Recorder{config: c, memory: m, create: create, on: !c.StartOff,
		threads: make([]*thread, len(m.slots)), processes: map[processKey]*process{},
		outputs: map[uint32]*output{}, calls: make(chan func(), 1)}
	if r.control, err = net.Listen("unix", socketName(os.Getpid())); err != nil {
		r.note("cannot take requests of btrecord ctl: %v", err)
	} else {
		go r.accept()
	}
	return r, nil
}

// Variable returns the variable of the environment that the program needs.
func (r *Recorder) Variable() string { return "LWSBT_RING=" + r.memory.path() }

// Ended notifies the recorder that the first process has ended.
func (r *Recorder) Ended(pid int) {
	r.call(func() {
		r.gone(uint32(pid))
		r.over = true
	})
}

// Detached notifies the recorder that all processes go on without being recorded.
func (r *Recorder) Detached() {
	r.call(func() {
		r.turn(false)
		for _, p := range r.processes {
			r.gone(p.key.pid)
		}
		r.memory.release(r.top)
		r.over = true
	})
}

// call has the loop of Run call a function.
func (r *Recorder) call(f func()) {
	r.calls <- f
	r.memory.wake()
}

// Close frees the memory.
func (r *Recorder) Close() {
	if r.control != nil {
		r.control.Close()
	}
	r.memory.close()
}

// Memory returns a text with the maximum memory of the recording.
func (r *Recorder) Memory() string {
	var shared unix.Stat_t
	var own unix.Rusage
	if err := cmp.Or(unix.Fstat(int(r.memory.file.Fd()), &shared), unix.Getrusage(unix.RUSAGE_SELF, &own)); err != nil {
		return fmt.Sprintf("cannot measure memory: %v", err)
	}
	// Pages of the shared memory are never freed. Those that btrecord reads are resident in it, too.
	return fmt.Sprintf("memory: %s shared with the program, %s in btrecord with those", printable.Count(uint64(shared.Blocks)*512, "byte"),
		printable.Count(uint64(own.Maxrss)<<10, "byte"))
}

func (r *Recorder) note(format string, args ...any) {
	if len(r.notes) < 100 {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

// Intervals between rounds and scans. A program that fills half a ring wakes the recorder
// earlier.
const (
	shortSleep = 2 * time.Millisecond
	longSleep  = 50 * time.Millisecond
	scanEvery  = 250 * time.Millisecond
)

// Run records until the process of Ended and all other recorded processes have ended. It
// returns the results and notes for the user.
func (r *Recorder) Run(interval time.Duration) ([]Summary, []string) {
	sleep := shortSleep
	next := time.Now().Add(interval)
	for {
		r.memory.asleep.Store(1)
		if r.round() > 0 {
			sleep = shortSleep
		} else {
			sleep = min(sleep*2, longSleep)
		}
		now := time.Now()
		r.memory.beat.Add(1)
		for _, p := range r.processes {
			if p.begun && now.Sub(p.out.flushed) >= flushAfter {
				p.settle()
				p.flush()
				p.out.flush()
			}
		}
		if interval > 0 && !now.Before(next) {
			for _, p := range r.processes {
				if p.begun {
					p.dump("interval", p.time(r.memory.now()), false)
				}
			}
			next = now.Add(interval)
		}
		if now.Sub(r.scanned) >= scanEvery {
			r.scan(now)
		}
		select {
		case f := <-r.calls:
			f()
		default:
		}
		if r.over && r.idle(now) {
			return r.end()
		}
		r.memory.sleep(sleep)
	}
}

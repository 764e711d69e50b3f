//go:build linux

// Package record records the heap of running programs. A library in the program writes
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
// sums. One thing cuts across these files: prune.go renumbers call paths.
package record

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Recorder records the processes that share its memory.
type Recorder struct {
	config  Config
	memory  *memory
	control net.Listener // nil if it takes no requests
	create  Create

	threads    []*thread // by slot, nil if it is free
	top        int       // slots from here on were never taken
	merge      []*thread // threads with records to merge, a heap by stamp
	processes  map[processKey]*process
	outputs    map[int]*output // by host PID
	ended      []Summary
	root       int  // host PID, 0 if there is none
	over       bool // the first process has ended or is detached
	last       bool // and so have all others
	on         bool
	scanned    time.Time // last scan
	notes      []string
	damage     error           // what of the memory the program wrote over
	detached   bool            // the processes go on
	unrecorded error           // the first process runs another program, which is not recorded
	calls      chan func()     // for the loop of Run
	stopped    chan struct{}   // closed by Close
	asked      map[string]bool // files whose rules were asked for
	executed   executed

	namespaces bool // there are processes of other PID namespaces
	unknown    int  // processes without a host PID
}

// Summary is the result of the recording of one process.
type Summary struct {
	Name string // of the recording, as create returned it, or the PID
	Root bool
	Text string // totals
	Err  error  // why the recording is incomplete, or nil
	out  *output
}

// Create opens the recording of a process, and returns its name. root: it is the first process.
type Create func(pid string, root bool) (file io.WriteCloser, name string, err error)

// New creates the shared memory and listens for requests.
func New(c Config, create Create) (*Recorder, error) {
	m, err := newMemory(c)
	if err != nil {
		return nil, err
	}
	r := &Recorder{config: c, memory: m, create: create, on: !c.StartOff,
		threads: make([]*thread, len(m.slots)), processes: map[processKey]*process{},
		outputs: map[int]*output{}, calls: make(chan func(), 1), executed: newExecuted(), stopped: make(chan struct{}), asked: map[string]bool{}}
	if c.Target != nil {
		if c.Target.musl {
			m.rules.prepare(c.Target.loader)
		}
		m.rules.prepare(c.Target.Path)
	}
	if r.control, err = net.Listen("unix", socketName(os.Getpid())); err != nil {
		r.note("cannot take requests of btrecord ctl: %v", err)
	} else {
		go r.accept()
	}
	return r, nil
}

// Variable returns the variable of the environment that the program needs.
func (r *Recorder) Variable() string { return "LWSBT_RING=" + r.memory.path() }

// Left notifies the recorder that the first process has ended. Over follows.
func (r *Recorder) Left(pid int) { r.call(func() { r.gone(pid) }) }

// Ended notifies the recorder that the first process has ended. The recording ends with the last
// of the other processes, as far as is known.
func (r *Recorder) Ended(pid int) {
	r.call(func() {
		r.gone(pid)
		r.over = true
	})
}

// Over notifies the recorder that no process that could be recorded is left.
func (r *Recorder) Over() { r.call(func() { r.over, r.last = true, true }) }

// Detached notifies the recorder that all processes go on without being recorded.
func (r *Recorder) Detached() {
	r.call(func() {
		r.turn(false)
		r.inspect()
		r.detached = true
		r.goneAll()
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
	close(r.stopped)
	if r.control != nil {
		r.control.Close()
	}
	r.memory.close()
}

// Memory returns a text with the maximum memory of the recording.
func (r *Recorder) Memory() string {
	var shared unix.Stat_t
	own, err := statusBytes(os.Getpid(), "VmHWM") // that of getrusage includes the process that executed this program
	if err := cmp.Or(err, unix.Fstat(int(r.memory.file.Fd()), &shared)); err != nil {
		return fmt.Sprintf("cannot measure memory: %v", err)
	}
	// Pages of the shared memory are never freed. Those that btrecord reads are resident in it, too.
	return fmt.Sprintf("memory: %s shared with the program, %s in btrecord with those", printable.Count(uint64(shared.Blocks)*512, "byte"),
		printable.Count(own, "byte"))
}

// statusBytes returns a field of /proc/PID/status that is a number of KB, in bytes.
func statusBytes(pid int, field string) (uint64, error) {
	f := statusField(pid, field)
	if len(f) != 2 {
		return 0, fmt.Errorf("/proc/%d/status has no %s", pid, field)
	}
	n, err := strconv.ParseUint(f[0], 10, 54)
	return n << 10, err
}

// statusField returns the words of a field of /proc/PID/status, nil if the process has ended.
func statusField(pid int, field string) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\n"+field+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line)
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

// Result is the result of a recording.
type Result struct {
	Processes []Summary
	Notes     []string // for the user
	Err       error    // why the recording is incomplete, apart from the errors of processes
}

// Run records until the process of Ended and all other recorded processes have ended, or until
// Over.
func (r *Recorder) Run(interval time.Duration) Result {
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
		if since := now.Sub(r.scanned); since >= scanEvery || since >= scanEvery/16 && r.crowded() {
			r.scan(now)
		}
		select {
		case f := <-r.calls:
			f()
		default:
		}
		if r.over && (r.last || len(r.processes) == 0) {
			return r.end()
		}
		r.memory.sleep(sleep)
	}
}

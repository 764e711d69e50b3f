//go:build linux

// Package recorder records the heap of running programs. A library in the program writes
// records of allocations into rings of shared memory, as device/preload/ring.h describes
// them; a Recorder reads the rings, adds up, and writes recordings.
//
//	ring ──record──> order ──> thread ──> process: live blocks, paths, totals ──> output
package recorder

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Recorder records the processes that share its memory.
type Recorder struct {
	config  Config
	memory  *memory
	control *controller
	create  func(pid int, root bool) (io.WriteCloser, error)

	threads   []*thread // by slot, nil if it is free
	top       int       // slots from here on were never taken
	merge     []*thread // threads with records to merge, a heap by stamp
	processes map[processKey]*process
	outputs   map[uint32]*output // by PID
	ended     []Summary
	root      uint32
	on        bool
	scanned   time.Time // last scan
	notes     []string
	finished  chan ending
}

// ending tells that a process is not recorded any more.
type ending struct {
	pid      int
	detached bool // and runs on
}

// Summary is the result of the recording of one process.
type Summary struct {
	PID    int
	Root   bool
	Text   string // totals
	Allocs uint64
	Err    error // why the recording is incomplete, or nil
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
		outputs: map[uint32]*output{}, finished: make(chan ending, 1)}
	if r.control, err = listen(); err != nil {
		r.note("cannot take requests of btrecord ctl: %v", err)
	}
	return r, nil
}

// Variable returns the variable of the environment that the program needs.
func (r *Recorder) Variable() string { return "LWSBT_RING=" + r.memory.path() }

// Ended notifies the recorder that a process has ended.
func (r *Recorder) Ended(pid int) {
	r.finished <- ending{pid: pid}
	r.memory.wake()
}

// Detached tells that a process and its children are not recorded any more, and run on.
func (r *Recorder) Detached(pid int) {
	r.finished <- ending{pid, true}
	r.memory.wake()
}

// Close frees the memory.
func (r *Recorder) Close() {
	if r.control != nil {
		r.control.close()
	}
	r.memory.close()
}

// Memory returns a text that says how much memory the recording took, at most.
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
	root := -1
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
			for _, p := range r.live() {
				p.dump("interval", p.time(r.memory.now()), false)
			}
			next = now.Add(interval)
		}
		if now.Sub(r.scanned) >= scanEvery {
			r.scan(now)
		}
		select {
		case e := <-r.finished:
			root = e.pid
			r.endOf(e)
		default:
		}
		if root >= 0 && r.idle(now) {
			return r.end()
		}
		if r.control != nil {
			select {
			case q := <-r.control.requests:
				q.reply <- r.answer(q)
			default:
			}
		}
		r.memory.sleep(sleep)
	}
}

// idle ends the recordings of processes in other PID namespaces, if no other processes
// remain and they record nothing. It reports whether no process remains.
func (r *Recorder) idle(now time.Time) bool {
	for _, p := range r.processes {
		if !p.foreign {
			return false
		}
	}
	for _, t := range r.threads[:r.top] {
		if t != nil && now.Sub(t.active) < time.Second {
			return len(r.processes) == 0
		}
	}
	for _, p := range r.processes {
		r.gone(p.key.pid)
	}
	return true
}

// live returns the recorded processes, by PID.
func (r *Recorder) live() []*process {
	var list []*process
	for _, p := range r.processes {
		if p.begun {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *process) int { return int(a.key.pid) - int(b.key.pid) })
	return list
}

// end closes all recordings.
func (r *Recorder) end() ([]Summary, []string) {
	if n := r.memory.slotless.Load(); n > 0 {
		r.note("%d events were lost: more than %d threads at once", n, len(r.memory.slots))
	}
	for pid, o := range r.outputs {
		if err := o.close(); err != nil {
			r.failed(pid, err)
		}
	}
	return r.ended, r.notes
}

// failed marks a recording as incomplete.
func (r *Recorder) failed(pid uint32, err error) {
	for i := range r.ended {
		if r.ended[i].PID == int(pid) && r.ended[i].Err == nil {
			r.ended[i].Err = err
		}
	}
}

// round reads all rings once, and returns the number of records.
func (r *Recorder) round() int {
	m := r.memory
	t0 := m.now()
	m.clock.measure()
	r.take() // after t0: slots that were taken before it have records of before it
	r.merge = r.merge[:0]
	for _, t := range r.threads[:r.top] {
		if t == nil || t.bad != nil {
			continue
		}
		head := t.head.Load()
		if head == t.ring.tail {
			continue
		}
		if err := t.ring.publish(head); err != nil {
			r.broken(t, err)
			continue
		}
		if t.ring.peek(&m.clock) && m.clock.before(t.ring.stamp, t0) {
			r.merge = append(r.merge, t)
		}
	}
	n := r.drain(t0)
	for _, p := range r.processes {
		p.prune(r.threads[:r.top])
		if len(p.text) > 0 {
			p.flush()
		}
	}
	for _, t := range r.threads[:r.top] {
		if t == nil {
			continue
		}
		t.give()
		if t.state.Load() == slotLeft && t.head.Load() == t.ring.tail {
			r.release(t)
		}
	}
	return n
}

// take adds the threads of newly taken slots.
func (r *Recorder) take() {
	r.top = max(r.top, min(len(r.memory.slots), int(r.memory.top.Load())))
	for i := range r.memory.slots[:r.top] {
		if r.threads[i] == nil {
			if s := r.memory.slots[i].state.Load(); s == slotTaken || s == slotLeft {
				r.threads[i] = newThread(r.memory, i)
				r.threads[i].active = time.Now()
			}
		}
	}
}

// release frees a slot whose ring was read to its end.
func (r *Recorder) release(t *thread) {
	if n := uint64(t.slot.lost.Load()); t.proc != nil && t.proc.begun && n > t.lost {
		t.proc.lose(n-t.lost, t.proc.last)
	}
	if t.proc != nil {
		t.proc.thread(t)
	}
	r.threads[t.index] = nil
	t.head.Store(0)
	t.tail.Store(0)
	t.slot.lost.Store(0)
	t.waiting.Store(0)
	t.room.Store(0)
	t.state.Store(slotFree)
	for hint := r.memory.hint.Load(); uint32(t.index) < hint; hint = r.memory.hint.Load() {
		if r.memory.hint.CompareAndSwap(hint, uint32(t.index)) {
			break
		}
	}
}

// broken stops reading a corrupt ring.
func (r *Recorder) broken(t *thread, err error) {
	t.bad = err
	r.note("process %d, thread %d: the recording of this thread ended: %v; the program wrote over shared memory", t.pid, t.tid, err)
	if t.proc != nil && t.proc.begun {
		t.proc.text = append(t.proc.text, "~h#lost\n"...)
	}
}

// drain applies the records with stamps before t0 of the threads in merge, in the order of
// stamps.
func (r *Recorder) drain(t0 uint64) (n int) {
	c := &r.memory.clock
	for i := len(r.merge)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
	eighth := r.memory.words / 8
	var rec record
	for len(r.merge) > 0 {
		t := r.merge[0]
		err := t.ring.next(&rec)
		if err == nil {
			err = r.apply(t, &rec)
		}
		n++
		more := err == nil && t.ring.peek(c) && c.before(t.ring.stamp, t0)
		switch {
		case err != nil:
			r.broken(t, err)
		case t.ring.tail-t.given >= eighth:
			t.give()
		}
		if !more {
			t.active = time.Now()
			last := len(r.merge) - 1
			r.merge[0] = r.merge[last]
			r.merge = r.merge[:last]
		}
		r.sink(0)
	}
	return n
}

// sink moves an element of the heap down to its place.
func (r *Recorder) sink(i int) {
	h := r.merge
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if r.first(h[child], h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// first reports whether the next record of a comes before that of b. If the stamps are equal,
// ends of blocks come before beginnings.
func (r *Recorder) first(a, b *thread) bool {
	if d := r.memory.clock.distance(a.ring.stamp, b.ring.stamp); d != 0 {
		return d < 0
	}
	ends := func(t *thread) bool {
		k := t.ring.load(0) & 15
		return k == kindFreed || k == kindMoveBegins
	}
	return ends(a) && !ends(b)
}

// apply applies a record.
func (r *Recorder) apply(t *thread, rec *record) error {
	if rec.kind == kindImage {
		return r.image(t, rec)
	}
	if t.proc == nil {
		if t.proc = r.processes[t.key()]; t.proc == nil {
			return badRing("a record of kind %d before the first of its process", rec.kind)
		}
	}
	p := t.proc
	if !t.told {
		t.told = true
		p.thread(t)
	}
	switch rec.kind {
	case kindModule:
		return r.module(p, rec)
	case kindUnloaded:
		p.modules.unload()
	case kindFork:
		if r.config.Inherited {
			p.mark(rec.stamp)
		}
	default:
		return t.apply(rec)
	}
	return nil
}

// image begins the recording of a program.
func (r *Recorder) image(t *thread, rec *record) error {
	w := rec.rest
	pid, parent := uint32(w[1]), uint32(w[1]>>32)
	key := processKey{pid, t.image}
	if pid != t.pid || r.processes[key] != nil {
		return badRing("a first record of process %d in a ring of process %d", pid, t.pid)
	}
	name, rest := text(w[5:], w[4]&0xffff)
	args, _ := text(rest, w[4]>>16&0xffff)
	bits := (w[4] >> 32 & 0xff) * 8
	if bits != 32 && bits != 64 {
		return badRing("a word of %d bits", bits)
	}
	if name == "" {
		name, _, _ = strings.Cut(args, "\x00")
	}
	for k, old := range r.processes {
		if k.pid == pid { // it executed this program
			r.finish(old, "exec")
		}
	}
	p := &process{key: key, parent: parent, name: name, word: bits, config: &r.config, clock: &r.memory.clock}
	from := r.processes[processKey{parent, w[2]}]
	if r.root == 0 {
		r.root, p.parent = pid, 0
	} else if pid != r.root {
		// A PID of another namespace denotes another process here.
		p.foreign = parent == 0 || from != nil && from.foreign
	}
	r.processes[key], t.proc = p, p
	if p.out = r.outputs[pid]; p.out == nil {
		f, err := r.create(int(pid), pid == r.root)
		if err == nil {
			p.out, err = newOutput(f)
		}
		if err != nil {
			delete(r.processes, key)
			r.ended = append(r.ended, Summary{PID: int(pid), Root: pid == r.root, Err: err})
			return err
		}
		r.outputs[pid] = p.out
	}
	p.exe.begin(int(pid), name)
	p.modules.reset()
	p.tree.reset()
	if from != nil && w[2] != 0 {
		p.modules = from.modules.clone()
	}
	var inherited liveTable
	if from != nil && r.config.Inherited && from.begun {
		inherited = p.copy(from, w[3])
	}
	if r.on {
		p.boot(p.clock.micros(p.key.image))
		p.inherit(&inherited)
	}
	return nil
}

// module processes the record of a module.
func (r *Recorder) module(p *process, rec *record) error {
	w := rec.rest
	idBytes, nameBytes := w[4]>>16&0xff, w[4]&0xffff
	id, rest := text(w[5:], idBytes)
	name, _ := text(rest, nameBytes)
	if name == "" {
		name = "[vdso]"
	}
	mod := module{base: w[1], start: w[2], end: w[3], name: absolute(int(p.key.pid), name), buildID: fmt.Sprintf("%x", id)}
	if mod.start >= mod.end {
		return badRing("a module from %#x to %#x", mod.start, mod.end)
	}
	first := len(p.modules.told)
	p.modules.load(mod, int(p.key.pid))
	if p.begun && first < len(p.modules.told) {
		p.text = fmt.Appendf(p.text, "~h#load t=%d\n", p.time(rec.stamp))
		p.text = p.modules.append(p.text, first)
	}
	return nil
}

// scan releases the slots of ended threads, and ends the recordings of ended processes.
func (r *Recorder) scan(now time.Time) {
	r.scanned = now
	for _, t := range r.threads[:r.top] {
		if t == nil || t.proc != nil && t.proc.foreign || now.Sub(t.active) < time.Second || t.head.Load() != t.ring.tail {
			continue
		}
		if unix.Tgkill(int(t.pid), int(t.tid), 0) == unix.ESRCH && t.state.Load() != slotFree {
			r.release(t)
		}
	}
	for _, p := range r.processes {
		if p.foreign {
			continue
		}
		p.exe.look(int(p.key.pid), now)
		if p.key.pid != r.root && !running(int(p.key.pid)) {
			r.gone(p.key.pid)
		}
	}
	// A process may have ended while it was filling in a slot.
	for i := range r.memory.slots[:r.top] {
		s := &r.memory.slots[i]
		if r.threads[i] == nil && s.state.Load() == slotFilling && s.pid != 0 && !running(int(s.pid)) {
			s.state.CompareAndSwap(slotFilling, slotFree)
		}
	}
}

// running reports whether a process has a running thread.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte{' '})
	if !bytes.HasPrefix(state, []byte{'Z'}) && !bytes.HasPrefix(state, []byte{'X'}) {
		return true
	}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // its first thread may have ended
	return len(tasks) > 1
}

// endOf ends the recording of the first process, and if it was detached, those of its
// children.
func (r *Recorder) endOf(e ending) {
	if e.detached {
		r.turn(false)
		for _, p := range r.processes {
			r.gone(p.key.pid)
		}
		r.memory.release(r.top)
	}
	r.gone(uint32(e.pid))
}

// gone ends the recording of a process that ended.
func (r *Recorder) gone(pid uint32) {
	r.round() // reads all that it wrote; while others write, there may be no last round
	for k, p := range r.processes {
		if k.pid == pid {
			r.finish(p, "exit")
		}
	}
	for _, t := range r.threads[:r.top] {
		if t != nil && t.pid == pid {
			r.release(t)
		}
	}
	if o := r.outputs[pid]; o != nil && pid != r.root {
		if err := o.close(); err != nil {
			r.failed(pid, err)
		}
		delete(r.outputs, pid)
	}
}

// finish ends the recording of a program.
func (r *Recorder) finish(p *process, why string) {
	delete(r.processes, p.key)
	for _, t := range r.threads[:r.top] {
		if t != nil && t.proc == p {
			if n := uint64(t.slot.lost.Load()); n > t.lost && p.begun {
				p.lose(n-t.lost, p.last)
				t.lost = n
			}
		}
	}
	s := Summary{PID: int(p.key.pid), Root: p.key.pid == r.root, Text: p.String(), Allocs: p.account.allocs, Err: p.out.err}
	if p.begun {
		p.finish(why, p.time(r.memory.now()))
	}
	if p.exe.unrecorded(time.Now()) {
		r.note("process %d executed %s, which is not recorded: it is static, or runs as another user", p.key.pid, p.exe.other)
	}
	r.ended = append(r.ended, s)
}

// answer executes a request and returns the answer.
func (r *Recorder) answer(q request) string {
	if q.Request != Dump {
		r.round()
		return r.turn(q.Request == On)
	}
	r.round()
	for k, p := range r.processes {
		if int(k.pid) == q.pid && p.begun {
			blocks, bytes := p.dump("request", p.time(r.memory.now()), false)
			return fmt.Sprintf("ok dump %d, %s, %s", p.dumps-1, printable.Count(blocks, "allocation"), printable.Count(bytes, "byte"))
		}
	}
	if !r.on {
		return "error the recording is off"
	}
	return "error it has not allocated anything since it is recorded"
}

// turn switches the recording on or off. Switching on begins a new boot, because the events
// in between are not known.
func (r *Recorder) turn(on bool) string {
	if on == r.on {
		return map[bool]string{true: "ok it is on already", false: "ok it is off already"}[on]
	}
	r.on = on
	r.memory.setRecording(on, r.config.Lossy)
	if on {
		for _, p := range r.processes {
			p.boot(p.clock.now)
		}
		return "ok on"
	}
	for r.round() > 0 {
	}
	for _, p := range r.processes {
		p.finish("off", p.time(r.memory.now()))
		p.begun = false
	}
	return "ok off"
}

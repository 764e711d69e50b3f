//go:build linux

package record

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// image begins the recording of a program.
func (r *Recorder) image(t *thread, rec *record) error {
	w := rec.words
	pid, parent := uint32(w[1]), uint32(w[1]>>32)
	key := processKey{pid, t.image}
	if pid != t.pid || r.processes[key] != nil {
		return fmt.Errorf("a first record of process %d in a ring of process %d", pid, t.pid)
	}
	bits := rec.wordBits()
	if bits != 32 && bits != 64 {
		return fmt.Errorf("a word of %d bits", bits)
	}
	name, _ := text(w[4:], rec.pathBytes())
	p := &process{key: key, parent: parent, name: name, word: bits, config: &r.config, clock: &r.memory.clock, hooks: rec.hooks()}
	r.begins(key)
	p.host = r.hostPID(pid, parent, t.image)
	if name == "" {
		p.name, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", p.host))
	}
	for _, old := range r.processes {
		if old.host != p.host {
			continue
		}
		if w[3] == 0 || p.host == r.root { // it executed this program
			r.finish(old, "exec")
			continue
		}
		r.finish(old, "exit") // and a child of another process has its PID
		r.close(p.host)
	}
	from := r.processes[processKey{parent, w[3]}]
	if r.root == 0 {
		r.root, p.parent, r.memory.seen.root = p.host, 0, pid
	}
	t.proc = p
	r.processes[key] = p
	p.exe.begin(p.host, name)
	p.modules.reset()
	p.tree.reset()
	if from != nil {
		p.modules = from.modules.clone()
	}
	// Many children do nothing but execute a program.
	if p.idle = w[3] != 0 && p.host != r.root; !p.idle {
		r.start(p)
	}
	return nil
}

// start begins the recording of a process with its first event.
func (r *Recorder) start(p *process) {
	p.idle = false
	// A program that the process executes goes on in its recording.
	if r.outputs[p.host] == nil {
		r.outputs[p.host] = r.open(p)
	}
	p.out = r.outputs[p.host]
	if r.on {
		p.boot(p.clock.micros(p.key.image))
	}
}

// open opens the recording of a process.
func (r *Recorder) open(p *process) *output {
	pid := fmt.Sprint(p.host)
	if p.host < 0 {
		pid = fmt.Sprint(p.key.pid)
	}
	file, name, err := r.create(pid, p.host == r.root)
	o := newOutput(file, err)
	o.name = cmp.Or(name, pid)
	return o
}

// crowded reports whether half of the slots are taken: what ended processes have is to be freed soon.
func (r *Recorder) crowded() bool {
	n := 0
	for range r.all {
		n++
	}
	return n > len(r.threads)/2
}

// scan releases the slots of ended threads, and ends the recordings of ended processes.
func (r *Recorder) scan(now time.Time) {
	r.scanned = now
	r.inspect()
	r.executed.look(now)
	quiet := map[*process]bool{}
	for _, p := range r.processes {
		quiet[p] = true
	}
	for t := range r.all {
		if r.config.Events && t.proc != nil && now.Sub(t.active) < 2*scanEvery {
			t.proc.thread(t)
		}
		if now.Sub(t.active) < time.Second || t.head.Load() != t.ring.tail {
			delete(quiet, t.proc)
			continue
		}
		if (t.proc == nil || !t.proc.foreign()) && unix.Tgkill(int(t.pid), int(t.tid), 0) == unix.ESRCH && t.state.Load() != stateFree {
			r.release(t)
		}
	}
	for _, p := range r.processes {
		switch {
		case p.host == r.root:
			p.exe.look(p.host, now)
		case p.host < 0 && quiet[p] || p.host >= 0 && !Running(p.host):
			r.gone(p.host)
		case p.host >= 0:
			p.exe.look(p.host, now)
		}
	}
	// A process may have ended while it was filling in a slot.
	for i := range r.memory.slots[:r.top] {
		s := &r.memory.slots[i]
		if r.threads[i] == nil && s.state.Load() == stateFilling && s.pid != 0 && !r.namespaces && !Running(int(s.pid)) {
			s.state.CompareAndSwap(stateFilling, stateFree)
		}
	}
}

// Running reports whether a process has a running thread.
func Running(pid int) bool {
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

// gone ends the recording of a process that ended.
func (r *Recorder) gone(host int) {
	r.round() // reads all that it wrote; while others write, there may be no last round
	for _, p := range r.processes {
		if p.host == host {
			r.finish(p, "exit")
		}
	}
	if host != r.root {
		r.close(host)
	}
}

// close ends the recording of a PID.
func (r *Recorder) close(host int) {
	if o := r.outputs[host]; o != nil {
		o.close()
		delete(r.outputs, host)
	}
}

// goneAll ends the recordings of all processes.
func (r *Recorder) goneAll() {
	for r.round() > 0 {
	}
	for _, p := range r.processes {
		r.gone(p.host)
	}
}

// finish ends the recording of a program.
func (r *Recorder) finish(p *process, why string) {
	delete(r.processes, p.key)
	for t := range r.all {
		if t.proc == p {
			r.countLost(t)
		}
	}
	if p.idle {
		r.releaseAll(p)
		return
	}
	s := Summary{Name: p.out.name, Root: p.host == r.root, Text: p.String(), Err: p.incomplete(), out: p.out}
	if p.begun {
		p.finish(why, p.time(r.memory.now()))
	}
	if p.exe.unrecorded(time.Now()) && r.executed.waiting[p.key.pid] == nil {
		if s.Root {
			r.unrecorded = fmt.Errorf("the program executed %s, which is not recorded: %s", p.exe.other, p.exe.reason)
		} else {
			r.note("process %d executed %s, which is not recorded: %s", p.host, p.exe.other, p.exe.reason)
		}
	}
	r.releaseAll(p)
	r.ended = append(r.ended, s)
}

// releaseAll frees the slots of a process.
func (r *Recorder) releaseAll(p *process) {
	for t := range r.all {
		if t.proc == p {
			r.release(t)
		}
	}
}

// end closes all recordings.
func (r *Recorder) end() (result Result) {
	r.goneAll()
	r.inspect()
	n, ok := tally(&r.memory.slotless)
	if !ok {
		r.damaged("the number of lost events")
	}
	if n > 0 {
		why := "no ring was free for their threads or signal handlers"
		if r.top == len(r.memory.slots) {
			why = fmt.Sprintf("more than %d threads at once, with those that had just ended", r.top)
		}
		result.Err = fmt.Errorf("%s were lost: %s", lostEvents(uint64(n)), why)
	}
	notes, executed := r.executed.notes()
	result.Err = cmp.Or(r.damage, result.Err, executed, r.unrecorded)
	for _, text := range notes {
		r.note("%s", text)
	}
	for _, o := range r.outputs {
		o.close()
	}
	for i := range r.ended {
		s := &r.ended[i]
		if r.damage != nil { // which explains what is missing: the totals may be wrong
			s.Text, s.Err = "", nil
		}
		s.Err = cmp.Or(s.out.err, s.Err)
	}
	result.Processes, result.Notes = r.ended, r.notes
	return result
}

//go:build linux

package record

import (
	"bytes"
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
	name, _ := text(w[5:], rec.pathBytes())
	if name == "" {
		name, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	}
	for k, old := range r.processes {
		if k.pid == pid { // it executed this program
			r.finish(old, "exec")
		}
	}
	p := &process{key: key, parent: parent, name: name, word: bits, config: &r.config, clock: &r.memory.clock}
	from := r.processes[processKey{parent, w[3]}]
	if r.root == 0 {
		r.root, p.parent = pid, 0
	} else if pid != r.root {
		// A PID of another namespace denotes another process here.
		p.foreign = parent == 0 || from != nil && from.foreign
	}
	// A program that the process executes goes on in its recording.
	if r.outputs[pid] == nil {
		r.outputs[pid] = newOutput(r.create(int(pid), pid == r.root))
	}
	p.out = r.outputs[pid]
	t.proc = p
	r.processes[key] = p
	p.exe.begin(int(pid), name)
	p.modules.reset()
	p.tree.reset()
	var inherited liveTable
	if from != nil {
		inherited = p.copy(from, w[4])
	}
	if r.on {
		p.boot(p.clock.micros(p.key.image))
		p.inherit(&inherited)
	}
	return nil
}

// scan releases the slots of ended threads, and ends the recordings of ended processes.
func (r *Recorder) scan(now time.Time) {
	r.scanned = now
	for t := range r.all {
		if t.proc != nil && t.proc.foreign || now.Sub(t.active) < time.Second || t.head.Load() != t.ring.tail {
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
		if p.key.pid != r.root && !Running(int(p.key.pid)) {
			r.gone(p.key.pid)
		}
	}
	// A process may have ended while it was filling in a slot.
	for i := range r.memory.slots[:r.top] {
		s := &r.memory.slots[i]
		if r.threads[i] == nil && s.state.Load() == slotFilling && s.pid != 0 && !Running(int(s.pid)) {
			s.state.CompareAndSwap(slotFilling, slotFree)
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

// idle ends the recordings of processes in other PID namespaces, if no other processes
// remain and they record nothing. It reports whether no process remains.
func (r *Recorder) idle(now time.Time) bool {
	for _, p := range r.processes {
		if !p.foreign {
			return false
		}
	}
	for t := range r.all {
		if now.Sub(t.active) < time.Second {
			return len(r.processes) == 0
		}
	}
	for _, p := range r.processes {
		r.gone(p.key.pid)
	}
	return true
}

// gone ends the recording of a process that ended.
func (r *Recorder) gone(pid uint32) {
	r.round() // reads all that it wrote; while others write, there may be no last round
	for k, p := range r.processes {
		if k.pid == pid {
			r.finish(p, "exit")
		}
	}
	for t := range r.all {
		if t.pid == pid {
			r.release(t)
		}
	}
	if o := r.outputs[pid]; o != nil && pid != r.root {
		o.close()
		delete(r.outputs, pid)
	}
}

// finish ends the recording of a program.
func (r *Recorder) finish(p *process, why string) {
	delete(r.processes, p.key)
	for t := range r.all {
		if t.proc == p {
			t.countLost()
		}
	}
	s := Summary{PID: int(p.key.pid), Root: p.key.pid == r.root, Text: p.String(), out: p.out}
	if p.begun {
		p.finish(why, p.time(r.memory.now()))
	}
	if p.exe.unrecorded(time.Now()) {
		r.note("process %d executed %s, which is not recorded: it is static, or runs as another user", p.key.pid, p.exe.other)
	}
	r.ended = append(r.ended, s)
}

// end closes all recordings.
func (r *Recorder) end() ([]Summary, []string) {
	if n := r.memory.slotless.Load(); n > 0 {
		r.note("%d events were lost: more than %d threads at once", n, len(r.memory.slots))
	}
	for _, o := range r.outputs {
		o.close()
	}
	for i := range r.ended {
		s := &r.ended[i]
		s.Err = s.out.err
	}
	return r.ended, r.notes
}

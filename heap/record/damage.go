//go:build linux

package record

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A program may write over the shared memory by mistake. Its records have check values, which ring.go
// checks. The rest of the memory is compared here with what it must be: what changed there may have
// made the library in the program record less, or nothing, so the recording is not complete then.

// seen is what the recorder knows of the memory.
type seen struct {
	constants [headerConstants]byte
	alive     uint32
	mode      uint32
	root      uint32 // of the first image, 0: none so far
	count     uint32
}

// headerConstants is the number of bytes at the beginning of the header that do not change.
const headerConstants = unsafe.Offsetof(header{}.alive)

func (m *memory) constants() []byte { return m.bytes[:headerConstants] }

// damaged notes what of the memory the program wrote over.
func (r *Recorder) damaged(format string, args ...any) {
	if r.damage != nil {
		return
	}
	r.damage = fmt.Errorf("the program wrote over shared memory: "+format, args...)
	r.memory.mode.Store(r.memory.seen.mode | modeLossy) // nobody may read the ring that a thread waits for
	for _, p := range r.processes {
		if p.begun {
			p.text = append(p.text, "~h#lost\n"...)
		}
	}
}

// inspect compares the memory with what it must be.
func (r *Recorder) inspect() {
	if r.detached { // threads may end what they began to record
		return
	}
	m, s := r.memory, &r.memory.seen
	top, ok := tally(&m.top)
	count := m.count.Load()
	switch mode := m.mode.Load(); {
	case !bytes.Equal(m.constants(), s.constants[:]):
		r.damaged("the header")
	case mode != s.mode && mode != s.mode|modeLossy:
		r.damaged("the mode of the recording is %#x", mode)
	case m.alive.Load()&^futexWaiters != s.alive:
		r.damaged("the sign that the recorder runs")
	case s.root != 0 && m.root.Load() != s.root:
		r.damaged("the PID of the first process is %d", m.root.Load())
	case !ok || top < r.top:
		r.damaged("the number of rings")
	case m.clock.kind == clockCount && int32(count-s.count) < 0:
		r.damaged("the clock went back")
	}
	s.count = count
	for i := range m.slots[:r.top] {
		r.inspectSlot(i)
	}
}

// tally returns the number of a tally. ok is false if its check value is wrong.
func tally(word *atomic.Uint32) (n int, ok bool) {
	v := word.Load()
	c := v & ringTallyMax
	return int(c), v == c|c*ringTally>>ringTallyBits<<ringTallyBits
}

const futexWaiters = 1 << 31

// inspectSlot compares a slot with what it must be.
func (r *Recorder) inspectSlot(i int) {
	s, t := &r.memory.slots[i], r.threads[i]
	state := s.state.Load()
	switch {
	case t == nil && (state == stateFree || state == stateFilling) && (s.head.Load() != 0 || s.lost.Load() != 0):
		r.damaged("a thread writes to a ring that is free")
	case state > stateFilling:
		r.damaged("the state of a ring is %d", state)
	case t != nil && (state == stateFree || state == stateFilling || s.pid != t.pid || s.tid != t.tid || s.image != t.image):
		r.damaged("the ring of thread %d", t.tid)
	}
}

// readOn reads the record behind the head of an ended thread, which was killed before it could publish
// it, if there is one. Then the head must be where the thread left it.
func (r *Recorder) readOn(t *thread) {
	if t.bad || r.detached {
		return
	}
	var rec record
	published := ^t.again.Load()
	if t.again.Load() == 0 && t.ring.tail == 0 { // nothing was
		return
	}
	if t.ring.tail != published {
		t.ring.head = published
		if t.ring.head-t.ring.tail > ringRecordMax || !t.ring.peek(&r.memory.clock) || t.ring.next(&rec) != nil || r.apply(t, &rec) != nil {
			r.damaged("the head of the ring of thread %d", t.tid)
		}
	}
	if t.ring.tail != published {
		r.damaged("the head of the ring of thread %d", t.tid)
	}
}

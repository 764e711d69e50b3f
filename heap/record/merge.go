//go:build linux

package record

import (
	"errors"
	"fmt"
	"time"
)

// A round reads the clock, then the heads of all rings, and applies the records with earlier
// stamps in the order of their stamps. Later records wait for the next round.

// skew is more than the cycle counters of processors differ by.
const skew = 1 << 20

// round reads all rings once, and returns the number of records.
func (r *Recorder) round() int {
	m := r.memory
	t0 := m.now()
	m.clock.measure()
	r.take() // after t0: slots that were taken before it have records of before it
	r.merge = r.merge[:0]
	for t := range r.all {
		head := t.head.Load()
		if t.bad { // the program must not wait
			t.ring.tail = head
		}
		if head == t.ring.tail {
			continue
		}
		r.countLost(t) // before the records that the program published after the loss
		waited := t.ring.head != t.ring.tail
		if err := t.ring.publish(head); err != nil {
			r.broken(t, err)
			continue
		}
		switch {
		case !t.ring.peek(&m.clock):
		case m.clock.before(t.ring.stamp, t0):
			r.merge = append(r.merge, t)
		case waited && m.clock.distance(t.ring.stamp, t0) > skew: // an earlier round has seen it
			r.broken(t, errors.New("a record with a time to come"))
		}
	}
	n := r.drain(t0)
	for _, p := range r.processes {
		p.prune(r.threads[:r.top])
		if len(p.text) > 0 {
			p.flush()
		}
	}
	for t := range r.all {
		r.give(t)
		if t.state.Load() == stateLeft && t.head.Load() == t.ring.tail {
			r.release(t)
		}
	}
	return n
}

// all yields the threads whose slots are taken.
func (r *Recorder) all(yield func(*thread) bool) {
	for _, t := range r.threads[:r.top] {
		if t != nil && !yield(t) {
			return
		}
	}
}

// take adds the threads of newly taken slots.
func (r *Recorder) take() {
	top, ok := tally(&r.memory.top)
	if !ok {
		r.damaged("the number of rings")
		top = len(r.memory.slots)
	}
	r.top = max(r.top, min(len(r.memory.slots), top))
	for i := range r.memory.slots[:r.top] {
		if r.threads[i] == nil {
			if s := r.memory.slots[i].state.Load(); s == stateTaken || s == stateLeft {
				r.threads[i] = newThread(r.memory, i)
				r.threads[i].active = time.Now()
			}
		}
	}
}

// release frees a slot whose ring was read to its end.
func (r *Recorder) release(t *thread) {
	r.inspectSlot(t.index)
	r.readOn(t)
	r.countLost(t)
	if t.proc != nil {
		t.proc.thread(t)
	}
	r.threads[t.index] = nil
	t.head.Store(0)
	t.again.Store(0)
	t.tail.Store(0)
	t.slot.lost.Store(0)
	t.waiting.Store(0)
	t.room.Store(0)
	t.state.Store(stateFree)
}

// broken ends the recording of a thread whose ring is corrupt.
func (r *Recorder) broken(t *thread, err error) {
	t.bad = true
	r.damaged("process %d, thread %d: %v", t.pid, t.tid, err)
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
			r.give(t)
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
		if t.proc = r.processes[processKey{t.pid, t.image}]; t.proc == nil {
			return fmt.Errorf("a record of kind %d before the first of its process", rec.kind)
		}
	}
	p := t.proc
	if p.idle && rec.kind != kindExec {
		r.start(p)
	}
	if !t.named {
		t.named = true
		p.thread(t)
	}
	switch rec.kind {
	case kindModule:
		name, err := p.load(rec)
		if rec.frames && err == nil {
			r.lacks(p, name)
		}
		return err
	case kindUnloaded:
		p.modules.unload()
	case kindElsewhere:
		p.bad = errors.New("what the program loaded by dlmopen has an allocator of its own, which is not recorded")
	case kindExec:
		r.executes(p, rec)
	default:
		return t.apply(rec)
	}
	return nil
}

//go:build linux

package record

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"
)

// thread is a taken slot, and the state of reading its ring.
type thread struct {
	index int
	*slot
	ring  ring
	pid   uint32 // pid to image are copies of the slot's fields
	tid   uint32
	image uint64
	proc  *process

	last   pathID // the last stack with frames
	places [ringPlaces]pathID
	known  [ringPlaces]bool

	moving block  // the block of a move that has begun; addr is 0 if there is none
	lost   int    // events that the recording has as lost
	given  uint32 // words of the ring that the program may use again

	named  bool      // the recording has the thread's first name
	active time.Time // of the last record
	bad    bool      // the ring is corrupt: its records are dropped
}

// newThread returns the thread of a taken slot.
func newThread(m *memory, i int) *thread {
	s := &m.slots[i]
	t := &thread{index: i, slot: s, pid: s.pid, tid: s.tid, image: s.image}
	t.ring = ring{words: m.ring(i), mask: m.words - 1, seed: t.image ^ uint64(t.tid)<<32}
	return t
}

// name returns the name that the thread has now, "" if it has ended.
func (t *thread) name() string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", t.pid, t.tid))
	return strings.TrimSuffix(string(text), "\n")
}

// give publishes what was read of a ring, so that the program can reuse the words before it.
func (r *Recorder) give(t *thread) {
	if t.tail.Load() != t.given {
		r.damaged("the tail of the ring of thread %d", t.tid)
	} else if t.given == t.ring.tail {
		return
	}
	t.given = t.ring.tail
	t.tail.Store(t.given)
	t.room.Add(1)
	if t.waiting.Load() != 0 {
		futexWakeOne(unsafe.Pointer(&t.room))
	}
}

// stack returns the path of a record.
func (t *thread) stack(rec *record) (pathID, error) {
	if !rec.frames {
		if rec.place >= ringPlaces || !t.known[rec.place] {
			return 0, fmt.Errorf("the stack of place %d, which has none", rec.place)
		}
		return t.places[rec.place], nil
	}
	tree := &t.proc.tree
	kept := int(rec.kept)
	if kept > tree.depth(t.last) {
		return 0, fmt.Errorf("%d frames of a stack of %d", kept, tree.depth(t.last))
	}
	path := tree.outer(t.last, kept)
	if kept == 0 {
		path = noFrames
		if rec.end != endOutermost {
			path = cutOuter
		}
	}
	for i := range rec.more {
		path = tree.child(path, t.proc.modules.step(rec.more[i]))
	}
	t.last = path
	if rec.place < ringPlaces {
		t.places[rec.place], t.known[rec.place] = path, true
	}
	return path, nil
}

// maxSize is larger than all memory that a process can have. Larger blocks than largeSize are compared with the
// memory that it had; a smaller one may be of a program that executed another one meanwhile.
const maxSize, largeSize = 1 << 47, 1 << 32

// apply applies an event to the process.
func (t *thread) apply(rec *record) error {
	p := t.proc
	micros := p.last
	if p.config.Events || p.config.AtPeak { // else only dumps have times
		micros = p.time(rec.stamp)
	}
	if !p.begun && rec.kind != kindAllocated && rec.kind != kindMoveEnds {
		t.moving = block{}
		return nil
	}
	if t.moving.addr != 0 && (rec.kind < kindMoveEnds || rec.kind > kindMoveFreed) {
		t.endMove(micros) // its record was lost
	}
	switch rec.kind {
	case kindAllocated, kindMoveEnds:
		if rec.size >= maxSize || rec.address+rec.size < rec.address {
			return fmt.Errorf("a block of %d bytes at %#x", rec.size, rec.address)
		}
		if rec.size > largeSize && rec.size > p.largest() {
			return fmt.Errorf("a block of %d bytes in a process that had at most %d", rec.size, p.mapped)
		}
		path, err := t.stack(rec)
		if err != nil {
			return err
		}
		if p.config.Sample > 0 {
			path = p.tree.child(path, step{rec.size, ofSize})
		}
		b := block{addr: rec.address, size: rec.size, path: path}
		var ended *block
		if rec.kind == kindMoveEnds && t.moving.addr != 0 {
			ended = &t.moving
		}
		if b.addr != 0 && p.begun {
			p.begin(b, ended, t.tid, micros)
		}
		t.moving = block{}
	case kindFreed:
		p.free(rec.address, t.tid, micros)
	case kindMoveBegins:
		t.moving, _ = p.take(rec.address)
	case kindMoveFailed:
		if t.moving.addr != 0 {
			p.put(t.moving, t.tid, micros)
		}
		t.moving = block{}
	case kindMoveFreed:
		t.endMove(micros)
	}
	return nil
}

// countLost records the events that were lost since its last call.
func (r *Recorder) countLost(t *thread) {
	n, ok := tally(&t.slot.lost)
	if !ok {
		r.damaged("the number of lost events of thread %d", t.tid)
	} else if n > t.lost && t.proc != nil && t.proc.begun {
		t.proc.lose(uint64(n-t.lost), t.proc.last)
		t.lost = n
	}
}

// endMove ends the block that moves.
func (t *thread) endMove(micros uint64) {
	if t.moving.addr != 0 {
		t.proc.end(t.moving, t.tid, micros)
	}
	t.moving = block{}
}

package forms

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// esp is the state of the texts of ESP-IDF.
//
// A record of heap_trace_dump may be followed by "freed by" on a line of its own, with lines of
// names by idf_monitor and of other tasks between them: it waits until another line of the trace comes.
type esp struct {
	traced bool     // the last totals are those of a trace
	shown  []string // the heaps of the open dump of heap_caps_dump
	task   struct {
		number uint64
		seen   []string // in the open dump
		last   bool     // no other task follows
		memory string
	}
}

const (
	espCode = 0x4000_0000 // where the addresses of code begin, on all chips
	espWalk = "heap_caps_dump"
)

func (s *state) espRecord(m match) {
	s.flush()
	s.closeEndless()
	rest := bytes.TrimSpace(m.group("rest"))
	if bytes.HasPrefix(rest, []byte("freed")) { // without frame pointers, RISC-V shows no callers
		return
	}
	b := m.block()
	if callers, ok := bytes.CutPrefix(rest, []byte("caller")); ok {
		b.pcs = hexes(callers)
		if i := slices.IndexFunc(b.pcs, func(pc uint64) bool { return pc>>32 != 0 || pc < espCode }); i >= 0 {
			b.pcs = b.pcs[:i] // a letter of another task behind it; RISC-V's frame pointer in place of a caller
		}
	}
	s.setMemory(m.hex("address"), heapName(m.text("memory")))
	s.wait(b, 1)
}

// espEnds takes the totals of a trace. A line that the buffer has overflowed may follow.
func (s *state) espEnds(m match) {
	s.flush()
	s.n, s.size, s.ended, s.traced, s.others = m.number("count"), m.number("size"), true, true, 0
}

// espOverflow ends a dump that is not complete: allocations are missing, and nobody knows how many.
func (s *state) espOverflow(match) {
	s.note("the buffer of heap_trace_init_standalone overflowed: allocations are missing")
	if s.ended {
		s.dump, s.open, s.ended = s.dump+1, false, false
	}
}

// capabilities returns the name of a heap by its MALLOC_CAP_ of heap/include/esp_heap_caps.h in hexadecimal, as far as these
// tell heaps apart.
func capabilities(hex string) string {
	bits, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(hex), "0x"), 16, 64)
	if err != nil {
		return hex
	}
	var names []string
	for _, row := range rows("capabilities") {
		if bit, _ := strconv.Atoi(row[0]); bits>>bit&1 != 0 {
			names, bits = append(names, row[1]), bits&^(1<<bit)
		}
	}
	if bits != 0 {
		names = append(names, fmt.Sprintf("%#x", bits))
	}
	return strings.Join(names, "+")
}

// espShow takes the line before the blocks of a heap. heap_caps_dump has no last line: it shows
// some heaps, and begins again with one that was shown.
func (s *state) espShow(m match) {
	name := m.text("name")
	if s.endless == espWalk {
		s.walked()
	}
	if slices.Contains(s.shown, name) || len(s.shown) >= maxSeen {
		s.closeEndless()
	}
	if s.beginEndless(espWalk, "") {
		s.shown = nil
	}
	s.shown, s.walk = append(s.shown, name), heap{name: name, least: -1}
}

func (s *state) espBlock(m match) {
	if s.beginEndless(espWalk, "") {
		s.shown, s.walk = nil, heap{}
	}
	b := m.block()
	if s.walk.name != "" {
		s.walk.size += b.size
	}
	if m.text("free") == "No" {
		s.record(&b)
	} else {
		s.walk.addFree(m.hex("address"), b.size)
	}
}

// espTask takes a task of heap_caps_print_all_task_stat, or with one line of heap_caps_print_single_task_stat.
func (s *state) espTask(m match) {
	name, why := m.text("task"), ""
	if m.text("status") == "DELETED" {
		name += ", deleted"
	}
	if s.task.last {
		s.closeEndless()
	}
	if s.task.last = m.group("last") != nil; s.task.last {
		why = "task " + name
	}
	s.inTasks("task_stat", name, why)
	s.task.number = s.numberOf(name)
}

// inTasks opens a dump of tasks, which has no certain end: another one begins where a task comes again.
func (s *state) inTasks(kind, name, why string) {
	t := &s.task
	if slices.Contains(t.seen, name) || len(t.seen) >= maxSeen {
		s.closeEndless()
	}
	if s.beginEndless(kind, why) {
		t.seen = nil
	}
	t.seen = append(t.seen, name)
}

// espUsage takes the row of a task in an overview, which tells the sum of its blocks.
func (s *state) espUsage(m match) {
	b := m.block()
	if b.size += max(m.number("more"), 0); b.size == 0 {
		return
	}
	b.user.Set(codec.TagThread, s.numberOf(m.text("task")))
	s.record(&b)
	s.note("a list of tasks has no number of blocks: each task counts as one")
}

func (s *state) espAlloc(m match) {
	b := m.block()
	if s.task.number > 0 {
		b.user.Set(codec.TagThread, s.task.number)
	}
	s.setMemory(m.hex("address"), s.task.memory)
	s.record(&b)
}

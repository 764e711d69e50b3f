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
// names by idf_monitor and of other tasks between them: it is held until a line shows that no
// "freed by" follows.
type esp struct {
	traced bool     // the last totals are those of a trace
	shown  []string // the heaps of the open dump of heap_caps_dump
	walk   heap     // the heap that is shown: what was free so far
	task   struct {
		number uint64
		seen   []string // in the open dump
		last   bool     // no other task follows
		memory string
	}
}

// espCode is where the addresses of code begin, on all chips.
const espCode = 0x4000_0000

func (s *state) espRecord(m match) {
	s.flush()
	s.closeEndless()
	rest := bytes.TrimSpace(m.group("rest"))
	if bytes.HasPrefix(rest, []byte("freed")) { // without frame pointers, RISC-V shows no callers
		s.release()
		return
	}
	b := m.block()
	if callers, ok := bytes.CutPrefix(rest, []byte("caller")); ok {
		b.pcs = hexes(callers)
		for i, pc := range b.pcs {
			if pc>>32 != 0 || pc < espCode { // a letter of another task behind it; RISC-V's frame pointer in place of a caller
				b.pcs = b.pcs[:i]
				break
			}
		}
	}
	memory := m.text("memory")
	if memory == "Internal" {
		memory = "internal" // as the heap of these capabilities
	}
	s.addMemory(m.hex("address"), memory)
	s.hold(&b)
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
		s.release()
		s.dump, s.open, s.ended = s.dump+1, false, false
	}
}

// espCapabilities are the names of MALLOC_CAP_ of heap/include/esp_heap_caps.h that tell heaps apart.
var espCapabilities = []struct {
	bit  uint64
	name string
}{{1 << 11, "internal"}, {1 << 10, "PSRAM"}, {1 << 3, "DMA"}, {1 << 2, "8bit"}, {1 << 1, "32bit"}, {1 << 0, "exec"}, {1 << 12, "default"},
	{1 << 13, "IRAM 8bit"}, {1 << 14, "retention"}, {1 << 15, "RTC RAM"}, {1 << 16, "TCM"}}

// capabilities returns the name of a heap by its capabilities in hexadecimal.
func capabilities(hex string) string {
	if bits, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(hex), "0x"), 16, 64); err == nil {
		return espCaps(bits)
	}
	return hex
}

// espCaps returns the name of a heap by its capabilities.
func espCaps(bits uint64) string {
	var names []string
	for _, c := range espCapabilities {
		if bits&c.bit != 0 {
			names, bits = append(names, c.name), bits&^c.bit
		}
	}
	if bits != 0 {
		names = append(names, fmt.Sprintf("%#x", bits))
	}
	return strings.Join(names, "+")
}

func (s *state) espFailed(m match) {
	size := m.number("size")
	if size < 0 {
		size = int64(m.hex("size"))
	}
	s.failed(size, espCaps(m.hex("caps")))
}

// maxSeen is the most heaps or tasks that a dump has.
const maxSeen = 256

// espShow takes the line before the blocks of a heap. heap_caps_dump has no last line: it shows
// some heaps, and begins again with one that was shown.
func (s *state) espShow(m match) {
	name := m.text("name")
	s.espWalked()
	if slices.Contains(s.shown, name) || len(s.shown) >= maxSeen {
		s.close(-1, -1)
	}
	s.espWalk()
	s.shown, s.walk = append(s.shown, name), heap{name: name, least: -1}
}

// espWalk opens the dump of heap_caps_dump.
func (s *state) espWalk() {
	if s.beginEndless("heap_caps_dump", "") {
		s.shown, s.atEnd = nil, s.espWalked
	}
}

// espWalked ends a heap: what the walk has found free is what the heap has.
func (s *state) espWalked() {
	if s.walk.size > 0 {
		s.heap(s.walk)
	}
	s.walk = heap{}
}

func (s *state) espBlock(m match) {
	s.espWalk()
	b := m.block()
	if s.walk.name != "" {
		s.walk.size += b.size
	}
	if m.text("free") == "No" {
		s.record(&b)
		return
	}
	s.walk.addFree(m.hex("address"), b.size)
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

// espTotal takes the sums of a task, as the example of heap_caps_get_per_task_info prints them.
func (s *state) espTotal(m match) {
	s.inTasks("task_info", m.text("task"), "")
	s.espUsage(m)
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
	s.addMemory(m.hex("address"), s.task.memory)
	s.record(&b)
}

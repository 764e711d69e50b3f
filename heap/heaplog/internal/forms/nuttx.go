package forms

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// nuttx is the state of the texts of NuttX. Their columns differ from version to version, so the
// line with the names of the columns says what the numbers are.
type nuttx struct {
	rows    bool     // inside is nuttxRow
	columns []string // of the rows of memdump, to the address
	free    bool     // the rows are free blocks, which walk adds up
	asked   string   // what the command asks for, as the reason of a dump, "" for all
	window  string   // the sequence numbers that it asks for, likewise
	owner   string   // the task that the dump is of, "" if it is of several
	threads map[uint64]string

	// One memdump of all blocks dumps each heap. The dump goes on with another heap until one begins
	// that it has, or something else comes.
	next  bool        // the first row of another heap, or of the next dump, follows
	heaps [][2]uint64 // the lowest and the highest address of a block, by heap
	// freeFirst means that the log lists what is free before the blocks of a dump, not behind them.
	freeFirst bool
}

var (
	nuttxRow   = regexp.MustCompile(`((?:-?\d{1,18} +)+)(0x[0-9a-fA-F]{1,16})\b(.*)$`)
	nuttxTotal = regexp.MustCompile(`(\d{1,18}) +(\d{1,18})$`)
	nuttxNames = regexp.MustCompile(`\b(PID|Size|Overhead|Sequence|Address)\b`)
)

// nuttxUsual are the columns by the number of those before the address, as far as it tells them.
var nuttxUsual = [][]string{{"Size"}, {"PID", "Size"}, {"PID", "Size", ""}, {"PID", "Size", "Overhead", "Sequence"}}

// nuttxFree is the kind of a dump that has free blocks, and nuttxFailure the sums of processes after a failed allocation.
const nuttxFree, nuttxFailure = "free", "failure"

// nuttxDump begins a dump. kind says which blocks it has, "" for all.
func (s *state) nuttxDump(kind string) {
	if s.traced {
		s.closeEnded()
	}
	again := s.ended && cmp.Or(kind, s.asked, s.window) == "" // it goes on with another heap
	if !again && (kind != nuttxFree || !s.listsFree()) {
		s.flush()
	}
	s.columns, s.inside, s.rows, s.next = nil, s.nuttxRow, true, s.next || again
	if again {
		return
	}
	s.free, s.owner, s.walk = kind == nuttxFree, "", heap{size: -1, least: -1}
	if why := cmp.Or(kind, s.asked); !s.free {
		if s.window != "" {
			why = strings.TrimSpace(why + " sequence " + s.window)
		}
		s.begin(why)
		s.heaps, s.next, s.n, s.size = nil, why == "", 0, 0
	}
	s.asked, s.window = "", ""
}

// listsFree reports whether a list of free blocks is of the open dump, whose blocks the log has listed:
// the log does not begin with such a list.
func (s *state) listsFree() bool {
	s.freeFirst = s.freeFirst || !s.open && s.dump == 0
	return s.ended && !s.traced && !s.freeFirst
}

func (s *state) nuttxTask(m match) {
	task := m.text("task")
	s.nuttxDump(strings.TrimSuffix("task "+task, "task "))
	if m.group("named") != nil {
		s.owner = task
	}
}

// nuttxCommand takes a command, as the shell echoes it: a dump does not tell the sequence numbers that
// were asked for, and before 12.8 it tells nothing.
func (s *state) nuttxCommand(m match) {
	if s.asked = m.text("kind"); s.asked != nuttxFree || !s.listsFree() {
		s.closeEnded()
	}
	switch {
	case s.asked == "used" || s.asked == nuttxFree:
		s.asked = ""
	case s.asked != "" && isDigit(s.asked[0]):
		s.asked = "task " + s.asked
	}
	s.window = m.text("window")
}

// nuttxColumns takes the names of the columns. Where the line above was lost, a dump begins here.
func (s *state) nuttxColumns(m match) {
	if !s.rows {
		s.nuttxDump("")
	}
	s.columns = nuttxNames.FindAllString(string(m.line), -1)
}

// nuttxRow reads the line of a block. It reports whether it is one.
func (s *state) nuttxRow(text []byte) bool {
	if s.columns == nil && bytes.HasSuffix(text, []byte("Address")) { // without PID
		s.columns = nuttxNames.FindAllString(string(text), -1)
		return true
	}
	m := nuttxRow.FindSubmatch(text)
	if m == nil {
		if bytes.Contains(text, []byte(" 0x")) {
			s.Skipped++
		}
		return false
	}
	if bytes.HasSuffix(text, []byte("skip block dump")) { // a pool whose blocks have no process
		return true
	}
	numbers, columns := strings.Fields(string(m[1])), s.columns
	if s.free { // these have no process, although their line may have one
		columns = slices.DeleteFunc(slices.Clone(columns), func(name string) bool { return name == "PID" || name == "Sequence" })
	}
	before := slices.Index(columns, "Address")
	if before < 0 && len(numbers) <= len(nuttxUsual) { // their line was lost
		columns, before = nuttxUsual[len(numbers)-1], len(numbers)
	}
	if before < 0 || len(numbers) < before {
		s.Skipped++
		return false
	}
	b := block{pcs: hexes(m[3])}
	for i, number := range numbers[len(numbers)-before:] {
		switch v, err := strconv.ParseInt(number, 10, 64); {
		case err != nil || v < 0:
		case columns[i] == "PID":
			b.user.Set(codec.TagThread, uint64(v))
			s.nameThread(uint64(v), s.owner)
		case columns[i] == "Sequence":
			b.user.Set(codec.TagSequence, uint64(v))
		case columns[i] == "Size":
			b.size = v
		}
	}
	address, _ := strconv.ParseUint(string(m[2][2:]), 16, 64)
	s.nuttxHeapOf(address)
	if s.free {
		s.walk.addFree(address, b.size)
		return true
	}
	b.user.Set(codec.TagAddress, address)
	s.record(&b)
	return true
}

// nuttxHeapOf takes the address of a block.
func (s *state) nuttxHeapOf(address uint64) {
	if s.next {
		again := func(heap [2]uint64) bool { return heap[0] <= address && address <= heap[1] }
		if s.ended && (slices.ContainsFunc(s.heaps, again) || len(s.heaps) >= maxSeen) {
			s.begin("")
			s.heaps, s.n, s.size = nil, 0, 0
		}
		s.heaps, s.next, s.ended = append(s.heaps, [2]uint64{address, address}), false, false
	}
	if k := len(s.heaps); k > 0 {
		last := &s.heaps[k-1]
		*last = [2]uint64{min(last[0], address), max(last[1], address)}
	}
}

// nuttxAlone reads a row of which the lines above were not pasted.
func (s *state) nuttxAlone(m match) {
	if !s.rows {
		s.nuttxDump("")
	}
	s.nuttxRow(m.line)
}

// nuttxTotals takes the line before the number of blocks and their bytes.
func (s *state) nuttxTotals(match) {
	s.rows = false
	s.inside = func(text []byte) bool {
		m := nuttxTotal.FindSubmatch(text)
		if m == nil {
			return false
		}
		if s.inside = nil; s.free {
			s.walked()
			s.closeEnded()
			return true
		}
		n, _ := strconv.ParseInt(string(m[1]), 10, 64)
		b, _ := strconv.ParseInt(string(m[2]), 10, 64)
		s.n, s.size, s.ended, s.traced, s.others = s.n+n, s.size+b, true, false, 0
		if s.heaps == nil && !s.next {
			s.closeEnded()
		}
		return true
	}
}

// nuttxHolds takes the sum of the blocks of a process.
func (s *state) nuttxHolds(m match) {
	s.beginEndless(nuttxFailure, "")
	b := m.block()
	if pid := m.number("thread"); pid >= 0 {
		b.user.Set(codec.TagThread, uint64(pid))
	}
	if count := m.number("count"); count > 0 {
		s.sum(b, count, b.size)
	}
}

// nameThread names a thread, unless it has the name.
func (s *state) nameThread(number uint64, name string) {
	if name == "" || s.threads[number] == name || len(s.threads) >= maxTasks {
		return
	}
	if s.threads == nil {
		s.threads = map[uint64]string{}
	}
	s.threads[number] = name
	if number>>32 == 0 {
		s.header("thread", int64(number), "name", name)
	}
}

package forms

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// state is what the lines of traces so far leave for those that follow.
type state struct {
	trace
	frames  map[uint64][]Frame
	memory  map[uint64]string      // name of the memory that a block is in
	named   uint64                 // the address that was named last, 0 if it was known
	Systems []string               // of which something was read
	Notes   []string               // what the log tells besides, each once: a full buffer, a failed allocation
	inside  func(text []byte) bool // reads the rows of a table, nil outside of one
	moved   uint64                 // old address of a block of which the new one follows
	esp
	nuttx
}

// Frame is a function at an address. File is "" and Line 0 if they are not known.
type Frame struct {
	Func, File string
	Line       int
}

const (
	// maxFacts is the number of addresses of which a log may say something, and maxNotes the most notes of a log.
	maxFacts = 1 << 16
	maxNotes = 16
	// maxOthers is the number of other lines that may stand between those of a dump.
	maxOthers = 4
)

// Frames returns the functions that the log names at an address, innermost inlined first: people who look at an issue have
// the log and not the ELF file.
func (s *state) Frames(pc uint64) []Frame { return s.frames[pc] }

// Named reports whether the log names functions.
func (s *state) Named() bool { return len(s.frames) > 0 }

// Memory returns the name of the memory that holds a block, "" if the log does not tell.
func (s *state) Memory(address uint64) string { return s.memory[address] }

// name names an address, of which the first name counts. inlined names the function that the one named last was
// inlined into.
func (s *state) name(pc uint64, name, file string, line int64, inlined bool) {
	if !inlined {
		if s.named = pc; s.frames[pc] != nil || name == "" || len(s.frames) >= maxFacts {
			s.named = 0
		}
	}
	if s.frames == nil {
		s.frames = map[uint64][]Frame{}
	}
	if s.named != 0 && len(s.frames[s.named]) < maxFrames {
		s.frames[s.named] = append(s.frames[s.named], Frame{strings.Clone(name), strings.Clone(file), int(max(line, 0))})
	}
}

// setMemory says which memory holds a block.
func (s *state) setMemory(address uint64, name string) {
	if s.memory == nil {
		s.memory = map[uint64]string{}
	}
	if name != "" && len(s.memory) < maxFacts {
		s.memory[address] = name
	}
}

func (s *state) note(text string) {
	if len(s.Notes) < maxNotes && !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// flush ends what other lines end.
func (s *state) flush() {
	s.inside, s.rows = nil, false
	s.emit()
	s.closeEnded()
}

// form is a line that a system prints.
type form struct {
	system, since, source string
	expr                  expression // with a group for each value
	do                    func(*state, match)
	arg                   string
	aside                 bool // says nothing of a heap: a reset, or the name of an address. Logs of libwebsockets have these, too
}

// traceForms are the lines of traces, and traceKeys the texts that they have. What stands between them, such as the rows of a
// table, is read by the function that state.inside has at the time.
var traceForms, traceKeys = func() (list []form, keys *index) {
	macros := strings.NewReplacer("%M", `@ [^\[]*\[(?P<callers>%x)\] `, "%F", `(?P<func>[^?\s].*?) at (?P<file>[^?\s].*?)(?::| line )(?P<line>\d{1,9})`)
	numbers := strings.NewReplacer("%n", `\d{1,18}`, "%x", `0x[0-9a-fA-F]{1,16}`, "%X", `0x[0-9a-fA-F]{1,8}`)
	table := rows("traces")
	keys = &index{}
	for i, row := range slices.Backward(table) {
		for key := range strings.SplitSeq(row[5], "|") {
			keys.add(key, i)
		}
	}
	for _, row := range table {
		action, arg, _ := strings.Cut(row[4], " ")
		list = append(list, form{row[0], row[1], row[3], compiled(numbers.Replace(macros.Replace(row[6]))), actions[action], arg, slices.Contains([]string{"restart", "name", "inlined"}, action)})
	}
	return list, keys
}()

// actions are what lines of traces do.
var actions = map[string]func(*state, match){
	"begin":   func(s *state, m match) { s.flush(); s.begin(strings.TrimSpace(m.arg + " " + m.text("task"))) },
	"end":     func(s *state, m match) { s.flush(); s.close(m.number("count"), m.number("size")) },
	"event":   func(s *state, m match) { s.event(codec.EventAllocated, m) },
	"moved":   func(s *state, m match) { s.event(codec.EventMoved, m) },
	"freed":   func(s *state, m match) { s.event(codec.EventFreed, m) },
	"old":     func(s *state, m match) { s.moved = m.hex("old") },
	"stack":   (*state).stack,
	"callers": func(s *state, m match) { s.waiting.pcs = hexes(m.group("callers")); s.emit() },
	"failed":  (*state).failed,
	"restart": func(s *state, _ match) { s.flush(); s.threads = nil; s.boot() },
	"name": func(s *state, m match) {
		s.name(m.hex("address"), m.text("func"), m.text("file"), m.number("line"), false)
	},
	"inlined": func(s *state, m match) { s.name(0, m.text("func"), m.text("file"), m.number("line"), true) },

	"esp-record":   (*state).espRecord,
	"esp-freed":    func(s *state, _ match) { s.waits = 0 },
	"esp-end":      (*state).espEnds,
	"esp-more":     func(s *state, _ match) { s.others = 0 },
	"esp-overflow": (*state).espOverflow,
	"esp-heap":     (*state).espShow,
	"esp-block":    (*state).espBlock,
	"esp-task":     (*state).espTask,
	"esp-tasks":    func(s *state, _ match) { s.closeEndless(); s.beginEndless("overview", "") },
	"esp-usage":    (*state).espUsage,
	"esp-total":    func(s *state, m match) { s.inTasks("task_info", m.text("task"), ""); s.espUsage(m) },
	"esp-memory":   func(s *state, m match) { s.task.memory = m.text("memory") },
	"esp-alloc":    (*state).espAlloc,

	"nuttx-command": (*state).nuttxCommand,
	"nuttx-dump":    func(s *state, m match) { s.nuttxDump(m.arg) },
	"nuttx-task":    (*state).nuttxTask,
	"nuttx-columns": (*state).nuttxColumns,
	"nuttx-alone":   (*state).nuttxAlone,
	"nuttx-totals":  (*state).nuttxTotals,
	"nuttx-process": func(s *state, m match) { s.nameThread(uint64(m.number("thread")), m.text("name")) },
	"nuttx-holds":   (*state).nuttxHolds,

	"zephyr-block": (*state).zephyrBlock,
}

// match is a line of a form.
type match struct {
	*form
	line   []byte
	groups []int
}

// group returns the text of a group, nil if there is none.
func (m match) group(name string) []byte {
	i := m.expr().SubexpIndex(name)
	if i < 0 || m.groups[2*i] < 0 {
		return nil
	}
	return bytes.TrimSpace(m.line[m.groups[2*i]:m.groups[2*i+1]])
}

func (m match) text(name string) string { return string(m.group(name)) }

// number returns a decimal number, which may have commas; -1 if there is none.
func (m match) number(name string) int64 {
	v, err := strconv.ParseInt(strings.ReplaceAll(m.text(name), ",", ""), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

// hex returns a number with 0x, 0 if there is none.
func (m match) hex(name string) uint64 {
	v, _ := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(m.text(name)), "0x"), 16, 64)
	return v
}

// match reads the forms that a line has. found reports whether there are any, and taken whether they are of a
// trace. A line with the key of a record that is not whole is counted.
func (s *state) match(line []byte) (found, taken bool) {
	var tried [128]bool
	traceKeys.find(line, func(i int) bool {
		f := &traceForms[i]
		if tried[i] {
			return true
		}
		tried[i] = true
		groups := f.expr().FindSubmatchIndex(line)
		if groups == nil {
			if e := f.expr(); e.SubexpIndex("address") >= 0 && e.SubexpIndex("size") >= 0 {
				s.Skipped++
			}
			return true
		}
		found, taken = true, taken || !f.aside
		if !f.aside && !slices.Contains(s.Systems, f.system) {
			s.Systems = append(s.Systems, f.system)
		}
		f.do(s, match{f, line, groups})
		return true
	})
	return found, taken
}

// block returns the block of a line: its size, or count times its size, and its other groups.
func (m match) block() block {
	b := block{size: m.number("size"), pcs: hexes(m.group("callers"))}
	if n := m.hex("bytes"); n > 0 {
		b.size = int64(min(n, 1<<62))
	}
	for name, tag := range map[string]codec.Tag{"address": codec.TagAddress, "old": codec.TagOldAddress} {
		if m.group(name) != nil {
			b.user.Set(tag, m.hex(name))
		}
	}
	if ms := m.number("ms"); ms >= 0 && ms < 1<<50 {
		b.user.Set(codec.TagTime, 1000*uint64(ms))
	}
	return b
}

// failed notes that an allocation failed.
func (s *state) failed(m match) {
	if s.endless == nuttxFailure {
		s.flush()
		s.closeEndless()
	}
	size, memory := m.number("size"), ""
	if size < 0 {
		size = int64(m.hex("size"))
	}
	if caps := m.text("caps"); caps != "" {
		memory = " of " + capabilities(caps)
	}
	s.note(fmt.Sprintf("an allocation of %d bytes%s failed", size, memory))
}

// event writes an event. (BT-EVT-5)
func (s *state) event(kind uint64, m match) {
	b := m.block()
	if count := m.number("count"); count >= 0 && b.size < 1<<31 && count < 1<<31 { // calloc
		b.size *= count
	}
	if kind == codec.EventMoved && m.group("old") == nil {
		b.user.Set(codec.TagOldAddress, s.moved)
		s.moved = 0
	}
	if kind == codec.EventFreed {
		b.size = 0
	}
	if address, _ := b.user.Get(codec.TagAddress); address != 0 {
		b.user.Set(codec.TagEvent, kind)
		s.item(recording.KindEvent, &b)
	}
}

// stackFrames are frames below the sum of blocks of a system.
var stackFrames = map[string]*form{
	"sanitizer": {expr: compiled(`#\d+ (?P<address>0x[0-9a-fA-F]{1,16})(?: +in (?P<func>.*?) (?P<file>[^\s(]\S*?):(?P<line>\d{1,9})(?::\d+)?$| +in (?P<name>.*?) \(|)`)},
	"memcheck":  {expr: compiled(`(?:at|by) (?P<address>0x[0-9a-fA-F]{1,16}): (?P<func>.*?) \((?:in .*|(?P<file>.*?):(?P<line>\d{1,9}))\)$`)},
}

// stack reads a sum of blocks, with the frames on the lines that follow.
func (s *state) stack(m match) {
	s.flush()
	b := m.block()
	if direct := m.number("direct"); direct >= 0 {
		b.size = direct
	}
	if s.closeEndless(); !s.open {
		s.begin("leak")
	}
	s.wait(b, m.number("count"))
	frame := stackFrames[m.system]
	s.inside = func(text []byte) bool {
		groups := frame.expr().FindSubmatchIndex(text)
		if groups == nil {
			return false
		}
		f := match{frame, text, groups}
		pc, k := f.hex("address"), len(s.waiting.pcs)
		inlined := k > 0 && s.waiting.pcs[k-1] == pc
		if !inlined {
			s.waiting.pcs = append(s.waiting.pcs, pc)
		}
		s.name(pc, f.text("func")+f.text("name"), f.text("file"), f.number("line"), inlined)
		return true
	}
}

// zephyrBlock takes a block of heaptrace. Its call stack is on the line after it.
func (s *state) zephyrBlock(m match) {
	s.flush()
	b, thread := m.block(), m.hex("thread")
	b.user.Set(codec.TagThread, thread)
	s.nameThread(thread, m.text("task"))
	if memory := m.text("memory"); memory != "?" {
		s.setMemory(m.hex("address"), memory)
	}
	s.wait(b, 1)
}

var hexNumber = regexp.MustCompile(`^[ \t:]*0x([0-9a-fA-F]{1,16})`)

// hexes reads the hexadecimal numbers of a text, each with 0x, until other text than a space or a
// colon comes; zeros, which stand for frames that were not captured, end them.
func hexes(text []byte) (list []uint64) {
	for len(list) < maxFrames {
		m := hexNumber.FindSubmatch(text)
		if m == nil {
			break
		}
		v, _ := strconv.ParseUint(string(m[1]), 16, 64)
		if v == 0 {
			break
		}
		list, text = append(list, v), text[len(m[0]):]
	}
	return list
}

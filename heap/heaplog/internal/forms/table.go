package forms

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// form is a line that a system prints.
type form struct {
	system       string
	key          string         // that each such line has, at least two bytes
	expr         *regexp.Regexp // with a group for each value
	since, until string         // versions of the system that print it; "" if the last one does
	source       string         // what prints it
	do           func(*state, match)
}

const (
	n     = `\d{1,18})`           // a decimal number, and the end of its group
	x     = `0x[0-9a-fA-F]{1,16}` // an address
	x32   = `0x[0-9a-fA-F]{1,8}`  // an address of 32 bits, behind which letters of another task may be
	where = `(?P<func>[^?\s].*?) at (?P<file>[^?\s].*?)(?::| line )(?P<line>\d{1,9})`
)

var re = regexp.MustCompile

// traceForms are the lines of traces. What stands between them, such as the rows of a table, is read
// by the function that state.inside has at the time.
var traceForms = []form{
	{"esp-idf", "Heap Trace: ", re(`== Heap Trace: \d+ records`), "5.1", "", "heap_trace_standalone.c", begins("")},
	{"esp-idf", "ons trace (", re(`\d+ allocations trace \(`), "3.0", "5.0", "heap_trace_standalone.c", begins("")},
	{"esp-idf", " bytes (@ 0x", re(`(?P<size>` + n + ` bytes \(@ (?P<address>` + x32 + `)(?:, *(?P<memory>\w+))?[^)]*\) allocated CPU \d+(?: ccount ` + x32 + `)?(?P<rest>.*)`), "3.0", "", "heap_trace_standalone.c", (*state).espRecord},
	{"esp-idf", "freed by 0x", re(`freed by 0x`), "3.0", "", "heap_trace_standalone.c", func(s *state, _ match) { s.drop() }},
	{"esp-idf", " in trace (", re(`(?P<size>` + n + ` bytes (?:'leaked'|alive) in trace \((?P<count>` + n + `(?:/\d+)? allocations\)`), "3.0", "", "heap_trace_standalone.c", (*state).espEnds},
	{"esp-idf", "records: |total allocation|total frees", re(`\brecords: \d+ \(|total (?:allocations|frees): \d`), "5.1", "", "heap_trace_standalone.c", func(s *state, _ match) { s.others = 0 }},
	{"esp-idf", "uffer has overf", re(`(?i)\(NB: (?:Internal |SPI )?Buffer has overflowed`), "3.0", "", "heap_trace_standalone.c", (*state).espOverflow},
	{"esp-idf", "Showing data for", re(`Showing data for heap: *(?P<name>` + x32 + `)`), "4.3", "", "multi_heap.c", (*state).espShow},
	{"esp-idf", " data, size: ", re(`Block (?P<address>` + x32 + `) data, size: (?P<size>` + n + ` bytes, Free: (?P<free>Yes|No)`), "4.3", "", "multi_heap.c", (*state).espBlock},
	{"esp-idf", ", CURRENT MEMORY", re(`(?P<last>└)? *(?P<status>ALIVE|DELETED): (?P<task>.*), CURRENT MEMORY USAGE \d+`), "5.5", "", "heap_task_info.c", (*state).espTask},
	{"esp-idf", "│ TASK  ", re(`│ TASK +│ STATUS `), "5.5", "", "heap_task_info.c", func(s *state, _ match) { s.closeEndless(); s.beginEndless("overview", "") }},
	{"esp-idf", "│ ALIVE|│ DELETED", re(`│ +(?P<task>\S.*?) +│ (?:ALIVE|DELETED) +│ +(?P<size>` + n + ` │ +\d+ │ +\d+ │`), "5.5", "", "heap_task_info.c", (*state).espUsage},
	{"esp-idf", " -> CAP_8BIT: ", re(`Task: (?P<task>.*) -> CAP_8BIT: (?P<size>` + n + ` CAP_32BIT: (?P<more>` + n), "4.2", "5.4", "heap_task_tracking_main.c", (*state).espTotal},
	{"esp-idf", " HEAP: ", re(` HEAP: (?P<memory>.*), CAPS: 0x`), "5.5", "", "heap_task_info.c", func(s *state, m match) { s.task.memory = m.text("memory") }},
	{"esp-idf", " ALLOC 0x", re(` ALLOC (?P<address>` + x32 + `), SIZE (?P<size>` + n), "5.5", "", "heap_task_info.c", (*state).espAlloc},
	{"esp-idf", "alloc fail. size", re(`Mem alloc fail. size (?P<size>` + x32 + `) caps (?P<caps>` + x32 + `)`), "5.1", "", "heap_caps.c", (*state).espFailed},
	{"esp-idf", "failed to alloca", re(`was called but failed to allocate (?P<size>` + n + ` bytes with (?P<caps>0[xX][0-9a-fA-F]{1,8}) capabilities`), "4.2", "", "heap_debug.rst", (*state).espFailed},
	{"esp-idf", "rst:0x", re(`\brst:` + x32 + ` \(`), "3.0", "", "heap_trace_standalone.c", func(s *state, _ match) { s.flush(); s.threads = nil; s.boot() }},
	{"esp-idf", " at ", re(`(?P<address>` + x32 + `): ` + where), "3.0", "", "idf_monitor", (*state).nameLine},
	{"esp-idf", "(inlined by)", re(`\(inlined by\) ` + where), "3.0", "", "idf_monitor", (*state).inlinedLine},
	{"esp-idf", " in ", re(`#\d+ +(?P<address>` + x32 + `)(?::` + x32 + `)? in ` + where), "3.0", "", "idf_monitor", (*state).nameLine},

	{"nuttx", "memdump", re(`\bmemdump(?: +(?P<kind>[a-z]+|\d+)(?: +(?P<window>\d+.*))?)?$`), "10.3", "", "nsh_mmcmds.c", (*state).nuttxCommand},
	{"nuttx", "ump all used mem", re(`Dump all used memory node info`), "10.3", "12.7", "mm_memdump.c", nuttxDump("")},
	{"nuttx", "Memdump task ", re(`Memdump task (?:ALL$|(?P<named>.*name: )?(?P<task>.*))`), "12.8", "", "mm_memdump.c", (*state).nuttxTask},
	{"nuttx", "Memdump leak", re(`Memdump leak`), "12.8", "", "mm_memdump.c", nuttxDump("leak")},
	{"nuttx", "Memdump biggest", re(`Memdump biggest`), "12.8", "", "mm_memdump.c", nuttxDump("biggest")},
	{"nuttx", "Memdump mempool", re(`Memdump mempool`), "12.8", "", "mm_memdump.c", nuttxDump("mempool")},
	{"nuttx", "ump allocated or", re(`Dump allocated orphan nodes`), "12.8", "", "mm_memdump.c", nuttxDump("orphan")},
	{"nuttx", "ump all free mem", re(`Dump all free memory node info`), "10.3", "", "mm_memdump.c", nuttxDump(nuttxFree)},
	{"nuttx", "PID", re(`\bPID +Size +(?:Overhead +)?(?:Sequence +)?Address\b`), "10.3", "", "mm_memdump.c", (*state).nuttxColumns},
	{"nuttx", " 0x", re(`^(?:.*\] +)?-?\d+ +\d+ +\d+(?: +\d+)?(?: 0x[0-9a-f]{8,16}){3,}$`), "12.1", "", "mm_memdump.c", (*state).nuttxAlone},
	{"nuttx", "Total Blks", re(`Total Blks +Total Size`), "10.3", "", "mm_memdump.c", (*state).nuttxTotals},
	{"nuttx", " Kthread ", nuttxPS, "10.3", "", "nsh_proccmds.c", (*state).nuttxProcess},
	{"nuttx", " Task ", nuttxPS, "10.3", "", "nsh_proccmds.c", (*state).nuttxProcess},
	{"nuttx", " pthread ", nuttxPS, "10.3", "", "nsh_proccmds.c", (*state).nuttxProcess},
	{"nuttx", "pid:", re(`pid: *(?P<thread>-?` + n + `, used: *(?P<size>` + n + `, nused: *(?P<count>` + n), "11.0", "", "mm_malloc.c", (*state).nuttxHolds},
	{"nuttx", "Allocation failed", re(`Allocation failed, size (?P<size>` + n), "10.0", "", "mm_malloc.c", func(s *state, m match) { s.flush(); s.closeEndless(); s.failed(m.number("size"), "") }},

	{"zephyr", "ptrace dump begin", re(`heaptrace dump begin ==`), "open pull request", "", "heaptrace_shell.c", begins("")},
	{"zephyr", "heaptrace dump b", re(`heaptrace dump by (?P<task>.*) begin ==`), "open pull request", "", "heaptrace_shell.c", func(s *state, m match) { s.flush(); s.begin("task " + m.text("task")) }},
	{"zephyr", "[heaptrace] ptr=", re(`\[heaptrace\] ptr=(?P<address>` + x + `) size=(?P<size>` + n + ` heap=(?P<memory>\S*) alloc_tid=(?P<thread>` + x + `) alloc_thread=(?P<task>.*?) alloc_cpu=.*alloc_ms=(?P<ms>` + n), "open pull request", "", "heaptrace_shell.c", (*state).zephyrBlock},
	{"zephyr", "[heaptrace]   b", re(`\[heaptrace\] +backtrace:(?P<callers>.*)`), "open pull request", "", "heaptrace_shell.c", func(s *state, m match) { s.waiting.pcs = hexes(m.group("callers")); s.flush() }},
	{"zephyr", "outstanding_bl", re(`\[heaptrace\] (?:(?:tid|name|cpu)=.* )?outstanding_blocks=(?P<count>` + n + ` outstanding_bytes=(?P<size>` + n), "open pull request", "", "heaptrace_shell.c", ends},

	{"mbed", "#m:0x", re(`#m:(?P<address>` + x32 + `);(?P<callers>` + x32 + `)-(?P<size>` + n), "5.2", "", "mbed_mem_trace.cpp", events(codec.EventAllocated)},
	{"mbed", "#c:0x", re(`#c:(?P<address>` + x32 + `);(?P<callers>` + x32 + `)-(?P<count>` + n + `;(?P<size>` + n), "5.2", "", "mbed_mem_trace.cpp", events(codec.EventAllocated)},
	{"mbed", "#r:0x", re(`#r:(?P<address>` + x32 + `);(?P<callers>` + x32 + `)-(?P<old>` + x32 + `);(?P<size>` + n), "5.2", "", "mbed_mem_trace.cpp", events(codec.EventMoved)},
	{"mbed", "#f:0x", re(`#f:` + x32 + `;` + x32 + `-(?P<address>` + x32 + `)`), "5.2", "", "mbed_mem_trace.cpp", events(codec.EventFreed)},

	{"mtrace", "] + 0x", re(mtraceAt + `\+ (?P<address>` + x + `) (?P<bytes>` + x + `)`), "2.36", "", "mtrace-impl.c", events(codec.EventAllocated)},
	{"mtrace", "] - 0x", re(mtraceAt + `- (?P<address>` + x + `)`), "2.36", "", "mtrace-impl.c", events(codec.EventFreed)},
	{"mtrace", "] < 0x", re(mtraceAt + `< (?P<old>` + x + `)`), "2.36", "", "mtrace-impl.c", func(s *state, m match) { s.moved = m.hex("old") }},
	{"mtrace", "] > 0x", re(mtraceAt + `> (?P<address>` + x + `) (?P<bytes>` + x + `)`), "2.36", "", "mtrace-impl.c", events(codec.EventMoved)},

	{"sanitizer", "detected memory le", re(`LeakSanitizer: detected memory leaks`), "GCC 12", "", "lsan_common.cpp", begins("leak")},
	{"sanitizer", "irect leak of ", re(`(?:Direct|Indirect) leak of (?P<size>` + n + ` byte\(s\) in (?P<count>` + n + ` object\(s\) allocated from:`), "GCC 12", "", "lsan_common.cpp", stacks(re(`#\d+ (?P<address>` + x + `)(?: +in (?P<func>.*?) (?P<file>[^\s(]\S*?):(?P<line>\d{1,9})(?::\d+)?$| +in (?P<name>.*?) \(|)`))},
	{"sanitizer", "byte(s) leaked in", re(`Sanitizer: (?P<size>` + n + ` byte\(s\) leaked in (?P<count>` + n + ` allocation`), "GCC 12", "", "lsan_common.cpp", ends},

	{"memcheck", "lost in loss reco", re(`(?P<size>[\d,]{1,20}) (?:\((?P<direct>[\d,]{1,20}) direct, [\d,]+ indirect\) )?bytes in (?P<count>[\d,]{1,20}) blocks are \w+ lost in loss record`), "3.19", "", "mc_leakcheck.c", stacks(re(`(?:at|by) (?P<address>` + x + `): (?P<func>.*?) \((?:in .*|(?P<file>.*?):(?P<line>\d{1,9}))\)$`))},
	{"memcheck", "LEAK SUMMARY:", re(`LEAK SUMMARY:`), "3.19", "", "mc_leakcheck.c", ends},

	{"android", "Native Heap Dump", re(`Android Native Heap Dump v\d`), "7", "", "malloc_debug.cpp", begins("")},
	{"android", "z 0  sz|z 1  sz", re(`\bz [01] +sz +(?P<size>` + n + ` +num +(?P<count>` + n + ` +bt(?P<callers>(?: [0-9a-f]{4,16})*)`), "7", "", "PointerData.cpp", (*state).androidRow},
}

const mtraceAt = `@ [^\[]*\[(?P<callers>` + x + `)\] `

// aside reports whether a line says nothing of a heap: a reset, or the name of an address. Logs of
// libwebsockets have these, too.
func (f *form) aside() bool { return f.do == nil || f.key == "rst:0x" || f.source == "idf_monitor" }

// forms are all lines that are read.
var forms = traceForms

// entry is a key of a form. A form may have several.
type entry struct {
	key  string
	form *form
	at   int    // index of the form
	next uint16 // the next entry whose key has the same first two bytes, as those of byKey
}

// byKey are the entries by the first two bytes of their keys, as numbers from 1; 0 is none.
var entries, byKey = func() (list []entry, table [1 << 16]uint16) {
	for i := len(forms) - 1; i >= 0; i-- {
		for _, key := range strings.Split(forms[i].key, "|") {
			at := uint16(key[0])<<8 | uint16(key[1])
			list = append(list, entry{key, &forms[i], i, table[at]})
			table[at] = uint16(len(list))
		}
	}
	return list, table
}()

// match is a line of a form.
type match struct {
	*form
	line   []byte
	groups []int
}

// group returns the text of a group, nil if there is none.
func (m match) group(name string) []byte {
	i := m.expr.SubexpIndex(name)
	if i < 0 || m.groups[2*i] < 0 {
		return nil
	}
	return bytes.TrimSpace(m.line[m.groups[2*i]:m.groups[2*i+1]])
}

func (m match) text(name string) string { return string(m.group(name)) }

// number returns a decimal number, which may have commas; -1 if there is none.
func (m match) number(name string) int64 {
	v, err := strconv.ParseInt(string(bytes.ReplaceAll(m.group(name), []byte(","), nil)), 10, 64)
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
func (s *state) match(line []byte, only string) (found, taken bool) {
	var tried [256 / 64]uint64
	for i := 0; i+1 < len(line); i++ {
		for k := byKey[uint16(line[i])<<8|uint16(line[i+1])]; k > 0; k = entries[k-1].next {
			e := &entries[k-1]
			f := e.form
			if !bytes.HasPrefix(line[i:], []byte(e.key)) || tried[e.at/64]>>(e.at%64)&1 != 0 || only != "" && only != f.system {
				continue
			}
			tried[e.at/64] |= 1 << (e.at % 64)
			groups := f.expr.FindSubmatchIndex(line)
			if groups == nil {
				if f.expr.SubexpIndex("address") >= 0 && f.expr.SubexpIndex("size") >= 0 {
					s.skipped++
				}
				continue
			}
			found, taken = true, taken || !f.aside()
			if !f.aside() && !slices.Contains(s.systems, f.system) {
				s.systems = append(s.systems, f.system)
			}
			if f.do != nil {
				f.do(s, match{f, line, groups})
			}
			i += len(e.key) - 1
			break
		}
	}
	return found, taken
}

// block returns the block of a line: its size, or count times its size, and its other groups.
func (m match) block() block {
	b := block{size: m.number("size"), pcs: hexes(m.group("callers"))}
	if n := m.hex("bytes"); n > 0 {
		b.size = int64(min(n, 1<<62))
	}
	for _, g := range []struct {
		name string
		tag  codec.Tag
	}{{"address", codec.TagAddress}, {"old", codec.TagOldAddress}} {
		if m.group(g.name) != nil {
			b.user.Set(g.tag, m.hex(g.name))
		}
	}
	if ms := m.number("ms"); ms >= 0 && ms < 1<<50 {
		b.user.Set(codec.TagTime, 1000*uint64(ms))
	}
	return b
}

// begins returns what begins a dump.
func begins(why string) func(*state, match) {
	return func(s *state, _ match) { s.flush(); s.begin(why) }
}

// ends ends a dump.
func ends(s *state, m match) {
	s.flush()
	s.close(m.number("count"), m.number("size"))
}

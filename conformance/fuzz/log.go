package fuzz

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
)

// logState is what the lines of a log have said.
type logState struct {
	paths       []callpath.Path // told
	seq         uint64          // of the next ~p# line
	dumps       []uint64        // numbers of all dumps
	open        bool            // the last of them
	live, bytes uint64          // of the open dump
}

func (l *logState) dump() uint64 {
	if len(l.dumps) == 0 {
		return 0
	}
	return l.dumps[len(l.dumps)-1]
}

// otherLines are lines of a log that are no records, or are rejected.
var otherLines = []string{"{{{reset}}}", "{{{mmap:0x400000:0x2000:load:0:rx:0x0}}}", "~", "~m", "~x#ABC", "\x1b[0m", "~h#boot w=33", "~h#begin 1 u=x",
	"~h#begin", "~h#end", "~h#end 1 n=+1", "~h#Boot", "~h#boot  w=32", "~h#begin 4294967296", "~h#boot shift=5 w=32", "~p#AAAAAAA",
	"~v#AAAAAAAAAAAAA", "~m#A", "~m#", "~e#AAA=", "~b#size: 5", "~m#AAA=", "~m#ABAABA=", "~m#ABAAB", "~m#AAAA"}

// logOf returns the form of a log.
func (m *maker) logOf(op conformance.Op) string {
	lines := []string{m.boot()}
	for range 2 + m.IntN(4)*m.few() {
		lines = append(lines, m.logLine(lines))
	}
	if m.chance(4) {
		i := m.IntN(len(lines))
		lines[i] = strings.Repeat(lines[i]+"\n", pick(m, 2, 3, 16, 17, 64, 65, 255, 256, 257))
	}
	sep := pick(m, "\n", "\n", "\n", "\n", "\r\n", " ", "")
	if op == "scan" {
		sep = pick(m, "\n", " ", "", "\r", "\x1b", "=", "~", "\t\n")
	}
	if m.log.open && m.chance(80) {
		lines = append(lines, m.end())
	}
	return strings.Join(lines[m.IntN(2):], sep) + pick(m, "\n", sep)
}

func (m *maker) logLine(before []string) string {
	switch kind := m.IntN(100); {
	case kind < 3: // the same program again
		m.log.open, m.log.seq = false, 0
		return before[0]
	case kind < 6:
		return m.boot()
	case kind < 22:
		return m.begin()
	case kind < 36:
		return m.end()
	case kind < 60:
		return m.dumpLine()
	case kind < 63:
		return m.events()
	case kind < 82:
		return m.record()
	case kind < 87:
		return "~e#(" + m.event() + ")"
	case kind < 92:
		return m.header(pick(m, verbs...))
	case kind < 95:
		return pick(m, before...)
	}
	return pick(m, otherLines...)
}

func (m *maker) boot() string {
	m.log.open, m.log.seq = false, 0
	t := "~h#boot"
	for _, k := range []string{"prog", "w", "build", "code", "shift", "build", "code", "w"} {
		if m.chance(25) {
			t += " " + k + "=" + m.escaped(m.value(k))
		}
	}
	return t
}

func (m *maker) dumpNumber() uint64 {
	return pick(m, append([]uint64{0, 1, 2, 3, 65, 1<<32 - 1, uint64(m.IntN(200))}, m.log.dumps...)...)
}

func (m *maker) begin() string {
	l := &m.log
	l.dumps, l.open, l.live, l.bytes = append(l.dumps, m.dumpNumber()), true, 0, 0
	t := "~h#begin " + m.zeros() + strconv.FormatUint(l.dump(), 10)
	if m.chance(75) {
		t += " k=" + m.value("k")
	}
	if m.chance(40) {
		t += fmt.Sprintf(" base=%d", m.dumpNumber())
	}
	for _, k := range []string{"u", "sample", "n", "b", "t", "why"} {
		if m.chance(20) {
			t += " " + k + "=" + m.escaped(m.value(k))
		}
	}
	if m.chance(30) {
		t += fmt.Sprintf(" l=%d", l.seq)
	}
	return t
}

func (m *maker) end() string {
	l := &m.log
	t := fmt.Sprintf("~h#end %d", l.dump())
	if m.chance(8) || !l.open {
		t = fmt.Sprintf("~h#end %d", m.dumpNumber())
	}
	l.open = false
	for i, v := range []uint64{l.live, l.bytes, l.seq, uint64(m.few())} {
		if m.chance(50) {
			t += fmt.Sprintf(" %s=%d", []string{"n", "b", "l", "cut"}[i], pick(m, v, v, v, v, v+1, v-1, m.num()))
		}
	}
	return t
}

// dumpLine returns a ~p# line of the open dump: the next one, or one that is late, comes twice, or after a gap.
func (m *maker) dumpLine() string {
	l := &m.log
	seq := l.seq + pick(m, 0, 0, 0, 0, 0, 0, 0, uint64(m.IntN(4)), -uint64(m.IntN(4)), pick(m, 2047, 2048, 2049, uint64(m.IntN(4096))))
	if seq &= 4095; (seq-l.seq)&4095 < 2048 {
		l.seq = (seq + 1) & 4095
	}
	if live, bytes := l.live, l.bytes; m.chance(8) || !l.open {
		defer func() { l.live, l.bytes = live, bytes }()
		return m.pathLine(m.dumpNumber(), seq)
	}
	return m.pathLine(l.dump(), seq)
}

func (m *maker) record() string {
	m.log.live++
	switch m.IntN(8) {
	case 0:
		return m.decoded()
	case 1:
		t := m.mline(false)
		return t[:m.IntN(len(t)+1)]
	}
	return "~m#(" + m.blob(pick[conformance.Op](m, "decode", "user")) + ")"
}

// insert returns a log with another line in it.
func (m *maker) insert(text string) string {
	m.log = logState{seq: uint64(m.IntN(8)), open: m.chance(50), dumps: []uint64{uint64(m.IntN(3))}}
	lines := strings.Split(text, "\n")
	return strings.Join(slices.Insert(lines, m.IntN(len(lines)), pick(m, m.boot, m.begin, m.end, m.dumpLine, m.record)()), "\n")
}

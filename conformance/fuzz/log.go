package fuzz

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
)

// Lines of Part III digit by digit, and logs as a state machine.

// logState is what the lines of a log have said.
type logState struct {
	paths []callpath.Path // told, with their outer parts named or not
	seq   uint64          // of the next ~p# line
	dump  uint64          // last begun
	open  bool
	dumps []uint64              // numbers of all dumps
	sum   struct{ n, b uint64 } // of the open dump
}

func fixed(v uint64, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i], v = digitChars[v&63], v>>6
	}
	return string(out)
}

// number returns the digits of a number, in another form than the shortest where a rule is broken.
func (m *maker) number(v uint64) string {
	var out []byte
	for ; v >= 32; v >>= 5 {
		out = append(out, digitChars[32+v&31])
	}
	if out = append(out, digitChars[v]); m.broken() {
		n := len(out) - 1
		return string(out[:n]) + pick(m, digitChars[32+v&31:][:1]+"A", strings.Repeat("/", 12-min(n, 12))+"Q", strings.Repeat("/", 13), "")
	}
	return string(out)
}

// frame returns the digits of a frame after one with offset ref.
func (m *maker) frame(f callpath.Frame, ref int64) string {
	if f.Escaped {
		return "/////" + m.number(f.Value)
	}
	d := int64(f.Value) - ref
	v := uint64(2 * d)
	if d < 0 {
		v = uint64(-2*d - 1)
	}
	c := 0
	for c < 3 && v >= 1<<(10+6*c) {
		c++
	}
	if m.broken() {
		c = min(3, c+1)
	}
	return fixed(4*v+uint64(c), c+2)
}

func refOf(f callpath.Frame) int64 {
	if f.Escaped {
		return 0
	}
	return int64(f.Value)
}

func (m *maker) someFrame(ref int64) callpath.Frame {
	if m.chance(10) {
		return callpath.Frame{Value: pick(m, m.num(), uint64(m.IntN(6))), Escaped: true}
	}
	x := pick(m, int64(m.IntN(8)), int64(m.IntN(8)), ref+int64(m.IntN(2000))-1000, int64(m.num()&(1<<27-1)))
	if !m.broken() {
		x = min(max(x, 0), 1<<27-1)
	}
	return callpath.Frame{Value: uint64(x)}
}

// unmixed returns the name that, with the frame after it, gives name. (BT-NAME-1)
func unmixed(name uint32, f callpath.Frame) uint32 {
	undo := func(name, x uint32) uint32 {
		inverse := uint32(1)
		for range 5 { // Newton
			inverse *= 2 - 0x9E3779B1*inverse
		}
		return (name^name>>15^name>>30)*inverse ^ x
	}
	if f.Escaped {
		return undo(undo(undo(name, uint32(f.Value>>32)), uint32(f.Value)), 1<<32-1)
	}
	return undo(name, uint32(f.Value))
}

// named returns a path that begins with a name: mostly one of this log said in another way, or
// another path with its name.
func (m *maker) named() callpath.Path {
	if len(m.log.paths) == 0 || m.chance(20) {
		return callpath.Path{Base: callpath.Named, Outer: pick(m, 0, 1, uint32(m.IntN(4)), m.Uint32())}
	}
	told := pick(m, m.log.paths...)
	p := told.Clone()
	if m.chance(30) {
		f := m.someFrame(0)
		return callpath.Path{Base: callpath.Named, Outer: unmixed(p.Name(), f), Frames: []callpath.Frame{f}}
	}
	n := m.IntN(len(p.Frames) + 1)
	outer := callpath.Path{Base: p.Base, Outer: p.Outer, Frames: p.Frames[:n]}
	p = callpath.Path{Base: callpath.Named, Outer: outer.Name(), Frames: p.Frames[n:]}
	if k := len(p.Frames); k > 0 && m.chance(20) { // nearly the same path
		p.Frames[k-1].Escaped = !p.Frames[k-1].Escaped
		p.Frames[k-1].Value &= 1<<27 - 1
	}
	return p
}

// paths returns the form of a ~p# line.
func (m *maker) paths() string {
	t := m.pathLine(pick(m, 0, 0, 0, 1, 2, 4, 7, m.IntN(64)), uint64(m.IntN(64)), uint64(pick(m, 0, 1, 4095, m.IntN(4096))))
	if m.broken() {
		return pick(m, t[:3]+t[4:len(t)-1], strings.Replace(t, "~p#", "~v#", 1), t+"=")
	}
	return t
}

func (m *maker) pathLine(flags int, dump, seq uint64) string {
	t := fixed(uint64(flags), 1) + fixed(dump, 1) + fixed(seq, 2)
	if flags&1 != 0 {
		t += fixed(m.unit(), 1)
	}
	var before callpath.Path
	for i := range 1 + m.few() {
		var digits string
		digits, before = m.pathAfter(before, i == 0)
		t += digits
		if len(m.log.paths) < 20 {
			m.log.paths = append(m.log.paths, before.Clone())
		}
		if m.chance(25) {
			t += m.number(0)
			continue
		}
		t += m.values(flags)
	}
	if m.broken() {
		t = t[:m.IntN(len(t)+1)]
	}
	return "~p#{" + t + "}"
}

func (m *maker) unit() uint64 {
	if m.broken() {
		return m.Uint64()
	}
	return uint64(m.IntN(13))
}

// pathAfter returns the digits of a path after another one of the line, and the path.
func (m *maker) pathAfter(before callpath.Path, first bool) (t string, p callpath.Path) {
	ref, from, base := int64(0), 0, uint64(pick(m, 0, 0, 0, 1, 2, 3))
	switch {
	case !first && m.chance(45) || m.broken():
		drop := m.IntN(len(before.Frames) + 1)
		p = before.Clone()
		from = len(p.Frames) - drop
		if drop > 0 {
			ref = refOf(p.Frames[from])
		} else if from > 0 {
			ref = refOf(p.Frames[from-1])
		}
		if m.broken() {
			drop += m.few()
		}
		p.Frames, base = p.Frames[:from], 4+uint64(drop)
	case base >= 2:
		p = m.named()
		if base == 2 {
			p = callpath.Path{Base: callpath.Named, Outer: p.Name()}
		}
	default:
		p.Base = callpath.Base(base)
	}
	t = m.number(base)
	if base == 2 || base == 3 {
		wide := uint64(p.Outer)
		if m.broken() {
			wide += 1 << 32
		}
		if t += fixed(wide, 6); base == 2 {
			return t, p
		}
	}
	add := m.few()
	if base == 3 && len(p.Frames) > 0 {
		add = 0
	} else if m.chance(2) {
		add = pick(m, 15, 40)
	}
	at := ref
	for range add {
		f := m.someFrame(at)
		p.Frames, at = append(p.Frames, f), refOf(f)
	}
	n := uint64(len(p.Frames) - from)
	if m.broken() || m.chance(2) {
		n = pick(m, 1024, 1025, m.num())
	}
	t += m.number(n)
	for _, f := range p.Frames[from:] {
		t += m.frame(f, ref)
		ref = refOf(f)
	}
	return t, p
}

// values returns the digits of the values of an entry, and adds them to the open dump.
func (m *maker) values(flags int) string {
	v := uint64(m.few() + 1)
	if flags&1 == 0 && m.chance(25) || m.chance(4) {
		v = max(1, m.num())
	}
	t := m.number(v)
	m.log.sum.n += v - 1
	if flags&1 != 0 {
		for range min(v-1, 8) {
			size := m.num()
			t += m.number(m.num()) + m.number(size)
			m.log.sum.b += size
		}
	} else {
		b := pick(m, 0, uint64(m.IntN(200)), m.num())
		t += m.number(b)
		m.log.sum.b += b
	}
	for k := 2; k <= 16; k *= 2 {
		if flags&k != 0 {
			t += m.number(m.num())
			if k == 2 {
				t += m.number(m.num())
			}
		}
	}
	if flags&32 != 0 {
		k := m.few()
		t += m.number(uint64(k)) + strings.Repeat(pick(m, "A", "g", "/"), k)
	}
	return t
}

// An eventLine is the form of a ~v# line that is being made.
type eventLine struct {
	*maker
	flags, next, table uint64 // next allocation; paths in the table
	t                  string
}

// events returns the form of a ~v# line.
func (m *maker) events() string {
	l := &eventLine{maker: m, flags: uint64(pick(m, 0, 0, 1, 1, m.IntN(64)))}
	l.t = fixed(l.flags, 1) + fixed(m.Uint64(), 3)
	if l.flags&1 != 0 {
		l.t += fixed(m.unit(), 1)
	}
	l.next = m.num()
	l.t += m.number(m.num()) + m.number(m.num()) + m.number(l.next)
	for range m.few() + m.few() {
		switch kind := m.IntN(7); kind {
		case 4:
			if a := l.age(1<<62 - 1); l.next > 0 || m.broken() {
				l.t += m.number(4*a + 1)
			}
		case 5:
			a := uint64(m.IntN(4))
			if l.t += m.number(4*a + 3); a == 2 {
				l.block()
			} else {
				l.t += m.number(m.num())
			}
		case 6:
			k := uint64(m.few())
			l.t += m.number(4*(4+uint64(m.few()))+3) + m.number(pick(m, k, k, k, m.num())) + strings.Repeat("g", int(k))
		default:
			l.allocation(uint64(kind / 2 * 2))
		}
	}
	if m.broken() {
		l.t = l.t[:m.IntN(len(l.t)+1)]
	}
	return "~v#{" + l.t + "}"
}

// allocation adds an allocation, kind 0, or a realloc, kind 2.
func (l *eventLine) allocation(kind uint64) {
	a := uint64(l.IntN(int(l.table) + 1))
	if kind == 2 && l.next == 0 && !l.broken() {
		return
	}
	if l.broken() {
		a = pick(l.maker, l.table+1, l.num())
	}
	if l.t += l.number(4*a + kind); a == 0 {
		name := uint64(l.named().Outer)
		if l.broken() {
			name += 1 << 32
		}
		l.t += fixed(name, 6)
		l.table++
	}
	if kind == 2 {
		l.t += l.number(l.age(1<<64 - 1))
	}
	l.t += l.number(l.num())
	l.block()
	l.next++
}

// age returns how many allocations ago one was, at most top.
func (l *eventLine) age(top uint64) uint64 {
	if l.broken() || l.next == 0 {
		return pick(l.maker, 0, l.next+1, l.num())
	}
	return 1 + pick(l.maker, 0, l.next-1, l.num())%min(l.next, top)
}

// block adds the address of a block, if the line has addresses.
func (l *eventLine) block() {
	if l.flags&1 != 0 {
		l.t += l.number(l.num())
	}
}

// otherLines are lines of a log that are no records, or are rejected.
var otherLines = []string{"{{{reset}}}", "{{{module:0:a:elf:aa}}}", "{{{mmap:0x400000:0x2000:load:0:rx:0x0}}}", "text", "~", "~m", "~x#ABC",
	"\x1b[0m", "~h#boot w=33", "~h#begin 1 u=x", "~h#begin", "~h#end", "~h#end 1 n=+1", "~h#Boot", "~h#boot  w=32", "~h#begin 4294967296",
	"~h#boot shift=5 w=32", "~h#end 1 b=18446744073709551616", "~p#AAAAAAA", "~v#AAAAAAAAAAAAA", "~m#A", "~m#", "~e#AAA=", "~b#size: 5",
	"~m#AAA=", "~m#ABAABA=", "~m#ABAAB", "~m#AAAA"}

// logOf returns the form of a log.
func (m *maker) logOf(op conformance.Op) string {
	var lines []string
	if m.chance(60) {
		lines = append(lines, m.boot())
	}
	for range 2 + m.IntN(4)*m.few() + m.few() {
		lines = append(lines, m.logLine(lines))
	}
	if m.chance(10) {
		i, k := m.IntN(len(lines)), m.IntN(len(lines))
		lines[i], lines[k] = lines[k], lines[i]
	}
	if m.chance(4) {
		i := m.IntN(len(lines))
		lines[i] = strings.Repeat(lines[i]+"\n", pick(m, 2, 3, 16, 17, 64, 65, 255, 256, 257))
	}
	sep := pick(m, "\n", "\n", "\n", "\n", "\r\n", " ", "")
	if op == conformance.OpScan {
		sep = pick(m, "\n", " ", "", "\r", "\x1b", "=", "~", "\t\n")
	}
	if m.log.open && m.chance(80) {
		lines = append(lines, m.end())
	}
	return strings.Join(lines, sep) + pick(m, "\n", "\n", "", sep)
}

func (m *maker) logLine(before []string) string {
	switch kind := m.IntN(100); {
	case kind < 3 && len(before) > 0 && strings.HasPrefix(before[0], "~h#boot"): // the same program again
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
	case kind < 95 && len(before) > 0:
		return pick(m, before...)
	}
	return pick(m, otherLines...)
}

func (m *maker) boot() string {
	m.log.open, m.log.seq = false, 0
	keys := slices.DeleteFunc([]string{"prog", "w", "build", "code", "shift", "build", "code", "heap", "w"}, func(string) bool { return m.chance(80) })
	if len(keys) == 0 {
		return "~h#boot"
	}
	return m.header("boot", keys...)
}

func (m *maker) dumpNumber() uint64 {
	if len(m.log.dumps) > 0 && m.chance(50) {
		return pick(m, m.log.dumps...)
	}
	return pick(m, 0, 1, 2, 3, 65, 1<<32-1, uint64(m.IntN(200)))
}

func (m *maker) begin() string {
	l := &m.log
	l.dump, l.open, l.sum.n, l.sum.b = m.dumpNumber(), true, 0, 0
	l.dumps = append(l.dumps, l.dump)
	t := "~h#begin " + m.zeros() + strconv.FormatUint(l.dump, 10)
	if m.chance(75) {
		t += " k=" + pick(m, "paths", "paths", "diff", "diff", "tree")
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
	n := l.dump
	if m.chance(8) || !l.open {
		n = m.dumpNumber()
	}
	l.open = false
	t := fmt.Sprintf("~h#end %d", n)
	for _, key := range []struct {
		name string
		v    uint64
	}{{"n", l.sum.n}, {"b", l.sum.b}, {"l", l.seq}, {"cut", uint64(m.few())}} {
		if m.chance(50) {
			t += fmt.Sprintf(" %s=%d", key.name, pick(m, key.v, key.v, key.v, key.v, key.v+1, key.v-1, m.num()))
		}
	}
	return t
}

// dumpLine returns a ~p# line of the open dump: the next one, or one that is late, comes twice, or after a gap.
func (m *maker) dumpLine() string {
	l := &m.log
	seq := l.seq
	switch m.IntN(12) {
	case 0:
		seq += uint64(m.IntN(4))
	case 1:
		seq -= uint64(m.IntN(4))
	case 2:
		seq += pick(m, 2047, 2048, 2049, 4095, uint64(m.IntN(4096)))
	}
	if seq &= 4095; (seq-l.seq)&4095 < 2048 {
		l.seq = (seq + 1) & 4095
	}
	dump, sum := l.dump&63, l.sum
	other := m.chance(8) || !l.open
	if other {
		dump = m.dumpNumber() & 63
	}
	t := m.pathLine(pick(m, 0, 0, 0, 0, 1, 2, 4, 7, m.IntN(64)), dump, seq)
	if other {
		l.sum = sum
	}
	return t
}

func (m *maker) record() string {
	m.log.sum.n++
	switch m.IntN(8) {
	case 0:
		return m.decoded()
	case 1:
		t := m.mline(false)
		return t[:m.IntN(len(t)+1)]
	}
	return "~m#(" + m.blob(pick(m, conformance.OpDecode, conformance.OpUser)) + ")"
}

package fuzz

import (
	"encoding/base64"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	gofuzz "github.com/google/gofuzz"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// maker makes up inputs that keep most rules of the format; [maker.mutate] breaks rules. Package gofuzz fills
// structs, with numbers at the limits of the format.
type maker struct {
	*rand.Rand
	fill *gofuzz.Fuzzer
	log  logState
}

// oldSource is a source for gofuzz.
type oldSource struct{ rand.Source }

func (s oldSource) Int63() int64 { return int64(s.Uint64() >> 1) }
func (s oldSource) Seed(int64)   {}

func newMaker(src rand.Source) *maker {
	m := &maker{Rand: rand.New(src)}
	m.fill = gofuzz.New().RandSource(oldSource{src}).NilChance(0.2).NumElements(1, 4).Funcs(
		func(v *uint64, c gofuzz.Continue) { *v = m.num() },
		func(f *callpath.Frame, c gofuzz.Continue) {
			f.Escaped = m.chance(10)
			if f.Value = m.num(); !f.Escaped {
				f.Value = pick(m, f.Value%8, 1000+f.Value%2000, f.Value&(callpath.MaxOffset-1))
			}
		},
		func(p *callpath.Path, c gofuzz.Continue) {
			c.Fuzz(&p.Frames)
			if p.Base = callpath.Base(pick(m, 0, 0, 1, 2)); p.Base == callpath.Named {
				*p = m.named(p.Frames)
			}
		})
	return m
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func pick[T any](m *maker, list ...T) T { return list[m.IntN(len(list))] }

// limits are numbers at which implementations change.
var limits = []uint64{0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 1023, 1024, 1025, 2047, 2048, 4095, 4096,
	65535, 65536, 1<<27 - 1, 1 << 27, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<53 + 1, 1<<62 - 1, 1 << 62,
	1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1}

// num returns a number: small, at a limit, or of any width.
func (m *maker) num() uint64 {
	switch m.IntN(10) {
	case 0, 1, 2, 3:
		return m.Uint64() >> (56 + m.IntN(8))
	case 4, 5, 6:
		return pick(m, limits...)
	case 7:
		return m.Uint64() >> 32 << m.IntN(33)
	}
	return m.Uint64() >> m.IntN(64)
}

// few returns a number of things.
func (m *maker) few() int { return bits.TrailingZeros32(m.Uint32()|1<<6) + m.IntN(2) }

func (m *maker) zeros() string { return strings.Repeat("0", pick(m, 0, 0, 0, 0, 0, 1, 20)) }
func (m *maker) dec() string   { return m.zeros() + strconv.FormatUint(m.num(), 10) }
func (m *maker) hex() string   { return strconv.FormatUint(m.num(), 16) }

// model returns the form of an input for op; "" where there is no model.
func (m *maker) model(r *conformance.Request) string {
	switch r.Op {
	case "decode", "salvage", "user", "marks", "end":
		return m.blob(r.Op)
	case "mline":
		return m.mline(r.Lenient)
	case "eline":
		return "~e#(" + m.event() + ")"
	case "bline":
		return m.decoded() + pick(m, "", "", "\r\n", " ", "\t \n")
	case "hline":
		return m.header(pick(m, verbs...)) + pick(m, "", "", "", " ", "\r\n", "\t")
	case "pline":
		return m.pathLine(m.num(), m.num())
	case "vline":
		return m.events()
	case "scan", "log", "dumps":
		return m.logOf(r.Op)
	}
	return ""
}

// A blob is what gofuzz fills.
type blob struct {
	Frames []frame
	Size   value
	User   []field
}

type frame struct {
	Delta, Minus bool
	Back         uint8
	Value        value
}

type field struct {
	Tag   uint8
	Value value
}

// value is a value of which one in eight has a larger count than it needs.
type value struct {
	V    uint64
	More uint8
}

func (v value) String() string {
	if c := bitsOf(v.V); v.More < 32 {
		return fmt.Sprintf("%x*%d", v.V, c+int(v.More)%(65-c))
	}
	return strconv.FormatUint(v.V, 16)
}

func (f frame) text(n int) string {
	if !f.Delta || n == 0 {
		return "L" + f.Value.String()
	}
	return fmt.Sprintf("D%d%c%v", int(f.Back)%min(8, n), "+-"[b2i(f.Minus)], f.Value)
}

// blob returns the form of a blob.
func (m *maker) blob(op conformance.Op) string {
	var b blob
	m.fill.Fuzz(&b)
	if m.chance(6) && len(b.Frames) > 0 {
		many := pick(m, 30, 31, 32)
		for len(b.Frames) < many {
			b.Frames = append(b.Frames, b.Frames...)
		}
		b.Frames = b.Frames[:many]
	}
	t := b.frames()
	if op == "user" || m.chance(15) {
		for _, f := range b.User {
			t += fmt.Sprintf(" U%d:%v", 1+f.Tag%uint8(pick(m, 6, 6, 6, 15)), f.Value)
		}
	}
	if m.chance(12) {
		t += " " + m.junk(pick(m, 3, 5, 7, 8, 9, 11, 20, 70, 300, 1420, 2476, 2600, 8*m.IntN(700)))
	}
	switch {
	case op == "salvage" && m.chance(70), m.chance(8):
		return m.cut(t, op)
	case op == "end" && m.chance(70):
		return "X" + strings.Repeat(pick(m, "00", "ff", "a5"), m.IntN(5)) + " " + t
	}
	return t
}

// frames returns the form of the frames and the size.
func (b *blob) frames() (t string) {
	for n, f := range b.Frames {
		t += f.text(n) + " "
	}
	return t + "S" + b.Size.String()
}

// junk returns up to n bits.
func (m *maker) junk(n int) string {
	b := []byte("B0")
	ones := m.chance(60)
	for range m.IntN(n + 1) {
		b = append(b, '0'+byte(b2i(ones && m.chance(50))))
	}
	return string(b)
}

// cut returns the form of a blob that ends early.
func (m *maker) cut(t string, op conformance.Op) string {
	data, ok := blobOf(t + " n-")
	if !ok || len(data) == 0 {
		return t
	}
	data = data[:m.IntN(len(data))]
	if op != "salvage" {
		data = append(data, byte((len(data)+2)>>8), byte(len(data)+2))
	}
	return blobForm(data, op)
}

// event returns the form of the blob of an event.
func (m *maker) event() string {
	var b blob
	m.fill.Fuzz(&b)
	t, kind := b.frames(), uint64(m.IntN(3))
	for tag := 1; tag <= 6; tag++ {
		switch {
		case tag == 5:
			t += fmt.Sprintf(" U5:%x", pick(m, kind, kind, kind, kind, kind, m.num()))
		case tag == 1 && !m.chance(8), tag == 6 && kind == 2 && !m.chance(10), m.chance(20):
			t += fmt.Sprintf(" U%d:%s", tag, m.hex())
		}
	}
	return t
}

// mline returns a ~m# line, or one that only lenient readers accept.
func (m *maker) mline(lenient bool) string {
	data, ok := blobOf(m.blob("decode"))
	text := base64.StdEncoding.EncodeToString(data)
	for n := m.few(); lenient && ok && n > 0; n-- {
		at := m.IntN(len(text) + 1)
		text = pick(m, strings.NewReplacer("+", "-", "/", "_").Replace(text), strings.TrimSuffix(text, "="), text+pick(m, "=", "A", "\n"),
			text[:at]+pick(m, " ", "\t", "\r\n", "\v", "\f", "=", "~")+text[at:])
	}
	return pick(m, "~m#", "~m#", "~m#", "~m#", "~m#", "", " ~m#") + text
}

// decoded returns a ~b# line.
func (m *maker) decoded() string {
	t := "~b#size: " + m.dec() + ","
	for range pick(m, m.few(), m.few(), m.few(), m.few(), 32, 33) {
		t += " 0x" + m.zeros() + pick(m, m.hex(), m.hex(), strings.ToUpper(m.hex()))
	}
	return t
}

var (
	verbs      = []string{"boot", "map", "load", "begin", "end", "total", "lost", "thread", "heap", "free", "snapshot"}
	headerKeys = strings.Fields("t n b u w pid parent epoch allocs frees bytes live peak l base sample cut shift size free largest min code heap k why prog build dev fw name zone")
	// keyValues lists values of keys that are no numbers, or of few.
	keyValues = map[string][]string{"w": {"32", "64", "064"}, "shift": {"0", "1", "4", "04"}, "k": {"paths", "paths", "diff", "tree", ""},
		"u": {"1", "1", "0", "2", "01"}}
	anyTexts = []string{"", "a", "aa11", "AA11", "a b", "x~h#y", "\xc3\xa4", "%", "=", "~", "\x1b[0m", "+5"}
)

// value returns a value for a key of a header.
func (m *maker) value(key string) string {
	switch key {
	case "base":
		return strconv.FormatUint(m.num()&(1<<32-1), 10)
	case "code", "heap":
		start, length := m.num(), max(1, m.num())
		if start > 0 {
			length = min(length, -start)
		}
		return fmt.Sprintf(pick(m, "%x+%x", "0%x+0%x", "%X+%X", "%x+%x,0+ffff"), start, length)
	case "why", "prog", "build", "dev", "fw", "name", "zone":
		return pick(m, anyTexts...)
	}
	return pick(m, append(keyValues[key], m.dec())...)
}

// escaped writes a value into a header.
func (m *maker) escaped(v string) (out string) {
	for _, c := range []byte(v) {
		if c >= '!' && c <= '}' && c != '%' && !m.chance(3) {
			out += string(c)
		} else {
			out += fmt.Sprintf(pick(m, "%%%02X", "%%%02X", "%%%02x"), c)
		}
	}
	return out
}

// header returns a header with some keys.
func (m *maker) header(verb string, keys ...string) string {
	t := "~h#" + verb
	if verb == "begin" || verb == "end" || (verb == "thread" || verb == "snapshot") && m.chance(60) {
		t += " " + m.zeros() + strconv.FormatUint(m.num()&(1<<32-1), 10)
	}
	for n := m.few(); len(keys) < n; {
		keys = append(keys, pick(m, headerKeys...))
	}
	for _, k := range keys {
		t += " " + k + "=" + m.escaped(m.value(k))
	}
	return t
}

// named returns a path that begins with a name: mostly a told one said in another way, or another path with its name.
func (m *maker) named(frames []callpath.Frame) callpath.Path {
	if len(m.log.paths) == 0 || m.chance(20) {
		return callpath.Path{Base: callpath.Named, Outer: uint32(pick(m, m.num(), uint64(m.IntN(2)))), Frames: frames}
	}
	told := pick(m, m.log.paths...)
	if m.chance(30) && len(frames) > 0 && !frames[0].Escaped {
		return callpath.Path{Base: callpath.Named, Outer: unmixed(told.Name(), frames[0]), Frames: frames[:1]}
	}
	n := m.IntN(len(told.Frames) + 1)
	outer := callpath.Path{Base: told.Base, Outer: told.Outer, Frames: told.Frames[:n]}
	return callpath.Path{Base: callpath.Named, Outer: outer.Name(), Frames: append([]callpath.Frame{}, told.Frames[n:]...)}
}

// unmixed returns the name that, with the frame after it, gives name. (BT-NAME-1)
func unmixed(name uint32, f callpath.Frame) uint32 {
	inverse := uint32(1)
	for range 5 { // Newton
		inverse *= 2 - 0x9E3779B1*inverse
	}
	return (name^name>>15^name>>30)*inverse ^ uint32(f.Value)
}

// pathLine returns the form of a ~p# line, and adds its values to the open dump.
func (m *maker) pathLine(dump, seq uint64) string {
	l := words.PathLine{Head: callpath.Head{Flags: pick[callpath.Flags](m, 0, 0, 0, 1, 2, 4, 7), Dump: uint8(dump & 63), Seq: uint16(seq & 4095), Unit: uint8(m.IntN(13))}}
	m.fill.Fuzz(&l.Entries)
	for i := range l.Entries {
		e := &l.Entries[i]
		if i > 0 && m.chance(60) { // frames of the entry before
			before := l.Entries[i-1].Path
			keep := m.IntN(len(before.Frames) + 1)
			e.Path = callpath.Path{Base: before.Base, Outer: before.Outer, Frames: append(before.Frames[:keep:keep], e.Frames...)}
		}
		m.log.paths, e.Definition = append(m.log.paths, e.Path), m.chance(20)
		e.Live = min(e.Live, 1<<64-2)
		if l.Flags&callpath.Blocks != 0 {
			e.Live, e.Bytes = uint64(len(e.Blocks)), 0
			for k := range e.Blocks {
				e.Blocks[k].Address &^= 1<<l.Unit - 1
				e.Bytes += e.Blocks[k].Size
			}
		}
		if !e.Definition {
			m.log.live, m.log.bytes = m.log.live+e.Live, m.log.bytes+e.Bytes
		}
	}
	return m.digits("~p#(" + l.String() + ")")
}

// digits returns a line, of three one as digits, of which one is another.
func (m *maker) digits(line string) string {
	text, ok := partOf(line)
	end := len(text) - map[byte]int{'p': 3, 'v': 6}[line[1]]
	if !ok || end <= 3 || m.chance(65) {
		return line
	}
	at := 3 + m.IntN(end-3)
	return line[:3] + "{" + text[3:at] + pick(m, "", "A", "B", "C", "D", "/", "gA", "//") + text[at+m.IntN(2):end] + "}"
}

// events returns the form of a ~v# line.
func (m *maker) events() string {
	l := words.EventLine{EventsHead: callpath.EventsHead{Flags: callpath.Flags(m.IntN(2)), Seq: m.Uint32N(1 << 18), Unit: uint8(m.IntN(13)),
		Time: m.num(), Thread: m.num(), Next: m.num()}}
	m.fill.Fuzz(&l.Events)
	next, at := l.Next, callpath.Event{Time: l.Time, Thread: l.Thread, Path: 5}
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind = callpath.EventKind(m.IntN(5)); next == 0 && (e.Kind == callpath.Freed || e.Kind == callpath.Moved) {
			e.Kind = callpath.Allocated
		}
		if m.chance(60) {
			e.Time, e.Thread, e.Path = at.Time, at.Thread, at.Path
		}
		e.Number, e.Address = next, e.Address&^(1<<l.Unit-1)
		if next > 0 {
			e.Old = next - 1 - e.Old%min(next, 1<<62-1)
		}
		if at = *e; e.Kind == callpath.Allocated || e.Kind == callpath.Moved {
			next++
		}
	}
	return m.digits("~v#(" + l.String() + ")")
}

package fuzz

import (
	"encoding/base64"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
)

// maker makes up inputs by a model of the format. Each rule of it is mostly kept.
type maker struct {
	*rand.Rand
	wrong int // how often a rule is broken, in 1000
	log   logState
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }
func (m *maker) broken() bool            { return m.IntN(1000) < m.wrong }

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

func (m *maker) dec() string   { return strconv.FormatUint(m.num(), 10) }
func (m *maker) hex() string   { return strconv.FormatUint(m.num(), 16) }
func (m *maker) zeros() string { return strings.Repeat("0", pick(m, 0, 0, 0, 0, 1, 3, 20)) }

// model returns the form of an input for op; "" where there is no model.
func (m *maker) model(r *conformance.Request) string {
	switch r.Op {
	case conformance.OpDecode, conformance.OpSalvage, conformance.OpUser, conformance.OpMarks, conformance.OpEnd:
		return m.blob(r.Op)
	case conformance.OpMline:
		return m.mline(r.Lenient)
	case conformance.OpEline:
		return pick(m, "~e#", "~e#", "~e#", "~m#") + "(" + m.event() + ")" + pick(m, "", "", "", "\n", "=", " ")
	case conformance.OpBline:
		return m.decoded() + pick(m, "", "", "\r\n", " ", "\t \n", ",")
	case conformance.OpHline:
		return m.header(pick(m, verbs...)) + pick(m, "", "", "", " ", "\r\n", "\t", "x", "~h#")
	case conformance.OpPline:
		return m.paths()
	case conformance.OpVline:
		return m.events()
	case conformance.OpScan, conformance.OpLog, conformance.OpDumps:
		return m.logOf(r.Op)
	}
	return ""
}

// counted returns a value of a blob, with a count that is too large now and then.
func (m *maker) counted(v uint64) string {
	if c := bitsOf(v); m.chance(15) {
		return fmt.Sprintf("%x*%d", v, c+m.IntN(65-c))
	}
	return strconv.FormatUint(v, 16)
}

// blob returns the form of a blob.
func (m *maker) blob(op conformance.Op) string {
	var t []string
	n := m.few()
	if m.chance(6) {
		n = pick(m, 0, 30, 31, 32)
	}
	for i := range n {
		if i > 0 && m.chance(50) || m.broken() {
			back := m.IntN(min(8, i+1))
			if !m.broken() {
				back = min(back, max(0, i-1))
			}
			t = append(t, fmt.Sprintf("D%d%c%s", back, pick(m, '+', '-'), m.counted(m.num())))
		} else {
			t = append(t, "L"+m.counted(m.num()))
		}
	}
	if m.broken() || m.chance(2) {
		t = append([]string{"d" + strconv.Itoa(m.IntN(32))}, t...)
	}
	t = append(t, "S"+m.counted(m.num()))
	if op == conformance.OpUser || m.chance(15) {
		for range m.few() {
			tag := 1 + m.IntN(pick(m, 6, 6, 6, 15))
			t = append(t, fmt.Sprintf("U%d:%s", tag, m.counted(m.num())))
		}
	}
	if m.chance(12) || m.broken() {
		t = append(t, m.junk(pick(m, 3, 5, 7, 8, 9, 11, 20, 70, 300, 1420, 2476, 2600, 8*m.IntN(700))))
	}
	switch {
	case op == conformance.OpSalvage && m.chance(70):
		return m.cut(append(t, "n-"), op)
	case op == conformance.OpEnd && m.chance(70):
		t = append([]string{"X" + strings.Repeat(pick(m, "00", "ff", "a5"), m.IntN(5))}, t...)
	case m.chance(8):
		return m.cut(t, op)
	case m.broken():
		t = append(t, "n"+strconv.Itoa(pick(m, 0, 0, 1, 2, 3, m.IntN(80))))
	}
	return strings.Join(t, " ")
}

// junk returns up to n bits.
func (m *maker) junk(n int) string {
	b := []byte("B")
	ones := m.chance(60)
	if m.chance(70) {
		n = m.IntN(n + 1)
	}
	for range n + 1 {
		b = append(b, '0')
		if ones {
			b[len(b)-1] += byte(m.IntN(2))
		}
	}
	return string(b)
}

// cut returns the form of a blob that ends early.
func (m *maker) cut(t []string, op conformance.Op) string {
	blob, ok := blobOf(strings.Join(t, " "))
	if !ok || len(blob) == 0 {
		return strings.Join(t, " ")
	}
	blob = blob[:m.IntN(len(blob))]
	if op != conformance.OpSalvage && len(blob) >= 2 && m.chance(80) {
		blob = append(blob, byte((len(blob)+2)>>8), byte(len(blob)+2))
	}
	return blobForm(blob, op)
}

// event returns the form of the blob of an event.
func (m *maker) event() string {
	t := []string{}
	for range m.few() {
		t = append(t, "L"+m.counted(m.num()))
	}
	t = append(t, "S"+m.counted(m.num()))
	kind := uint64(m.IntN(3))
	if m.chance(8) {
		kind = m.num()
	}
	for tag := 1; tag <= 6; tag++ {
		switch {
		case tag == 5 && !m.chance(4):
			t = append(t, fmt.Sprintf("U5:%x", kind))
		case tag == 1 && !m.chance(8), tag == 6 && kind == 2 && !m.chance(10), tag != 5 && m.chance(25):
			t = append(t, fmt.Sprintf("U%d:%s", tag, m.counted(m.num())))
		}
	}
	if m.chance(10) {
		t = append(t, pick(m, "B0000", "B00000", "B1", "B000001", "U9:5"), m.junk(20))
	}
	return strings.Join(t, " ")
}

// mline returns a ~m# line, or one that only lenient readers accept.
func (m *maker) mline(lenient bool) string {
	blob, ok := blobOf(m.blob(conformance.OpDecode))
	if !ok {
		return "~m#"
	}
	text := base64.StdEncoding.EncodeToString(blob)
	if lenient || m.broken() {
		for range m.few() {
			switch m.IntN(7) {
			case 0:
				text = strings.NewReplacer("+", "-", "/", "_").Replace(text)
			case 1:
				text = strings.TrimSuffix(text, "=")
			case 2:
				text += pick(m, "=", "==", "A", " ", "\n", "=A", ".")
			default:
				at := m.IntN(len(text) + 1)
				text = text[:at] + pick(m, " ", "\t", "\r\n", "=", "-", "\x0b", "~") + text[at:]
			}
		}
	}
	lead := "~m#"
	if m.chance(4) {
		lead = pick(m, "", " ~m#", "~b#", "~M#", "~m")
	}
	return lead + text
}

// decoded returns a ~b# line.
func (m *maker) decoded() string {
	size := m.dec()
	if m.broken() {
		size = pick(m, "18446744073709551616", "", "0x5", "-1", "99999999999999999999", "+5")
	}
	t := "~b#size: " + m.zeros() + size + ","
	n := m.few()
	if m.chance(5) {
		n = pick(m, 31, 32, 33)
	}
	for range n {
		h, lead := m.hex(), " 0x"
		if m.chance(20) {
			h = strings.ToUpper(h)
		}
		if m.broken() {
			h = pick(m, "", "10000000000000000", "g", "0x1", h+"g")
		}
		if m.broken() {
			lead = pick(m, " 0X", "  0x", "0x", ", 0x")
		}
		t += lead + m.zeros() + h
	}
	return t
}

var (
	verbs      = []string{"boot", "map", "load", "begin", "end", "total", "lost", "thread", "heap", "free", "snapshot"}
	headerKeys = strings.Fields("t n b u w pid parent epoch allocs frees bytes live peak l base sample cut shift size free largest min code heap k why prog build dev fw name zone")
)

// value returns a value for a key of a header, mostly one that it may have.
func (m *maker) value(key string) string {
	v := m.zeros() + m.dec()
	switch key {
	case "w":
		v = m.zeros() + pick(m, "32", "64")
	case "shift":
		v = m.zeros() + strconv.Itoa(m.IntN(5))
	case "base":
		v = m.zeros() + strconv.FormatUint(m.num()&(1<<32-1), 10)
	case "sample":
		v = m.zeros() + strconv.FormatUint(max(1, m.num()), 10)
	case "code", "heap":
		v = m.ranges()
	case "k":
		v = pick(m, "paths", "paths", "diff", "tree", "")
	case "u":
		v = pick(m, "1", "1", "0", "2", "01")
	case "why", "prog", "build", "dev", "fw", "name", "zone":
		v = pick(m, "", "a", "aa11", "AA11", "a b", "x~h#y", "\xc3\xa4", "%", "=", "~", "\x1b[0m", "+5")
	}
	if m.broken() {
		v = pick(m, "", "+5", "-1", "18446744073709551616", "5x", " ", "4294967296", "16", "033", "0", "5", "99999999999999999999999")
	}
	return v
}

// ranges returns a value of code.
func (m *maker) ranges() string {
	var list []string
	for range 1 + m.few()/2 {
		start, length := m.num(), max(1, m.num())
		if start > 0 && !m.broken() {
			length = min(length, -start)
		}
		item := fmt.Sprintf("%s%x+%s%x", m.zeros(), start, m.zeros(), length)
		if m.broken() {
			item = pick(m, "0+0", "1", "+1", "1+", "ffffffffffffffff+2", "g+1", "", "10000000000000000+1", "1+10000000000000000", "0x1+1")
		}
		list = append(list, item)
	}
	v := strings.Join(list, ",")
	if m.chance(15) {
		v = strings.ToUpper(v)
	}
	return v
}

// escaped writes a value into a header.
func (m *maker) escaped(v string) string {
	out := ""
	for _, c := range []byte(v) {
		if c >= '!' && c <= '}' && c != '%' && m.IntN(40) > 0 || m.broken() {
			out += string(c)
			continue
		}
		out += fmt.Sprintf(pick(m, "%%%02X", "%%%02X", "%%%02x"), c)
	}
	return out
}

// header returns a header with some keys.
func (m *maker) header(verb string, keys ...string) string {
	t := "~h#" + verb
	if verb == "begin" || verb == "end" || verb == "thread" && m.chance(80) || verb == "snapshot" && m.chance(30) || m.broken() {
		if !m.broken() {
			t += " " + m.zeros() + strconv.FormatUint(m.num()&(1<<32-1), 10)
		}
	}
	if len(keys) == 0 {
		for range m.few() {
			keys = append(keys, pick(m, headerKeys...))
		}
	}
	for _, k := range keys {
		if m.broken() {
			k = pick(m, " ", "K", "1", "\t", "=") + k
		}
		t += " " + k + "=" + m.escaped(m.value(strings.TrimLeft(k, " K1\t=")))
	}
	return t
}

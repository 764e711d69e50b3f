package naive

import (
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
)

// crc32 is CRC-32/ISO-HDLC.
func (b impl) crc32(text string) uint64 {
	switch b.bug {
	case "v-crc-not-inverted":
		return uint64(^crc32.ChecksumIEEE([]byte(text)))
	case "v-crc-of-lead-in":
		return uint64(crc32.ChecksumIEEE([]byte("~v#" + text)))
	case "v-crc-castagnoli":
		return uint64(crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
	}
	return uint64(crc32.ChecksumIEEE([]byte(text)))
}

// events reads the items of a ~v# line.
type events struct {
	*fields
	flags, unit, time, thread, next, at uint64
	paths                               []uint32
	list                                []string
}

// vline reads a ~v# line.
func (b impl) vline(text string) (a conformance.Answer, err error) {
	err = reads(func() {
		e := &events{fields: b.pathLine('v', text, 13, 6, b.crc32)}
		e.flags = e.digit()
		seq := e.fixed(3)
		switch {
		case b.has("v-sequence-high-digit-first"):
			seq = seq>>12 | seq&(63<<6) | seq&63<<12
		case b.has("v-sequence-of-12-bits"):
			seq &= 4095
		case b.has("v-other-flags-refused") && e.flags > 1:
			panic(errUnit)
		}
		head := fmt.Sprintf("flags=%d seq=%d", e.flags, seq)
		if e.flags&1 != 0 && !b.has("v-unit-not-there") {
			if e.unit = e.digit(); e.unit > 12 && !b.has("v-unit-over-12") {
				panic(errUnit)
			}
		}
		if e.flags&1 != 0 {
			head += fmt.Sprintf(" unit=%d", e.unit)
		}
		e.time, e.thread, e.next = e.number(), e.number(), e.number()
		if b.has("v-thread-before-time") {
			e.time, e.thread = e.thread, e.time
		}
		head += fmt.Sprintf(" t=%d thread=%d next=%d", e.time, e.thread, e.next)
		for e.text != "" {
			e.item()
		}
		a.Words = strings.Join(append([]string{head}, e.list...), " ")
	})
	return a, err
}

func (e *events) add(format string, args ...any) {
	e.list = append(e.list, strings.Replace(fmt.Sprintf(format, args...), ";@", fmt.Sprintf(";t=%d;thread=%d", e.time, e.thread), 1))
}

func (e *events) item() {
	b := e.b
	n := e.number()
	kind, a := n&3, n>>2
	switch {
	case b.has("v-free-and-move-swapped") && (kind == 1 || kind == 2):
		kind = 3 - kind
	}
	switch kind {
	case 0:
		path := e.path(a)
		size := e.number()
		e.add("alloc;n=%d;@;path=%08x;size=%d%s", e.next, path, size, e.address())
		e.next++
	case 1:
		e.add("free;n=%d;@", e.old(a))
	case 2:
		path := e.path(a)
		old, size := uint64(0), uint64(0)
		if b.has("v-moved-size-first") {
			size = e.number()
			old = e.old(e.number())
		} else {
			old = e.old(e.number())
			size = e.number()
		}
		e.add("move;n=%d;old=%d;@;path=%08x;size=%d%s", e.next, old, path, size, e.address())
		if !b.has("v-moved-takes-no-number") {
			e.next++
		}
	case 3:
		e.other(a)
	}
}

// path returns the name of the path that an item has.
func (e *events) path(a uint64) uint32 {
	b := e.b
	if a == 0 {
		name := e.name()
		known := false
		for _, p := range e.paths {
			known = known || p == name
		}
		if !known || !b.has("v-path-once") {
			e.paths = append(e.paths, name)
		}
		return name
	}
	switch {
	case b.has("v-index-from-the-last"):
		a = uint64(len(e.paths)) + 1 - a
	case b.has("v-index-from-0"):
		a++
	case b.has("v-index-clamped"):
		a = min(a, uint64(len(e.paths)))
	}
	if a == 0 || a > uint64(len(e.paths)) {
		if b.has("v-index-unknown-is-0") || b.has("v-index-clamped") {
			return 0
		}
		panic(errIndex)
	}
	return e.paths[a-1]
}

// old returns the number of the block of that age.
func (e *events) old(age uint64) uint64 {
	b := e.b
	switch {
	case b.has("v-age-is-number"):
		return age
	case b.has("v-age-from-0"):
		age++
	case age == 0 && b.has("v-age-0"), age > e.next && b.has("v-age-before-the-boot"):
		return e.next - age
	}
	if age == 0 || age > e.next || age == e.next && b.has("v-age-below-next") {
		panic(errAge)
	}
	return e.next - age
}

func (e *events) address() string {
	b := e.b
	if e.flags&1 == 0 {
		return ""
	}
	d := e.number()
	diff := uint64(int64(d>>1) ^ -int64(d&1))
	if b.has("v-addresses-whole") {
		e.at = 0
	}
	e.at += diff
	if b.has("v-unit-ignored") {
		return fmt.Sprintf(";addr=%x", e.at)
	}
	return fmt.Sprintf(";addr=%x", e.at<<e.unit)
}

func (e *events) other(a uint64) {
	b := e.b
	switch a {
	case 0:
		if d := e.number(); b.has("v-time-whole") {
			e.time = d
		} else {
			e.time += d
		}
	case 1:
		if d := e.number(); b.has("v-thread-added") {
			e.thread += d
		} else {
			e.thread = d
		}
	case 2:
		if b.has("v-unknown-has-no-address") && e.flags&1 != 0 {
			e.add("unknown;@;addr=%x", e.at)
			return
		}
		e.add("unknown;@%s", e.address())
	case 3:
		n := e.number()
		e.add("lost;@;count=%d", n)
		if b.has("v-lost-takes-numbers") {
			e.next += n
		}
	default:
		if b.has("v-later-refused") {
			panic(errNumber)
		}
		for range e.number() {
			if b.has("v-later-are-numbers") {
				e.number()
			} else {
				e.digit()
			}
		}
	}
}

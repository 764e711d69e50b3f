package naive

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// Rejections of lines of call paths.
var (
	errCRC    = errors.New(string(codec.ReasonCRC))
	errUnit   = errors.New(string(codec.ReasonUnit))
	errNumber = errors.New(string(codec.ReasonNumber))
	errHash   = errors.New(string(codec.ReasonHash))
	errDrop   = errors.New(string(codec.ReasonDrop))
	errDepth  = errors.New(string(codec.ReasonDepth))
	errFrame  = errors.New(string(codec.ReasonFrame))
	errIndex  = errors.New(string(codec.ReasonIndex))
	errAge    = errors.New(string(codec.ReasonAge))
)

// pathOp answers the operations of call paths; ok is false for any other.
func (b impl) pathOp(r *conformance.Request) (a conformance.Answer, ok bool, err error) {
	switch r.Op {
	case conformance.OpPline:
		a, err = b.pline(string(r.Data))
	case conformance.OpVline:
		a, err = b.vline(string(r.Data))
	case conformance.OpDumps:
		a.Words = b.pathDumps(string(r.Data))
	case conformance.OpPencode:
		a.Data, err = b.pencode(r.Words)
	case conformance.OpVencode:
		a.Data, err = b.vencode(r.Words)
	case conformance.OpName:
		a.Words = fmt.Sprintf("%08x", b.name(r.Words))
	case conformance.OpOffsets:
		a.Words = b.offsets(r.Words)
	case conformance.OpAddresses:
		a.Words = b.addresses(r.Words)
	default:
		return a, false, nil
	}
	a.Outcome = conformance.OK
	return a, true, err
}

// frame is an offset, or an address if it is escaped.
type frame struct {
	escaped bool
	x       uint64
}

func (f frame) String() string {
	if f.escaped {
		return fmt.Sprintf("@%x", f.x)
	}
	return fmt.Sprintf("%x", f.x)
}

// ref returns the code offset that the step after the frame starts from.
func (b impl) ref(f frame) uint64 {
	if f.escaped && !b.has("p-escape-is-reference") {
		return 0
	}
	return f.x
}

// step reads a frame: a step from ref, or an escape and an address.
func (f *fields) step(ref uint64) frame {
	b := f.b
	first := f.digit()
	class := int(first & 3)
	if b.has("p-step-class-in-high-bits") {
		class, first = int(first>>4), first&15<<2
	}
	v := first>>2 | f.fixed(class+1)<<4
	if v == 1<<28-1 && !b.has("p-escape-is-a-step") {
		a := frame{true, f.number()}
		switch {
		case b.has("p-escape-of-32-bits"):
			a.x &= 1<<32 - 1
		case b.has("p-escape-as-offset"):
			a.escaped = false
		}
		return a
	}
	if class > 0 && bits.Len64(v) <= 4+6*class && !b.has("p-step-of-any-class") && !(b.has("p-step-of-class-3") && class == 3) {
		panic(errNumber)
	}
	d := int64(v>>1) ^ -int64(v&1)
	switch {
	case b.has("p-step-sign-and-magnitude") && v&1 == 1:
		d = -int64(v >> 1)
	case b.has("p-step-of-odd-up"):
		d = -d
	case b.has("p-step-unsigned"):
		d = int64(v)
	}
	x := int64(ref) + d
	switch {
	case x < 0 && b.has("p-frame-at-least-0"):
		x = 0
	case x < 0 && b.has("p-frame-below-0"), x>>27 != 0 && b.has("p-frame-wraps"):
		x &= 1<<27 - 1
	case x < 0, x >= 1<<27 && !b.has("p-frame-of-28-bits"), x >= 1<<24 && b.has("p-frame-of-24-bits"):
		panic(errFrame)
	}
	return frame{x: uint64(x)}
}

// entry is an entry of a ~p# line: its path as written, and its words.
type entry struct {
	base   uint64
	name   uint32
	frames []frame
	words  string
}

func (b impl) pathWords(e *entry) string {
	parts := make([]string, 0, len(e.frames)+1)
	base := e.base
	if base >= 2 {
		parts = append(parts, fmt.Sprintf("%08x", e.name))
		base = 2
	}
	for i := range e.frames {
		at := i
		if b.has("p-frames-innermost-first") {
			at = len(e.frames) - 1 - i
		}
		parts = append(parts, e.frames[at].String())
	}
	return fmt.Sprintf("%d:%s", base, strings.Join(parts, "/"))
}

// pline reads a ~p# line.
func (b impl) pline(text string) (a conformance.Answer, err error) {
	err = reads(func() {
		f := b.pathLine('p', text, 7, 3, b.crc16)
		flags, dump := f.digit(), f.digit()
		seq := f.fixed(2)
		switch {
		case b.has("p-dump-before-flags"):
			flags, dump = dump, flags
		case b.has("p-sequence-high-digit-first"):
			seq = seq>>6 | seq&63<<6
		case b.has("p-sequence-of-one-digit"):
			seq &= 63
		case b.has("p-dump-of-5-bits"):
			dump &= 31
		case b.has("p-unknown-flags-refused") && flags > 7, b.has("p-flag-32-refused") && flags > 31:
			panic(errUnit)
		}
		list := []string{fmt.Sprintf("flags=%d dump=%d seq=%d", flags, dump, seq)}
		unit := uint64(0)
		if flags&1 != 0 && !b.has("p-unit-not-there") || b.has("p-unit-always") {
			unit = f.digit()
			switch {
			case b.has("p-unit-of-4-bits"):
				unit &= 15
			case b.has("p-unit-at-most-4") && unit > 4:
				panic(errUnit)
			case unit > 12 && !b.has("p-unit-over-12"):
				panic(errUnit)
			}
		}
		if flags&1 != 0 {
			list = append(list, fmt.Sprintf("unit=%d", unit))
		}
		v := &values{fields: f, flags: flags, unit: unit}
		var before *entry
		for f.text != "" {
			rest := f.text
			e, bad := (*entry)(nil), error(nil)
			if b.has("p-truncated-ends") {
				bad = reads(func() { e = f.entry(before); v.read(e) })
			} else {
				e = f.entry(before)
				v.read(e)
			}
			if bad != nil && !errors.Is(bad, errTruncated) {
				panic(bad)
			}
			if bad != nil || len(rest) == len(f.text) {
				break
			}
			list = append(list, b.pathWords(e)+e.words)
			before = e
		}
		a.Words = strings.Join(list, " ")
	})
	return a, err
}

// entry reads the path of an entry.
func (f *fields) entry(before *entry) *entry {
	b := f.b
	k := f.number()
	e := &entry{base: k}
	ref := uint64(0)
	switch {
	case k >= 4:
		e, ref = f.share(k-4, before)
	case k >= 2:
		e.name = f.name()
	}
	if k == 2 || k == 3 && b.has("p-base-3-without-frames") {
		return e
	}
	n := f.number()
	if n > 1024 || n+uint64(len(e.frames)) > 1024 {
		panic(errDepth)
	}
	if b.has("p-depth-at-most-31") && n > 31 || b.has("p-no-frames-refused") && k < 2 && n == 0 {
		panic(errDepth)
	}
	if b.has("p-base-1-as-0") && e.base == 1 {
		e.base = 0
	}
	for range n {
		x := f.step(ref)
		e.frames = append(e.frames, x)
		if !(b.has("p-steps-from-the-first") && len(e.frames) > 1) && !(x.escaped && b.has("p-escape-keeps-reference")) {
			ref = b.ref(x)
		}
	}
	return e
}

// share returns the frames of the previous entry without the innermost drop frames, and the
// reference of the first step.
func (f *fields) share(drop uint64, before *entry) (*entry, uint64) {
	b := f.b
	if before == nil && b.has("p-share-of-nothing") {
		before, drop = &entry{}, 0
	}
	if before == nil {
		panic(errDrop)
	}
	frames := before.frames
	switch {
	case drop > uint64(len(frames)) && b.has("p-drop-all-at-most"):
		drop = uint64(len(frames))
	case b.has("p-drop-counts-frames-kept"):
		drop = uint64(len(frames)) - drop
	case b.has("p-drop-one-less") && drop > 0:
		drop--
	}
	if drop > uint64(len(frames)) {
		if full := frames[:cap(frames)]; b.has("p-drop-of-frames-left-out") && drop <= uint64(len(full)) {
			frames = full
		} else {
			panic(errDrop)
		}
	}
	keep := uint64(len(frames)) - drop
	e := &entry{base: before.base, name: before.name, frames: append([]frame{}, frames[:keep]...)}
	if b.has("p-drop-of-frames-left-out") {
		e.frames = frames[:keep]
	}
	switch {
	case b.has("p-share-from-base-0"):
		e.base = 0
	case b.has("p-share-drops-cut") && e.base == 1:
		e.base = 0
	case b.has("p-share-drops-name"):
		e.base, e.name = 0, 0
	}
	switch {
	case b.has("p-share-from-0"):
		return e, 0
	case drop > 0 && !b.has("p-share-from-the-caller"):
		if b.has("p-share-from-the-innermost") {
			return e, b.ref(frames[len(frames)-1])
		}
		return e, b.ref(frames[keep])
	case keep > 0 && !(drop == 0 && b.has("p-share-goes-on-from-0")):
		return e, b.ref(frames[keep-1])
	}
	return e, 0
}

// values reads the values of entries.
type values struct {
	*fields
	flags, unit uint64
	at          uint64 // address of the previous block, in units
}

func (v *values) read(e *entry) {
	b := v.b
	n := v.number()
	if n == 0 {
		e.words = ";def"
		if b.has("p-definition-has-bytes") {
			v.number()
		}
		if b.has("p-definition-has-flags") {
			v.behind(e)
			e.words = ";def"
		}
		return
	}
	live := n - 1
	if b.has("p-live-one-more") {
		live = n
	}
	e.words = fmt.Sprintf(";live=%d", live)
	if v.flags&1 != 0 && !b.has("p-blocks-are-bytes") {
		v.blocks(e, n-1)
	} else {
		size := v.number()
		if b.has("p-bytes-of-32-bits") {
			size &= 1<<32 - 1
		}
		e.words += fmt.Sprintf(";bytes=%d", size)
		if v.flags&1 != 0 {
			e.words = fmt.Sprintf(";live=%d;blocks=-", live)
		}
	}
	v.behind(e)
}

func (v *values) blocks(e *entry, n uint64) {
	b := v.b
	if b.has("p-blocks-and-bytes") {
		v.number()
	}
	if b.has("p-blocks-from-0-in-each-entry") {
		v.at = 0
	}
	words := []string{}
	for range n {
		d := v.number()
		size := uint64(0)
		if b.has("p-block-size-first") {
			size, d = d, v.number()
		} else {
			size = v.number()
		}
		switch {
		case b.has("p-block-difference-unsigned"):
			v.at += d
		case b.has("p-block-address-whole"):
			v.at = d >> 1
		default:
			v.at += uint64(int64(d>>1) ^ -int64(d&1))
		}
		address := v.at << v.unit
		switch {
		case b.has("p-block-unit-ignored"):
			address = v.at
		case b.has("p-block-unit-of-bytes") && v.unit > 0:
			address = v.at * v.unit
		case b.has("p-block-of-32-bits"):
			address &= 1<<32 - 1
		case b.has("p-block-of-63-bits") && address>>63 == 1:
			panic(errNumber)
		}
		if word := fmt.Sprintf("%x+%d", address, size); !b.has("p-blocks-once") || len(words) == 0 || !strings.HasPrefix(words[len(words)-1], fmt.Sprintf("%x+", address)) {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		words = []string{"-"}
	}
	e.words += ";blocks=" + strings.Join(words, ",")
}

// behind reads the values for flags 2 to 32, which follow the others.
func (v *values) behind(e *entry) {
	b := v.b
	peak := uint64(0)
	if v.flags&4 != 0 && b.has("p-peak-first") {
		peak = v.number()
	}
	if v.flags&2 != 0 {
		allocs, ever := v.number(), v.number()
		if b.has("p-ever-bytes-first") {
			allocs, ever = ever, allocs
		}
		e.words += fmt.Sprintf(";ever=%d,%d", allocs, ever)
	}
	if v.flags&4 != 0 {
		if !b.has("p-peak-first") {
			peak = v.number()
		}
		e.words += fmt.Sprintf(";peak=%d", peak)
	}
	if v.flags&8 != 0 && !b.has("p-flag-8-has-no-number") {
		v.number()
	}
	if v.flags&16 != 0 && !b.has("p-flag-16-has-no-number") {
		v.number()
	}
	if v.flags&32 == 0 || b.has("p-flag-32-has-nothing") {
		return
	}
	for range v.number() {
		switch {
		case b.has("p-later-are-numbers"):
			v.number()
		case b.has("p-later-is-one-number"):
		default:
			v.digit()
		}
	}
}

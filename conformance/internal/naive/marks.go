package naive

import (
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
)

// signatures returns the loss signatures of a value in a field of count bits. (BT-LOSS-2)
func (b impl) signatures(v uint64, count int) (wide, wrap, zero bool) {
	limit := 32
	switch b.bug {
	case "marks-from-32":
		limit = 31
	case "marks-from-34":
		limit = 33
	}
	if count <= limit {
		return false, false, false
	}
	high, low := v>>32, v&(1<<max(0, count-32)-1)
	switch b.bug {
	case "marks-of-48-bits":
		high, low = high&0xffff, low&0xffff
	case "marks-of-63-bits":
		high, low = high&(1<<31-1), low&(1<<31-1)
	}
	bit31 := v>>31&1 == 1 || b.has("marks-without-bit-31")
	wrap, zero = bit31 && high == low, bit31 && high == 0
	if b.has("marks-zero-without-bit-31") {
		zero = high == 0
	}
	if b.has("marks-one-wins") && wrap {
		zero = false
	}
	return true, wrap, zero
}

// markLists holds the frames with each flag, by the name of the flag.
type markLists map[string][]string

func (l markLists) note(holds bool, name, frame string) {
	if holds {
		l[name] = append(l[name], frame)
	}
}

func (l markLists) text(name string) string {
	if len(l[name]) == 0 {
		return "-"
	}
	return strings.Join(l[name], ",")
}

// marks lists the loss flags of the values of a blob. (BT-LOSS-2, BT-LOSS-3)
func (b impl) marks(blob []byte) (conformance.Answer, error) {
	if _, err := b.decode(blob, 64); err != nil {
		return conformance.Answer{}, err
	}
	r, counts, bases, values, err := b.valuesOf(blob)
	if err != nil {
		return conformance.Answer{}, err
	}
	lists := markLists{}
	flags := make([]frameFlags, len(r.pcs))
	for n := range r.pcs {
		if b.has("marks-31-frames") && n == 31 || b.has("marks-16-frames") && n >= 16 {
			break
		}
		value := values[n]
		if b.has("marks-of-addresses") {
			value = r.pcs[n]
		}
		f := &flags[n]
		f.wide, f.wrap, f.zero = b.signatures(value, counts[n])
		if b.has("marks-not-of-deltas") && bases[n] >= 0 {
			f.wrap, f.zero = false, false
		}
		f.lossy = f.wrap || f.zero || b.inherits(flags, n, bases[n])
		frame := strconv.Itoa(n)
		lists.note(f.wide, "wide", frame)
		lists.note(f.wrap, "wrap", frame)
		lists.note(f.zero, "zero", frame)
		lists.note(f.lossy, "lossy", frame)
	}
	lists.note(b.sizeLossy(r.size, counts[len(r.pcs)], flags), "lossy", "size")
	return words("wide=%s wrap=%s zero=%s lossy=%s", lists.text("wide"), lists.text("wrap"), lists.text("zero"),
		lists.text("lossy")), nil
}

// frameFlags holds the loss flags of a frame.
type frameFlags struct{ wide, wrap, zero, lossy bool }

// inherits reports whether frame n is lossy because its base is lossy. base is -1 for a literal.
func (b impl) inherits(flags []frameFlags, n, base int) bool {
	if base < 0 {
		return false
	}
	switch b.bug {
	case "marks-not-inherited":
		return false
	case "marks-wide-not-inherited":
		return flags[base].lossy && !flags[n].wide
	case "marks-from-frame-before":
		return flags[n-1].lossy
	case "marks-from-wide":
		return flags[base].lossy || flags[base].wide
	case "marks-from-wrap-only":
		return flags[base].lossy && !flags[base].zero
	case "marks-inherited-once":
		return flags[base].wrap || flags[base].zero
	}
	return flags[base].lossy
}

// sizeLossy reports whether the size is lossy.
func (b impl) sizeLossy(size uint64, count int, flags []frameFlags) bool {
	wide, wrap, zero := b.signatures(size, count)
	switch b.bug {
	case "marks-not-of-size":
		return false
	case "marks-size-not-zero":
		return wrap
	case "marks-size-wide":
		return wide
	case "marks-size-inherits":
		return wrap || zero || wide && len(flags) > 0 && flags[len(flags)-1].lossy
	}
	return wrap || zero
}

// valuesOf reads a blob again, and returns the value, the count and the base of each frame. The
// base of a literal is -1. The last count is the count of the size.
func (b impl) valuesOf(blob []byte) (r *bitReader, counts, bases []int, values []uint64, err error) {
	fields, err := b.framed(blob)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if r, err = b.readAnyDepth(fields, 8*len(fields), 64); err != nil {
		return nil, nil, nil, nil, err
	}
	w := &bitReader{impl: impl{}, data: fields, end: 8 * len(fields), word: 64}
	w.field(5, depthField)
	for n := range r.pcs {
		kind, _ := w.field(1, headField)
		base := -1
		if kind == 1 {
			back, _ := w.field(3, headField)
			base = n - 1 - int(back)
			w.field(1, headField)
		}
		count, _ := w.count()
		v, _ := w.field(count, valueField)
		counts, bases, values = append(counts, count), append(bases, base), append(values, v)
	}
	count, _ := w.count()
	return r, append(counts, count), bases, values, nil
}

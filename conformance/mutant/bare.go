package mutant

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// bare reads depth and frames alone. (BT-BARE-1, BT-BARE-2)
func (b impl) bare(data []byte, word int) (conformance.Answer, error) {
	if b.has("bare-at-64") {
		word = 64
	}
	end := 8 * len(data)
	if b.has("bare-length") {
		end = max(0, end-16)
	}
	read := func(depth int) (*mutantReader, error) {
		r := &mutantReader{impl: b, data: data, end: end, word: word}
		said, err := r.field(5, depthField)
		if depth < 0 {
			depth = int(said)
		}
		for n := 0; n < depth && err == nil; n++ {
			err = r.frame()
		}
		return r, err
	}
	r, err := read(-1)
	if err == nil && len(r.pcs) == 0 && !b.has("bare-depth-0-is-0") {
		if full, err := read(32); err == nil {
			r = full
		}
	}
	if err != nil {
		return conformance.Answer{}, err
	}
	bits := r.pos
	if b.has("bare-whole-bytes") {
		bits = (bits + 7) / 8 * 8
	}
	return words("bits=%d pcs=%s", bits, pcsText(r.pcs)), nil
}

func pcsText(pcs []uint64) string {
	_, text, _ := strings.Cut(conformance.Value{PCs: pcs}.String(), "pcs=")
	return text
}

// marks are what values show of their encoder. (BT-LOSS-2, BT-LOSS-3)
func (b impl) marks(blob []byte) (conformance.Answer, error) {
	// The fields of a plain reader; what is wrong with a mutant of marks is in them.
	lists := map[string][]string{}
	var lossy []bool
	note := func(name, frame string) { lists[name] = append(lists[name], frame) }
	judge := func(v uint64, count int) (wide, wrap, zero bool) {
		limit := 32
		if b.has("marks-from-32") {
			limit = 31
		}
		if count <= limit {
			return
		}
		bit31 := v>>31&1 == 1 || b.has("marks-without-bit-31")
		wrap = bit31 && v>>32 == v&(1<<max(0, count-32)-1)
		zero = bit31 && v>>32 == 0
		if b.has("marks-one-wins") && wrap {
			zero = false
		}
		return true, wrap, zero
	}
	if _, err := b.decode(blob, 64); err != nil {
		return conformance.Answer{}, err
	}
	r, counts, bases, values, err := b.valuesOf(blob)
	if err != nil {
		return conformance.Answer{}, err
	}
	for n := range r.pcs {
		frame := strconv.Itoa(n)
		wide, wrap, zero := judge(values[n], counts[n])
		if wide {
			note("wide", frame)
		}
		if wrap {
			note("wrap", frame)
		}
		if zero {
			note("zero", frame)
		}
		base := bases[n]
		if b.has("marks-from-frame-before") && base >= 0 {
			base = n - 1
		}
		is := wrap || zero || base >= 0 && lossy[base] && !b.has("marks-not-inherited") &&
			!(wide && b.has("marks-wide-not-inherited"))
		lossy = append(lossy, is)
		if is {
			note("lossy", frame)
		}
	}
	if _, wrap, zero := judge(r.size, counts[len(r.pcs)]); (wrap || zero) && !b.has("marks-not-of-size") {
		note("lossy", "size")
	}
	text := func(name string) string {
		if len(lists[name]) == 0 {
			return "-"
		}
		return strings.Join(lists[name], ",")
	}
	return words("wide=%s wrap=%s zero=%s lossy=%s", text("wide"), text("wrap"), text("zero"), text("lossy")), nil
}

// valuesOf reads a blob once more, for each frame's own value, its count and its
// base (-1 of a literal); the size's count is the last.
func (b impl) valuesOf(blob []byte) (r *mutantReader, counts, bases []int, values []uint64, err error) {
	fields, err := b.framed(blob)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if r, err = b.readAnyDepth(fields, 8*len(fields), 64); err != nil {
		return nil, nil, nil, nil, err
	}
	w := &mutantReader{impl: impl{}, data: fields, end: 8 * len(fields), word: 64}
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

var leadIns = regexp.MustCompile(`~[mbeh]#`)

// bareEncode writes depth and frames alone. (BT-BARE-1)
func (b impl) bareEncode(in *conformance.Value, m codec.Machine, search codec.Search) conformance.Answer {
	size := &mutantWriter{impl: b, machine: m}
	size.value(in.Size)
	bits := b.fields(in, m, search)
	if !b.has("bare-writes-size") {
		bits = bits[:len(bits)-len(size.bits)]
	}
	return conformance.Answer{Outcome: conformance.OK, Bits: len(bits), Data: bitstring.Pack(bits)}
}

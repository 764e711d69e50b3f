package naive

import (
	"math/bits"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// bitWriter writes fields with the bug of a mutant.
type bitWriter struct {
	impl
	machine codec.Machine
	bits    []byte
}

func (w *bitWriter) field(v uint64, width int, spill byte) {
	for i := width - 1; i >= 0; i-- {
		w.bits = append(w.bits, byte(v>>i&1))
	}
	switch {
	case w.has("writes-no-spill"):
	case w.has("writes-spill-1"):
		w.bits = append(w.bits, 1)
	default:
		w.bits = append(w.bits, spill)
	}
}

// value writes count and value. (BT-COUNT-1, BT-COUNT-2, BT-MACH-2, BT-MACH-3, BT-MACH-4)
func (w *bitWriter) value(v uint64) {
	count := max(1, bits.Len64(v))
	wire := w.wire(v, count)
	switch {
	case v == 0 && w.has("writes-count-0-for-0"):
		w.field(0, 6, 0)
		w.field(0, 0, 0)
		return
	case count == 64 && w.has("writes-count-63"):
		count = 63
	case w.has("writes-count-of-rest"):
		count = max(1, bits.Len64(wire))
	}
	spill := byte(0)
	if w.wraps() && v>>31 != 0 && !w.has("writes-no-wrap-spill") {
		spill = 1
	}
	w.field(uint64(count%64), 6, 0)
	w.field(wire, count, spill)
}

func (w *bitWriter) wraps() bool {
	return w.machine == codec.MachineWrap32 || w.machine == codec.MachineWrap64
}

// wire returns the bits that the machine writes for v.
func (w *bitWriter) wire(v uint64, count int) uint64 {
	if v>>32 == 0 {
		return v
	}
	low := v & (1<<31 - 1)
	bit31 := uint64(1) << 31
	if w.has("bit-31-kept") {
		bit31 &= v
	}
	low |= bit31
	repeated := low | low<<32&(1<<count-1)
	switch w.machine {
	case codec.MachineWrap64:
		switch {
		case w.has("wrap-as-exact"):
			return v
		case w.has("wrap-as-zero"):
			return low
		}
		return repeated
	case codec.MachineZero64:
		if w.has("zero-as-wrap") {
			return repeated
		}
		return low
	}
	if w.has("exact-32-bits") {
		return v & (1<<32 - 1)
	}
	return v
}

// refusal returns the reason to refuse a stack, or nil. (BT-REJ-2)
func (b impl) refusal(in *conformance.Value, m codec.Machine) error {
	if len(in.PCs) > 32 && !b.has("writes-33-frames") {
		return errFrames
	}
	if m.Word() == 64 || b.has("writes-33-bits") {
		return nil
	}
	all := in.Size
	if b.has("writes-33-bits-of-size") {
		all = 0
	}
	pcs := in.PCs
	switch {
	case b.has("refuses-first-only") && len(pcs) > 0:
		pcs = pcs[:1]
	case b.has("refuses-last-only") && len(pcs) > 0:
		pcs = pcs[len(pcs)-1:]
	}
	for _, pc := range pcs {
		all |= pc
	}
	if b.has("refuses-33-bits-only") {
		return []error{nil, errWord}[all>>32&1]
	}
	if all>>32 != 0 {
		return errWord
	}
	return nil
}

func (b impl) encode(in *conformance.Value, m codec.Machine, search codec.Search) []byte {
	w := &bitWriter{impl: b, machine: m, bits: b.fields(in, m, search)}
	return w.finish()
}

// fields returns the bits of a stack up to its size.
func (b impl) fields(in *conformance.Value, m codec.Machine, search codec.Search) []byte {
	w := &bitWriter{impl: b, machine: m}
	pcs := in.PCs
	if len(pcs) == 32 && b.has("writes-depth-31") {
		pcs = pcs[:31]
	}
	w.field(uint64(len(pcs)%32), 5, 0)
	for n, pc := range pcs {
		base, d, sign := w.lws(pcs, n)
		if search == codec.SearchBest {
			base, d, sign = w.best(pcs, n)
		}
		if base < 0 {
			w.field(0, 1, 0)
			w.value(pc)
			continue
		}
		w.field(1, 1, 0)
		w.field(uint64(n-1-base), 3, 0)
		w.field(sign, 1, 0)
		w.value(d)
	}
	w.value(in.Size)
	return w.bits
}

func (w *bitWriter) finish() []byte {
	pad := (8 - len(w.bits)%8) % 8
	if pad == 0 && w.has("writes-a-byte-too-much") {
		pad = 8
	}
	for range pad {
		bit := byte(0)
		if w.has("writes-padding-ones") {
			bit = 1
		}
		w.bits = append(w.bits, bit)
	}
	blob := bitstring.Pack(w.bits)
	length := len(blob) + 2
	if w.has("writes-length-without-itself") {
		length -= 2
	}
	if w.has("writes-length-little-endian") {
		return append(blob, byte(length), byte(length>>8))
	}
	return append(blob, byte(length>>8), byte(length))
}

func (w *bitWriter) plainDifference(v, base uint64) (d, sign uint64) {
	d, sign = base-v, 1
	if v > base {
		d, sign = v-base, 0
	}
	switch {
	case w.has("signed-addresses") && int64(v) < 0 && int64(base) >= 0,
		w.has("signed-addresses-of-32-bits") && w.machine.Word() == 32 && int32(v) < 0 && int32(base) >= 0:
		sign = 1 // v looks like the smaller one
	}
	return d, sign
}

// lws chooses by the rule of search lws; base is -1 for a literal. (BT-SRCH-1)
func (w *bitWriter) lws(pcs []uint64, n int) (base int, d, sign uint64) {
	window, first := 8, 0
	switch {
	case w.has("lws-7-back"):
		window = 7
	case w.has("lws-previous-only"):
		window = 1
	case w.has("lws-skips-frame-0"):
		first = 1
	}
	base = -1
	for i := max(first, n-window); i < n; i++ {
		e, s := w.plainDifference(pcs[n], pcs[i])
		if w.has("lws-modular") {
			e, s = w.around(pcs[n], pcs[i])
		}
		if base < 0 || e < d || e == d && w.has("lws-last-of-equals") {
			base, d, sign = i, e, s
		}
	}
	if base < 0 || base == 0 && !w.has("lws-frame-0-as-base") {
		return -1, 0, 0
	}
	if d == 0 && w.has("lws-adds-0") {
		sign = 0
	}
	asDelta, asLiteral := max(1, bits.Len64(d))+11, max(1, bits.Len64(pcs[n]))+7
	if w.has("lws-true-costs") {
		asDelta, asLiteral = asDelta+5, asLiteral+3
	}
	if asDelta < asLiteral || asDelta == asLiteral && w.has("lws-delta-on-equal") {
		return base, d, sign
	}
	return -1, 0, 0
}

// best chooses by the rule of search best; base is -1 for a literal. (BT-SRCH-2)
func (w *bitWriter) best(pcs []uint64, n int) (base int, d, sign uint64) {
	window, first := 8, 0
	switch {
	case w.has("best-7-back"):
		window = 7
	case w.has("best-not-frame-0"):
		first = 1
	}
	base = -1
	for i := max(first, n-window); i < n; i++ {
		e, s := w.around(pcs[n], pcs[i])
		if base < 0 || e < d || e == d && w.has("best-nearest-of-equals") {
			base, d, sign = i, e, s
		}
	}
	if base < 0 {
		return -1, 0, 0
	}
	count := max(1, bits.Len64(pcs[n]))
	asDelta, asLiteral := 16+max(1, bits.Len64(d)), 10+count
	onEqual := count == 64 && !w.has("best-literal-of-64") || w.has("best-delta-on-equal") ||
		count == 32 && w.has("best-delta-of-32-on-equal")
	if w.has("best-literal-of-64-if-lossy") && w.machine != codec.MachineExact64 {
		onEqual = false
	}
	if asDelta < asLiteral || asDelta == asLiteral && onEqual {
		return base, d, sign
	}
	return -1, 0, 0
}

// around returns the smallest difference, around the end of the word if that is shorter.
func (w *bitWriter) around(v, base uint64) (d, sign uint64) {
	d, sign = w.plainDifference(v, base)
	other := -d
	switch {
	case w.machine.Word() == 32 && !w.has("best-wraps-at-32"), w.has("best-never-wraps"),
		w.has("best-wraps-if-exact") && w.machine != codec.MachineExact64:
		return d, sign
	case w.machine.Word() == 32:
		other &= 1<<32 - 1
	}
	if other < d {
		return other, 1 - sign
	}
	return d, sign
}

package naive

import "github.com/lwsbt/lwsbt/conformance"

// salvage reads what is whole of a cut blob. (BT-SALV-1, BT-SALV-2)
func (b impl) salvage(data []byte, word int) (conformance.Answer, error) {
	if b.has("salvage-at-64") {
		word = 64
	}
	whole := word
	if b.has("salvage-whole-at-64") {
		whole = 64
	}
	if b.has("salvage-cut-at-64") {
		word = 64
	}
	v, err := b.decode(data, whole)
	switch {
	case err == nil:
		return conformance.Answer{Outcome: conformance.OK, Depth: len(v.PCs), Sized: true, Value: v}, nil
	case err == errLength, err == errEmpty, err == errShort, b.has("salvage-of-whole"):
	case b.has("salvage-of-short") && len(data) < 4:
	default:
		return conformance.Answer{}, err
	}
	if len(data) == 0 {
		return conformance.Answer{}, err
	}
	end := 8 * len(data)
	if b.has("salvage-keeps-length") || b.has("salvage-keeps-long-length") && len(data) > 200 {
		end = max(0, end-16)
	}
	depth := int(data[0] >> 3)
	if b.has("salvage-first-byte-0") && data[0] != 0 && depth == 0 {
		depth = 32
	}
	if depth == 0 {
		if b.has("salvage-depth-0-of-1-byte") && len(data) == 1 {
			return conformance.Answer{Outcome: conformance.OK}, nil
		}
		if !b.has("salvage-depth-0-as-32") && !(len(data) > 11 && b.has("salvage-depth-0-over-11")) {
			return conformance.Answer{}, err
		}
		depth = 32
	}
	r, fault := b.read(data, end, depth, word)
	if fault == errCount && b.has("salvage-count-as-cut") {
		fault = errTruncated
	}
	if fault != nil && fault != errTruncated && !b.has("salvage-of-damaged") && !b.has("salvage-of-whole") {
		return conformance.Answer{}, fault
	}
	switch {
	case b.has("salvage-half-frames") && fault == errTruncated && len(r.pcs) < depth:
		lavish := impl{"truncated-as-zeros"}
		if more, _ := lavish.read(data, end, len(r.pcs)+1, word); len(more.pcs) > len(r.pcs) {
			r.pcs = more.pcs
		}
	case b.has("salvage-drops-last") && len(r.pcs) > 0:
		r.pcs = r.pcs[:len(r.pcs)-1]
	case b.has("salvage-depth-left"):
		depth = len(r.pcs)
	}
	a := conformance.Answer{Outcome: conformance.OK, Depth: depth, Value: conformance.Value{PCs: r.pcs}}
	if a.Sized = fault == nil && !b.has("salvage-without-size"); a.Sized {
		a.Value.Size = r.size
	}
	return a, nil
}

package mutant

import (
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// user reads a blob with user fields. (BT-UF-1, BT-UF-2, BT-UF-3, BT-EVT-2, BT-EVT-3)
func (b impl) user(blob []byte, word int, event bool) (conformance.Value, error) {
	if _, err := b.decode(blob, word); err != nil && (!event || len(blob) < 2) {
		return conformance.Value{}, err
	}
	fields, err := b.framed(blob)
	if err != nil {
		return conformance.Value{}, err
	}
	var r *mutantReader
	if event && !b.has("event-depth-0-as-32") {
		depth := 0
		if len(fields) > 0 {
			depth = int(fields[0] >> 3)
		}
		r, err = b.read(fields, 8*len(fields), depth, word)
	} else {
		r, err = b.readAnyDepth(fields, 8*len(fields), word)
	}
	if err != nil {
		return conformance.Value{}, err
	}
	v := conformance.Value{Size: r.size, PCs: r.pcs}
	if !b.has("user-at-word") {
		r.word = 64
	}
	for r.end-r.pos >= 5 {
		tag, _ := r.field(4, headField)
		switch {
		case tag == 0 && b.has("user-goes-on-behind-0"):
			continue
		case tag == 0:
			return v, b.checkEvent(&v, event)
		}
		value, err := r.value()
		if err != nil && b.has("user-cut-dropped") {
			break
		}
		if err == errCount && b.has("user-at-word") {
			return conformance.Value{}, err
		}
		if err != nil {
			return conformance.Value{}, errTruncated
		}
		v.User = b.addUser(v.User, uint8(tag), value)
		if tag > 6 && b.has("user-unknown-ends") {
			break
		}
		if tag > 6 && b.has("user-unknown-refused") {
			return conformance.Value{}, errTruncated
		}
	}
	if r.end-r.pos > 0 && b.has("user-rest-refused") {
		return conformance.Value{}, errTruncated
	}
	return v, b.checkEvent(&v, event)
}

// addUser keeps a field, in the order of tags.
func (b impl) addUser(list []conformance.UserField, tag uint8, value uint64) []conformance.UserField {
	if tag > 6 {
		return list
	}
	at := slices.IndexFunc(list, func(f conformance.UserField) bool { return f.Tag >= tag })
	switch {
	case at >= 0 && list[at].Tag == tag:
		if b.has("user-last-counts") {
			list[at].Value = value
		}
		return list
	case at < 0:
		at = len(list)
	}
	return slices.Insert(list, at, conformance.UserField{Tag: tag, Value: value})
}

func (b impl) checkEvent(v *conformance.Value, event bool) error {
	if !event {
		return nil
	}
	if !b.has("event-moved-without-old") && slices.Contains(v.User, conformance.UserField{Tag: 5, Value: 2}) &&
		!slices.ContainsFunc(v.User, func(f conformance.UserField) bool { return f.Tag == 6 }) {
		return errEvent
	}
	for _, f := range v.User {
		if f.Tag == 5 && f.Value > 2 && b.has("event-unknown-refused") {
			return errEvent
		}
	}
	unknown := slices.ContainsFunc(v.User, func(f conformance.UserField) bool { return f.Tag == 5 && f.Value > 2 })
	for _, need := range []struct {
		tag uint8
		bug string
	}{{1, "event-without-address"}, {5, "event-without-event"}} {
		if need.tag == 1 && unknown && !b.has("event-unknown-needs-address") {
			continue
		}
		if !slices.ContainsFunc(v.User, func(f conformance.UserField) bool { return f.Tag == need.tag }) && !b.has(need.bug) {
			return errEvent
		}
	}
	return nil
}

// eline reads a ~e# line. (BT-EVT-1)
func (b impl) eline(text string, word int) (conformance.Value, error) {
	rest, ok := strings.CutPrefix(text, "~e#")
	if !ok && b.has("event-any-lead-in") && len(text) >= 3 {
		rest, ok = text[3:], true
	}
	if !ok {
		return conformance.Value{}, errLeadIn
	}
	blob, err := b.parseLine("~m#"+rest, b.has("event-lenient"))
	if err != nil {
		return conformance.Value{}, err
	}
	return b.user(blob, word, true)
}

// userEncode writes a blob with user fields. (BT-UF-1)
func (b impl) userEncode(in *conformance.Value, m codec.Machine, search codec.Search) []byte {
	w := &mutantWriter{impl: b, machine: m, bits: b.fields(in, m, search)}
	if !b.has("user-writes-as-machine") {
		w.machine = codec.MachineExact64
	}
	for _, f := range in.User {
		w.field(uint64(f.Tag), 4, 0)
		w.value(f.Value)
	}
	if b.has("user-writes-end-tag") {
		w.field(0, 4, 0)
	}
	return w.finish()
}

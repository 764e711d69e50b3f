package naive

import (
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// user reads a blob with user fields. (BT-UF-1, BT-UF-2, BT-UF-3, BT-EVT-2, BT-EVT-3)
func (b impl) user(blob []byte, word int, event bool) (conformance.Value, error) {
	none := conformance.Value{}
	r, err := b.stackBeforeUser(blob, word, event)
	if err != nil {
		return none, err
	}
	v := conformance.Value{Size: r.size, PCs: r.pcs}
	if !b.has("user-at-word") {
		r.word = 64
	}
	for fields := 0; r.end-r.pos >= 5; fields++ {
		if fields == 6 && b.has("user-six-fields") {
			break
		}
		tag, _ := r.field(4, headField)
		if tag == 0 && !b.has("user-goes-on-behind-0") || tag > 0 && r.bit(r.pos-1) == 1 && b.has("user-spill-ends") {
			return v, b.checkEvent(&v, event)
		}
		if tag == 0 {
			continue
		}
		more, err := b.userField(r, &v, uint8(tag), word)
		if err != nil {
			return none, err
		}
		if !more {
			break
		}
	}
	if r.end-r.pos > 0 && b.has("user-rest-refused") {
		return none, errTruncated
	}
	return v, b.checkEvent(&v, event)
}

// stackBeforeUser reads depth, frames and size. (BT-EVT-2)
func (b impl) stackBeforeUser(blob []byte, word int, event bool) (*bitReader, error) {
	if _, err := b.decode(blob, word); err != nil && (!event || len(blob) < 2) {
		return nil, err
	}
	fields, err := b.framed(blob)
	if err != nil {
		return nil, err
	}
	if !event || b.has("event-depth-0-as-32") {
		return b.readAnyDepth(fields, 8*len(fields), word)
	}
	depth := 0
	if len(fields) > 0 {
		depth = int(fields[0] >> 3)
	}
	if depth > 16 && b.has("event-16-frames") {
		return nil, errEvent
	}
	return b.read(fields, 8*len(fields), depth, word)
}

// userField reads a field after its tag; more is false if it was the last field.
func (b impl) userField(r *bitReader, v *conformance.Value, tag uint8, word int) (more bool, err error) {
	value, err := r.value()
	switch {
	case err != nil && b.has("user-cut-dropped"):
		return false, nil
	case err == errCount && b.has("user-at-word"):
		return false, err
	case err != nil:
		return false, errTruncated
	case tag > 6 && b.has("user-unknown-refused"):
		return false, errTruncated
	case b.has("user-addresses-at-word") && word == 32 && (tag == 1 || tag == 6),
		b.has("user-thread-of-32-bits") && tag == 3, b.has("user-sequence-of-32-bits") && tag == 4:
		value &= 1<<32 - 1
	case b.has("event-kind-of-8-bits") && tag == 5:
		value &= 0xff
	case b.has("user-zeros-dropped") && value == 0 && tag != 5:
		return true, nil
	}
	v.User = b.addUser(v.User, tag, value)
	return tag <= 6 || !b.has("user-unknown-ends"), nil
}

// addUser adds a field to a list that is sorted by tag.
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

// checkEvent rejects an event that lacks required fields. (BT-EVT-3)
func (b impl) checkEvent(v *conformance.Value, event bool) error {
	kind, hasKind := userValue(v, 5)
	old, hasOld := userValue(v, 6)
	address, hasAddress := userValue(v, 1)
	if !event {
		if b.has("user-moved-needs-old") && kind == 2 && !hasOld {
			return errEvent
		}
		return nil
	}
	_, hasTime := userValue(v, 2)
	switch {
	case kind == 2 && !hasOld && !b.has("event-moved-without-old"),
		kind > 2 && !hasOld && b.has("event-unknown-without-old-refused"),
		kind > 2 && b.has("event-unknown-refused"),
		!hasAddress && kind <= 2 && !b.has("event-without-address"),
		!hasAddress && kind > 2 && b.has("event-unknown-needs-address"),
		!hasKind && !b.has("event-without-event") && !(hasTime && b.has("event-of-time")),
		address == 0 && b.has("event-address-0-refused"),
		kind != 2 && hasOld && b.has("event-old-of-others-refused"),
		kind > 2 && hasOld && b.has("event-old-of-unknown-refused"),
		kind == 2 && hasOld && old == address && b.has("event-in-place-refused"),
		kind > 2 && !hasAddress && hasTime && b.has("event-unknown-with-time-needs-address"),
		kind == 1 && len(v.PCs) > 0 && b.has("event-freed-without-stack"):
		return errEvent
	}
	return nil
}

// userValue returns the value of the field with this tag.
func userValue(v *conformance.Value, tag uint8) (value uint64, ok bool) {
	for _, f := range v.User {
		if f.Tag == tag {
			return f.Value, true
		}
	}
	return 0, false
}

// eventBugs maps bugs in reading the base64 of an event to the same bugs of the reader of ~m#
// lines.
var eventBugs = map[string]string{
	"event-takes-url-alphabet":    "strict-takes-url-alphabet",
	"event-takes-no-padding":      "strict-takes-no-padding",
	"event-unused-bits-ignored":   "unused-bits-ignored",
	"event-skips-line-ends":       "strict-skips-line-ends",
	"event-skips-at-end":          "strict-skips-at-end",
	"event-groups-of-padding":     "strict-groups-of-padding",
	"event-lead-in-optional":      "lead-in-optional",
	"event-skips-mark-before":     "strict-skips-mark-before",
	"event-skips-line-end-before": "strict-skips-line-end-before",
	"event-searches-lead-in":      "strict-searches-lead-in",
}

// eline reads a ~e# line. (BT-EVT-1)
func (b impl) eline(text string, word int) (conformance.Value, error) {
	if b.has("event-any-lead-in") && len(text) >= 3 {
		text = "~e#" + text[3:]
	}
	if strings.HasPrefix(text, "~m#") {
		return conformance.Value{}, errLeadIn
	}
	blob, err := impl{eventBugs[b.bug]}.parseLine(strings.Replace(text, "~e#", "~m#", 1), b.has("event-lenient"))
	if err != nil {
		return conformance.Value{}, err
	}
	return b.user(blob, word, true)
}

// userEncode writes a blob with user fields. (BT-UF-1)
func (b impl) userEncode(in *conformance.Value, m codec.Machine, search codec.Search) []byte {
	switch b.bug {
	case "user-writes-exact":
		m = exactOf(m)
	case "user-writes-lws":
		search = codec.SearchLws
	case "user-writes-best":
		search = codec.SearchBest
	}
	w := &bitWriter{impl: b, machine: m, bits: b.fields(in, m, search)}
	if !b.has("user-writes-as-machine") {
		w.machine = codec.MachineExact64
	}
	for _, f := range in.User {
		if f.Value == 0 && f.Tag != 5 && b.has("user-writes-no-zeros") {
			continue
		}
		w.field(uint64(f.Tag), 4, 0)
		w.value(f.Value)
	}
	if b.has("user-writes-end-tag") {
		w.field(0, 4, 0)
	}
	return w.finish()
}

// exactOf returns the exact machine with the word size of m.
func exactOf(m codec.Machine) codec.Machine {
	if m.Word() == 32 {
		return codec.MachineExact32
	}
	return codec.MachineExact64
}

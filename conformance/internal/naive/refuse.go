package naive

import (
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// writerBugs maps bugs of a writer of headers to bugs of a reader that accepts exactly the
// headers that the writer writes.
var writerBugs = map[string]string{
	"header-writes-any-case":             "header-any-case",
	"header-writes-verb-digits":          "header-verb-digits",
	"header-writes-name-digits":          "header-name-digits",
	"header-writes-name-upper-first":     "header-name-upper-first",
	"header-writes-without-number":       "header-number-optional",
	"header-writes-number-of-any":        "header-number-of-any",
	"header-writes-any-word":             "header-any-word",
	"header-writes-word-128":             "header-word-128",
	"header-writes-word-of-boot":         "header-word-of-boot",
	"header-writes-numbers-unchecked":    "header-numbers-unchecked",
	"header-writes-number-plus":          "header-number-plus",
	"header-writes-number-minus":         "header-number-minus",
	"header-writes-number-hex":           "header-number-hex",
	"header-writes-number-spaces":        "header-number-spaces",
	"header-writes-number-empty":         "header-number-empty",
	"header-writes-overflows":            "header-overflows",
	"header-writes-unknown-verb-any":     "header-unknown-verb-unchecked",
	"header-refuses-second-key":          "header-every-key-checked",
	"header-refuses-second-word":         "header-second-word-checked",
	"header-refuses-unknown-verb":        "header-unknown-verb-refused",
	"header-refuses-number-of-unknown":   "header-unknown-number-refused",
	"header-refuses-unknown-key":         "header-unknown-key-refused",
	"header-refuses-other-why":           "header-other-why-refused",
	"header-refuses-empty-value":         "header-empty-value-refused",
	"header-refuses-number-0":            "header-number-not-0",
	"header-refuses-values-of-255-bytes": "header-value-255-bytes",
	"header-refuses-16-keys":             "header-16-keys",
	"header-refuses-no-text":             "header-no-text-refused",
	"header-refuses-name-of-digits":      "header-name-of-digits-refused",
	"header-refuses-long-names":          "header-name-8-letters",
	"header-refuses-leading-zeros":       "header-zeros-refused",
	"header-refuses-user-fields-2":       "header-u-of-0-or-1",
	"header-refuses-tildes":              "header-escaped-tilde-refused",
	"header-refuses-controls":            "header-escaped-control-refused",
	"header-refuses-spaces":              "header-escaped-space-refused",
}

// writable reports whether a writer may write a header of these words. It writes the header, and
// reads it again without a bug. (BT-HEAD-1)
func (b impl) writable(text string) bool {
	if b.has("header-writes-anything") {
		return true
	}
	parts := strings.Split(text, " ")
	if len(parts) > 1 && parts[1] == "-" {
		parts = slices.Delete(parts, 1, 2)
	}
	_, err := impl{writerBugs[b.bug]}.hline("~h#" + strings.Join(parts, " "))
	return err == nil
}

// eventEncode writes the blob of an event. (BT-EVT-2, BT-EVT-3, BT-EVT-4)
func (b impl) eventEncode(in *conformance.Value, m codec.Machine, search codec.Search) (conformance.Answer, error) {
	if !(b.has("event-cuts-any-depth") && len(in.PCs) > 32) {
		if err := b.refusal(in, m); err != nil {
			return conformance.Answer{}, err
		}
	}
	if b.refusesEvent(in, m) {
		return conformance.Answer{}, errEvent
	}
	inner := *in
	kind, _ := userValue(in, 5)
	most := 31
	switch b.bug {
	case "event-writes-32-frames":
		most = 32
	case "event-writes-30-frames":
		most = 30
	}
	switch {
	case b.has("event-freed-loses-stack") && kind == 1:
		inner.PCs = nil
	case b.has("event-freed-loses-size") && kind == 1:
		inner.Size = 0
	case len(in.PCs) <= most:
	case b.has("event-writes-outermost"):
		inner.PCs = in.PCs[len(in.PCs)-most:]
	case b.has("event-refuses-32-frames"):
		return conformance.Answer{}, errFrames
	default:
		inner.PCs = in.PCs[:most]
	}
	return conformance.Answer{Outcome: conformance.OK, Data: b.userEncode(&inner, m, search)}, nil
}

// refusesEvent reports whether a writer refuses an event for its user fields. (BT-EVT-4)
func (b impl) refusesEvent(in *conformance.Value, m codec.Machine) bool {
	kind, hasKind := userValue(in, 5)
	address, hasAddress := userValue(in, 1)
	old, hasOld := userValue(in, 6)
	time, _ := userValue(in, 2)
	if b.has("event-writes-unknown-of-8-bits") {
		kind &= 0xff
	}
	for _, refusal := range []struct {
		broken bool
		bug    string
	}{
		{!hasKind, "event-writes-without-event"},
		{!hasAddress, "event-writes-without-address"},
		{kind > 2, "event-writes-unknown"},
		{kind == 2 && !hasOld, "event-writes-moved-without-old"},
		{kind != 2 && hasOld, "event-writes-old-of-any"},
	} {
		if refusal.broken && !b.has(refusal.bug) {
			return true
		}
	}
	switch b.bug {
	case "event-refuses-address-0":
		return address == 0
	case "event-refuses-old-0":
		return hasOld && old == 0
	case "event-refuses-in-place":
		return kind == 2 && old == address
	case "event-refuses-wide-addresses":
		return m.Word() == 32 && (address|old)>>32 != 0
	case "event-refuses-wide-times":
		return time>>32 != 0
	case "event-refuses-stack-of-freed":
		return kind == 1 && len(in.PCs) > 0
	}
	return false
}

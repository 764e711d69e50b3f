package mutant

import (
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// writable reports whether there is a header of these words: it is written, and read
// again by a reader without a bug. (BT-HEAD-1)
func (b impl) writable(text string) bool {
	parts := strings.Split(text, " ")
	if len(parts) > 1 && parts[1] == "-" {
		parts = slices.Delete(parts, 1, 2)
	}
	reader := impl{}
	switch {
	case b.has("header-writes-anything"):
		return true
	case b.has("header-writes-any-case"):
		reader.bug = "header-any-case"
	case b.has("header-writes-without-number"):
		reader.bug = "header-number-optional"
	case b.has("header-writes-number-of-any"):
		reader.bug = "header-number-of-any"
	case b.has("header-writes-any-word"):
		reader.bug = "header-any-word"
	case b.has("header-writes-numbers-unchecked"):
		reader.bug = "header-numbers-unchecked"
	case b.has("header-refuses-second-key"):
		reader.bug = "header-every-key-checked"
	}
	_, err := reader.hline("~h#" + strings.Join(parts, " "))
	return err == nil
}

// eventEncode writes the blob of an event. (BT-EVT-2, BT-EVT-3)
func (b impl) eventEncode(in *conformance.Value, m codec.Machine, search codec.Search) (conformance.Answer, error) {
	field := func(tag uint8) (uint64, bool) {
		i := slices.IndexFunc(in.User, func(f conformance.UserField) bool { return f.Tag == tag })
		if i < 0 {
			return 0, false
		}
		return in.User[i].Value, true
	}
	kind, hasKind := field(5)
	_, hasAddress := field(1)
	_, hasOld := field(6)
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
			return conformance.Answer{}, errEvent
		}
	}
	inner := *in
	switch {
	case len(in.PCs) < 32 || b.has("event-writes-32-frames"):
	case b.has("event-writes-outermost"):
		inner.PCs = in.PCs[1:]
	case b.has("event-refuses-32-frames"):
		return conformance.Answer{}, errFrames
	default:
		inner.PCs = in.PCs[:31]
	}
	return conformance.Answer{Outcome: conformance.OK, Data: b.userEncode(&inner, m, search)}, nil
}

package codec

import (
	"encoding/base64"
	"fmt"
)

// AppendEventLine appends the ~e# line of a blob with user fields, without a line
// end; the blob is made by [AppendBlobUser]. (BT-EVT-1)
func AppendEventLine(dst, blob []byte) []byte {
	return base64.StdEncoding.AppendEncode(append(dst, LeadInEvent...), blob)
}

// ParseEventLine appends the blob in a ~e# line to dst and returns the extended
// slice. It is as strict as [ParseLine], and does not look into the blob. On an
// [*Error], dst is returned as it was. (BT-EVT-1, BT-B64-2)
func ParseEventLine(dst, line []byte) ([]byte, error) {
	return parseLine(dst, line, LeadInEvent, "BT-EVT-1")
}

// AppendEvent appends the blob of an event: [AppendBlobUser] with the fields that an event
// must have. Of a stack of 32 frames it takes the 31 innermost ones. It refuses what
// SPEC.md does not define (BT-EVT-4): u without TagEvent, TagAddress or, of EventMoved alone,
// TagOldAddress, and other values of TagEvent. On an [*Error], dst is returned as it was.
// (BT-EVT-2, BT-EVT-3)
func AppendEvent(dst []byte, s *Stack, u *User, m Machine, search Search) ([]byte, error) {
	if err := s.fits(m); err != nil {
		return dst, err
	}
	if missing := u.lacks(); missing != "" {
		return dst, textError(-1, ReasonEvent, "BT-EVT-3", "%s", missing)
	}
	kind, _ := u.Get(TagEvent)
	_, moved := u.Get(TagOldAddress)
	switch {
	case kind > EventMoved:
		return dst, textError(-1, ReasonEvent, "BT-EVT-3", "event %d, expected 0, 1 or 2", kind)
	case moved && kind != EventMoved:
		return dst, textError(-1, ReasonEvent, "BT-EVT-3", "event %d with an old address, expected it of event 2 alone", kind)
	}
	inner := Stack{Size: s.Size, PCs: s.PCs[:min(len(s.PCs), MaxDepth-1)]}
	return AppendBlobUser(dst, &inner, u, m, search)
}

// DecodeEvent reads the blob of an event into s and u. A depth of 0 is an empty stack.
// TagEvent is present. If it is EventAllocated, EventFreed or EventMoved, so is
// TagAddress, and of EventMoved TagOldAddress. Any other value has no meaning: skip such
// an event. word is 32 or 64 bits, as for [DecodeWord]. On an [*Error], s and u are empty.
// (BT-EVT-2, BT-EVT-3)
func DecodeEvent(s *Stack, u *User, blob []byte, word int) error {
	u.Reset()
	s.Reset()
	if err := checkLength(blob); err != nil {
		return err
	}
	var short [8]byte
	b := padded(blob, &short)
	end := 8 * (len(blob) - lengthBytes)
	pos, err := s.readOrReject(b, end, int(b[0]>>(8-depthWidth)), checkWord(word))
	if err != nil {
		return err
	}
	if err = u.read(b, pos, end); err == nil {
		err = u.checkEvent(pos)
	}
	if err != nil {
		s.Reset()
		u.Reset()
	}
	return err
}

// checkEvent reports what an event lacks; its user fields begin at bit pos.
// (BT-EVT-3)
func (u *User) checkEvent(pos int) error {
	if missing := u.lacks(); missing != "" {
		return bitError(pos, FieldUser, -1, ReasonEvent, "%s", missing)
	}
	return nil
}

// lacks names the user field that an event must have and lacks; "" if there is none.
func (u *User) lacks() string {
	kind, ok := u.Get(TagEvent)
	need := [...]Tag{TagEvent, TagAddress, TagOldAddress}
	n := 2
	switch {
	case !ok || kind > EventMoved: // an unknown event may have other fields
		n = 1
	case kind == EventMoved:
		n = 3
	}
	for _, t := range need[:n] {
		if _, ok := u.Get(t); !ok {
			return fmt.Sprintf("no field with tag %d (%v), which this event must have", uint8(t), t)
		}
	}
	return ""
}

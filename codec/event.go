package codec

import (
	"encoding/base64"
	"fmt"
)

// AppendEventLine appends the ~e# line of a blob with user fields, without a line end.
// [Encoder.AppendEvent] makes such blobs. (BT-EVT-1)
func AppendEventLine(dst, blob []byte) []byte {
	return base64.StdEncoding.AppendEncode(append(dst, leadInEvent...), blob)
}

// ParseEventLine appends the blob in a ~e# line to dst and returns the extended slice.
// It is always strict, and does not decode the blob. On an [*Error], it returns dst
// unchanged. (BT-EVT-1, BT-B64-2)
func ParseEventLine(dst, line []byte) ([]byte, error) {
	return parseLine(dst, line, leadInEvent, "BT-EVT-1")
}

// AppendEvent appends the blob of an event. It is like AppendBlob, but checks that u
// has the required fields, and drops the outermost frame of a stack of 32 frames.
//
// It returns an error if u lacks TagEvent or TagAddress, if the value of TagEvent is
// undefined (BT-EVT-4), or if TagOldAddress is missing from EventMoved or present in
// any other event. On an [*Error], it returns dst unchanged.
// (BT-EVT-2, BT-EVT-3)
func (e Encoder) AppendEvent(dst []byte, s *Stack, u *User) ([]byte, error) {
	if err := s.fits(e.Machine); err != nil {
		return dst, err
	}
	if missing := u.lacks(); missing != "" {
		return dst, textError(-1, reasonEvent, "BT-EVT-3", "%s", missing)
	}
	kind, _ := u.Get(TagEvent)
	_, moved := u.Get(TagOldAddress)
	switch {
	case kind > EventMoved:
		return dst, textError(-1, reasonEvent, "BT-EVT-3", "event %d, expected 0, 1 or 2", kind)
	case moved && kind != EventMoved:
		return dst, textError(-1, reasonEvent, "BT-EVT-3", "event %d with an old address, expected it of event 2 alone", kind)
	}
	inner := Stack{Size: s.Size, PCs: s.PCs[:min(len(s.PCs), MaxDepth-1)]}
	return e.AppendBlob(dst, &inner, u)
}

// DecodeEvent reads the blob of an event into s and u. A depth field of 0 means an
// empty stack. On success u has TagEvent. For EventAllocated, EventFreed and EventMoved
// it also has TagAddress, and for EventMoved TagOldAddress. Other values of TagEvent
// are undefined: skip such an event. On an [*Error], s and u are empty. (BT-EVT-2, BT-EVT-3)
func (d Decoder) DecodeEvent(s *Stack, u *User, blob []byte) error {
	u.Reset()
	s.Reset()
	if err := checkLength(blob); err != nil {
		return err
	}
	var short [8]byte
	b := padded(blob, &short)
	end := 8 * (len(blob) - lengthBytes)
	pos, err := s.readOrReject(b, end, int(b[0]>>(8-depthWidth)), d.word())
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

// checkEvent returns an error if a required user field is missing. The user fields
// begin at bit pos. (BT-EVT-3)
func (u *User) checkEvent(pos int) error {
	if missing := u.lacks(); missing != "" {
		return bitError(pos, fieldUser, -1, reasonEvent, "%s", missing)
	}
	return nil
}

// lacks describes the first required user field that is missing, "" if there is none.
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

package codec

import "encoding/base64"

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

// DecodeEvent reads the blob of an event into s and u. A depth of 0 is an empty stack;
// TagEvent and TagAddress are present, and TagOldAddress if the event is EventMoved.
// TagEvent may have an unknown value; skip such an event. word is 32 or 64 bits, as for
// [DecodeWord]. On an [*Error], s and u are empty. (BT-EVT-2, BT-EVT-3)
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
	for _, t := range []Tag{TagEvent, TagAddress} {
		if _, ok := u.Get(t); !ok {
			return bitError(pos, FieldUser, -1, ReasonEvent, "no field with tag %d (%v), which an event must have", uint8(t), t)
		}
	}
	if e, _ := u.Get(TagEvent); e == EventMoved {
		if _, ok := u.Get(TagOldAddress); !ok {
			return bitError(pos, FieldUser, -1, ReasonEvent, "no field with tag %d (%v), which an event of a moved block must have",
				uint8(TagOldAddress), TagOldAddress)
		}
	}
	return nil
}

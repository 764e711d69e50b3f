package dump

import (
	"bytes"
	"encoding/binary"

	"github.com/lwsbt/lwsbt/codec"
)

// lws prints a blob's base64 from a buffer of this many characters, and of a
// longer one the first so many and up to three of rubbish. (BT-LIM-3)
const (
	lwsLine    = 184
	lwsRubbish = 3
)

// rescue makes of a record that was rejected what can be made of it. Its base64
// has run characters after the lead-in of head bytes, without padding. (BT-SALV-3)
func (s *Scanner) rescue(head, run int) {
	r := &s.rec
	switch r.Reason() {
	case codec.ReasonLength, codec.ReasonEmpty, codec.ReasonBase64:
	default:
		return
	}
	if head > 0 {
		if n := gluedBlob(r.Blob); n > 0 {
			s.unread(len(r.Text) - head - n/3*4)
			r.Blob = r.Blob[:n:n]
			r.Err = s.decode(r.Blob)
			r.Lenient = bytes.ContainsAny(r.Text, "-_")
			return
		}
	}
	blob := r.Blob
	byLws := r.Kind == Blob && lwsLine <= run && run <= lwsLine+lwsRubbish
	if byLws {
		blob = blob[:lwsLine/4*3]
	}
	depth, sized, err := codec.Salvage(&r.Stack, blob)
	if err == nil || len(r.Stack.PCs) == 0 {
		r.Stack.PCs, r.Stack.Size, r.Stack.Marks = r.Stack.PCs[:0], 0, codec.Marks{}
		return
	}
	if byLws {
		r.Err = err // of what lws wrote, without the rubbish
	}
	r.Cut, r.CutByLws, r.Sized, r.Depth = true, byLws, sized, depth
}

// unread gives the last n bytes of the record's text back to the log.
func (s *Scanner) unread(n int) {
	s.pos -= n
	s.rec.Text = s.rec.Text[:len(s.rec.Text)-n]
}

// gluedBlob returns the length in bytes of a blob at the start of text's bytes
// that is complete by its own length, though other text of the alphabet follows it
// at once, as where two lines ran into each other; 0 if there is none. A blob whose
// base64 has padding ends by that, so only multiples of 3 are looked at.
//
// A cut blob that is wrongly taken for a complete one needs 16 bits of length, and fields
// that end in the last byte before it.
func gluedBlob(text []byte) int {
	var s codec.Stack
	for n := 6; n <= len(text); n += 3 {
		if int(binary.BigEndian.Uint16(text[n-2:])) != n || codec.Decode(&s, text[:n]) != nil {
			continue
		}
		fields, err := codec.AppendFields(nil, text[:n])
		if err != nil {
			continue
		}
		if f := fields[len(fields)-2]; f.Kind != codec.FieldUser || f.Width < 8 && f.Value == 0 {
			return n
		}
	}
	return 0
}

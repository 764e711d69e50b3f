package recording

import (
	"bytes"
	"encoding/binary"

	"github.com/lwsbt/lwsbt/codec"
)

// blobRecord reads a record of base64: ~m# or ~e#.
func (s *Scanner) blobRecord(it *Item, text []byte, more bool) (n int) {
	if it.Kind != KindBlob || s.user || s.cache.pauses() {
		return s.newRecord(it, text, more)
	}
	end := bytes.IndexByte(text[:min(len(text), maxCachedLine)], '\n')
	if end < 0 {
		return s.newRecord(it, text, more)
	}
	d, at := s.cache.get(text[:end])
	if d != nil {
		it.Memo, it.Stack, it.Blob, it.Lenient = &d.memo, &d.stack, d.blob, d.lenient
		return d.length
	}
	if n = s.newRecord(it, text, more); at != nil && n > 0 && it.Err == nil && it.run == 0 {
		at.put(text[:end], it, n)
	}
	return n
}

// newRecord is blobRecord for a record that is not in the cache.
func (s *Scanner) newRecord(it *Item, text []byte, more bool) (n int) {
	run := text[leadInLen:]
	size, taken, url, left, unused := decodeRun(s.blob[:], run[:min(len(run), maxBase64)])
	if taken < len(run) && inAlphabet(run[taken]) {
		it.Err = ErrTooLong
		return leadInLen + taken
	}
	end, pads := taken, 0
	if left >= 2 {
		pads = 4 - left
		for end < len(run) && end < taken+pads && run[end] == '=' {
			end++
		}
	}
	if more && end == len(run) && end < taken+max(pads, 1) {
		return 0
	}
	n = leadInLen + end
	it.Stack = s.newStack()
	it.Blob = s.blob[:size:size]
	it.Lenient = url || end < taken+pads
	if left == 1 || unused != 0 {
		line := text[:n]
		if it.Kind == KindEvent {
			line = append([]byte(codec.LeadIn), line[leadInLen:]...) // ParseLine knows no other lead-in
		}
		_, it.Err = codec.Decoder{Lenient: true}.ParseLine(nil, line)
	} else {
		it.Err = s.decode(it)
	}
	if it.Err != nil && it.Kind != KindEvent {
		n = s.rescue(it, text[:n], taken)
	}
	return n
}

// decode decodes the base64 and the blob of a record.
func (s *Scanner) decode(it *Item) error {
	switch {
	case it.Kind == KindEvent:
		s.fields.Reset()
		it.User = &s.fields
		return codec.Decoder{Word: s.word}.DecodeEvent(it.Stack, it.User, it.Blob)
	case s.user:
		s.fields.Reset()
		it.User = &s.fields
		return codec.Decoder{Word: s.word}.Decode(it.Stack, it.User, it.Blob)
	}
	return codec.Decoder{Word: s.word}.Decode(it.Stack, nil, it.Blob)
}

// lws prints base64 from a buffer of this many characters. Of a longer blob, it prints that
// many characters and up to three of garbage. (BT-LIM-3)
const (
	lwsLine    = 184
	lwsRubbish = 3
)

// rescue reads the complete part of a rejected record and returns the length of its text in
// bytes. run base64 characters without padding follow the lead-in.
// (BT-SALV-3)
func (s *Scanner) rescue(it *Item, text []byte, run int) (n int) {
	switch it.Reason() {
	case "length", "empty", "base64":
	default:
		return len(text)
	}
	if size := gluedBlob(it.Blob); size > 0 {
		it.run, text = len(text), text[:leadInLen+size/3*4]
		it.Blob = it.Blob[:size:size]
		it.Err = s.decode(it)
		it.Lenient = bytes.ContainsAny(text, "-_")
		return len(text)
	}
	blob := it.Blob
	byLws := it.Kind == KindBlob && lwsLine <= run && run <= lwsLine+lwsRubbish
	if byLws {
		blob = blob[:lwsLine/4*3]
	}
	depth, sized, err := codec.Decoder{}.Salvage(it.Stack, blob)
	if err == nil || len(it.Stack.PCs) == 0 {
		return len(text)
	}
	if byLws {
		it.Err = err // the error without the garbage that lws prints
	}
	s.cut = Cut{Depth: depth, Sized: sized, ByLws: byLws}
	it.Cut = &s.cut
	return len(text)
}

// gluedBlob returns the length in bytes of a blob at the start of text's bytes that is
// complete by its own length, though other text of the alphabet follows it at once, as where
// two lines ran into each other; 0 if there is none. A blob whose base64 has padding ends by
// that, so only multiples of 3 are looked at.
//
// A cut blob that is wrongly taken for a complete one needs 16 bits of length, and fields
// that end in the last byte before it.
func gluedBlob(text []byte) int {
	var s codec.Stack
	for n := 6; n <= len(text); n += 3 {
		if int(binary.BigEndian.Uint16(text[n-2:])) != n || (codec.Decoder{}).Decode(&s, nil, text[:n]) != nil {
			continue
		}
		fields, err := codec.Decoder{}.AppendFields(nil, text[:n])
		if err != nil {
			continue
		}
		if f := fields[len(fields)-2]; f.Kind != "user bits" || f.Width < 8 && f.Value == 0 {
			return n
		}
	}
	return 0
}

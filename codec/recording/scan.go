package recording

import (
	"bytes"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

const (
	leadInLen = len(codec.LeadIn)
	// maxBase64 is the maximum number of base64 characters of a blob.
	maxBase64 = codec.MaxLength / 3 * 4
	// maxLine is the longest ~b# or ~h# record that is read, in bytes. A record of 32
	// addresses takes about 640. (BT-LIM-4)
	maxLine = 4095
	// lineAhead is the number of bytes that show where a ~b# or ~h# record of maxLine bytes
	// ends: after it may come a lead-in, " 0x", or another digit.
	lineAhead = maxLine + 4
)

// Scanner finds the items in a log. The zero Scanner is ready for a log from its first byte.
// It keeps the word and the user fields that headers announce: BT-REC-1, BT-REC-2.
type Scanner struct {
	// Always32 reads all blobs as those of an encoder with 32-bit words, whatever headers say.
	Always32 bool

	at       Place // of the next item
	word     int   // bits of the encoder's words; 64 if not known (BT-COUNT-4)
	user     bool  // blobs have user fields, as a header announced (BT-REC-2)
	item     Item
	between  Item // for text between records
	cut      Cut
	fields   codec.User
	header   codec.Header
	stack    codec.Stack // of a record that is not in the cache
	pathLine callpath.Line
	events   callpath.Events
	blob     [codec.MaxLength + 1]byte // one more byte than the longest blob, for decodeRun
	cache    cache
}

// Begin starts a log with a name.
func (s *Scanner) Begin(name string) {
	s.at, s.user = Place{File: name, Line: 1}, false
	s.setWord(false)
}

// Place returns the place of the next item.
func (s *Scanner) Place() Place { return s.at }

// Next returns the item that data begins with, and its length in bytes. data continues the log
// where the item before ended. more means that the log continues after data: Next then returns
// nil if the end of the item is not in data.
func (s *Scanner) Next(data []byte, more bool) (it *Item, n int) {
	if s.word == 0 {
		s.Begin(s.at.File)
	}
	switch at, kind := findLeadIn(data, more); {
	case at > 0:
		return s.text(data[:at])
	case kind != KindText: // otherwise a lead-in may begin here
		return s.record(kind, data, more)
	}
	return nil, 0
}

// findLeadIn returns the index and the kind of the first record in text. If there is none,
// kind is Text and at is len(text). If more is set, the log continues after text, and at is
// then the index of a possible incomplete lead-in.
func findLeadIn(text []byte, more bool) (at int, kind Kind) {
	for ; ; at++ {
		i := bytes.IndexByte(text[at:], '~')
		if i < 0 {
			return len(text), KindText
		}
		at += i
		rest := text[at:]
		if len(rest) >= leadInLen {
			if kind := leadIns[rest[1]]; rest[2] == '#' && kind != KindText {
				return at, kind
			}
		} else if more && (len(rest) == 1 || leadIns[rest[1]] != KindText) {
			return at, KindText
		}
	}
}

// leadIns maps the letter of a lead-in to the kind of the record.
var leadIns = [256]Kind{'m': KindBlob, 'b': KindDecoded, 'e': KindEvent, 'h': KindHeader, 'p': KindPaths, 'v': KindPathEvents}

// text returns text between records.
func (s *Scanner) text(text []byte) (*Item, int) {
	it := &s.between
	it.Place, it.Text = s.at, text
	if len(text) > 1 {
		s.at.Line += int64(bytes.Count(text, newline))
	} else if text[0] == '\n' {
		s.at.Line++
	}
	s.at.Offset += int64(len(text))
	return it, len(text)
}

var newline = []byte{'\n'}

// record returns the record at the start of text and its length in bytes, or nil if
// the log continues and the end of the record is not in text.
func (s *Scanner) record(kind Kind, text []byte, more bool) (it *Item, n int) {
	it = &s.item
	*it = Item{Kind: kind, Place: s.at}
	switch kind {
	case KindDecoded:
		n = s.decodedRecord(it, text, more)
	case KindHeader:
		n = s.headerLine(it, text, more)
	case KindPaths, KindPathEvents:
		n = s.pathLines(it, text, more)
	default:
		n = s.blobRecord(it, text, more)
	}
	if n == 0 {
		return nil, 0
	}
	it.Text = text[:n:n]
	if it.Err != nil && it.Cut == nil {
		it.Kind, it.Stack, it.User, it.Header, it.PathLine, it.EventLine = KindUnreadable, nil, nil, nil, nil, nil
	}
	s.at.Offset += int64(n)
	return it, n
}

// headerLine reads a ~h# line. (BT-HEAD-5)
func (s *Scanner) headerLine(it *Item, text []byte, more bool) (n int) {
	text = text[:min(len(text), lineAhead)]
	n, whole := codec.HeaderEnd(text)
	switch {
	case !whole && len(text) < lineAhead && more:
		return 0
	case n > maxLine || !whole && len(text) == lineAhead:
		it.Err = ErrTooLong
		return n
	}
	it.Header = &s.header
	if it.Err = codec.ParseHeader(&s.header, text[:n]); it.Err != nil {
		return n
	}
	switch s.header.Verb {
	case codec.VerbBegin:
		u, _ := s.header.Uint("u")
		s.user = u == 1
	case codec.VerbEnd:
		s.user = false
	case codec.VerbBoot:
		w, _ := s.header.Uint("w")
		s.user = false
		s.setWord(w == 32)
	}
	return n
}

// pathLines reads a ~p# or ~v# line: the lead-in and the longest run of digits.
// (BT-PLINE-4)
func (s *Scanner) pathLines(it *Item, text []byte, more bool) (n int) {
	text = text[:min(len(text), callpath.MaxEvents+1)]
	switch n = callpath.LineEnd(text); {
	case n > callpath.MaxEvents:
		it.Err = ErrTooLong
	case n == len(text) && more:
		return 0
	case it.Kind == KindPaths:
		it.PathLine = &s.pathLine
		it.Err = s.pathLine.Parse(text[:n])
	default:
		it.EventLine = &s.events
		it.Err = s.events.Parse(text[:n])
	}
	return n
}

// setWord sets the word size of the records that follow. It is 32 bits if the boot is on a
// 32-bit machine, or if the encoder is known to have 32-bit words. (BT-REC-1)
func (s *Scanner) setWord(is32 bool) {
	word := 64
	if is32 || s.Always32 {
		word = 32
	}
	if word != s.word {
		s.word = word
		s.cache.forget()
	}
}

package heaplog

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
	// minBare is the minimum number of base64 characters of a bare record, which is the
	// shortest blob.
	minBare = 6
)

// scanner finds the records in a log.
type scanner struct {
	always32 bool // the encoder is known to have 32-bit words
	word     int  // bits of the encoder's words; 64 if not known (BT-COUNT-4)
	user     bool // blobs have user fields, as a header announced (BT-REC-2)
	// use receives each item. If it returns false, scan ends.
	use func(*Item) bool

	at      Place // where the data of the next scan begins
	item    Item  // for records
	between Item  // for text between records
	cut     Cut
	fields  codec.User
	header  codec.Header
	scratch decoded
	paths   callpath.Line
	events  callpath.Events
	blob    [codec.MaxLength + 1]byte // one more byte than the longest blob, for decodeRun
	cache   cache
}

// begin starts a log.
func (s *scanner) begin(file string) {
	s.at, s.user = Place{File: file, Line: 1}, false
	s.setWord(false)
}

// scan passes the records in data and the text between them to s.use, in order. data
// continues the log where the last scan ended. scan returns how many bytes of data it
// consumed, and whether s.use wants more items. more means that the log continues after
// data; scan then leaves a record whose end is not in data.
func (s *scanner) scan(data []byte, more bool) (n int, ok bool) {
	for n < len(data) {
		took, ok := 0, true
		switch at, kind := findLeadIn(data[n:], more); {
		case at > 0:
			took, ok = at, s.text(data[n:n+at])
		case kind != KindText: // otherwise a lead-in may begin here
			took, ok = s.record(kind, data[n:], more)
		}
		if n += took; took == 0 || !ok {
			return n, ok
		}
	}
	return n, true
}

// bareLine is scan for a whole line in a log in which a line of base64 alone is a record.
func (s *scanner) bareLine(line []byte) (n int, ok bool) {
	lead, found := bareText(line)
	if !found {
		return s.scan(line, false)
	}
	if !s.text(line[:lead]) {
		return lead, false
	}
	n, ok = s.record(KindBareBlob, line[lead:], false)
	if n += lead; !ok {
		return n, false
	}
	rest, ok := s.scan(line[n:], false)
	return n + rest, ok
}

// skip passes over text without items.
func (s *scanner) skip(text []byte) {
	s.at.Line += int64(bytes.Count(text, newline))
	s.at.Offset += int64(len(text))
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
var leadIns = [256]Kind{'m': KindBlob, 'b': KindDecoded, 'e': KindEvent, 'h': KindMark, 'p': KindPaths, 'v': KindPathEvents}

// text passes on text between records.
func (s *scanner) text(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	it := &s.between
	it.Place, it.Text = s.at, text
	if len(text) > 1 {
		s.at.Line += int64(bytes.Count(text, newline))
	} else if text[0] == '\n' {
		s.at.Line++
	}
	s.at.Offset += int64(len(text))
	return s.use(it)
}

var newline = []byte{'\n'}

// record passes on the record at the start of text and returns its length in bytes, or 0 if
// the log continues and the end of the record is not in text.
func (s *scanner) record(kind Kind, text []byte, more bool) (n int, ok bool) {
	it := &s.item
	*it = Item{}
	it.Kind, it.Place = kind, s.at
	switch kind {
	case KindDecoded:
		n = s.decodedRecord(it, text, more)
	case KindMark:
		n = s.markRecord(it, text, more)
	case KindPaths, KindPathEvents:
		n = s.pathRecord(it, text, more)
	default:
		n = s.blobRecord(it, text, more)
	}
	if n == 0 {
		return 0, true
	}
	it.Text = text[:n:n]
	if it.Err != nil && it.Cut == nil {
		it.Kind, it.Stack, it.User, it.Header, it.Paths, it.events = KindUnreadable, nil, nil, nil, nil, nil
	}
	s.at.Offset += int64(n)
	return n, s.use(it)
}

// markRecord reads a ~h# line. (BT-HEAD-5)
func (s *scanner) markRecord(it *Item, text []byte, more bool) (n int) {
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

// pathRecord reads a ~p# or ~v# line: the lead-in and the longest run of digits.
// (BT-PLINE-4)
func (s *scanner) pathRecord(it *Item, text []byte, more bool) (n int) {
	text = text[:min(len(text), callpath.MaxEvents+1)]
	switch n = callpath.LineEnd(text); {
	case n > callpath.MaxEvents:
		it.Err = ErrTooLong
	case n == len(text) && more:
		return 0
	case it.Kind == KindPaths:
		it.Paths = &s.paths
		it.Err = s.paths.Parse(text[:n])
	default:
		it.events = &s.events
		it.Err = s.events.Parse(text[:n])
	}
	return n
}

// setWord sets the word size of the records that follow. It is 32 bits if the boot is on a
// 32-bit machine, or if the encoder is known to have 32-bit words. (BT-REC-1)
func (s *scanner) setWord(is32 bool) {
	word := 64
	if is32 || s.always32 {
		word = 32
	}
	if word != s.word {
		s.word = word
		s.cache.forget()
	}
}

// decodedRecord reads a ~b# record: the longest part of text that has its form. (BT-TEXT-3)
func (s *scanner) decodedRecord(it *Item, text []byte, more bool) (n int) {
	text = text[:min(len(text), lineAhead)]
	n, fault, whole := decodedExtent(text)
	if n > maxLine || !whole && len(text) == lineAhead {
		it.Err = ErrTooLong
		return min(maxLine+1, len(text))
	}
	if !whole && more {
		return 0
	}
	d := s.fresh(it)
	// The record ends before an address that cannot be read. (BT-TEXT-3)
	if it.Err = codec.ParseDecoded(&d.stack, text[:fault]); it.Err != nil && fault > n && codec.ParseDecoded(&d.stack, text[:n]) == nil {
		s.cut = Cut{Depth: len(d.stack.PCs) + 1, Sized: true}
		it.Cut = &s.cut
	}
	return n
}

// fresh makes the item a record that is not in the cache, and returns the struct for its
// stack.
func (s *scanner) fresh(it *Item) *decoded {
	d := &s.scratch
	d.stack.Reset()
	d.generation, d.hasPath = 0, false
	it.decoded, it.Stack = d, &d.stack
	return d
}

// decodedExtent returns n, the number of bytes at the start of text that have the form of a
// ~b# record. whole reports whether text has the byte after them, which ends the record. If
// an invalid address follows, the stack is incomplete, and fault is the index of the end of
// that address; otherwise fault is n.
func decodedExtent(text []byte) (n, fault int, whole bool) {
	const head = codec.LeadInDecoded + "size: "
	for n < len(head) {
		if n == len(text) {
			return n, n, false
		}
		if text[n] != head[n] {
			return n, n, true
		}
		n++
	}
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if n == len(text) || text[n] != ',' {
		return n, n, n < len(text)
	}
	n++
	for frames := 0; ; frames++ {
		const next = " 0x"
		rest := text[n:]
		if len(rest) < len(next) && string(rest) == next[:len(rest)] {
			return n, n, false
		}
		if !bytes.HasPrefix(rest, []byte(next)) {
			return n, n, true
		}
		digits, significant := addressExtent(rest[len(next):])
		end := n + len(next) + digits
		if digits == 0 || significant > 16 || frames == codec.MaxDepth {
			return n, end, end < len(text)
		}
		if n = end; n == len(text) {
			return n, n, false // more digits may follow
		}
	}
}

// addressExtent returns the number of hexadecimal digits at the start of text, and how many
// of them remain without leading zeros. A number of more than 16 significant digits is 2^64
// or more.
func addressExtent(text []byte) (digits, significant int) {
	for digits < len(text) && isHex(text[digits]) {
		if significant > 0 || text[digits] != '0' {
			significant++
		}
		digits++
	}
	return digits, significant
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// bareText returns the index at which the base64 of a line begins. ok reports whether the
// line is only base64 with optional spaces around it.
func bareText(line []byte) (lead int, ok bool) {
	text := bytes.TrimLeft(line, " \t")
	lead = len(line) - len(text)
	text = bytes.TrimRight(text, " \t\r\n")
	run := bytes.TrimRight(text, "=")
	if len(run) < minBare || len(text)-len(run) > 2 {
		return 0, false
	}
	for _, c := range run {
		if !inAlphabet(c) {
			return 0, false
		}
	}
	return lead, true
}

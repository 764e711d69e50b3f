package dump

import (
	"bytes"
	"io"

	"github.com/lwsbt/lwsbt/codec"
)

const (
	leadInLen = len(codec.LeadIn)
	// bufSize is how much of the log is in memory at once: more than the longest
	// record takes, little enough to stay in a processor's cache.
	bufSize = 256 << 10
	// maxBase64 is the most base64 characters that a blob can have.
	maxBase64 = codec.MaxLength / 3 * 4
	// maxDecoded is more than the longest ~b# record that is read, in bytes; 32
	// addresses take some 640. (BT-LIM-4)
	maxDecoded = 4096
)

// Scanner reads the records of one log after another. Set its options before
// the first Next.
type Scanner struct {
	// Text, if not nil, receives every byte of the log that belongs to no record, in
	// order: the text before a record is written before Next returns the record.
	Text io.Writer
	// Bare makes records of lines that are base64 and nothing else, apart from spaces
	// around it. It is for dumps whose lead-ins were stripped: a line of one long
	// word then counts as an unreadable record.
	Bare bool
	// Recordings makes records of ~h# and ~e# lines, too. Otherwise they are
	// text, as they are to any reader of libwebsockets' own lines.
	Recordings bool
	// Word32 reads blobs as known to come from a 32-bit encoder. (BT-COUNT-4) In
	// recordings, those of a boot with w=32 are read so, too. (BT-REC-1)
	Word32 bool

	src   io.Reader
	memo  *memo
	known func(number uint64) bool // see Remember
	state State                    // what headers said
	rec   Record
	tally Tally
	err   error

	own  []byte // under buf, unless that is a chunk's
	buf  []byte // buf[pos:end] is unread
	pos  int
	end  int
	base int64 // offset in the log of buf[0]
	eof  bool  // nothing comes after buf[:end]
	last byte  // buf[end-1], or that of a buf before; '\n' before there is any

	counted int   // line ends in buf[:counted] are in line
	line    int64 // line that buf[counted] is of
	first   int64 // line that the log, or the chunk, begins with: 1, or more
	bol     bool  // pos is at a line's beginning that was not looked at for Bare

	blob [codec.MaxLength + 1]byte // under rec.Blob; decodeRun writes one byte more
}

// NewScanner returns a scanner of the log that src holds. file is the name of the log
// in places.
func NewScanner(src io.Reader, file string) *Scanner {
	s := &Scanner{}
	s.Reset(src, file)
	return s
}

// State is what headers said of the blobs that follow.
type State struct {
	UserFields bool // they have some (BT-REC-2)
	Word32     bool // w=32: the boot is that of a 32-bit machine (BT-REC-1)
}

// State returns what headers said so far; SetState sets it for a chunk.
func (s *Scanner) State() State { return s.state }

// SetState sets what State returns.
func (s *Scanner) SetState(now State) { s.state = now }

// Reset turns to another log. Options and tally are kept, an error is cleared.
func (s *Scanner) Reset(src io.Reader, file string) {
	s.state = State{}
	s.ResetAt(src, Place{File: file, Line: 1})
}

// ResetAt turns to the rest of a log, which src holds, from the beginning of a line
// on. It keeps what headers said before.
func (s *Scanner) ResetAt(src io.Reader, at Place) {
	s.reset(at)
	if s.own == nil && src != nil {
		s.own = make([]byte, bufSize)
	}
	s.src, s.buf = src, s.own
}

func (s *Scanner) reset(at Place) {
	s.err, s.eof = nil, false
	s.pos, s.end, s.base = 0, 0, at.Offset
	s.counted, s.line, s.first, s.bol, s.last = 0, at.Line, at.Line, true, '\n'
	s.rec.Place = at
}

// Record returns the record that the last Next found.
func (s *Scanner) Record() *Record { return &s.rec }

// Err returns the first error of reading the log or of writing to Text, nil at its
// regular end. Records that were complete before an error have been returned.
func (s *Scanner) Err() error {
	return s.err
}

// Tally returns the counts so far, of all logs of this scanner.
func (s *Scanner) Tally() *Tally { return &s.tally }

// Next goes to the next record, readable or not. It returns false at the log's
// end, or on an error of reading or of writing to Text.
func (s *Scanner) Next() bool {
	for s.src != nil {
		if s.Bare && s.bol {
			if s.needLine() {
				s.fill()
				continue
			}
			if s.bareRecord() {
				s.tally.add(&s.rec)
				return true
			}
		}
		limit, lineEnds := s.end, false
		if s.Bare {
			limit, lineEnds = s.lineLimit()
		}
		at, kind := s.findLeadIn(limit)
		s.skip(at)
		switch {
		case s.src == nil:
		case kind == Blob && s.blobRecord(leadInLen), kind == Decoded && s.decodedRecord(),
			kind == Event && s.blobRecord(leadInLen), kind == Header && s.headerRecord():
			s.tally.add(&s.rec)
			return true
		case lineEnds && at == limit:
			s.bol = true
		case s.eof:
			s.finish()
		default:
			s.fill()
		}
	}
	return false
}

// findLeadIn looks for a lead-in in buf[pos:limit] and returns where it begins.
// If there is none, it returns limit, or where one may begin that is not yet all
// there; kind is Bare then.
func (s *Scanner) findLeadIn(limit int) (at int, kind Kind) {
	for at = s.pos; ; at++ {
		i := bytes.IndexByte(s.buf[at:limit], '~')
		if i < 0 {
			return limit, Bare
		}
		at += i
		if limit-at < leadInLen {
			if s.eof || limit < s.end {
				return limit, Bare
			}
			if limit-at == 2 && !s.isLeadIn(s.buf[at+1]) {
				continue // the second of them may be a '~', too
			}
			return at, Bare
		}
		if s.buf[at+2] == '#' {
			switch s.buf[at+1] {
			case 'm':
				return at, Blob
			case 'b':
				return at, Decoded
			case 'e':
				if s.Recordings {
					return at, Event
				}
			case 'h':
				if s.Recordings {
					return at, Header
				}
			}
		}
	}
}

// isLeadIn reports whether c is the letter of a lead-in that is looked for.
func (s *Scanner) isLeadIn(c byte) bool {
	return c == 'm' || c == 'b' || s.Recordings && (c == 'e' || c == 'h')
}

// blobRecord takes the record of base64 at pos, whose lead-in has head bytes. It
// returns false when its end is not in the buffer yet.
func (s *Scanner) blobRecord(head int) bool {
	if s.memo != nil && !s.state.UserFields && head > 0 && s.buf[s.pos+1] == 'm' && s.memo.worth() {
		return s.memoRecord()
	}
	return s.newRecord(head)
}

// newRecord is blobRecord for a record that was not met before.
func (s *Scanner) newRecord(head int) bool {
	text := s.buf[s.pos+head : s.end]
	n, taken, url, left, unused := decodeRun(s.blob[:], text[:min(len(text), maxBase64)])
	if taken < len(text) && inAlphabet(text[taken]) {
		s.begin(Blob, head+taken)
		s.rec.Err = ErrTooLong
		return true
	}
	size := taken
	pads := 0
	if left >= 2 {
		pads = 4 - left
		for size < len(text) && size < taken+pads && text[size] == '=' {
			size++
		}
	}
	if size == len(text) && size < taken+max(pads, 1) && !s.eof {
		return false
	}
	kind := Blob
	switch {
	case head == 0:
		kind = Bare
	case s.buf[s.pos+1] == 'e':
		kind = Event
	}
	s.begin(kind, head+size)
	r := &s.rec
	r.Blob = s.blob[:n:n]
	r.Lenient = url || size < taken+pads
	if left == 1 || unused != 0 {
		_, r.Err = codec.ParseLineLenient(nil, asBlob(kind, r.Text))
	} else {
		r.Err = s.decode(r.Blob)
	}
	if r.Err != nil && kind != Event {
		s.rescue(head, taken)
	}
	r.Depth = max(r.Depth, len(r.Stack.PCs))
	return true
}

// asBlob gives the text of a record without the lead-in of an event.
func asBlob(kind Kind, text []byte) []byte {
	if kind == Event {
		return text[leadInLen:]
	}
	return text
}

func (s *Scanner) decode(blob []byte) error {
	if s.rec.Kind == Event {
		return codec.DecodeEvent(&s.rec.Stack, &s.rec.User, blob, s.word())
	}
	if s.state.UserFields {
		return codec.DecodeUser(&s.rec.Stack, &s.rec.User, blob, s.word())
	}
	return codec.DecodeWord(&s.rec.Stack, blob, s.word())
}

// word is how many bits the encoder's words have: 64 where that is not known.
func (s *Scanner) word() int {
	if s.Word32 || s.state.Word32 {
		return 32
	}
	return 64
}

// begin makes rec the n bytes from pos on, and goes past them.
func (s *Scanner) begin(kind Kind, n int) {
	s.countLines(s.pos)
	r := &s.rec
	r.Kind = kind
	r.Line, r.Offset = s.line, s.base+int64(s.pos)
	r.Text = s.buf[s.pos : s.pos+n : s.pos+n]
	r.Blob, r.Err, r.Memo = nil, nil, 0
	r.Cut, r.CutByLws, r.Sized, r.Lenient, r.Depth = false, false, false, false, 0
	r.Stack.Reset()
	if s.Recordings {
		r.User.Reset()
	}
	s.pos += n
}

// maxHeader is more than the longest ~h# line that is read, in bytes. (BT-LIM-4)
const maxHeader = 4096

// headerRecord is blobRecord for ~h#. (BT-HEAD-5)
func (s *Scanner) headerRecord() bool {
	text := s.buf[s.pos:min(s.end, s.pos+maxHeader)]
	n, whole := codec.HeaderEnd(text)
	if !whole && len(text) < maxHeader && !s.eof {
		return false
	}
	s.begin(Header, n)
	r := &s.rec
	if !whole && len(text) == maxHeader {
		r.Err = ErrTooLong
		return true
	}
	if r.Err = codec.ParseHeader(&r.Header, r.Text); r.Err != nil {
		return true
	}
	switch r.Header.Verb {
	case codec.VerbBegin:
		u, _ := r.Header.Uint("u")
		s.state.UserFields = u == 1
	case codec.VerbEnd:
		s.state.UserFields = false
	case codec.VerbBoot:
		w, _ := r.Header.Uint("w")
		s.state = State{Word32: w == 32}
	}
	return true
}

// decodedRecord is blobRecord for ~b#: its text is as much as has the form.
// (BT-TEXT-3)
func (s *Scanner) decodedRecord() bool {
	text := s.buf[s.pos:min(s.end, s.pos+maxDecoded)]
	n, fault, whole := decodedExtent(text)
	r := &s.rec
	if !whole && len(text) == maxDecoded {
		s.begin(Decoded, maxDecoded)
		r.Err = ErrTooLong
		return true
	}
	if !whole && !s.eof {
		return false
	}
	s.begin(Decoded, n)
	r.Err = codec.ParseDecoded(&r.Stack, text[:fault])
	r.Depth = len(r.Stack.PCs)
	return true
}

// decodedExtent returns how many bytes at the start of text have the form of a ~b#
// record, and whether what follows them is there to tell. Where an address follows
// that cannot be one of the record, fault is its end, else n: the stack lacks that
// address, and is not to be taken for a complete one.
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
		if len(rest) < len(next) && bytes.HasPrefix([]byte(next), rest) {
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
			return n, n, false // the number may go on
		}
	}
}

// addressExtent returns how many hexadecimal digits text begins with, and how many
// of them stand after leading zeros: over 16, the number is not below 2^64.
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

// skip hands buf[pos:to] on as text. If that fails, the scanner ends.
func (s *Scanner) skip(to int) {
	if s.Text != nil && to > s.pos {
		if _, err := s.Text.Write(s.buf[s.pos:to]); err != nil {
			s.err, s.src = err, nil
		}
	}
	s.pos = to
}

func (s *Scanner) countLines(to int) {
	s.line += int64(bytes.Count(s.buf[s.counted:to], newline))
	s.counted = to
}

// fill reads more of the log behind buf[pos:end], which has room for any record.
func (s *Scanner) fill() {
	s.countLines(s.pos)
	copy(s.buf, s.buf[s.pos:s.end])
	s.base += int64(s.pos)
	s.end -= s.pos
	s.pos, s.counted = 0, 0
	for range 100 {
		n, err := s.src.Read(s.buf[s.end:])
		s.end += n
		s.tally.Bytes += int64(n)
		if n > 0 {
			s.last = s.buf[s.end-1]
		}
		if err != nil {
			s.eof = true
			if err != io.EOF {
				s.err = err
			}
			return
		}
		if n > 0 {
			return
		}
	}
	s.err, s.eof = io.ErrNoProgress, true
}

// finish adds the lines of a log that has been read to its end.
func (s *Scanner) finish() {
	s.countLines(s.end)
	s.tally.Lines += s.line - s.first
	if s.last != '\n' {
		s.tally.Lines++
	}
	s.src = nil
}

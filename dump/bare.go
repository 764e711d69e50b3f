package dump

import "bytes"

const (
	// minBare is the fewest base64 characters of a bare record: the shortest blob.
	minBare = 6
	// maxBareLine is the longest line, in bytes, that can be a bare record.
	maxBareLine = bufSize / 2
)

// needLine reports whether the line at pos is not all in the buffer, and may yet be
// a bare record.
func (s *Scanner) needLine() bool {
	line := s.buf[s.pos:s.end]
	return !s.eof && len(line) < maxBareLine && bytes.IndexByte(line, '\n') < 0
}

// bareRecord takes the line at pos, if it is nothing but base64.
func (s *Scanner) bareRecord() bool {
	s.bol = false
	line := s.buf[s.pos:s.end]
	if nl := bytes.IndexByte(line, '\n'); nl >= 0 {
		line = line[:nl]
	} else if !s.eof {
		return false
	}
	text := bytes.TrimLeft(line, " \t")
	lead := len(line) - len(text)
	text = bytes.TrimRight(text, " \t\r")
	run := bytes.TrimRight(text, "=")
	if len(run) < minBare || len(text)-len(run) > 2 {
		return false
	}
	for _, c := range run {
		if !inAlphabet(c) {
			return false
		}
	}
	s.skip(s.pos + lead)
	return s.src != nil && s.blobRecord(0)
}

// lineLimit is where the line at pos ends, or buf if it does so later.
func (s *Scanner) lineLimit() (limit int, ends bool) {
	if nl := bytes.IndexByte(s.buf[s.pos:s.end], '\n'); nl >= 0 {
		return s.pos + nl + 1, true
	}
	return s.end, false
}

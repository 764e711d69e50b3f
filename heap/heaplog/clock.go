package heaplog

import (
	"bytes"
	"time"

	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/heap/profile"
)

const (
	// maxTail is the number of bytes before a dump in which times are looked for.
	maxTail = 1024
	// maxStampLines is the number of lines before that of a dump.
	maxStampLines = 8
)

// tail is the end of the text that was read so far. Its text is valid as long as the item behind it.
type tail struct {
	text    []byte
	changes int // how often something but spaces was added
}

func (l *tail) add(text []byte) {
	if len(bytes.Trim(text, " ")) > 0 {
		l.changes++
	}
	text = text[max(0, len(text)-maxTail):]
	if len(l.text)+len(text) > 2*maxTail {
		l.text = l.text[:copy(l.text, l.text[len(l.text)-maxTail:])]
	}
	l.text = append(l.text, text...)
}

// stamps are the times in the text before an item.
type stamps struct {
	clocks map[int]*profile.Clock // by the form of their times
	list   []profile.Stamp
	of     int // the changes of the tail whose times they are, and 1
}

// before returns the last time of each clock: those in the line that has begun, before those of the
// lines above it. A line may have several reports.
func (s *stamps) before(l tail) []profile.Stamp {
	if s.of == l.changes+1 {
		return s.list
	}
	s.list, s.of = nil, l.changes+1
	seen := map[int]bool{}
	rest := l.text
	for range 1 + maxStampLines {
		at := bytes.LastIndexByte(rest, '\n')
		for _, x := range forms.Stamps(rest[at+1:]) {
			if !seen[x.Form] {
				seen[x.Form] = true
				s.list = append(s.list, profile.Stamp{Clock: s.clock(x), At: x.At})
			}
		}
		if at < 0 {
			break
		}
		rest = rest[:at]
	}
	return s.list
}

// clock returns the clock of a time.
func (s *stamps) clock(x forms.Stamp) *profile.Clock {
	if s.clocks[x.Form] == nil {
		if s.clocks == nil {
			s.clocks = map[int]*profile.Clock{}
		}
		c := &profile.Clock{Wall: x.Wall}
		if x.Full > 0 {
			c.Wraps = []time.Duration{x.Full}
		}
		s.clocks[x.Form] = c
	}
	return s.clocks[x.Form]
}

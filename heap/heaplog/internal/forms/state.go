package forms

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/lwsbt/lwsbt/codec"
)

// state is what the lines so far leave for those that follow.
type state struct {
	trace
	Facts
	systems []string               // of which something was read
	notes   []string               // each once
	inside  func(text []byte) bool // reads the rows of a table, nil outside of one
	waiting block                  // of which the callers follow
	waits   int64                  // the number of blocks of which waiting is the sum, 0 if there are none
	moved   uint64                 // old address of a block of which the new one follows
	esp
	nuttx
}

// flush writes what waits for more.
func (s *state) flush() {
	s.inside, s.rows = nil, false
	if s.closeEnded(); s.waits > 0 {
		s.sum(&s.waiting, s.waits, s.waiting.size)
		s.waits = 0
	}
}

// finish ends the log.
func (s *state) finish() {
	s.flush()
	s.release()
	s.closeEndless()
}

// maxNotes is the most notes of a log.
const maxNotes = 16

func (s *state) note(text string) {
	if len(s.notes) < maxNotes && !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// failed notes that an allocation failed.
func (s *state) failed(size int64, memory string) {
	if memory != "" {
		memory = " of " + memory
	}
	s.note(fmt.Sprintf("an allocation of %d bytes%s failed", size, memory))
}

// events returns what writes an event.
func events(kind uint64) func(*state, match) {
	return func(s *state, m match) {
		b := m.block()
		if count := m.number("count"); count >= 0 && b.size < 1<<31 && count < 1<<31 { // calloc
			b.size *= count
		}
		if kind == codec.EventMoved && m.group("old") == nil {
			b.user.Set(codec.TagOldAddress, s.moved)
			s.moved = 0
		}
		old, _ := b.user.Get(codec.TagOldAddress)
		address, _ := b.user.Get(codec.TagAddress)
		switch {
		case kind == codec.EventFreed:
			b.size = 0
		case kind == codec.EventMoved && old == 0: // as malloc
			b.user.Set(codec.TagOldAddress, 0)
		}
		if address != 0 {
			s.event(kind, &b)
		}
	}
}

// stacks returns what reads a sum of blocks, with the frames on the lines that follow.
func stacks(frame *regexp.Regexp) func(*state, match) {
	return func(s *state, m match) {
		s.flush()
		s.waiting, s.waits = m.block(), m.number("count")
		if direct := m.number("direct"); direct >= 0 {
			s.waiting.size = direct
		}
		if s.closeEndless(); !s.open {
			s.begin("leak")
		}
		s.inside = func(text []byte) bool {
			groups := frame.FindSubmatchIndex(text)
			if groups == nil {
				return false
			}
			f := match{&form{expr: frame}, text, groups}
			pc, name := f.hex("address"), f.text("func")
			if name == "" {
				name = f.text("name")
			}
			if k := len(s.waiting.pcs); k > 0 && s.waiting.pcs[k-1] == pc {
				s.addInlined(name, f.text("file"), f.number("line"))
				return true
			}
			s.waiting.pcs = append(s.waiting.pcs, pc)
			s.addName(pc, name, f.text("file"), f.number("line"))
			return true
		}
	}
}

// androidRow reads num blocks of a size, with addresses that have no 0x.
func (s *state) androidRow(m match) {
	b := m.block()
	for _, f := range bytes.Fields(m.group("callers")) {
		if pc, err := strconv.ParseUint(string(f), 16, 64); err == nil {
			b.pcs = append(b.pcs, pc)
		}
	}
	s.endless = "android"
	if count := m.number("count"); count < 1<<31 && b.size < 1<<31 {
		s.sum(&b, count, count*b.size)
	}
}

// hexes reads the hexadecimal numbers of a text, each with 0x, until other text than a space or a
// colon comes; zeros, which stand for frames that were not captured, end them.
func hexes(text []byte) (list []uint64) {
	for len(list) < maxFrames {
		text = bytes.TrimLeft(text, " \t:")
		if !bytes.HasPrefix(text, []byte("0x")) {
			break
		}
		end := 2
		for end < len(text) && end < 18 && isHex(text[end]) {
			end++
		}
		v, err := strconv.ParseUint(string(text[2:end]), 16, 64)
		if err != nil || v == 0 {
			break
		}
		list, text = append(list, v), text[end:]
	}
	return list
}

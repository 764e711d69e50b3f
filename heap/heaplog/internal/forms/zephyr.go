package forms

import (
	"regexp"
	"strconv"

	"github.com/lwsbt/lwsbt/codec"
)

// zephyrBucket is a row of sys_heap_print_info: the last number is the largest free block, in bytes.
var zephyrBucket = regexp.MustCompile(`(?:\d+ +){4}(\d{1,18})$`)

// zephyrBlock takes a block of heaptrace. Its call stack is on the line after it.
func (s *state) zephyrBlock(m match) {
	s.flush()
	b := m.block()
	thread := m.hex("thread")
	b.user.Set(codec.TagThread, thread)
	s.nameThread(thread, m.text("task"))
	if memory := m.text("memory"); memory != "?" {
		s.addMemory(m.hex("address"), memory)
	}
	s.waiting, s.waits = b, 1
}

func (s *state) zephyrHeap(m match) {
	s.flush()
	s.walk = heap{name: m.text("name"), largest: -1, least: -1}
	s.inside = func(text []byte) {
		if row := zephyrBucket.FindSubmatch(text); row != nil {
			v, _ := strconv.ParseInt(string(row[1]), 10, 64)
			s.walk.largest = max(s.walk.largest, v)
		}
	}
}

func (s *state) zephyrInfo(m match) {
	h := s.walk
	if s.inside == nil { // the lines before were lost
		h = heap{largest: -1, least: -1}
	}
	h.free = m.number("free")
	h.size = h.free + m.number("used") + m.number("over")
	s.inside = nil
	s.heap(h)
}

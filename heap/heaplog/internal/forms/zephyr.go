package forms

import "github.com/lwsbt/lwsbt/codec"

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

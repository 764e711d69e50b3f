package core

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
)

// Types of notes in core files, by the name of their owner.
const (
	ntPRStatus = 1          // CORE: registers of a thread
	ntPRPSInfo = 3          // CORE: name of the program
	ntAuxv     = 6          // CORE: auxiliary vector
	ntFile     = 0x46494c45 // CORE: mapped files
	ntESPInfo  = 8266       // ESP_CORE_DUMP_INFO: version, SHA-256 of the application
	ntESPExtra = 677        // ESP_EXTRA_INFO: control block of the task that crashed
	ntESPPanic = 679        // ESP_PANIC_DETAILS: text
)

// Limits on the number of threads and of mapped files.
const (
	maxThreads = 1 << 16
	maxFiles   = 1 << 17
)

// readNotes reads the notes of a core file.
func (m *Image) readNotes(s *source, b []byte) {
	c := &cursor{b: b, word: m.Word, order: m.Order}
	for c.left() >= 12 {
		namesz, descsz, kind := c.u32(), c.u32(), c.u32()
		name := c.bytes(namesz)
		c.bytes(-namesz & 3)
		desc := c.bytes(descsz)
		if c.bad {
			m.notes.add("%s: a note of %d bytes, only %d are there", s.name, namesz+descsz, c.left())
			return
		}
		c.bytes(min(-descsz&3, uint64(c.left())))
		switch owner := cString(name); {
		case owner == "CORE":
			m.readNote(s, kind, desc)
		case strings.HasPrefix(owner, "ESP_"):
			m.readESPNote(kind, desc)
		case kind == ntPRStatus && owner != "GNU" && owner != "LINUX": // NuttX: the owner is the name of the task
			n := len(m.Threads)
			if m.readNote(s, kind, desc); len(m.Threads) > n {
				m.Threads[n].Name, m.Threads[n].Crashed = owner, n == 0
			}
		}
	}
}

// cString returns the text before the first 0.
func cString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// readESPNote reads a note of ESP-IDF.
func (m *Image) readESPNote(kind uint64, desc []byte) {
	switch {
	case kind == ntESPInfo && len(desc) > 4:
		m.About = append(m.About, "SHA-256 of the application's ELF file begins "+cString(desc[4:]))
	case kind == ntESPPanic:
		m.About = append(m.About, "panic: "+cString(desc))
	case kind == ntESPExtra && len(desc) >= 4:
		id := int(m.Order.Uint32(desc))
		if i := slices.IndexFunc(m.Threads, func(t Thread) bool { return t.ID == id }); i >= 0 {
			t := m.Threads[i]
			t.Crashed = true
			m.Threads = slices.Insert(slices.Delete(m.Threads, i, i+1), 0, t)
		}
	}
}

func (m *Image) readNote(s *source, kind uint64, desc []byte) {
	c := &cursor{b: desc, word: m.Word, order: m.Order}
	switch kind {
	case ntPRStatus:
		if len(m.Threads) == maxThreads {
			m.notes.add("%s: more than %d threads: what follows is left out", s.name, maxThreads)
			return
		}
		t, err := readThread(m.Machine, m.Word, m.Order, desc)
		if err != nil {
			m.notes.add("%s: thread %d: %v", s.name, len(m.Threads), err)
			return
		}
		m.Threads = append(m.Threads, t)
	case ntPRPSInfo:
		// char state, sname, zomb, nice; long flag; uid, gid; pid, ppid, pgrp, sid;
		// char fname[16]. uid and gid have 16 bits on some 32-bit machines.
		at, pid := 40, 24
		if m.Word == 32 {
			at, pid = 32, 16
			if m.Machine == elf.EM_386 || m.Machine == elf.EM_ARM {
				at, pid = 28, 12
			}
		}
		if len(desc) < at+16 {
			m.notes.add("%s: process information of %d bytes", s.name, len(desc))
			return
		}
		m.PID = int(uint32(uintOf(desc[pid:pid+4], m.Order)))
		name, _, _ := bytes.Cut(desc[at:at+16], []byte{0})
		m.Program = string(name)
	case ntAuxv:
		if m.Auxv == nil {
			m.Auxv = map[uint64]uint64{}
		}
		for c.left() > 0 && len(m.Auxv) < 256 {
			key, value := c.ptr(), c.ptr()
			if c.bad || key == 0 {
				break
			}
			m.Auxv[key] = value
		}
	case ntFile:
		m.readFiles(s, c)
	}
}

// readFiles reads the list of mapped files: count and page size, then start, end and
// offset (in pages) of each file, then their names.
func (m *Image) readFiles(s *source, c *cursor) {
	count, page := c.ptr(), c.ptr()
	if c.bad || count > uint64(c.left()/(3*m.Word/8)) || count > maxFiles {
		m.notes.add("%s: %d mapped files, more than the note has bytes for", s.name, count)
		return
	}
	table := cursor{b: c.bytes(count * 3 * uint64(m.Word/8)), word: c.word, order: c.order}
	names := c.b[c.off:]
	for range count {
		start, end, off := table.ptr(), table.ptr(), table.ptr()
		name, rest, ok := bytes.Cut(names, []byte{0})
		if !ok {
			m.notes.add("%s: names of mapped files are cut", s.name)
			return
		}
		names = rest
		if start < end {
			m.files = append(m.files, Map{Start: start, End: end, File: string(name), Offset: off * page})
		}
	}
}

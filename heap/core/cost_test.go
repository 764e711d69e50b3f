package core

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// coreFile returns a core file of x86-64 with the given program headers and mapped
// files. body follows them; fill gets its offset.
func coreFile(loads int, files []Map, fill func(i int, body uint64) elf.Prog64, body []byte) []byte {
	le := binary.LittleEndian
	var note []byte
	if files != nil {
		desc := le.AppendUint64(le.AppendUint64(nil, uint64(len(files))), 1)
		for _, f := range files {
			desc = le.AppendUint64(le.AppendUint64(le.AppendUint64(desc, f.Start), f.End), f.Offset)
		}
		for _, f := range files {
			desc = append(append(desc, f.File...), 0)
		}
		for _, v := range []uint32{5, uint32(len(desc)), ntFile} {
			note = le.AppendUint32(note, v)
		}
		note = append(append(note, "CORE\x00\x00\x00\x00"...), desc...)
		note = append(note, make([]byte, -len(note)&7)...)
	}
	const big = 0xffff // PN_XNUM: the number is in section 0
	noteAt := uint64(64 + 64 + 56*(loads+1))
	at := (noteAt + uint64(len(note)) + 4095) &^ 4095
	var out bytes.Buffer
	binary.Write(&out, le, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_CORE),
		Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 128, Shoff: 64, Ehsize: 64, Phentsize: 56, Phnum: big, Shentsize: 64, Shnum: 1})
	binary.Write(&out, le, elf.Section64{Info: uint32(loads + 1)})
	binary.Write(&out, le, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: noteAt, Filesz: uint64(len(note))})
	for i := range loads {
		binary.Write(&out, le, fill(i, at))
	}
	out.Write(note)
	out.Write(make([]byte, int(at)-out.Len()))
	out.Write(body)
	return out.Bytes()
}

func loadHeader(addr, off, filesz, memsz uint64) elf.Prog64 {
	return elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 6, Vaddr: addr, Off: off, Filesz: filesz, Memsz: memsz}
}

// readAll calls every function that reads a core file, and fails if that takes longer than limit.
func readAll(t *testing.T, data []byte, limit time.Duration) (m *Image) {
	t.Helper()
	done := make(chan bool)
	go func() {
		defer close(done)
		everything(data)
		m = &Image{}
		if err := m.addSource(&source{name: "core", data: data}); err != nil {
			t.Error(err)
		}
		m.Segments()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("a core file of %d bytes takes over %v", len(data), limit)
	}
	return m
}

// TestCostOfSharedBytes reads many segments that share bytes. Searching shared bytes costs as
// much as searching separate bytes, so such segments must be left out.
func TestCostOfSharedBytes(t *testing.T) {
	body := bytes.Repeat([]byte{0xff, 0xff, 8, 0, 0, 0, 0x7f, 0}, 1<<16)
	m := readAll(t, coreFile(20000, nil, func(i int, at uint64) elf.Prog64 {
		return loadHeader(0x7f0000000000+uint64(i)<<20, at, uint64(len(body)), uint64(len(body)))
	}, body), 2*time.Minute)
	if notes := strings.Join(m.Notes(), "\n"); !strings.Contains(notes, "share bytes of the file") {
		t.Errorf("notes %q", notes)
	}
	// Memory mapped at two addresses, as in qemu's dumps, is found at both.
	m = readAll(t, coreFile(2, nil, func(i int, at uint64) elf.Prog64 {
		return loadHeader(0x7f0000000000+uint64(i)<<20, at, uint64(len(body)), uint64(len(body)))
	}, body), 2*time.Minute)
	if n := len(m.Segments()); n != 2 || len(m.Notes()) > 0 {
		t.Errorf("%d segments, want 2; notes %q", n, m.Notes())
	}
}

// TestCostOfSharedMaps reads overlapping maps of the whole address space, and many
// files with the same header.
func TestCostOfSharedMaps(t *testing.T) {
	s := newSynth(64, binary.LittleEndian, 4<<20, 1)
	s.fill(20000)
	t.Run("loads", func(t *testing.T) {
		m := readAll(t, coreFile(20001, nil, func(i int, at uint64) elf.Prog64 {
			if i == 0 {
				return loadHeader(s.base, at, uint64(len(s.mem)), uint64(len(s.mem)))
			}
			return loadHeader(uint64(i)<<12, at, 0, 1<<62)
		}, s.mem), 2*time.Minute)
		for i := 1; i < len(m.Maps); i++ {
			if m.Maps[i].Start < m.Maps[i-1].End {
				t.Fatalf("%+v and %+v overlap", m.Maps[i-1], m.Maps[i])
			}
		}
	})
	t.Run("files", func(t *testing.T) {
		// All files begin with an ELF header with 65,534 program headers.
		head := coreFile(0xfffd, nil, func(int, uint64) elf.Prog64 { return loadHeader(0, 0, 1, 1) }, nil)
		binary.LittleEndian.PutUint16(head[16:], uint16(elf.ET_DYN))
		files := make([]Map, 50000)
		for i := range files {
			files[i] = Map{Start: s.base, End: s.base + 1<<40, File: fmt.Sprint("/", i)}
		}
		readAll(t, coreFile(1, files, func(_ int, at uint64) elf.Prog64 {
			return loadHeader(s.base, at, uint64(len(head)), ^uint64(0)) // no map, for it passes the end of memory
		}, head), 2*time.Minute)
	})
}

// TestCostOfLooseBlocks reads blocks with broken links. Each block can only be accepted after
// the block that follows it in memory.
func TestCostOfLooseBlocks(t *testing.T) {
	s := newSynth(64, binary.LittleEndian, 8<<20, 1)
	const n = 30000
	for range n {
		s.alloc(8, 0x8000000)
	}
	p := s.ptr()
	// The list goes from the end of memory to its beginning; only prev links are intact.
	for i := range s.blocks {
		node := s.blocks[i].addr - 3*p
		s.put(node+p, 0)
		s.put(node, 0)
		if i+1 < n {
			s.put(node, s.blocks[i+1].addr-3*p)
		}
	}
	last := s.blocks[n-1].addr - 3*p
	s.put(s.owner+p, last)
	s.put(s.owner, s.blocks[0].addr-3*p)
	done := make(chan *Heap)
	m := s.image()
	go func() {
		h, err := m.FindHeap(s.search())
		if err != nil {
			t.Error(err)
		}
		done <- h
	}()
	select {
	case h := <-done:
		if len(h.Blocks) != n {
			t.Errorf("%d blocks, want %d", len(h.Blocks), n)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%d blocks take over 2 minutes", n)
	}
}

// TestCostOfStrayLinks reads links to missing memory, in RAM of many segments.
func TestCostOfStrayLinks(t *testing.T) {
	s := newSynth(32, binary.LittleEndian, 4<<20, 1)
	for range 40000 {
		s.alloc(4, 0x8000000)
	}
	for i := 1; i < len(s.blocks); i += 2 {
		s.put(s.blocks[i].addr-2*s.ptr(), 0xf0000000+uint64(i)*4)
	}
	m := s.image()
	for i := range 200000 {
		m.add(Segment{Addr: 0x80000000 + uint64(i)*64, Data: []byte{0}, Write: true})
	}
	start := cmdtest.ProcessorTime()
	if _, err := m.FindHeap(s.search()); err != nil {
		t.Fatal(err)
	}
	if took := cmdtest.ProcessorTime() - start; took > time.Minute {
		t.Errorf("took %v", took)
	}
}

// noteOf returns a note, padded to 4 bytes.
func noteOf(owner string, kind uint32, desc []byte) (note []byte) {
	for _, v := range []uint32{uint32(len(owner) + 1), uint32(len(desc)), kind} {
		note = binary.LittleEndian.AppendUint32(note, v)
	}
	note = append(append(note, owner...), make([]byte, 1+3-len(owner)&3)...)
	return append(append(note, desc...), make([]byte, -len(desc)&3)...)
}

// TestCostOfSharedNotes reads many segments with the same notes. The list of mapped files in
// these notes must count once.
func TestCostOfSharedNotes(t *testing.T) {
	le := binary.LittleEndian
	const files = 20000
	desc := le.AppendUint64(le.AppendUint64(nil, files), 4096)
	for i := range uint64(files) {
		desc = le.AppendUint64(le.AppendUint64(le.AppendUint64(desc, 0x100000+i<<13), 0x101000+i<<13), i)
	}
	desc = append(desc, bytes.Repeat([]byte("a\x00"), files)...)
	body := noteOf("CORE", ntFile, desc)
	m := readAll(t, coreFile(1000, nil, func(i int, at uint64) elf.Prog64 {
		if i == 0 {
			return loadHeader(0x10000, at, 64, 64)
		}
		return elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(body))}
	}, body), 2*time.Minute)
	if len(m.files) != files {
		t.Errorf("%d mapped files, want %d", len(m.files), files)
	}
	if notes := strings.Join(m.Notes(), "\n"); !strings.Contains(notes, "notes share bytes of the file: 998 segments are left out") {
		t.Errorf("notes %q", notes)
	}
}

// TestCostOfModuleNotes reads modules that share a header, with many segments that share
// notes.
func TestCostOfModuleNotes(t *testing.T) {
	notes := bytes.Repeat(noteOf("X", 9, nil), 400000)
	head := coreFile(1000, nil, func(_ int, at uint64) elf.Prog64 {
		return elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(notes))}
	}, notes)
	binary.LittleEndian.PutUint16(head[16:], uint16(elf.ET_DYN))
	files := make([]Map, 4)
	addr := func(i int) uint64 { return 0x7f0000000000 + uint64(i)<<32 }
	for i := range files {
		files[i] = Map{Start: addr(i), End: addr(i) + uint64(len(head)), File: fmt.Sprint("/", i)}
	}
	m := readAll(t, coreFile(len(files), files, func(i int, at uint64) elf.Prog64 {
		return loadHeader(addr(i), at, uint64(len(head)), uint64(len(head)))
	}, head), 2*time.Minute)
	if n := len(m.Modules()); n != len(files) {
		t.Errorf("%d modules, want %d", n, len(files))
	}
}

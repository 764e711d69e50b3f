package core

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// synthCore returns a core file of a synthetic device, with a thread whose stack
// pointer is in its RAM and a map of a file.
func synthCore(s *synth) []byte {
	order := s.order.(binary.AppendByteOrder)
	machine := elf.EM_ARM
	regs, count, sp := 72, 18, 13
	switch {
	case s.word == 64 && s.order == binary.LittleEndian:
		machine, regs, count, sp = elf.EM_AARCH64, 112, 34, 31
	case s.word == 64:
		machine, regs, count, sp = elf.EM_S390, 112, 18, 17
	case s.order == binary.BigEndian:
		machine, count, sp = elf.EM_MIPS, 45, 35
	}
	word := s.word / 8
	put := func(b []byte, v uint64) []byte {
		if word == 8 {
			return order.AppendUint64(b, v)
		}
		return order.AppendUint32(b, uint32(v))
	}
	status := make([]byte, regs)
	for i := range count {
		v := uint64(i)
		if i == sp {
			v = s.base + synthStack
		}
		status = put(status, v)
	}
	files := put(put(nil, 1), 4096)
	files = append(put(put(put(files, s.base), s.base+4096), 0), "/bin/synth\x00"...)
	var notes []byte
	for _, n := range []struct {
		kind uint32
		desc []byte
	}{{ntPRStatus, status}, {ntFile, files}, {ntAuxv, make([]byte, 2*word)}, {ntPRPSInfo, make([]byte, 136)}} {
		for _, v := range []uint32{5, uint32(len(n.desc)), n.kind} {
			notes = order.AppendUint32(notes, v)
		}
		notes = append(notes, "CORE\x00\x00\x00\x00"...)
		notes = append(notes, n.desc...)
		notes = append(notes, make([]byte, -len(n.desc)&3)...)
	}
	ehsize, phsize := 52, 32
	class := byte(elf.ELFCLASS32)
	if word == 8 {
		ehsize, phsize, class = 64, 56, byte(elf.ELFCLASS64)
	}
	data := byte(elf.ELFDATA2LSB)
	if s.order == binary.BigEndian {
		data = byte(elf.ELFDATA2MSB)
	}
	out := append([]byte(elf.ELFMAG), class, data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []uint16{uint16(elf.ET_CORE), uint16(machine)} {
		out = order.AppendUint16(out, v)
	}
	out = order.AppendUint32(out, 1)
	out = put(put(put(out, 0), uint64(ehsize)), 0)
	out = order.AppendUint32(out, 0)
	// The RAM is in three segments, like the memory maps of a process.
	cuts := []int{0, 0x1000, len(s.mem) / 2, len(s.mem)}
	for _, v := range []int{ehsize, phsize, len(cuts), 0, 0, 0} {
		out = order.AppendUint16(out, uint16(v))
	}
	off := ehsize + phsize*len(cuts)
	prog := func(kind elf.ProgType, flags elf.ProgFlag, off int, addr uint64, size int) {
		out = order.AppendUint32(out, uint32(kind))
		if word == 8 {
			out = order.AppendUint32(out, uint32(flags))
		}
		for _, v := range []uint64{uint64(off), addr, 0, uint64(size), uint64(size)} {
			out = put(out, v)
		}
		if word == 4 {
			out = order.AppendUint32(out, uint32(flags))
		}
		out = put(out, 1)
	}
	prog(elf.PT_NOTE, elf.PF_R, off, 0, len(notes))
	for i := 1; i < len(cuts); i++ {
		prog(elf.PT_LOAD, elf.PF_R|elf.PF_W, off+len(notes)+cuts[i-1], s.base+uint64(cuts[i-1]), cuts[i]-cuts[i-1])
	}
	return append(append(out, notes...), s.mem...)
}

// everything calls every function that reads an image, and returns the number of blocks found.
func everything(data []byte) int {
	var m Image
	if m.addSource(&source{name: "image", data: data}) != nil {
		return 0
	}
	modules := m.Modules()
	blocks := 0
	for _, s := range []Search{
		{FollowsCall: func(pc uint64) (bool, bool) { return pc&2 == 0, pc&4 == 0 }},
		{Owners: []Symbol{{Name: "active", Addr: 0x20000000 + synthOwner}, {Addr: 0x7f0012340000 + synthOwner}}},
	} {
		h, err := m.FindHeap(s)
		if err != nil {
			continue
		}
		blocks = max(blocks, len(h.Blocks))
		m.FindLeaks(h, Roots{Data: m.Maps})
		m.WriteRecording(io.Discard, h, nil)
		h.Notes()
	}
	_ = modules
	m.Notes()
	return blocks
}

// TestSynthCore checks that the undamaged synthetic core file is read completely.
func TestSynthCore(t *testing.T) {
	for _, c := range synths {
		s := newSynth(c.word, c.order, 1<<14, 7)
		s.fill(40)
		var m Image
		if err := m.addSource(&source{name: "core", data: synthCore(s)}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(m.Threads) != 1 || m.Threads[0].SP != s.base+synthStack || len(m.Notes()) > 0 {
			t.Errorf("%s: threads %+v, notes %q", c.name, m.Threads, m.Notes())
		}
		if r := m.MapAt(s.base + 8); r == nil || r.File != "/bin/synth" {
			t.Errorf("%s: map %+v", c.name, r)
		}
		if b, ok := m.Bytes(s.base, uint64(len(s.mem))); !ok || !bytes.Equal(b, s.mem) {
			t.Errorf("%s: memory differs", c.name)
		}
		if n := everything(synthCore(s)); n != len(s.live()) {
			t.Errorf("%s: %d blocks, want %d", c.name, n, len(s.live()))
		}
	}
}

// mutate damages a core file in one of several ways, accidental or malicious.
func mutate(b []byte, rnd *rand.Rand, order binary.ByteOrder) []byte {
	b = bytes.Clone(b)
	head := min(len(b), 1200) // headers and notes
	at := func() int {
		if rnd.IntN(2) == 0 {
			return rnd.IntN(head)
		}
		return rnd.IntN(len(b))
	}
	extremes := []uint64{0, 1, 2, 1<<64 - 1, 1<<63 - 1, 1 << 63, 1<<32 - 1, 1 << 31, 0x20000100, 0x7f0012340100, 0xffffffffffffff00}
	for range 1 + rnd.IntN(8) {
		switch i := at(); rnd.IntN(7) {
		case 0:
			b[i] ^= 1 << rnd.IntN(8)
		case 1, 2: // an impossible number
			i &^= 3
			if i+8 <= len(b) {
				if rnd.IntN(2) == 0 {
					order.PutUint64(b[i:], extremes[rnd.IntN(len(extremes))])
				} else {
					order.PutUint32(b[i:], uint32(extremes[rnd.IntN(len(extremes))]))
				}
			}
		case 3: // overwritten
			n := min(rnd.IntN(300), len(b)-i)
			for j := range n {
				b[i+j] = byte(rnd.Uint32())
			}
		case 4: // one part over another
			copy(b[i:min(len(b), i+rnd.IntN(2000))], b[at():])
		case 5: // cut
			if rnd.IntN(3) == 0 {
				b = b[:max(64, i)]
				head = min(head, len(b))
			}
		case 6: // pointers into each other
			i &^= 7
			j := at() &^ 7
			if i+8 <= len(b) && j+8 <= len(b) {
				copy(b[i:i+8], b[j:j+8])
			}
		}
	}
	return b
}

// TestDamagedImages reads 2,000 damaged images. There must be no panic; the best of five tries
// must take at most two seconds, and the memory must be in proportion to the image.
func TestDamagedImages(t *testing.T) {
	cmdtest.Long(t)
	blocks, full := 0, 0
	for _, c := range synths {
		s := newSynth(c.word, c.order, 1<<15, 11)
		s.fill(100)
		core := synthCore(s)
		for seed := range uint64(500) {
			b := mutate(core, rand.New(rand.NewPCG(seed, uint64(c.word))), c.order)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := cmdtest.ProcessorTime()
			n := everything(b)
			took := cmdtest.ProcessorTime() - start
			runtime.ReadMemStats(&after)
			for tries := 0; took > 2*time.Second && tries < 4; tries++ { // a busy machine may have held it up
				start := cmdtest.ProcessorTime()
				everything(b)
				took = min(took, cmdtest.ProcessorTime()-start)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("%s, seed %d: %d bytes for an image of %d", c.name, seed, used, len(b))
			}
			if took > 2*time.Second {
				t.Errorf("%s, seed %d: took %v", c.name, seed, took)
			}
			blocks += n
			if n == len(s.live()) {
				full++
			}
		}
	}
	t.Logf("%d blocks found, all of them in %d images of 2000", blocks, full)
	if blocks < 50000 {
		t.Errorf("%d blocks found: the images are damaged so much that nothing was tested", blocks)
	}
}

// TestSparse reads 100 GB of holes with a heap at their end.
func TestSparse(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("sparse files are tested on Linux, x86-64")
	}
	const size = 100 << 30
	s := newSynth(64, binary.LittleEndian, 1<<16, 3)
	s.base = 0x7f0000000000 + size - uint64(len(s.mem))
	s.owner, s.brk = s.base+synthOwner, s.base+synthHeap
	s.fill(100)
	path := filepath.Join(t.TempDir(), "ram.bin")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	if _, err := f.WriteAt(s.mem, size-int64(len(s.mem))); err != nil {
		t.Fatal(err)
	}
	f.Close()
	m := Image{Word: 64, Order: binary.LittleEndian}
	defer m.Close()
	if err := m.AddRAM(0x7f0000000000, path); err != nil {
		t.Fatal(err)
	}
	start := cmdtest.ProcessorTime()
	h, err := m.FindHeap(Search{})
	if err != nil {
		t.Fatal(err)
	}
	l := m.FindLeaks(h, Roots{})
	if took := cmdtest.ProcessorTime() - start; took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if len(h.Blocks) != len(s.live()) || len(l.Reach) != len(h.Blocks) {
		t.Errorf("%d blocks, want %d", len(h.Blocks), len(s.live()))
	}
}

// FuzzImage reads any data as an image.
func FuzzImage(f *testing.F) {
	for _, c := range synths {
		s := newSynth(c.word, c.order, 0x1400, 5)
		for s.brk < s.base+0x1280 {
			s.alloc(16)
		}
		f.Add(synthCore(s))
	}
	f.Add([]byte(":0400000001020304F2\n:020000040001F9\n:00000001FF\n"))
	f.Add([]byte("S107000001020304EE\nS9030000FC\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { everything(b) })
}

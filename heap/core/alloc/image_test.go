package alloc

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// saved is RAM of model.c or threads.c with an allocator that is not built here, as a file of testdata/images. The
// table of the program, truth, is in it.
type saved struct {
	kind         Kind
	word         int
	memory, data []core.Map
	variables    []core.Symbol
	compressed   string
	files        []string // uncompressed, of memory
}

// images reads testdata/images/images.txt: a line for each image, with its name, allocator, word size, the number of
// blocks of the C library; below it a line for each range of memory
// in the file, of data, and for each variable, with address and size.
func images(t *testing.T) (list []system) {
	t.Helper()
	text, err := os.ReadFile(source(t, "images/images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var s *saved
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, " ") {
			var v core.Symbol
			if _, err := fmt.Sscanf(line, "  %s 0x%x %d", &v.Name, &v.Addr, &v.Size); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			switch r := (core.Map{Start: v.Addr, End: v.Addr + v.Size, Write: true, File: "program"}); v.Name {
			case "memory":
				s.memory = append(s.memory, r)
			case "data":
				s.data = append(s.data, r)
			default:
				s.variables = append(s.variables, v)
			}
			continue
		}
		s = &saved{}
		var name, kind string
		var others int
		if _, err := fmt.Sscanf(line, "%s %s %d %d", &name, &kind, &s.word, &others); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s.kind, _ = ParseKind(kind)
		s.compressed = source(t, "images/"+name+".gz")
		image := s
		list = append(list, system{name, s.kind, others, func(t *testing.T) *stopped { return image.unpack(t) }})
	}
	return list
}

// TestSavedImages compares the blocks and leaks of each image with those of the program, and overwrites
// each header.
func TestSavedImages(t *testing.T) {
	var sums [kinds]savedSums
	for _, s := range images(t) {
		t.Run(s.name, func(t *testing.T) {
			p := s.run(t)
			heaps := p.compare(t, s.others, s.kind)
			p.leaks(t, heaps)
			p.overwriteAll(t, s.kind)
			sums[s.kind].add(t, p, heaps)
		})
	}
	table := "| allocator | images | blocks | missed | false | exact size | leaks | found | uncertain | doubtful | not found | others uncertain or doubtful |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
	for k, x := range sums {
		if x.images > 0 {
			table += fmt.Sprintf("| %v | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", Kind(k), x.images, x.blocks, x.missed, x.others, x.exact, x.leaks, x.found, x.unsure, x.doubtful, x.leaks-x.found-x.unsure-x.doubtful, x.kept)
		}
	}
	if !t.Failed() {
		figures.Check(t, "../../FIGURES.md", "allocators", table)
	}
}

// savedSums are the results of the images of an allocator.
type savedSums struct{ images, blocks, missed, others, exact, leaks, found, unsure, doubtful, kept int }

// add adds those of an image.
func (x *savedSums) add(t *testing.T, p *stopped, heaps []*Heap) {
	m, program := p.open(t)
	h := Core(m, heaps)
	l := m.FindLeaks(h, core.Roots{Data: program.Data})
	at := map[uint64]int{}
	for i := range h.Blocks {
		at[h.Blocks[i].Addr] = i
	}
	want := p.readTruth(t)
	x.images++
	x.blocks += len(want)
	x.others += len(h.Blocks)
	for _, w := range want {
		i, ok := at[w.addr]
		if !ok {
			x.missed++
			continue
		}
		x.others--
		if h.Blocks[i].Size == w.size {
			x.exact++
		}
		switch r := l.Reach[i]; {
		case !w.leaked && r != core.Reachable:
			x.kept++
		case !w.leaked:
		case r == core.Leaked:
			x.found++
		case r == core.Uncertain:
			x.unsure++
		case r.Doubtful():
			x.doubtful++
		}
		if w.leaked {
			x.leaks++
		}
	}
}

// unpack writes the RAM to a file.
func (s *saved) unpack(t *testing.T) *stopped {
	t.Helper()
	f, err := os.Open(s.compressed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	ram, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	x := *s
	x.files = nil
	for _, r := range s.memory {
		n := min(r.End-r.Start, uint64(len(ram)))
		name := filepath.Join(t.TempDir(), "ram")
		if err := os.WriteFile(name, ram[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		x.files = append(x.files, name)
		ram = ram[n:]
	}
	if len(ram) > 0 {
		t.Fatalf("%d bytes more than in images.txt", len(ram))
	}
	return &stopped{image: &x}
}

// open opens the image.
func (s *saved) open(t testing.TB, m *core.Image) Program {
	t.Helper()
	for i, name := range s.files {
		if err := m.AddRAM(s.memory[i].Start, name); err != nil {
			t.Fatal(err)
		}
	}
	m.Word, m.Order = s.word, binary.LittleEndian
	return Program{Data: s.data, Variables: func(names ...string) (list []core.Symbol) {
		for _, n := range names {
			for _, v := range s.variables {
				if v.Name == n {
					list = append(list, v)
				}
			}
		}
		return list
	}}
}

// TestCanaries overwrites the canaries before and behind blocks of ESP-IDF's poisoned heaps.
func TestCanaries(t *testing.T) {
	for _, s := range images(t) {
		if !strings.HasPrefix(s.name, "esp-idf-poisoned") {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			p := s.run(t)
			for i, x := range p.readTruth(t) {
				if i%10 != 0 {
					continue
				}
				for _, end := range []bool{false, true} {
					at := x.addr - 8
					if end {
						at = x.addr + x.size
					}
					m, program := p.open(t, patch{at, []byte("A")})
					heaps, err := Find(m, program, MultiHeap)
					if err != nil {
						t.Fatal(err)
					}
					var found []core.Damage
					c := Core(m, heaps)
					found = append(found, c.Damage...)
					if len(found) != 1 || found[0].Addr != x.addr || (found[0].Parts == core.DamagedEnd) != end {
						t.Errorf("block at %#x of %d bytes, end %v: %+v", x.addr, x.size, end, found)
					} else if end && c.Blocks[found[0].Suspect].Addr != x.addr {
						t.Errorf("block at %#x: the suspect is block %d", x.addr, found[0].Suspect)
					}
				}
			}
		})
	}
}

// TestBacktraces compares the call stacks in NuttX's headers with those that the program stored: two
// functions. The number of each block is none.
func TestBacktraces(t *testing.T) {
	for _, s := range images(t) {
		if s.kind != NuttX {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			p := s.run(t)
			m, program := p.open(t)
			heaps, err := Find(m, program, NuttX)
			if err != nil {
				t.Fatal(err)
			}
			var want []uint64
			for _, f := range program.Variables("system_alloc", "nx_tid") {
				want = append(want, f.Addr|1)
			}
			if strings.Contains(s.name, "backtrace") != (len(want) == 2) {
				t.Fatalf("the functions of the program: %#x", want)
			}
			h := Core(m, heaps)
			if len(h.Blocks) < 200 || h.Stacks != (len(want) > 0) {
				t.Errorf("%d blocks, with call stacks: %v", len(h.Blocks), h.Stacks)
			}
			for i := range h.Blocks {
				var got codec.Stack
				if err := (codec.Decoder{Word: m.Word}).Decode(&got, nil, h.Blob(i)); err != nil || !slices.Equal(got.PCs, want) {
					t.Errorf("block at %#x: %#x, want %#x; %v", h.Blocks[i].Addr, got.PCs, want, err)
				}
			}
		})
	}
}

// without removes memory from the image.
func (s *saved) without(t *testing.T, cut core.Map) {
	t.Helper()
	all := s.memory[0]
	ram, err := os.ReadFile(s.files[0])
	if err != nil {
		t.Fatal(err)
	}
	s.memory, s.files = nil, nil
	for _, r := range []core.Map{{Start: all.Start, End: cut.Start}, {Start: cut.End, End: all.End}} {
		name := filepath.Join(t.TempDir(), "ram")
		if err := os.WriteFile(name, ram[r.Start-all.Start:r.End-all.Start], 0o600); err != nil {
			t.Fatal(err)
		}
		s.memory, s.files = append(s.memory, r), append(s.files, name)
	}
}

// TestRegisteredHeaps removes heaps from the image: those that are registered are named, and nothing is proven.
func TestRegisteredHeaps(t *testing.T) {
	for _, s := range images(t) {
		if s.name != "esp-idf-cortex-m3" {
			continue
		}
		p := s.run(t)
		m, program := p.open(t)
		heaps, err := Find(m, program, MultiHeap)
		if err != nil || len(heaps) != 2 || !heaps[0].Proven() || !heaps[1].Proven() {
			t.Fatalf("%d heaps; %v", len(heaps), err)
		}
		for _, h := range heaps { // each in turn
			p := s.run(t)
			p.image.without(t, h.Ranges[0])
			m, program := p.open(t)
			rest, err := Find(m, program, MultiHeap)
			if err != nil || len(rest) != 1 || rest[0].Addr == h.Addr || rest[0].Proven() {
				t.Fatalf("without the heap at %#x: %+v; %v", h.Addr, rest, err)
			}
			if last := rest[0].Proof[len(rest[0].Proof)-1]; !strings.HasPrefix(last.Check, fmt.Sprintf("the heap from %#x to ", h.Addr)) {
				t.Errorf("without the heap at %#x: %+v", h.Addr, last)
			}
		}
		p = s.run(t)
		low, high := heaps[0].Ranges[0], heaps[1].Ranges[0]
		p.image.without(t, core.Map{Start: min(low.Start, high.Start), End: max(low.End, high.End)})
		m, program = p.open(t)
		var missing *MissingError
		if _, err := Find(m, program, MultiHeap); !errors.As(err, &missing) || missing.Start != low.Start && missing.Start != high.Start {
			t.Errorf("without both: %v", err)
		}
	}
}

// A block whose header was overwritten in front of its canary still begins behind the canary.
func TestHeaderBeforeCanary(t *testing.T) {
	for _, s := range images(t) {
		if !strings.HasPrefix(s.name, "esp-idf-poisoned") {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			p := s.run(t)
			m, program := p.open(t)
			heaps, err := Find(m, program, MultiHeap)
			if err != nil {
				t.Fatal(err)
			}
			cases, kept := 0, 0
			for i, x := range p.readTruth(t) {
				if i%10 != 0 {
					continue
				}
				for _, h := range heaps {
					k := h.block(x.addr)
					if k < 0 {
						continue
					}
					cases++
					m, program := p.open(t, patch{h.Blocks[k].start(), []byte("ABCD")})
					again, err := Find(m, program, MultiHeap)
					if err != nil {
						t.Fatal(err)
					}
					for _, h := range again {
						if k := h.block(x.addr); k >= 0 && h.Blocks[k].Addr == x.addr && h.Blocks[k].Trust == Damaged {
							kept++
						}
					}
					m.Close()
				}
			}
			if cases < 10 || kept < cases*9/10 {
				t.Errorf("%d of %d blocks begin behind their canary", kept, cases)
			}
		})
	}
}

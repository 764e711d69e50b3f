package alloc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// mutations counts the effects of damage on what is reported, beside the truth.
type mutations struct {
	runs, detected int
	leaks          int // runs in which damage is detected, but a block that is not leaked is called so
	silent         int // runs in which damage is not detected, but changes blocks, sizes or leaks
	lost           int // blocks of the program that are in no block any more
}

// mutable is a saved image whose bytes a test changes in place.
type mutable struct {
	*saved
	m       *core.Image
	program Program
	files   []*os.File
	truth   map[uint64]truth
	used    map[uint64]bool // before
	leaked  map[uint64]bool // before
	headers [][2]uint64     // address and size of headers and of links in free blocks
}

func mutableImage(t *testing.T, s system) *mutable {
	t.Helper()
	p := s.run(t)
	x := &mutable{saved: p.image, truth: map[uint64]truth{}, used: map[uint64]bool{}, leaked: map[uint64]bool{}}
	for _, b := range p.readTruth(t) {
		x.truth[b.addr] = b
	}
	x.m, x.program = p.open(t)
	for _, name := range p.image.files {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		x.files = append(x.files, f)
	}
	heaps, err := Find(x.m, x.program, s.kind)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heaps {
		for _, b := range h.Blocks {
			n := b.header()
			if b.State == Free || b.State == Cached {
				n += 2 * uint64(x.m.PointerSize())
			}
			x.headers = append(x.headers, [2]uint64{b.start(), n})
			if b.State == Used {
				x.used[b.Addr] = true
			}
		}
	}
	h := Core(x.m, heaps)
	for i, r := range x.m.FindLeaks(h, core.Roots{Data: x.program.Data}).Reach {
		if r == core.Leaked {
			x.leaked[h.Blocks[i].Addr] = true
		}
	}
	return x
}

// write replaces bytes of the image, and returns those before.
func (x *mutable) write(t *testing.T, addr uint64, data []byte) (before []byte) {
	for i, r := range x.memory {
		if addr >= r.Start && addr+uint64(len(data)) <= r.End {
			before = make([]byte, len(data))
			x.files[i].ReadAt(before, int64(addr-r.Start))
			if _, err := x.files[i].WriteAt(data, int64(addr-r.Start)); err != nil {
				t.Fatal(err)
			}
			return before
		}
	}
	t.Fatalf("%#x is not in the image", addr)
	return nil
}

// change is bytes that replace others.
type change struct {
	what  string
	addr  uint64
	bytes []byte
}

// damage returns random damage of one header, or of two that change places.
func (x *mutable) damage(r *rand.Rand) []change {
	i := r.IntN(len(x.headers))
	at, n := x.headers[i][0], x.headers[i][1]
	word := uint64(x.m.PointerSize())
	if n >= word && r.IntN(4) > 0 { // one word
		at += word * uint64(r.IntN(int(n/word)))
		n = word
	}
	now, _ := x.m.Bytes(at, n)
	b := bytes.Clone(now)
	switch kind := r.IntN(5); {
	case kind == 0 && i+1 < len(x.headers):
		next := x.headers[i+1]
		n := min(x.headers[i][1], next[1])
		a, _ := x.m.Bytes(x.headers[i][0], n)
		b, _ := x.m.Bytes(next[0], n)
		return []change{{"swap", x.headers[i][0], bytes.Clone(b)}, {"", next[0], bytes.Clone(a)}}
	case kind == 1:
		return []change{{"zero", at, make([]byte, n)}}
	case kind == 2 && n == word:
		v := word64(b) + []uint64{16, ^uint64(15)}[r.IntN(2)]
		put(b, v)
		return []change{{"16", at, b}}
	default:
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return []change{{"bit", at, b}}
	}
}

func word64(b []byte) uint64 {
	if len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return uint64(binary.LittleEndian.Uint32(b))
}

func put(b []byte, v uint64) {
	if len(b) == 8 {
		binary.LittleEndian.PutUint64(b, v)
	} else {
		binary.LittleEndian.PutUint32(b, uint32(v))
	}
}

// run damages the image once, and compares what is reported with the truth.
func (x *mutable) run(t *testing.T, r *rand.Rand, o *mutations) {
	list := x.damage(r)
	what := ""
	changed := false
	for i := range list {
		c := &list[i]
		what += fmt.Sprintf("%s at %#x: % x; ", c.what, c.addr, c.bytes)
		before := x.write(t, c.addr, c.bytes)
		changed = changed || !bytes.Equal(before, c.bytes)
		defer x.write(t, c.addr, before)
	}
	if !changed {
		return
	}
	o.runs++
	heaps, err := Find(x.m, x.program, x.kind)
	if err != nil {
		o.detected++
		return
	}
	detected, unproven, differs := false, false, ""
	covered := map[uint64]bool{}
	for _, h := range heaps {
		detected = detected || len(h.Damage) > 0
		unproven = unproven || !h.Proven()
		for i := range h.Blocks {
			b := &h.Blocks[i]
			size, known := x.truth[b.Addr]
			switch {
			case b.State != Used:
			case !x.used[b.Addr]:
				differs = fmt.Sprintf("a block at %#x", b.Addr)
			case known && size.size > b.Size:
				differs = fmt.Sprintf("the size of %#x, %d", b.Addr, b.Size)
			}
			if b.State == Used {
				covered[b.Addr] = true
			}
		}
	}
	for addr := range x.used {
		if covered[addr] {
			continue
		}
		o.lost++
		if !slices.ContainsFunc(heaps, func(h *Heap) bool { i := h.block(addr); return i >= 0 && h.Blocks[i].State == Used }) {
			differs = fmt.Sprintf("no block at %#x", addr)
		}
	}
	if detected || unproven {
		o.detected++
	} else if differs != "" {
		if o.silent++; o.silent <= 10 {
			t.Logf("silent: %s%s", what, differs)
		}
		return
	}
	if unproven { // no leaks are reported
		return
	}
	h := Core(x.m, heaps)
	for i, reach := range x.m.FindLeaks(h, core.Roots{Data: x.program.Data}).Reach {
		addr := h.Blocks[i].Addr
		if reach == core.Leaked && !x.truth[addr].leaked && !x.leaked[addr] {
			if !detected {
				o.silent++
				return
			}
			if o.leaks++; o.leaks < 4 {
				t.Logf("not leaked: %#x; %s", addr, what)
				for _, h := range heaps {
					for _, d := range h.Damage {
						t.Logf("  %#x %s", d.Addr, d.What)
					}
				}
			}
			return
		}
	}
}

// TestDamage flips bits, adds and subtracts 16, clears words and exchanges neighbours in headers and in links of free
// blocks of each saved image, at random. No block is reported as leaked by it, and no damage that changes
// what is reported stays undetected, but for a few that leave a heap as the allocator itself may leave it: a size that leads
// exactly to the end of the next block (as of a block that was allocated over both), and in picolibc a link of the
// last but one free block that becomes 0 (as if the last one was in use); in glibc, exchanged links of two free blocks, so
// that the list passes over others (as if these were allocated again: they are uncertain).
func TestDamage(t *testing.T) {
	list := images(t)
	runs := 60
	if cmdtest.Full() {
		runs = 100_000/len(list) + 1
	}
	results := make([]mutations, len(list))
	t.Run("images", func(t *testing.T) {
		for k, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				x := mutableImage(t, s)
				r := rand.New(rand.NewPCG(1, uint64(k)))
				var o mutations
				for o.runs < runs {
					x.run(t, r, &o)
				}
				results[k] = o
				t.Logf("%+v", o)
				if o.leaks > 0 || o.silent > 2+runs/1000 {
					t.Errorf("%+v", o)
				}
			})
		}
	})
	if !cmdtest.Full() || t.Failed() {
		return
	}
	table := "| allocator | images | runs | detected | false leaks | silent |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"
	for k := range kinds {
		var sum mutations
		n := 0
		for i, s := range list {
			if o := results[i]; s.kind == k {
				n++
				sum.runs, sum.detected, sum.leaks, sum.silent = sum.runs+o.runs, sum.detected+o.detected, sum.leaks+o.leaks, sum.silent+o.silent
			}
		}
		if n > 0 {
			table += fmt.Sprintf("| %v | %d | %d | %d | %d | %d |\n", k, n, sum.runs, sum.detected, sum.leaks, sum.silent)
		}
	}
	figures.Check(t, "../../FIGURES.md", "damaged heaps", table)
}

//go:build linux

package record

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// producer writes records into a ring as the library does.
type producer struct {
	m     *memory
	slot  *slot
	ring  []uint64
	head  uint32
	last  []uint64
	place map[string]uint8
}

// produce takes a slot.
func produce(m *memory, i int, pid, tid uint32, image uint64) *producer {
	s := &m.slots[i]
	if !s.state.CompareAndSwap(stateFree, stateFilling) {
		panic("the slot is taken")
	}
	s.pid, s.tid, s.image = pid, tid, image
	if n, _ := tally(&m.top); n <= i {
		c := uint32(i) + 1
		m.top.Store(c | c*ringTally>>ringTallyBits<<ringTallyBits)
	}
	s.state.Store(stateTaken)
	return &producer{m: m, slot: s, ring: m.ring(i), place: map[string]uint8{}}
}

func (p *producer) stamp() uint64 {
	if p.m.clock.kind == clockCount {
		return uint64(p.m.count.Add(1) - 1)
	}
	return cycles() & stampMask
}

// put writes a record whose stamp was read before.
func (p *producer) put(stamp uint64, kind, flags uint64, words ...uint64) {
	n := uint32(1 + len(words))
	for p.head+n+2*ringRecordMax-p.slot.tail.Load() > p.m.words {
		time.Sleep(50 * time.Microsecond)
	}
	at := p.head & (p.m.words - 1)
	first := stamp<<16 | flags<<4 | kind
	check := p.slot.image ^ uint64(p.slot.tid)<<32 ^ uint64(p.head)
	for _, w := range append(words, first) {
		check ^= w
	}
	p.ring[at] = first | check*ringCheck>>53<<5
	copy(p.ring[at+1:], words)
	p.head += n
	if at+n >= p.m.words {
		p.head = p.head / p.m.words * p.m.words
	}
	p.slot.again.Store(^p.head)
	p.slot.head.Store(p.head)
}

// stack returns flags and the words from word 2 on of an allocation.
func (p *producer) stack(size uint64, frames []uint64) (flags uint64, words []uint64) {
	key := fmt.Sprint(frames)
	if at, ok := p.place[key]; ok {
		return 0, []uint64{uint64(at)<<48 | size}
	}
	at := uint64(255)
	if len(p.place) < ringPlaces {
		at = uint64(len(p.place))
		p.place[key] = uint8(at)
	}
	kept := 0
	for kept < min(len(p.last), len(frames)) && p.last[kept] == frames[kept] {
		kept++
	}
	p.last = frames
	return ringFrames, append([]uint64{at<<48 | size, uint64(kept)<<16 | uint64(len(frames)-kept)}, frames[kept:]...)
}

func (p *producer) allocated(addr, size uint64, frames []uint64) {
	s := p.stamp()
	flags, words := p.stack(size, frames)
	p.put(s, kindAllocated, flags, append([]uint64{addr}, words...)...)
}

func (p *producer) freed(addr uint64) { p.put(p.stamp(), kindFreed, 0, addr) }

func (p *producer) moveEnds(addr, size uint64, frames []uint64) {
	s := p.stamp()
	flags, words := p.stack(size, frames)
	p.put(s, kindMoveEnds, flags, append([]uint64{addr}, words...)...)
}

// words returns text as whole words.
func words(s string) []uint64 {
	var list []uint64
	for len(s)%8 != 0 {
		s += "\x00"
	}
	for ; s != ""; s = s[8:] {
		var w uint64
		for i := range 8 {
			w |= uint64(s[i]) << (8 * i)
		}
		list = append(list, w)
	}
	return list
}

func (p *producer) image(pid, parent uint32, from uint64, name string) {
	p.put(p.stamp(), kindImage, 0, append([]uint64{uint64(parent)<<32 | uint64(pid), 8<<32 | uint64(len(name)), from}, words(name)...)...)
}

func (p *producer) module(base, start, end uint64, name string) {
	p.put(p.stamp(), kindModule, 0, append([]uint64{base, 1<<24 | uint64(len(name)), start - base, (end-start)<<3 | 5}, words(name)...)...)
}

// recording collects what a recorder writes.
type recording struct {
	mu    sync.Mutex
	files map[int]*bytes.Buffer
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func (r *recording) create(name string, _ bool) (io.WriteCloser, string, error) {
	pid, err := strconv.Atoi(name)
	if err != nil {
		return nil, "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files = map[int]*bytes.Buffer{}
	}
	r.files[pid] = new(bytes.Buffer)
	return nopCloser{r.files[pid]}, name, nil
}

func (r *recording) text(t *testing.T, pid int) string {
	t.Helper()
	z, err := zstd.NewReader(r.files[pid])
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// held is the live memory by call path. The key is the offsets of the frames.
type held map[string]callpathValue

type callpathValue struct{ blocks, bytes uint64 }

// dumps reads the dumps of a recording, by why, with codec/callpath alone.
func dumps(t *testing.T, text string) map[string]held {
	t.Helper()
	found := map[string]held{}
	var now held
	var line callpath.Line
	var names callpath.Names
	var h codec.Header
	type entry struct {
		id    callpath.ID
		value callpathValue
		to    held
	}
	var entries []entry
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.HasPrefix(l, "~h#"):
			if err := codec.ParseHeader(&h, []byte(l)); err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			if h.Verb == "begin" {
				now = held{}
				why, _ := h.Get("why")
				found[why] = now
			}
		case strings.HasPrefix(l, "~p#"):
			if err := line.Parse([]byte(l)); err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			var e callpath.Entry
			for line.Next(&e) {
				id := names.Add(&e.Path)
				if !e.Definition {
					entries = append(entries, entry{id, callpathValue{e.Live, e.Bytes}, now})
				}
			}
		}
	}
	for _, e := range entries {
		p := names.Path(names.Resolve(e.id), nil)
		key := fmt.Sprint(p.Base, p.Frames)
		v := e.to[key]
		e.to[key] = callpathValue{v.blocks + e.value.blocks, v.bytes + e.value.bytes}
	}
	return found
}

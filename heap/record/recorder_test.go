//go:build linux

package record

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// heap is the allocator of a program that a test plays: it hands out addresses that were
// freed last, to whichever thread comes next.
type heap struct {
	mu   sync.Mutex
	free []uint64
	top  uint64
}

func (h *heap) alloc() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.free); n > 0 {
		addr := h.free[n-1]
		h.free = h.free[:n-1]
		return addr
	}
	h.top += 16
	return h.top
}

func (h *heap) release(addr uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, addr)
}

const (
	moduleBase = 0x10000
	moduleEnd  = 0x20000
)

// stackOf returns one of 100 call paths, 60 of them in the module only.
func stackOf(r *rand.Rand) []uint64 {
	n := r.IntN(100)
	frames := []uint64{moduleBase + 0x100, moduleBase + 0x200 + uint64(n%7)*16}
	for i := range n % 11 {
		frames = append(frames, moduleBase+0x1000+uint64(n*100+i))
	}
	if n >= 60 {
		frames = append(frames, 0x7fff00000000+uint64(n))
	}
	return frames
}

// key returns the key that dumps has for a call path.
func key(frames []uint64) string {
	p := callpath.Path{}
	for _, f := range frames {
		if moduleBase <= f && f < moduleEnd {
			p.Frames = append(p.Frames, callpath.Frame{Value: f - moduleBase})
		} else {
			p.Frames = append(p.Frames, callpath.Frame{Value: f, Escaped: true})
		}
	}
	return fmt.Sprint(callpath.Whole, p.Frames)
}

type blockOf struct {
	addr, size uint64
	path       string
}

// storm plays a thread that allocates, frees blocks of all threads, and moves its own.
// What is live at its end goes to live.
func (p *producer) storm(h *heap, seed uint64, shared chan blockOf, n int) (live []blockOf) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		switch r.IntN(10) {
		case 0, 1, 2, 3, 4:
			frames := stackOf(r)
			b := blockOf{h.alloc(), r.Uint64N(1000), key(frames)}
			p.allocated(b.addr, b.size, frames)
			select {
			case shared <- b:
			default:
				live = append(live, b)
			}
		case 5, 6, 7, 8:
			select {
			case b := <-shared:
				p.freed(b.addr)
				h.release(b.addr)
			default:
			}
		case 9:
			if len(live) == 0 {
				continue
			}
			i := r.IntN(len(live))
			p.put(p.stamp(), kindMoveBegins, 0, live[i].addr)
			if r.IntN(3) == 0 {
				p.put(p.stamp(), kindMoveFailed, 0)
				continue
			}
			h.release(live[i].addr)
			frames := stackOf(r)
			live[i] = blockOf{h.alloc(), r.Uint64N(1000), key(frames)}
			p.moveEnds(live[i].addr, live[i].size, frames)
		}
	}
	return live
}

func sumOf(blocks []blockOf) held {
	sum := held{}
	for _, b := range blocks {
		v := sum[b.path]
		sum[b.path] = callpathValue{v.blocks + 1, v.bytes + b.size}
	}
	return sum
}

// newTest returns a recorder that runs, and a function that waits for its end.
func newTest(t *testing.T, c Config) (*Recorder, *recording, func() Result) {
	t.Helper()
	var rec recording
	r, err := New(c, rec.create)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan Result, 1)
	go func() { done <- r.Run(0) }()
	return r, &rec, func() Result {
		t.Helper()
		select {
		case got := <-done:
			r.Close()
			return got
		case <-time.After(time.Minute):
			t.Fatal("the recorder does not end")
			return Result{}
		}
	}
}

const testPID = 4194305 // above all PIDs of Linux, so that it is never one that runs

// TestStorm has threads that free each other's blocks, with small rings that fill, and
// holds what the recorder says is live against what the threads say.
func TestStorm(t *testing.T) {
	for _, clock := range []uint32{clockCount, clockCycles} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprint("clock=", clock, ",events=", events), func(t *testing.T) {
				if clock == clockCycles && (!haveCycles || !kernelUsesCycles()) {
					t.Skip("no cycle counter that the kernel relies on")
				}
				text, live := storm(t, clock, Config{Slots: 64, Words: 8192, Events: events})
				want := sumOf(live)
				if got := dumps(t, text)["exit"]; !maps.Equal(got, want) {
					t.Errorf("%d paths are live, want %d", len(got), len(want))
				}
				if len(want) < 90 {
					t.Errorf("only %d paths", len(want))
				}
				if !events {
					return
				}
				if got := replay(t, text); !maps.Equal(got, want) {
					t.Errorf("by events %d paths are live, want %d", len(got), len(want))
				}
			})
		}
	}
}

// storm records eight threads, and returns the recording and the live blocks at the end.
func storm(t *testing.T, clock uint32, c Config) (text string, live []blockOf) {
	var rec recording
	r, err := New(c, rec.create)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if clock == clockCount {
		r.memory.clock.kind, r.memory.clock.bits = clockCount, 32
	}
	done := make(chan struct{})
	var summaries []Summary
	var notes []string
	go func() {
		result := r.Run(0)
		summaries, notes = result.Processes, result.Notes
		close(done)
	}()
	h := heap{top: 1 << 20}
	shared := make(chan blockOf, 50)
	var mu sync.Mutex
	var wg sync.WaitGroup
	image := r.memory.now()
	first := produce(r.memory, 0, testPID, 1, image)
	first.image(testPID, 1, 0, "/bin/storm")
	first.module(moduleBase, moduleBase, moduleEnd, "/no/such/file")
	for i := range 8 {
		p := first
		if i > 0 {
			p = produce(r.memory, i, testPID, uint32(i+1), image)
		}
		wg.Go(func() {
			mine := p.storm(&h, uint64(i), shared, 20_000)
			mu.Lock()
			defer mu.Unlock()
			live = append(live, mine...)
		})
	}
	wg.Wait()
	close(shared)
	for b := range shared {
		live = append(live, b)
	}
	r.Ended(testPID)
	<-done
	if len(notes) > 0 || len(summaries) != 1 || strings.Contains(summaries[0].Text, ";") {
		t.Errorf("notes %q, summaries %+v", notes, summaries)
	}
	return rec.text(t, testPID), live
}

// replay returns the live blocks after the events of a recording.
func replay(t *testing.T, text string) held {
	t.Helper()
	paths := defined(t, text)
	live := map[uint64]blockOf{}
	var line callpath.Events
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "~v#") {
			continue
		}
		if err := line.Parse([]byte(strings.TrimSuffix(l, "\n"))); err != nil {
			t.Fatal(err)
		}
		for _, e := range line.List {
			if _, ok := live[e.Old]; !ok && (e.Kind == callpath.Freed || e.Kind == callpath.Moved) {
				t.Fatalf("%+v: its block is not live", e)
			}
			switch e.Kind {
			case callpath.Freed:
				delete(live, e.Old)
			case callpath.Moved:
				delete(live, e.Old)
				fallthrough
			case callpath.Allocated:
				live[e.Number] = blockOf{size: e.Size, path: paths[e.Path]}
			default:
				t.Fatalf("%+v", e)
			}
		}
	}
	return sumOf(slices.Collect(maps.Values(live)))
}

// defined returns the paths of a recording by name.
func defined(t *testing.T, text string) map[uint32]string {
	t.Helper()
	var names callpath.Names
	var line callpath.Line
	var ids []callpath.ID
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "~p#") {
			continue
		}
		if err := line.Parse([]byte(strings.TrimSuffix(l, "\n"))); err != nil {
			t.Fatal(err)
		}
		var e callpath.Entry
		for line.Next(&e) {
			ids = append(ids, names.Add(&e.Path))
		}
	}
	paths := map[uint32]string{}
	for _, id := range ids {
		p := names.Path(names.Resolve(id), nil)
		for n := range len(p.Frames) + 1 {
			outer := callpath.Path{Base: p.Base, Frames: p.Frames[:n]}
			paths[outer.Name()] = fmt.Sprint(p.Base, outer.Frames)
		}
	}
	return paths
}

// TestPeak holds the dump of the peak against a copy of the heap that was kept at each
// new peak.
func TestPeak(t *testing.T) {
	r, rec, wait := newTest(t, Config{Slots: 8, Words: 4096, AtPeak: true})
	p := produce(r.memory, 0, testPID, 1, 5)
	p.image(testPID, 1, 0, "/bin/peak")
	p.module(moduleBase, moduleBase, moduleEnd, "/no/such/file")
	random := rand.New(rand.NewPCG(3, 4))
	var live, atPeak []blockOf
	var bytes, peak uint64
	next := uint64(1 << 20)
	for i := range 20_000 {
		if grow := i < 6000 || i > 12_000 && i < 17_000; random.IntN(10) < 7 == grow || len(live) == 0 {
			frames := stackOf(random)
			b := blockOf{next, 1 + random.Uint64N(100), key(frames)}
			next += 16
			p.allocated(b.addr, b.size, frames)
			live = append(live, b)
			if bytes += b.size; bytes > peak {
				peak = bytes
				atPeak = append(atPeak[:0], live...)
			}
			continue
		}
		j := random.IntN(len(live))
		p.freed(live[j].addr)
		bytes -= live[j].size
		live[j] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	r.Ended(testPID)
	wait()
	got := dumps(t, rec.text(t, testPID))
	if !maps.Equal(got["peak"], sumOf(atPeak)) || len(got["peak"]) == 0 {
		t.Errorf("the dump of the peak has %d paths, want %d", len(got["peak"]), len(sumOf(atPeak)))
	}
	if !maps.Equal(got["exit"], sumOf(live)) {
		t.Error("the last dump differs")
	}
}

// TestDamagedRings has programs that write anything into the shared memory.
func TestDamagedRings(t *testing.T) {
	cmdtest.Long(t)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 300 {
		r, rec, wait := newTest(t, Config{Slots: 8, Words: 4096, Events: i%2 == 0, Sample: uint64(i % 3 * 100)})
		p := produce(r.memory, 0, testPID, 1, 5)
		p.image(testPID, 1, 0, "/bin/damaged")
		p.module(moduleBase, moduleBase, moduleEnd, "/no/such/file")
		for range 200 {
			p.allocated(16*random.Uint64N(100), random.Uint64N(1<<48), stackOf(random))
			p.freed(16 * random.Uint64N(100))
		}
		for range 50 {
			switch random.IntN(4) {
			case 0:
				p.put(p.stamp(), random.Uint64N(16), random.Uint64N(16), random.Uint64(), random.Uint64(), random.Uint64())
			case 1:
				p.ring[random.IntN(len(p.ring))] ^= 1 << random.IntN(64)
			case 2:
				p.ring[(p.head-uint32(random.IntN(100)))&(r.memory.words-1)] = random.Uint64() >> random.IntN(64)
			case 3:
				r.memory.slots[random.IntN(8)].head.Add(random.Uint32N(10))
			}
		}
		if i%10 == 0 {
			r.memory.slots[random.IntN(8)].head.Store(random.Uint32())
			r.memory.slots[random.IntN(8)].state.Store(random.Uint32())
			r.memory.header.words, r.memory.header.slots = 0, 1<<31
			r.memory.top.Store(random.Uint32())
		}
		r.Ended(testPID)
		wait()
		if rec.files[testPID] != nil {
			dumps(t, rec.text(t, testPID)) // every line can be read
		}
	}
}

// A program that damages its ring does not wait for btrecord once the ring is full.
func TestDamagedRingIsDrained(t *testing.T) {
	r, _, wait := newTest(t, Config{Slots: 8, Words: 4096})
	p := produce(r.memory, 0, testPID, 1, 5)
	p.image(testPID, 1, 0, "/bin/damaged")
	written := make(chan struct{})
	go func() {
		p.put(p.stamp(), 15, 0)
		for range 10_000 {
			p.freed(16)
		}
		close(written)
	}()
	select {
	case <-written:
	case <-time.After(time.Minute):
		t.Error("the program waits")
	}
	r.Ended(testPID)
	if got := wait(); got.Err == nil || !strings.Contains(got.Err.Error(), "a record of kind 15") || got.Processes[0].Err != nil {
		t.Errorf("%+v", got)
	}
}

// A recording that cannot be created is an error, and the program does not wait.
func TestNoOutput(t *testing.T) {
	r, err := New(Config{Slots: 8, Words: 4096}, func(string, bool) (io.WriteCloser, string, error) { return nil, "", fs.ErrPermission })
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		p := produce(r.memory, 0, testPID, 1, 5)
		p.image(testPID, 1, 0, "/bin/unwritable")
		for range 10_000 {
			p.freed(16)
		}
		r.Ended(testPID)
	}()
	result := r.Run(0)
	summaries, notes := result.Processes, result.Notes
	if len(summaries) != 1 || summaries[0].Err != fs.ErrPermission || len(notes) != 0 {
		t.Errorf("summaries %+v, notes %q", summaries, notes)
	}
}

// The last process may end while the recorder is closed.
func TestOverAfterClose(t *testing.T) {
	r, err := New(Config{Slots: 8, Words: 4096}, func(string, bool) (io.WriteCloser, string, error) { return nil, "", fs.ErrPermission })
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	r.Over()
}

// Times are since the start of the program, not since btrecord first saw it.
func TestTimesSinceTheStart(t *testing.T) {
	if !haveCycles || !kernelUsesCycles() {
		t.Skip("no cycle counter that the kernel relies on")
	}
	r, rec, wait := newTest(t, Config{Slots: 8, Words: 4096, Events: true})
	start, stamp := time.Now(), r.memory.now()
	time.Sleep(20 * time.Millisecond)
	p := produce(r.memory, 0, testPID, 1, stamp)
	p.image(testPID, 1, 0, "/bin/late")
	p.module(moduleBase, moduleBase, moduleEnd, "/no/such/file")
	p.allocated(1<<20, 64, stackOf(rand.New(rand.NewPCG(1, 2))))
	r.Ended(testPID)
	wait()
	m := regexp.MustCompile(`~h#begin 0 t=(\d+)`).FindStringSubmatch(rec.text(t, testPID))
	if m == nil {
		t.Fatal("no dump")
	}
	// The clock's rate is off by less than a tenth after the 2 ms that it is measured for.
	if us, _ := strconv.ParseInt(m[1], 10, 64); us < 18_000 || us > 2*time.Since(start).Microseconds() {
		t.Errorf("the last event was at %d µs, want 20,000 or a little more", us)
	}
}

// What a program writes over before the recorder reads it first is damage, and no other reason is given.
func TestDamageHasItsReason(t *testing.T) {
	for name, damage := range map[string]func(*Recorder, *producer){
		"lost events":                 func(_ *Recorder, p *producer) { p.slot.lost.Store(0xc0000000) },
		"lost events of threads":      func(r *Recorder, _ *producer) { r.memory.slotless.Store(0xc0000000) },
		"rings, none":                 func(r *Recorder, _ *producer) { r.memory.top.Store(0xff000000) },
		"rings, many":                 func(r *Recorder, _ *producer) { r.memory.top.Store(7 << 8) },
		"the PID of the first image":  func(r *Recorder, _ *producer) { r.memory.root.Store(1) },
		"the first record":            func(_ *Recorder, p *producer) { p.ring[2] ^= 1 << 40 },
		"the state of the only ring":  func(_ *Recorder, p *producer) { p.slot.state.Store(stateFilling) },
		"the thread of the only ring": func(_ *Recorder, p *producer) { p.slot.tid ^= 2 },
		"the stamp of a record":       func(r *Recorder, p *producer) { p.ring[0] ^= 1 << 60 },
		"the tail":                    func(_ *Recorder, p *producer) { p.slot.tail.Store(1000) },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := New(Config{Slots: 8, Words: 4096}, new(recording).create)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p := produce(r.memory, 0, testPID, 1, 5)
			r.memory.root.Store(testPID)
			p.image(testPID, 1, 0, "/bin/damaged")
			p.allocated(16, 100, nil)
			damage(r, p)
			r.Ended(testPID)
			if got := r.Run(0); got.Err == nil || !strings.Contains(got.Err.Error(), "the program wrote over shared memory") {
				t.Errorf("%v; %+v", got.Err, got)
			}
		})
	}
}

// No block is larger than the memory that the process had.
func TestLargeBlock(t *testing.T) {
	for size, damaged := range map[uint64]bool{1 << 32: false, 1 << 46: true} {
		r, err := New(Config{Slots: 8, Words: 4096}, new(recording).create)
		if err != nil {
			t.Fatal(err)
		}
		p := produce(r.memory, 0, uint32(os.Getpid()), 1, 5)
		r.memory.root.Store(uint32(os.Getpid()))
		p.image(uint32(os.Getpid()), 1, 0, "/bin/large")
		p.allocated(16, size, nil)
		r.Ended(os.Getpid())
		if got := r.Run(0); (got.Err != nil) != damaged {
			t.Errorf("%d bytes: %v", size, got.Err)
		}
		r.Close()
	}
}

//go:build linux

package record_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A ringReader is a recorder for tests: it keeps all records as they come, and orders
// them at the end. preload/ring.h describes what it reads.
type ringReader struct {
	path   string
	mem    []byte
	stop   chan struct{}
	done   chan error
	slots  []ringSlot
	recs   []ringRecord
	pause  atomic.Bool // reads nothing while it is set
	forget atomic.Bool // keeps no records
	read   int
	before int // events lost in slots that were freed
}

type ringConfig struct {
	slots, words, clock, children int
	sample                        uint64
	mode                          uint32
}

type ringSlot struct {
	pid, tid   uint32
	image      uint64
	tail       uint32
	last       []uint64
	places     [32][]uint64
	taken      bool
	generation int
	looked     time.Time
}

const (
	ringAllocated = 1 + iota
	ringFreed
	ringMoveBegins
	ringMoveEnds
	ringMoveFailed
	ringMoveFreed
	ringModule
	ringUnloaded
	ringImage
	_
	ringElsewhere
	ringExec
)

type ringRecord struct {
	kind, slot, generation int
	pid                    uint32
	image, stamp           uint64
	seq                    int
	addr, size             uint64
	stack                  []uint64 // innermost first
	end                    int
	words                  []uint64 // of other kinds
}

func newRing(t testing.TB, c ringConfig) *ringReader {
	t.Helper()
	if c.slots == 0 {
		c.slots = 256
	}
	if c.words == 0 {
		c.words = 32768
	}
	if c.mode == 0 {
		c.mode = 3
	}
	const slotAt = 4096
	align := func(n int) int { return (n + 65535) &^ 65535 }
	areaAt := align(slotAt + c.slots*256)
	area := align(8 * (c.words + 1088))
	f, err := os.CreateTemp("/dev/shm", "lwsbt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	t.Cleanup(func() { os.Remove(f.Name()) })
	size := areaAt + c.slots*area + 4<<20
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	r := &ringReader{path: f.Name(), mem: mem, slots: make([]ringSlot, c.slots), stop: make(chan struct{}), done: make(chan error, 1)}
	e := binary.NativeEndian
	copy(mem, "lwsbtrng")
	for at, v := range map[int]uint32{8: 8, 12: uint32(c.slots), 16: uint32(c.words), 20: slotAt, 40: uint32(c.clock),
		44: uint32(c.children), 56: uint32(os.Getpid()), 64: c.mode} {
		e.PutUint32(mem[at:], v)
	}
	e.PutUint64(mem[24:], uint64(areaAt))
	e.PutUint64(mem[32:], uint64(area))
	e.PutUint64(mem[48:], c.sample)
	e.PutUint64(mem[80:], uint64(areaAt+c.slots*area))
	go func() {
		for {
			select {
			case <-r.stop:
				r.done <- r.drain()
				return
			default:
			}
			if !r.pause.Load() {
				if err := r.drain(); err != nil {
					r.done <- err
					return
				}
				atomic.AddUint32(r.u32(132), 1)
			}
			time.Sleep(200 * time.Microsecond)
		}
	}()
	return r
}

func (r *ringReader) u32(at int) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[at])) }
func (r *ringReader) head(at int) uint64 { return binary.NativeEndian.Uint64(r.mem[at:]) }

func (r *ringReader) drain() error {
	e := binary.NativeEndian
	for i := range r.slots {
		s, at := &r.slots[i], 4096+i*256
		state := atomic.LoadUint32(r.u32(at))
		if state != 1 && state != 2 {
			continue
		}
		if !s.taken {
			*s = ringSlot{taken: true, generation: s.generation + 1, pid: e.Uint32(r.mem[at+4:]), tid: e.Uint32(r.mem[at+8:]),
				image: e.Uint64(r.mem[at+16:])}
		}
		head := atomic.LoadUint32(r.u32(at + 64))
		for s.tail != head {
			n, err := r.record(i, s)
			if err != nil {
				return fmt.Errorf("slot %d of process %d: word %d: %w", i, s.pid, s.tail, err)
			}
			words := e.Uint32(r.mem[16:])
			if s.tail%words+uint32(n) >= words {
				s.tail = s.tail/words*words + words
			} else {
				s.tail += uint32(n)
			}
		}
		atomic.StoreUint32(r.u32(at+128), s.tail)
		atomic.AddUint32(r.u32(at+136), 1)
		if atomic.LoadUint32(r.u32(at+132)) != 0 {
			syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(r.u32(at+136))), 1, 1, 0, 0, 0)
		}
		if (state == 2 || r.gone(s)) && atomic.LoadUint32(r.u32(at+64)) == s.tail {
			r.free(i, s)
		}
	}
	return nil
}

// free gives a slot back.
func (r *ringReader) free(i int, s *ringSlot) {
	at := 4096 + i*256
	r.before += int(atomic.LoadUint32(r.u32(at+68)) & 0xfffff)
	for _, f := range []int{64, 68, 72, 128, 132, 136} {
		atomic.StoreUint32(r.u32(at+f), 0)
	}
	s.taken = false
	atomic.StoreUint32(r.u32(at), 0)
}

// gone reports whether the process of a slot is gone, looked at now and then.
func (r *ringReader) gone(s *ringSlot) bool {
	if time.Since(s.looked) < 100*time.Millisecond {
		return false
	}
	s.looked = time.Now()
	return syscall.Kill(int(s.pid), 0) == syscall.ESRCH
}

// record reads a record of a slot, and returns the number of its words.
func (r *ringReader) record(i int, s *ringSlot) (int, error) {
	words := binary.NativeEndian.Uint32(r.mem[16:])
	at := int(r.head(24)) + i*int(r.head(32)) + int(s.tail%words)*8
	w := func(n int) uint64 { return r.head(at + n*8) }
	rec := ringRecord{kind: int(w(0) & 15), slot: i, generation: s.generation, pid: s.pid, image: s.image, stamp: w(0) >> 16, seq: len(r.recs)}
	flags, n := w(0)>>4&1, 2
	switch rec.kind {
	case ringAllocated, ringMoveEnds:
		rec.addr, rec.size = w(1), w(2)&(1<<48-1)
		place := int(w(2) >> 48 & 255)
		n = 3
		if flags&1 != 0 {
			more, kept := int(w(3)&0xffff), int(w(3)>>16&0xffff)
			rec.end = int(w(3) >> 32 & 255)
			if more+kept > 1024 || kept > len(s.last) || place > 31 && place != 255 || rec.end > 3 {
				return 0, fmt.Errorf("%d and %d frames of %d, place %d, end %d", kept, more, len(s.last), place, rec.end)
			}
			last := slices.Clone(s.last[:kept])
			for k := range more {
				last = append(last, w(4+k))
			}
			s.last = last
			if place < 32 {
				s.places[place] = last
			}
			n += 1 + more
			rec.stack = slices.Clone(last)
		} else {
			if place > 31 || s.places[place] == nil {
				return 0, fmt.Errorf("place %d has no stack", place)
			}
			rec.stack = slices.Clone(s.places[place])
		}
		slices.Reverse(rec.stack)
	case ringFreed, ringMoveBegins:
		rec.addr = w(1)
	case ringMoveFailed, ringMoveFreed, ringUnloaded:
		n = 1
	case ringModule:
		n = 3 + 2*int(w(2)>>24&0xff) + (int(w(2)&0xffff)+7)/8 + (int(w(2)>>16&0xff)+7)/8
	case ringImage, ringExec:
		n = 4 + (int(w(2)&0xffff)+7)/8
	default:
		return 0, fmt.Errorf("kind %d", rec.kind)
	}
	check := s.image ^ uint64(s.tid)<<32 ^ uint64(s.tail) ^ w(0)&^(2047<<5)
	for k := 1; k < n; k++ {
		check ^= w(k)
	}
	if check *= 0x9e3779b97f4a7c15; check>>53 != w(0)>>5&2047 {
		return 0, fmt.Errorf("kind %d: check value %#x, want %#x", rec.kind, w(0)>>5&2047, check>>53)
	}
	for k := range n {
		if rec.kind >= ringModule {
			rec.words = append(rec.words, w(k))
		}
	}
	r.read++
	if !r.forget.Load() {
		r.recs = append(r.recs, rec)
	}
	return n, nil
}

// end returns the records in order, once the program is through.
func (r *ringReader) end(t testing.TB) []ringRecord {
	t.Helper()
	close(r.stop)
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
	// In a ring a stamp counts no less than the one before.
	type ring struct{ slot, generation int }
	latest := map[ring]uint64{}
	for i := range r.recs {
		k := ring{r.recs[i].slot, r.recs[i].generation}
		latest[k] = max(latest[k], r.recs[i].stamp)
		r.recs[i].stamp = latest[k]
	}
	before := func(r ringRecord) int {
		if r.kind == ringFreed || r.kind == ringMoveBegins {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.recs, func(a, b ringRecord) int {
		if a.slot == b.slot && a.generation == b.generation {
			return cmp.Compare(a.seq, b.seq)
		}
		return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(before(a), before(b)), cmp.Compare(a.seq, b.seq))
	})
	mem := r.mem
	t.Cleanup(func() { syscall.Munmap(mem) })
	return r.recs
}

func (r *ringReader) lost() (n int) {
	n = int(atomic.LoadUint32(r.u32(72))&0xfffff) + r.before
	for i := range r.slots {
		n += int(atomic.LoadUint32(r.u32(4096+i*256+68)) & 0xfffff)
	}
	return n
}

type ringBlock struct {
	size  uint64
	stack []uint64
}

type ringProcess struct {
	pid                                  uint32
	live                                 map[uint64]ringBlock
	allocs, frees, moves, unknown, twice int
	bytes                                uint64
	modules                              map[uint64]string
	bases                                map[string]uint64
	image                                []uint64
	ends                                 [4]int
	deepest                              int
}

// replay returns what the events of each image leave.
func replayRing(t testing.TB, recs []ringRecord) map[uint64]*ringProcess {
	t.Helper()
	all := map[uint64]*ringProcess{}
	type ring struct{ slot, generation int }
	moving := map[ring]*ringBlock{}
	old := map[ring]uint64{}
	for _, r := range recs {
		p := all[r.image]
		if p == nil {
			p = &ringProcess{pid: r.pid, live: map[uint64]ringBlock{}, modules: map[uint64]string{}, bases: map[string]uint64{}}
			all[r.image] = p
			if r.kind != ringImage {
				t.Errorf("process %d: the first record has kind %d", r.pid, r.kind)
			}
		}
		k := ring{r.slot, r.generation}
		add := func() {
			if _, ok := p.live[r.addr]; ok {
				p.twice++
			}
			p.live[r.addr] = ringBlock{r.size, r.stack}
			p.bytes += r.size
			p.ends[r.end]++
			p.deepest = max(p.deepest, len(r.stack))
		}
		switch r.kind {
		case ringAllocated:
			p.allocs++
			add()
		case ringFreed:
			if _, ok := p.live[r.addr]; !ok {
				p.unknown++
			} else {
				p.frees++
			}
			delete(p.live, r.addr)
		case ringMoveBegins:
			if b, ok := p.live[r.addr]; ok {
				moving[k], old[k] = &b, r.addr
			} else {
				p.unknown++
				moving[k] = nil
			}
			delete(p.live, r.addr)
		case ringMoveEnds:
			p.moves++
			add()
		case ringMoveFailed:
			if b := moving[k]; b != nil {
				p.live[old[k]] = *b
			}
		case ringModule:
			id, segments := int(r.words[2]>>16&255), int(r.words[2]>>24&255)
			text := bytes.Buffer{}
			for _, w := range r.words[3+2*segments+(id+7)/8:] {
				binary.Write(&text, binary.NativeEndian, w)
			}
			name := text.String()[:r.words[2]&0xffff]
			p.modules[r.words[1]+r.words[3]] = name
			p.bases[filepath.Base(name)] = r.words[1]
		case ringImage:
			p.image = r.words
		}
	}
	return all
}

// only returns the one process that there is.
func only(t testing.TB, all map[uint64]*ringProcess) *ringProcess {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("%d processes, want 1", len(all))
	}
	for _, p := range all {
		return p
	}
	return nil
}

func (p *ringProcess) consistent(t testing.TB) {
	t.Helper()
	if p.twice != 0 || p.unknown != 0 {
		t.Errorf("process %d: %d allocations at live addresses, %d frees of unknown ones", p.pid, p.twice, p.unknown)
	}
}

// ringLibrary builds the library.
func ringLibrary(t testing.TB, cc string, flags ...string) string {
	t.Helper()
	command := strings.Fields(cc)
	cmdtest.Need(t, command[0])
	path := filepath.Join(programs, "liblwsbt-"+strings.NewReplacer(" ", "_", "/", "_").Replace(cc+strings.Join(flags, ""))+".so")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	files, err := filepath.Glob("preload/*.c")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, f := range []string{"mips", "arm", "thumb", "riscv", "ppc", "s390x", "functions"} {
		files = append(files, "../../device/src/capture_"+f+".c")
	}
	args := slices.Concat(command[1:], strings.Fields("-std=gnu99 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec "+
		"-fno-omit-frame-pointer -fasynchronous-unwind-tables -D_FILE_OFFSET_BITS=64 -DLWSBT_IN_CODE=lwsbt_in_code -Wall -Wextra -Werror "+
		"-I../../device/include -I../../device/src -Ipreload -o"), []string{path}, flags, files, strings.Fields("-static-libgcc -Wl,-z,now -Wl,--eh-frame-hdr -ldl -lpthread"))
	if out, err := exec.Command(command[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func ringProgram(t testing.TB, cc, source string, flags ...string) string {
	t.Helper()
	command := strings.Fields(cc)
	cmdtest.Need(t, command[0])
	path := filepath.Join(programs, strings.NewReplacer(" ", "_", "/", "_").Replace(cc+source+strings.Join(flags, "")))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	args := slices.Concat(command[1:], []string{"-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", path, source}, flags)
	if out, err := exec.Command(command[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// runRing runs a program with the library, under a timeout. Its own output and end are
// returned.
func runRing(t testing.TB, library string, r *ringReader, env []string, stdin string, args ...string) (string, error) {
	t.Helper()
	limit := time.Minute
	switch {
	case cmdtest.All():
		limit = 20 * time.Minute
	case cmdtest.Full():
		limit = 5 * time.Minute
	}
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, errs bytes.Buffer
	c.Env = append(os.Environ(), env...)
	if r != nil {
		c.Env = append(c.Env, "LWSBT_RING="+r.path)
		if library != "" {
			c.Env = append(c.Env, "LD_PRELOAD="+library)
		}
	}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
	c.WaitDelay = time.Second
	err := c.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v: hangs\n%s", args, errs.String())
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String() + errs.String(), err
}

func sigmas(got, want, variance float64) float64 { return math.Abs(got-want) / math.Sqrt(variance) }

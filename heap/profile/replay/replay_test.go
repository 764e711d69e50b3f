package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// testPaths returns n call paths of one address each.
func testPaths(n int) (paths []profile.Path) {
	var b profile.Builder
	for i := range n {
		paths = append(paths, b.Path([]symbol.Addr{{PC: uint64(i)}}))
	}
	return paths
}

// model is a replay of 5 call paths that knows every block.
type model struct {
	live            map[uint64]modelBlock
	freed           map[uint64]bool
	unknown, double int64
	best            uint64 // bytes at the peak
	bestTime        time.Duration
	atPeak, atTime  [5]profile.Value
	liveThen        *profile.Dump // of the Replay at that time
}

type modelBlock struct {
	path int
	size uint64
}

// sums returns the live blocks by path, and the sum of their bytes.
func (m *model) sums() (all [5]profile.Value, bytes uint64) {
	for _, b := range m.live {
		all[b.path].Add(profile.Value{Bytes: b.size, Count: 1})
		bytes += b.size
	}
	return all, bytes
}

func (m *model) allocate(addr uint64, b modelBlock) {
	m.live[addr] = b
	delete(m.freed, addr)
}

// free reports whether a block was live.
func (m *model) free(addr uint64) bool {
	_, there := m.live[addr]
	switch {
	case there:
		m.freed[addr] = true
	case m.freed[addr]:
		m.double++
	default:
		m.unknown++
	}
	delete(m.live, addr)
	return there
}

// Against a replay that keeps every moment.
func TestReplayAgainstAllMoments(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		paths := testPaths(5)
		at := time.Duration(rng.IntN(2000))
		r := NewReplay()
		m := &model{live: map[uint64]modelBlock{}, freed: map[uint64]bool{}}
		for now := time.Duration(1); now < 2000; now++ {
			if now-1 <= at {
				m.atTime, _ = m.sums()
				m.liveThen = r.Live(at)
			}
			addr, b := uint64(1+rng.IntN(40)), modelBlock{rng.IntN(5), uint64(1 + rng.IntN(100))}
			if _, there := m.live[addr]; there || rng.IntN(20) == 0 {
				if got, want := r.Add(Event{Kind: Freed, Addr: addr, Time: now}), m.free(addr); got != want {
					t.Fatalf("seed %d, %d: a free was %v, want %v", seed, now, got, want)
				}
			} else {
				r.Add(Event{Path: paths[b.path], Addr: addr, Bytes: b.size, Time: now})
				m.allocate(addr, b)
			}
			if all, bytes := m.sums(); bytes > m.best {
				m.best, m.bestTime, m.atPeak = bytes, now, all
			}
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { m.compare(t, r, paths) })
	}
}

// compare compares what r says with the model.
func (m *model) compare(t *testing.T, r *Replay, paths []profile.Path) {
	end, _ := m.sums()
	for name, c := range map[string]struct {
		d    *profile.Dump
		want [5]profile.Value
	}{"peak": {r.Peak(), m.atPeak}, "end": {r.End(), end}, "at": {m.liveThen, m.atTime}, "at a time after the end": {r.Live(1 << 40), end}} {
		for i, path := range paths {
			if got := c.d.Value(path); got != c.want[i] || !c.d.Complete() {
				t.Errorf("%s, path %d: %v, want %v", name, i, got, c.want[i])
			}
		}
	}
	if s := r.Totals(); s.Peak.Bytes != m.best || s.PeakTime != m.bestTime || s.UnknownFrees != m.unknown || s.DoubleFrees != m.double || s.Events != 1999 {
		t.Errorf("%+v; want %+v", s, m)
	}
}

func TestMoves(t *testing.T) {
	path := testPaths(1)[0]
	var r Replay
	for _, e := range []Event{
		{Addr: 0x10, Bytes: 8},
		{Addr: 0x20, Bytes: 16},
		{Kind: Freed, Addr: 0x10},
		{Addr: 0x30, Bytes: 1},
		{Kind: Freed, Addr: 0x20},
		{Kind: Moved, Old: 0x30, Addr: 0x40, Bytes: 5},
		{Kind: Moved, Old: 0x40, Addr: 0x40, Bytes: 9},
	} {
		e.Path = path
		r.Add(e)
	}
	s := r.Totals()
	if s.Live != (profile.Value{Bytes: 9, Count: 1}) || s.Lost+s.UnknownFrees+s.DoubleFrees != 0 {
		t.Errorf("%+v", s)
	}
	if r.Ever().Total != (profile.Value{Bytes: 8 + 16 + 1 + 5 + 9, Count: 5}) {
		t.Errorf("ever allocated: %v", r.Ever().Total)
	}
	r.Add(Event{Kind: Freed, Addr: 0x40, Boot: 1})
	if s := r.Totals(); s.Live != (profile.Value{}) || r.End().Total != (profile.Value{}) || s.UnknownFrees != 1 {
		t.Errorf("after a boot: %+v", s)
	}
}

// An event of an unknown kind, with no path, is an allocation.
func TestUnknownKind(t *testing.T) {
	var r Replay
	r.Add(Event{Kind: 77})
	if r.End().Total.Count != 1 {
		t.Error("a replay of one event", r.Totals())
	}
}

// Blocks with numbers, of which some live long and some numbers have no event.
func TestNumbered(t *testing.T) {
	path := testPaths(1)[0]
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var r Replay
		sizes := map[uint64]uint64{}
		var long, short []uint64
		var next, bytes uint64
		var unknown int64
		free := func(from *[]uint64) {
			i := rng.IntN(len(*from))
			n := (*from)[i]
			(*from)[i] = (*from)[len(*from)-1]
			*from = (*from)[:len(*from)-1]
			if !r.Add(Event{Kind: Freed, Addr: n, Numbered: true}) {
				t.Fatalf("seed %d: number %d of %d is not live", seed, n, next)
			}
			bytes -= sizes[n]
			delete(sizes, n)
			if rng.IntN(100) == 0 {
				unknown++
				r.Add(Event{Kind: Freed, Addr: n, Numbered: true})
			}
		}
		for range 400_000 {
			switch {
			case rng.IntN(3) == 0 && len(short) > 0:
				free(&short)
			case rng.IntN(50) == 0 && len(long) > 0:
				free(&long)
			default:
				if rng.IntN(5000) == 0 {
					next += uint64(rng.IntN(200_000))
				}
				size := uint64(1 + rng.IntN(1000))
				r.Add(Event{Addr: next, Numbered: true, Bytes: size, Path: path})
				sizes[next] = size
				if bytes += size; rng.IntN(30) == 0 {
					long = append(long, next)
				} else {
					short = append(short, next)
				}
				next++
			}
		}
		s := r.Totals()
		if want := (profile.Value{Bytes: bytes, Count: uint64(len(sizes))}); s.Live != want || r.End().Total != want {
			t.Errorf("seed %d: %+v and %+v live, want %+v", seed, s.Live, r.End().Total, want)
		}
		if s.UnknownFrees+s.DoubleFrees != unknown || s.DoubleFrees == 0 || s.Lost != 0 {
			t.Errorf("seed %d: %d unknown and %d double frees, want %d of both; %d lost", seed, s.UnknownFrees, s.DoubleFrees, unknown, s.Lost)
		}
		for range r.Blocks() {
			t.Fatal("a number is no address")
		}
	}
}

// A number and an address may be equal.
func TestNumberAndAddress(t *testing.T) {
	path := testPaths(1)[0]
	var r Replay
	r.Add(Event{Addr: 7, Numbered: true, Bytes: 1, Path: path})
	r.Add(Event{Addr: 7, Bytes: 2, Path: path})
	if r.Add(Event{Kind: Freed, Addr: 8}) || !r.Add(Event{Kind: Freed, Addr: 7}) || r.Add(Event{Kind: Freed, Addr: 7}) {
		t.Error("frees by address")
	}
	if !r.Add(Event{Kind: Freed, Addr: 7, Numbered: true}) || r.Add(Event{Kind: Freed, Addr: 7, Numbered: true}) || r.Add(Event{Kind: Freed, Addr: 9, Numbered: true}) {
		t.Error("frees by number")
	}
	if s := r.Totals(); s.DoubleFrees != 2 || s.UnknownFrees != 2 || s.Live.Count != 0 {
		t.Errorf("%+v", s)
	}
}

// Keep keeps n to 2n moments of each boot at equal intervals, with what is live then, however long it is.
func TestKeep(t *testing.T) {
	b := profile.NewBuilder(10)
	path := b.Path([]symbol.Addr{{PC: 1}})
	for _, events := range []int{1, 100, 1000, 123456} {
		r := NewReplay()
		r.Keep(10)
		for boot := 1; boot <= 2; boot++ {
			for i := range uint64(events) { // one block each millisecond
				r.Add(Event{Boot: boot, Time: time.Duration(i) * time.Millisecond, Addr: i, Numbered: true, Bytes: 1, Path: path})
			}
		}
		counts := map[int]int{}
		var before *profile.Dump
		for i, d := range r.Moments() {
			counts[d.Boot]++
			live := uint64(d.Time/time.Millisecond) + 1
			if d.Index != i || d.Total.Bytes != live || before != nil && before.Boot == d.Boot && before.Time >= d.Time {
				t.Fatalf("%d events, moment %d of boot %d at %v: %d bytes, want %d", events, d.Index, d.Boot, d.Time, d.Total.Bytes, live)
			}
			before = d
		}
		if events > 10 && (counts[1] < 10 || counts[1] > 21) || counts[1] != counts[2] || len(counts) != 2 {
			t.Errorf("%d events: %v moments", events, counts)
		}
	}
}

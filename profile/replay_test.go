package profile

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/symbol"
)

// testPaths returns n call paths of one address each.
func testPaths(n int) (paths []Path) {
	var b Builder
	for i := range n {
		paths = append(paths, b.Path([]symbol.Addr{bare(uint64(i))}))
	}
	return paths
}

// Against a replay that keeps every moment.
func TestReplayAgainstAllMoments(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		paths := testPaths(5)
		at := time.Duration(rng.IntN(2000))
		r := NewReplay(at, 1<<40)
		type blk struct {
			path int
			size uint64
		}
		live := map[uint64]blk{}
		var unknown, double int64
		freed := map[uint64]bool{}
		var best uint64
		var bestTime time.Duration
		var atPeak, atTime [5]Value
		sums := func() (all [5]Value, bytes uint64) {
			for _, b := range live {
				all[b.path].Add(Value{b.size, 1})
				bytes += b.size
			}
			return all, bytes
		}
		for now := time.Duration(1); now < 2000; now++ {
			if now-1 <= at {
				atTime, _ = sums()
			}
			addr := uint64(1 + rng.IntN(40))
			size, path := uint64(1+rng.IntN(100)), rng.IntN(5)
			switch _, there := live[addr]; {
			case there || rng.IntN(20) == 0:
				if ok := r.Add(Event{Kind: Freed, Addr: addr, Time: now}); ok != there {
					t.Fatalf("seed %d, %d: a free was %v, want %v", seed, now, ok, there)
				}
				switch {
				case there:
					freed[addr] = true
				case freed[addr]:
					double++
				default:
					unknown++
				}
				delete(live, addr)
			default:
				r.Add(Event{Path: paths[path], Addr: addr, Bytes: size, Time: now})
				live[addr] = blk{path, size}
				delete(freed, addr)
			}
			if all, bytes := sums(); bytes > best {
				best, bestTime, atPeak = bytes, now, all
			}
		}
		end, _ := sums()
		for i, path := range paths {
			for _, c := range []struct {
				name string
				d    *Dump
				want Value
			}{{"peak", r.Peak(), atPeak[i]}, {"end", r.End(), end[i]}, {"at", r.At(0), atTime[i]}, {"at a time after the end", r.At(1), end[i]}} {
				if got := c.d.Value(path); got != c.want || !c.d.Complete() {
					t.Fatalf("seed %d, %s, path %d: %v, want %v", seed, c.name, i, got, c.want)
				}
			}
		}
		if s := r.Totals(); s.Peak.Bytes != best || s.PeakTime != bestTime || s.UnknownFrees != unknown || s.DoubleFrees != double || s.Events != 1999 {
			t.Fatalf("seed %d: %+v; want peak %d at %d, %d unknown, %d double", seed, s, best, bestTime, unknown, double)
		}
	}
}

func TestTemporary(t *testing.T) {
	path := testPaths(1)[0]
	var r Replay
	for _, e := range []Event{
		{Addr: 0x10, Bytes: 8, Time: 100, Thread: 1}, // temporary, though thread 2 is between
		{Addr: 0x20, Bytes: 16, Time: 110, Thread: 2},
		{Kind: Freed, Addr: 0x10, Time: 120, Thread: 1},
		{Addr: 0x30, Bytes: 1, Time: 130, Thread: 2},
		{Kind: Freed, Addr: 0x20, Time: 140, Thread: 2}, // not: 0x30 came after it
		{Kind: Moved, Old: 0x30, Addr: 0x40, Bytes: 5, Time: 150, Thread: 2},
		{Kind: Moved, Old: 0x40, Addr: 0x40, Bytes: 9, Time: 160, Thread: 2},
	} {
		e.Path = path
		e.Time *= time.Second
		r.Add(e)
	}
	s := r.Totals()
	if s.Temporary != (Value{8, 1}) || s.Live != (Value{9, 1}) || s.Moves != 2 || s.Allocations != 3 || s.Frees != 2 || s.Lost+s.UnknownFrees+s.DoubleFrees != 0 {
		t.Errorf("%+v", s)
	}
	n := 0
	for p, c := range r.Paths() {
		if n++; p != path || c.Freed != 4 || c.Lifetime != 20+30+20+10 || c.Total.Count != 5 || c.Max != (Value{24, 2}) {
			t.Errorf("%+v", c)
		}
	}
	if n != 1 {
		t.Errorf("%d call paths", n)
	}
	if r.Ever().Total != (Value{8 + 16 + 1 + 5 + 9, 5}) {
		t.Errorf("ever allocated: %v", r.Ever().Total)
	}
	r.Add(Event{Kind: Freed, Addr: 0x40, Boot: 1})
	if s := r.Totals(); s.Live != (Value{}) || r.End().Total != (Value{}) || s.UnknownFrees != 1 {
		t.Errorf("after a boot: %+v", s)
	}
}

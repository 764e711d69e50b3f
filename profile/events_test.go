package profile

import (
	"math/rand/v2"
	"testing"
)

// Against a replay that keeps every moment.
func TestEventsAgainstAllMoments(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := &Profile{}
		var ids []PathID
		for i := range 5 {
			l, _ := p.Location(uint64(i), 0)
			id, _ := p.Path([]LocationID{l})
			ids = append(ids, id)
		}
		e := p.NewEvents()
		watch := uint64(rng.IntN(2000))
		e.WatchAt(watch)
		type blk struct {
			path int
			size uint64
		}
		live := map[uint64]blk{}
		var unknown, double int64
		freed := map[uint64]bool{}
		var best, bestTime uint64
		var atPeak, atWatch [5]Value
		sums := func() (all [5]Value, bytes uint64) {
			for _, b := range live {
				all[b.path].Add(Value{b.size, 1})
				bytes += b.size
			}
			return all, bytes
		}
		for now := uint64(1); now < 2000; now++ {
			if now-1 <= watch {
				atWatch, _ = sums()
			}
			addr := uint64(1 + rng.IntN(40))
			size, path := uint64(1+rng.IntN(100)), rng.IntN(5)
			switch _, there := live[addr]; {
			case there || rng.IntN(20) == 0:
				e.Free(addr, now, 0)
				if !there {
					if freed[addr] {
						double++
					} else {
						unknown++
					}
				}
				delete(live, addr)
				if there {
					freed[addr] = true
				}
			default:
				e.Alloc(ids[path], addr, size, now, 0)
				live[addr] = blk{path, size}
				delete(freed, addr)
			}
			if all, bytes := sums(); bytes > best {
				best, bestTime, atPeak = bytes, now, all
			}
		}
		end, _ := sums()
		for i, id := range ids {
			for _, c := range []struct {
				name string
				d    *Dump
				want Value
			}{{"peak", e.AtPeak(), atPeak[i]}, {"end", e.AtEnd(), end[i]}, {"at", e.At(), atWatch[i]}} {
				if got := c.d.Value(id); got != c.want {
					t.Fatalf("seed %d, %s, path %d: %v, want %v", seed, c.name, i, got, c.want)
				}
			}
		}
		if e.Peak.Bytes != best || e.PeakTime != bestTime || e.UnknownFrees != unknown || e.DoubleFrees != double {
			t.Fatalf("seed %d: peak %d at %d, %d unknown, %d double; want %d at %d, %d, %d", seed, e.Peak.Bytes, e.PeakTime, e.UnknownFrees, e.DoubleFrees, best, bestTime, unknown, double)
		}
	}
}

func TestTemporary(t *testing.T) {
	p := &Profile{}
	l, _ := p.Location(1, 0)
	id, _ := p.Path([]LocationID{l})
	e := p.NewEvents()
	e.Alloc(id, 0x10, 8, 100, 1) // temporary, though thread 2 is between
	e.Alloc(id, 0x20, 16, 110, 2)
	e.Free(0x10, 120, 1)
	e.Alloc(id, 0x30, 1, 130, 2)
	e.Free(0x20, 140, 2) // not: 0x30 came after it
	e.Move(id, 0x30, 0x40, 5, 150, 2)
	e.Move(id, 0x40, 0x40, 9, 160, 2)
	if e.Temporary != (Value{8, 1}) || e.Live != (Value{9, 1}) || e.Moves != 2 || e.Lost+e.UnknownFrees+e.DoubleFrees != 0 {
		t.Errorf("%+v", e)
	}
	if s := e.Path(id); s.Freed != 4 || s.Lifetime != 20+30+20+10 || s.Total.Count != 5 {
		t.Errorf("%+v", s)
	}
	e.Boot()
	if e.Live != (Value{}) || e.AtEnd().Total != (Value{}) {
		t.Errorf("live after a boot: %v", e.Live)
	}
}

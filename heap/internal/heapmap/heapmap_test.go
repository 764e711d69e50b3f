package heapmap

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// The sums are those of a map of single bytes.
func TestMapBlocksByBytes(t *testing.T) {
	const size, start, least = 2000, 0x1000, 24
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		var bytes [size]bool
		var blocks []replay.Block
		for range random.IntN(40) {
			a, n := random.Uint64N(size), random.Uint64N(120)
			blocks = append(blocks, replay.Block{Addr: start + a, Bytes: n})
			for i := a; i < min(a+n, size); i++ {
				bytes[i] = true
			}
		}
		var used, free, largest, gap uint64
		holes := 0
		end := func() {
			if gap >= least {
				holes, free, largest = holes+1, free+gap, max(largest, gap)
			}
			gap = 0
		}
		// A block of no bytes ends a hole, too.
		empty := map[uint64]bool{}
		for _, b := range blocks {
			empty[b.Addr-start] = true
		}
		for i, taken := range bytes {
			switch {
			case taken:
				used++
				end()
			case empty[uint64(i)]:
				end()
				gap = 1
			default:
				gap++
			}
		}
		end()
		slices.SortFunc(blocks, byAddress)
		m := &Map{Regions: regions{{Start: start, Length: size}}, blocks: blocks, LeastHole: least}
		m.find(nil)
		if m.Used != used || m.Free != free || m.Largest != largest || len(m.holes) != holes || m.Count != len(blocks) || m.Outside != 0 {
			t.Fatalf("round %d: used %d, free %d, largest %d, %d holes, %d blocks; want %d, %d, %d, %d, %d", round, m.Used, m.Free, m.Largest, len(m.holes), m.Count,
				used, free, largest, holes, len(blocks))
		}
		if n := len(m.Cells(m.Regions[0], 64)); n != 64 {
			t.Fatalf("%d cells", n)
		}
	}
}

// Addresses up to the last, sizes up to the largest, and many ranges do not overflow.
func TestMapBlocksAtTheEnds(t *testing.T) {
	blocks := []replay.Block{{Addr: 0, Bytes: 16}, {Addr: 1 << 63, Bytes: math.MaxUint64}, {Addr: math.MaxUint64, Bytes: 1}, {Addr: 5, Bytes: 0}}
	slices.SortFunc(blocks, byAddress)
	for _, r := range []regions{nil, regions(nil).grow(blocks, maxGap), declared([]codec.Range{{Start: 1 << 63, Length: 1 << 63}, {Start: 0, Length: 1}, {Start: 0, Length: 4}})} {
		m := &Map{Regions: r, blocks: slices.Clone(blocks), LeastHole: 32}
		m.find(nil)
		for _, x := range r {
			m.Cells(x, 10)
		}
		if m.Count+m.Outside != len(blocks) || m.Used > m.Size || m.Free > m.Size {
			t.Errorf("%v: %+v", r, m)
		}
	}
	if r := regions(nil).grow([]replay.Block{{Addr: 100, Bytes: 10}, {Addr: 110 + maxGap, Bytes: 10}, {Addr: 121 + 2*maxGap, Bytes: 10}}, maxGap); len(r) != 2 || r[0].Length != 20+maxGap {
		t.Errorf("%v, want two ranges", r)
	}
}

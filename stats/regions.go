package stats

import (
	"cmp"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// An encoder on wrap64 or zero64 chooses by true addresses, but writes only the low
// 31 bits of those wider than 32. What another search or another snip would cost
// depends on which of them are near each other, and that is still there to guess:
// addresses of one module, or of modules loaded side by side, have low bits that are
// close, while modules that are far from each other have not, but by chance. So the
// low bits are cut into regions wherever the gap between neighbours is over a limit,
// and each region is given upper bits of its own, far from the others'. The limit
// taken is the one by which encoding anew, as lws does, comes nearest to the bits
// that lws itself wrote; how near is in the report.

// low31 is what of a wide value a lossy encoder keeps. (BT-LOSS-1)
const low31 = 1<<31 - 1

// spot is an address of which only the low 31 bits, and the width of the literal it
// was made from, are known.
type spot struct {
	width uint8
	low   uint32
}

// gaps are the limits tried, in bytes.
var gaps = []uint32{1 << 26, 1 << 28, 1 << 24, 1 << 22, 1 << 20, 1 << 30}

// resolved is a dump with an address for each frame: what was recorded, or for
// hurt ones what stands for it.
type resolved struct {
	pcs    [][]uint64 // by path.n
	hurt   uint64     // frames of distinct call paths that are hurt
	gap    uint32     // limit that was taken; 0 if nothing is hurt
	differ uint64     // allocations whose blob, encoded anew, has another number of bits than recorded
	of     uint64     // allocations that were compared
}

// id of a frame: the address, or of a hurt one what is known of it. Those of
// different dumps can be compared.
func (p *path) id(frame int) uint64 {
	if p.hurt>>frame&1 == 1 {
		return p.pcs[frame]&low31 | 1<<63
	}
	return p.pcs[frame]
}

// resolve finds an address for every frame, as machine m would have recorded it.
func (c *Collector) resolve(m codec.Machine) *resolved {
	r := &resolved{pcs: make([][]uint64, len(c.order))}
	spots := map[spot]struct{}{}
	if m.Lossy() {
		for _, p := range c.order {
			for n := range p.pcs {
				if s, ok := p.spot(n); ok {
					r.hurt++
					spots[s] = struct{}{}
				}
			}
		}
	}
	if len(spots) == 0 {
		for _, p := range c.order {
			r.pcs[p.n] = p.pcs
		}
		r.differ, r.of = c.compare(r.pcs, m)
		return r
	}
	sorted := make([]spot, 0, len(spots))
	for s := range spots {
		sorted = append(sorted, s)
	}
	slices.SortFunc(sorted, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.low, b.low))
	})
	for _, gap := range gaps {
		pcs := c.place(sorted, gap)
		differ, of := c.compare(pcs, m)
		if r.gap == 0 || differ < r.differ {
			r.pcs, r.gap, r.differ, r.of = pcs, gap, differ, of
		}
		if differ == 0 {
			break
		}
	}
	return r
}

// spot is what is known of a hurt frame; ok is false for another, and where no
// blob told the width.
func (p *path) spot(frame int) (s spot, ok bool) {
	if p.hurt>>frame&1 == 0 || p.width == nil {
		return spot{}, false
	}
	return spot{max(p.width[frame], 33), uint32(p.pcs[frame] & low31)}, true
}

// place gives every spot an address and returns the paths with these. Spots are
// sorted.
func (c *Collector) place(spots []spot, gap uint32) [][]uint64 {
	at := make(map[spot]uint64, len(spots))
	for len(spots) > 0 {
		n := 1
		for n < len(spots) && spots[n].width == spots[0].width {
			n++
		}
		placeWidth(at, spots[:n], gap)
		spots = spots[n:]
	}
	pcs := make([][]uint64, len(c.order))
	for _, p := range c.order {
		own := p.pcs
		if p.hurt != 0 && p.width != nil {
			own = slices.Clone(p.pcs)
			for n := range own {
				if s, ok := p.spot(n); ok {
					own[n] = at[s]
				}
			}
		}
		pcs[p.n] = own
	}
	return pcs
}

// placeWidth is place for spots of one width w. Eight regions fit between 2^(w-1)
// and 2^w, so far from each other that no delta between them is shorter than a
// literal; more of them than that stand close by one of the eight.
func placeWidth(at map[spot]uint64, spots []spot, gap uint32) {
	w := uint(spots[0].width)
	step := max(uint64(1)<<(w-4), 1<<31)
	slots := max(uint64(1)<<(w-1)/step, 1)
	// The low bits go around at 2^31: a region may go on at 0.
	last := spots[len(spots)-1]
	around := len(spots) > 1 && spots[0].low+1<<31-last.low <= gap
	region := uint64(0)
	turn := uint64(0)
	final := len(spots)
	if around {
		turn, final = 1<<31, lastRegion(spots, gap)
	}
	for i, s := range spots {
		if i > 0 && s.low-spots[i-1].low > gap {
			region++
			turn = 0
		}
		in := region
		if region > 0 && i >= final {
			in = 0
		}
		at[s] = 1<<(w-1) + in%slots*step + in/slots<<33 + turn + uint64(s.low)
	}
}

// lastRegion is where the last region of spots begins.
func lastRegion(spots []spot, gap uint32) int {
	i := len(spots) - 1
	for i > 0 && spots[i].low-spots[i-1].low <= gap {
		i--
	}
	return i
}

// compare encodes regular blobs anew and counts allocations for which that takes
// another number of bits than was recorded.
func (c *Collector) compare(pcs [][]uint64, m codec.Machine) (differ, of uint64) {
	for _, p := range c.order {
		if p.prefix == nil {
			continue
		}
		var n uint64
		for _, s := range p.sizes {
			n += s.blobs
		}
		of += n
		if frameBits(pcs[p.n], m, codec.SearchLws) != p.prefixBits {
			differ += n
		}
	}
	return differ, of
}

package stats

import (
	"cmp"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// This file estimates the upper bits of lossy addresses.
//
// An encoder on wrap64 or zero64 chooses between literal and delta by the true addresses,
// but writes only the low 31 bits of addresses wider than 32 bits. To compute the cost of
// another search or snip, package stats must know which addresses are near each other. The
// low bits tell: addresses of one module, or of modules loaded next to each other, have
// close low bits; addresses of distant modules have close low bits only at random.
//
// So the low bits are divided into regions, wherever the gap between neighbours exceeds a
// limit, and each region gets distinct upper bits, far from those of the other regions. Of
// the limits in gaps, view uses the one for which encoding again as lws does differs least
// from the recorded blobs. The report contains the remaining difference.

// low31 is the mask of the bits of a wide value that a lossy encoder keeps. (BT-LOSS-1)
const low31 = 1<<31 - 1

// spot is a lossy address: its low 31 bits, and the width of its literal, or of the literal
// that its delta is based on.
type spot struct {
	width uint8
	low   uint32
}

// gaps are the limits to try, in bytes.
var gaps = []uint32{1 << 26, 1 << 28, 1 << 24, 1 << 22, 1 << 20, 1 << 30}

// view returns the dump as machine m wrote it.
func (c *Collector) view(m codec.Machine) *view {
	v := &view{Collector: c, machine: m}
	spots := map[spot]struct{}{}
	if m.Lossy() {
		v.eachPath(func(p *path, pcs []uint64) {
			if p.lossy != 0 && p.recorded {
				v.eachSpot(p, pcs, func(_ int, s spot) {
					v.lossy++
					spots[s] = struct{}{}
				})
			}
		})
	}
	if len(spots) == 0 {
		v.compare()
		return v
	}
	sorted := make([]spot, 0, len(spots))
	for s := range spots {
		sorted = append(sorted, s)
	}
	slices.SortFunc(sorted, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.low, b.low))
	})
	var best view
	for _, gap := range gaps {
		v.at = placed(sorted, gap)
		v.compare()
		if best.at == nil || v.differ < best.differ {
			best = *v
		}
		if v.differ == 0 {
			break
		}
	}
	return &best
}

// eachSpot calls do with each lossy frame of a recorded path.
func (v *view) eachSpot(p *path, pcs []uint64, do func(frame int, s spot)) {
	var width [codec.MaxDepth]uint8 // of the literal of each frame, or of its base
	back := 0
	for _, f := range v.fieldsOf(v.paths.blob(p), int(p.word)) {
		switch f.Kind {
		case "back":
			back = int(f.Value) + 1
		case "literal":
			width[f.Frame] = uint8(f.Width)
		case "delta":
			width[f.Frame] = width[f.Frame-back]
		}
	}
	for n, pc := range pcs {
		if p.lossy>>n&1 == 1 {
			do(n, spot{max(width[n], 33), uint32(pc & low31)})
		}
	}
}

// placed returns an estimated address for every spot. spots must be sorted.
func placed(spots []spot, gap uint32) map[spot]uint64 {
	at := make(map[spot]uint64, len(spots))
	for len(spots) > 0 {
		n := 1
		for n < len(spots) && spots[n].width == spots[0].width {
			n++
		}
		placeWidth(at, spots[:n], gap)
		spots = spots[n:]
	}
	return at
}

// placeWidth is placed for spots of one width w. It puts up to eight regions between
// 2^(w-1) and 2^w, so far apart that no delta between them is shorter than a literal.
// Further regions are put near one of these.
func placeWidth(at map[spot]uint64, spots []spot, gap uint32) {
	w := uint(spots[0].width)
	step := max(uint64(1)<<(w-4), 1<<31)
	slots := max(uint64(1)<<(w-1)/step, 1)
	// The low bits wrap around at 2^31: a region may continue at 0.
	last := spots[len(spots)-1]
	wraps := len(spots) > 1 && spots[0].low+1<<31-last.low <= gap
	region := uint64(0)
	carry := uint64(0)
	final := len(spots)
	if wraps {
		carry, final = 1<<31, lastRegion(spots, gap)
	}
	for i, s := range spots {
		if i > 0 && s.low-spots[i-1].low > gap {
			region++
			carry = 0
		}
		in := region
		if region > 0 && i >= final {
			in = 0
		}
		at[s] = 1<<(w-1) + in%slots*step + in/slots<<33 + carry + uint64(s.low)
	}
}

// lastRegion returns the index at which the last region of spots begins.
func lastRegion(spots []spot, gap uint32) int {
	i := len(spots) - 1
	for i > 0 && spots[i].low-spots[i-1].low <= gap {
		i--
	}
	return i
}

// compare encodes every recorded path again and counts the allocations whose number of
// bits then differs from the recorded one.
func (v *view) compare() {
	v.differ, v.compared = 0, 0
	v.eachPath(func(p *path, pcs []uint64) {
		if !p.recorded {
			return
		}
		var n uint64
		for s := range v.paths.sizes(p) {
			n += s.blobs
		}
		v.compared += n
		if frameBits(pcs, v.machine, codec.SearchLws) != int(p.end) {
			v.differ += n
		}
	})
}

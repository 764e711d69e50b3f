package oldrule

import (
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// trendBoot has the examined dumps of a boot, and the values of the call path under
// examination.
type trendBoot struct {
	dumps []int     // indexes in the profile
	at    []float64 // hours, or number of the dump, increasing
	kept  []float64 // fraction of the blocks that the log has, more than 0

	value []float64 // blocks or bytes, corrected for loss
	floor []float64 // the least value at the dump or any later one of the boot
	step  float64   // least rise of the floor that counts
}

// trend is a part of a log: some boots, of which the first may begin with any of its dumps.
type trend struct {
	boots   []trendBoot
	dumps   int // examined
	longest int // dumps of the longest boot

	chance, variance float64 // of the number of intervals that rise in random order
	span             float64 // sum over the boots, hours or dumps
}

// leakTrend examines call paths, one after the other, over a whole log.
type leakTrend struct {
	trend
	timed bool
	line  *growth.Timeline
	scale float64     // bytes per unit of the floors of the call path
	steps []floorStep // of the call path
}

// newLeakTrend returns the trend over the boots of a timeline, backward in time if reverse is set.
func newLeakTrend(line *growth.Timeline, reverse bool) *leakTrend {
	t := &leakTrend{timed: line.Per == growth.PerHour, line: line}
	for _, b := range line.Boots {
		own := trendBoot{dumps: slices.Clone(b.Dumps), at: slices.Clone(b.At), kept: slices.Clone(b.Kept)}
		if reverse {
			slices.Reverse(own.dumps)
			slices.Reverse(own.at)
			slices.Reverse(own.kept)
			for i := range own.at {
				own.dumps[i], own.at[i] = len(line.Dumps)-1-own.dumps[i], -own.at[i]
			}
		}
		own.value, own.floor = make([]float64, len(own.dumps)), make([]float64, len(own.dumps))
		t.boots = append(t.boots, own)
	}
	if reverse {
		slices.Reverse(t.boots)
	}
	t.trend = newTrend(t.boots)
	return t
}

// newTrend returns the trend over boots.
func newTrend(boots []trendBoot) trend {
	t := trend{boots: boots}
	for i := range boots {
		k := len(boots[i].dumps)
		t.dumps += k
		t.longest = max(t.longest, k)
		t.span += boots[i].at[k-1] - boots[i].at[0]
		chance, variance := randomRises(k)
		t.chance, t.variance = t.chance+chance, t.variance+variance
	}
	return t
}

// setFloors computes the floors of a call path from its values, by index of the dump.
func (t *leakTrend) setFloors(points []profile.Value, byBytes bool) {
	for n := range t.boots {
		b := &t.boots[n]
		b.step = 0.5 // half a block; for bytes, more than alignment adds
		for i, d := range b.dumps {
			if byBytes {
				b.value[i], b.step = float64(points[d].Bytes)/b.kept[i], 8
			} else {
				b.value[i] = float64(points[d].Count) / b.kept[i]
			}
		}
		if t.timed {
			b.leaveOutRhythm()
		}
		least := math.Inf(1)
		for i := len(b.value) - 1; i >= 0; i-- {
			least = math.Min(least, b.value[i])
			b.floor[i] = least
		}
	}
}

// still reports whether the number of blocks hardly changes, as with one growing buffer.
func (t *trend) still(points []profile.Value) bool {
	changes := 0.0
	for i := range t.boots {
		b := &t.boots[i]
		for j := 1; j < len(b.dumps); j++ {
			changes += math.Abs(float64(points[b.dumps[j]].Count)/b.kept[j] - float64(points[b.dumps[j-1]].Count)/b.kept[j-1])
		}
	}
	return changes <= 0.2*float64(t.dumps)
}

const sizesAgree = 0.9

// blockSize returns the mean size in bytes of the blocks that come and go, by which a path's bytes
// follow its blocks: others that stay may have another size. If the bytes do not follow the blocks, it
// returns the mean size of all blocks.
func (t *trend) blockSize(points []profile.Value) float64 {
	var bytes, count, cc, cb, bb float64
	for i := range t.boots {
		b := &t.boots[i]
		c0, b0 := float64(points[b.dumps[0]].Count)/b.kept[0], float64(points[b.dumps[0]].Bytes)/b.kept[0]
		var n, sc, sb float64
		for j, d := range b.dumps {
			bytes, count = bytes+float64(points[d].Bytes), count+float64(points[d].Count)
			dc, db := float64(points[d].Count)/b.kept[j]-c0, float64(points[d].Bytes)/b.kept[j]-b0
			n, sc, sb = n+1, sc+dc, sb+db
			cc, cb, bb = cc+dc*dc, cb+dc*db, bb+db*db
		}
		cc, cb, bb = cc-sc*sc/n, cb-sc*sb/n, bb-sb*sb/n
	}
	switch {
	case count == 0:
		return 0
	case cb > 0 && cb*cb >= sizesAgree*cc*bb:
		return cb / cc
	}
	return bytes / count
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

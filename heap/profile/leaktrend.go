package profile

import (
	"math"
	"time"
)

// minBootDumps is the least number of dumps of a boot that is examined.
const minBootDumps = 3

// trendBoot has the examined dumps of a boot, and the values of the call path under
// examination.
type trendBoot struct {
	dumps []int     // indexes in the profile
	at    []float64 // hours, or number of the dump, increasing
	kept  []float64 // fraction of the blocks that the log has, more than 0
	gaps  []gap

	value []float64 // blocks or bytes, corrected for loss
	floor []float64 // the least value at the dump or any later one of the boot
	step  float64   // least rise of the floor that counts
}

// gap is what a dump may lack.
type gap struct {
	blocks  uint64 // at most so many blocks
	partial bool   // the values of call paths that did not change
}

// gapOf returns what a dump may lack.
func gapOf(d *Dump) gap {
	g := gap{partial: d.Loss.Partial}
	if missing, known := d.Missing(); known && missing > 0 {
		g.blocks = d.Announced.Records - d.have()
	} else if d.Cut || d.Loss.NoBase || d.Loss.Lines > 0 || d.Loss.Unreadable > 0 {
		g.blocks = math.MaxUint64
	}
	return g
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
	timed    bool
	complete bool           // no dump lacks blocks: only the program changes the values
	unscaled bool           // no values are corrected for lost blocks, other than by fill, which adds no changes
	versions []versionBoots // nil if there is only one
	scale    float64        // bytes per unit of the floors of the call path
	steps    []floorStep    // of the call path
	whole    []Value        // values of the call path, those included that dumps lack
}

// newLeakTrend returns the trend over the dumps that are used, of which each boot has at
// least minBootDumps.
func newLeakTrend(dumps []LeakDump) *leakTrend {
	t := &leakTrend{timed: true, complete: true, unscaled: true}
	byBoot := map[boot]int{}
	count := map[boot]int{} // of all dumps
	for i, d := range dumps {
		count[d.boot]++
		if !d.Used {
			continue
		}
		n, known := byBoot[d.boot]
		if !known {
			n = len(t.boots)
			byBoot[d.boot] = n
			t.boots = append(t.boots, trendBoot{})
		}
		b := &t.boots[n]
		if len(b.dumps) > 0 {
			before := dumps[b.dumps[len(b.dumps)-1]].Time
			t.timed = t.timed && d.Time > before
		}
		t.timed = t.timed && d.Timed
		b.dumps = append(b.dumps, i)
		b.at = append(b.at, float64(count[d.boot]))
		kept := 1 - d.Missing
		if d.Loss.Lines > 0 || d.Diff { // all blocks of some paths are missing, and none of the others
			kept = 1
		}
		b.kept = append(b.kept, kept)
		b.gaps = append(b.gaps, gapOf(d.Dump))
		t.unscaled = t.unscaled && kept == 1
		t.complete = t.complete && kept == 1 && b.gaps[len(b.gaps)-1] == gap{}
	}
	for i := range t.boots {
		b := &t.boots[i]
		for j, d := range b.dumps {
			if t.timed {
				b.at[j] = float64(dumps[d].Time) / float64(time.Hour)
			}
		}
		b.value, b.floor = make([]float64, len(b.dumps)), make([]float64, len(b.dumps))
	}
	t.trend = newTrend(t.boots)
	t.versions = versionsOf(t.boots, dumps)
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

// fill returns the values of a call path with those that lost lines may have had: a line holds all
// blocks of a path, and a dump that lacks it is no evidence that they were freed.
func (t *leakTrend) fill(points []Value) []Value {
	t.whole = append(t.whole[:0], points...)
	for n := range t.boots {
		b := &t.boots[n]
		for k, i := range b.dumps {
			if g := b.gaps[k]; g.blocks > 0 || g.partial {
				t.whole[i] = g.fill(t.whole, b.dumps, k)
			}
		}
	}
	return t.whole
}

// fill returns the value at dumps[k], or that of a neighbour if the log may lack so much.
func (g gap) fill(values []Value, dumps []int, k int) Value {
	v := values[dumps[k]]
	if g.partial && !v.IsZero() {
		return v
	}
	least := Value{Count: math.MaxUint64}
	if k > 0 {
		least = values[dumps[k-1]]
	}
	if k+1 < len(dumps) && values[dumps[k+1]].Count < least.Count && !(g.partial && k > 0) {
		least = values[dumps[k+1]]
	}
	switch lost := least.Count - min(least.Count, v.Count); {
	case g.partial:
		return least
	case v.Count >= (least.Count+1)/2 || lost > g.blocks:
		return v
	}
	return least
}

// setFloors computes the floors of a call path from its values, by index of the dump.
func (t *leakTrend) setFloors(points []Value, byBytes bool) {
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

// examined returns the indexes of the examined dumps.
func (t *leakTrend) examined() (list []int) {
	for i := range t.boots {
		list = append(list, t.boots[i].dumps...)
	}
	return list
}

// minChanges is the least number of changes of the values of a call path that can be evidence:
// two rises in two changes have a Z of 1.7.
const minChanges = 3

// seldom reports whether the values of a call path change so seldom that they are no evidence, so
// that a path which only one of many dumps has takes no time for each of them.
func (t *leakTrend) seldom(changes int) bool {
	return t.unscaled && changes < min(minChanges, t.dumps-len(t.boots))
}

// ends returns the first and the last value of the boot in which the blocks grew most.
func (t *leakTrend) ends(value func(dump int) Value) (first, last Value) {
	for i := range t.boots {
		b := &t.boots[i]
		f, l := value(b.dumps[0]), value(b.dumps[len(b.dumps)-1])
		if i == 0 || int64(l.Count-f.Count) > int64(last.Count-first.Count) {
			first, last = f, l
		}
	}
	return first, last
}

// enough reports whether a path that rises steadily in every interval is Leaking.
func (t *leakTrend) enough() bool {
	rose := float64(t.dumps - len(t.boots))
	return t.dumps > 0 && (rose-t.chance)/math.Sqrt(t.variance) >= thresholds[0].z && t.longest >= thresholds[0].dumps
}

// still reports whether the number of blocks hardly changes, as with one growing buffer.
func (t *trend) still(points []Value) bool {
	changes := 0.0
	for i := range t.boots {
		b := &t.boots[i]
		for j := 1; j < len(b.dumps); j++ {
			changes += math.Abs(float64(points[b.dumps[j]].Count)/b.kept[j] - float64(points[b.dumps[j-1]].Count)/b.kept[j-1])
		}
	}
	return changes <= 0.2*float64(t.dumps)
}

// sizesAgree is the least squared correlation of the blocks and bytes of the dumps with which the
// blocks that come have one mean size.
const sizesAgree = 0.9

// blockSize returns the mean size in bytes of the blocks that come and go, by which a path's bytes
// follow its blocks: others that stay may have another size. If the bytes do not follow the blocks, it
// returns the mean size of all blocks.
func (t *trend) blockSize(points []Value) float64 {
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

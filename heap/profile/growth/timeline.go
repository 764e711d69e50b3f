package growth

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"

	"github.com/lwsbt/lwsbt/heap/leak"
)

// minBootDumps is the least number of dumps of a boot that is examined.
const minBootDumps = 3

// timeline has the used dumps, by boot, at times that rise.
type timeline struct {
	per   Unit
	boots []timelineBoot
	// complete is set if no dump lacks blocks: only the program changes the values.
	complete bool
	versions bool            // the boots are of several
	sums     []profile.Value // values of the call paths under examination
	whole    []profile.Value // the same with those that dumps lack
}

// timelineBoot has the used dumps of a boot.
type timelineBoot struct {
	dumps   []int     // indexes in the profile
	at      []float64 // hours since the boot, or numbers of the dumps; they increase
	number  []float64 // numbers of the dumps
	kept    []float64 // fraction of the blocks that the log has, more than 0
	gaps    []gap
	version string
}

// gap is what a dump may lack.
type gap struct {
	blocks  uint64 // at most so many blocks
	partial bool   // the values of call paths that did not change
}

// gapOf returns what a dump may lack.
func gapOf(d *profile.Dump) gap {
	g := gap{partial: d.Loss.Partial}
	if missing, known := d.Missing(); known && missing > 0 {
		g.blocks = d.MissingBlocks()
	} else if d.Cut || d.Loss.NoBase || d.Loss.Lines > 0 || d.Loss.Unreadable > 0 {
		g.blocks = math.MaxUint64
	}
	return g
}

// newTimeline returns the timeline of the dumps that are used, of which each boot has at least
// minBootDumps.
func newTimeline(dumps []LeakDump) *timeline {
	t := &timeline{per: PerHour, complete: true}
	byBoot, count := map[boot]int{}, map[boot]int{}
	for i := range dumps {
		d := &dumps[i]
		count[d.boot]++
		if !d.Used {
			continue
		}
		n, known := byBoot[d.boot]
		if !known {
			n = len(t.boots)
			byBoot[d.boot] = n
			t.boots = append(t.boots, timelineBoot{version: version(d.Dump)})
		}
		b := &t.boots[n]
		t.versions = t.versions || version(d.Dump) != t.boots[0].version
		if k := len(b.dumps); !d.Timed || k > 0 && d.Time <= dumps[b.dumps[k-1]].Time {
			t.per = PerDump
		}
		kept := 1 - d.Missing
		if d.Loss.Lines > 0 || d.Diff { // all blocks of some paths are missing, and none of the others
			kept = 1
		}
		g := gapOf(d.Dump)
		b.dumps, b.number, b.kept, b.gaps = append(b.dumps, i), append(b.number, float64(count[d.boot])), append(b.kept, kept), append(b.gaps, g)
		b.at = append(b.at, d.Time.Hours())
		t.complete = t.complete && kept == 1 && g == gap{}
	}
	if len(t.boots) == 0 {
		t.per = PerDump
	}
	for i := range t.boots {
		if b := &t.boots[i]; t.per == PerDump {
			b.at = b.number
		}
	}
	return t
}

// version returns what distinguishes the firmware of a dump, "" if it is not known.
func version(d *profile.Dump) string { return cmp.Or(d.Build, d.Firmware) }

// span returns the time of the boots, 0 if it is not known.
func (t *timeline) span() (sum time.Duration) {
	for i := range t.boots {
		if b := &t.boots[i]; t.per == PerHour {
			sum += time.Duration((b.at[len(b.at)-1] - b.at[0]) * float64(time.Hour))
		}
	}
	return sum
}

// hoursPer returns the mean time between two dumps, in hours, of those with times; 0 if there are none.
func (t *timeline) hoursPer(dumps []LeakDump) float64 {
	hours, n := 0.0, 0.0
	for i := range t.boots {
		b := &t.boots[i]
		first, last := -1, -1
		for k, d := range b.dumps {
			if dumps[d].Timed {
				if first < 0 {
					first = k
				}
				last = k
			}
		}
		if first >= 0 && dumps[b.dumps[last]].Time > dumps[b.dumps[first]].Time {
			hours += (dumps[b.dumps[last]].Time - dumps[b.dumps[first]].Time).Hours()
			n += b.number[last] - b.number[first]
		}
	}
	return hours / math.Max(1, n)
}

// length returns the sum of the times of the boots, in the unit of per.
func (t *timeline) length() (sum float64) {
	for i := range t.boots {
		at := t.boots[i].at
		sum += at[len(at)-1] - at[0]
	}
	return sum
}

// slowest returns the largest rate that is not excluded of a call path that changed too seldom to be judged:
// with one block more than it rose.
func (t *timeline) slowest(value func(dump int) profile.Value) float64 {
	rise, block := 0.0, float64(leastChange)
	for i := range t.boots {
		dumps := t.boots[i].dumps
		first, last := value(dumps[0]), value(dumps[len(dumps)-1])
		rise += math.Max(0, float64(last.Bytes)-float64(first.Bytes))
		block = math.Max(block, float64(last.Bytes)/math.Max(1, float64(last.Count)))
	}
	return (rise + block) / t.length()
}

// pauses reports whether the dumps have pauses, as those of a device that sleeps: an interval of more than
// maxPause usual ones.
func (t *timeline) pauses() bool {
	var gaps []float64
	for i := range t.boots {
		for k, at := range t.boots[i].at[1:] {
			gaps = append(gaps, at-t.boots[i].at[k])
		}
	}
	slices.Sort(gaps)
	return t.per == PerHour && len(gaps) > 0 && gaps[len(gaps)-1] > maxPause*gaps[len(gaps)/2]
}

const maxPause = 8

// byNumber returns the timeline with the numbers of the dumps as times.
func (t *timeline) byNumber() *timeline {
	n := *t
	n.per, n.boots = PerDump, slices.Clone(t.boots)
	for i := range n.boots {
		n.boots[i].at = n.boots[i].number
	}
	return &n
}

// series returns the values of a call path: its blocks times their size, or its bytes if the number of
// blocks hardly changes.
func (t *timeline) series(points []profile.Value) leak.Series {
	s := leak.Series{Quantum: 16, Per: string(t.per)}
	if !t.complete {
		points = t.fill(points)
	}
	still := t.still(points)
	if !still {
		s.Quantum = math.Max(1, t.blockSize(points))
	}
	for i := range t.boots {
		b := &t.boots[i]
		out := leak.Boot{At: b.at, Value: make([]float64, len(b.dumps)), Version: b.version}
		if !t.complete {
			out.Kept = b.kept
		}
		for k, d := range b.dumps {
			if out.Value[k] = float64(points[d].Count) * s.Quantum; still {
				out.Value[k] = float64(points[d].Bytes)
			}
		}
		if still && !t.complete {
			out = withoutLost(out)
		}
		s.Boots = append(s.Boots, out)
	}
	return s
}

// withoutLost leaves out the dumps that lack all of one or two blocks.
func withoutLost(b leak.Boot) leak.Boot {
	out := leak.Boot{Version: b.Version}
	for k, v := range b.Value {
		if v > 0 || b.Kept[k] == 1 {
			out.At, out.Value = append(out.At, b.At[k]), append(out.Value, v)
		}
	}
	return out
}

// dump returns the dump at a moment, the nearest one.
func (t *timeline) dump(m leak.Moment) int {
	if m.Boot >= len(t.boots) {
		return 0
	}
	b := &t.boots[m.Boot]
	i, _ := slices.BinarySearch(b.at, m.At)
	if i == len(b.at) || i > 0 && m.At-b.at[i-1] < b.at[i]-m.At {
		i--
	}
	return b.dumps[i]
}

// late reports whether a moment is later than the beginning of the log.
func (t *timeline) late(m leak.Moment) bool {
	if m.Boot > 0 || len(t.boots) == 0 {
		return m.Boot > 0
	}
	at := t.boots[0].at
	return m.At > at[0]+0.05*(at[len(at)-1]-at[0])
}

// fill returns the values of a call path with those that lost lines may have had: a line holds all
// blocks of a path, and a dump that lacks it is no evidence that they were freed.
func (t *timeline) fill(points []profile.Value) []profile.Value {
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
func (g gap) fill(values []profile.Value, dumps []int, k int) profile.Value {
	v := values[dumps[k]]
	if g.partial && !v.IsZero() {
		return v
	}
	least := profile.Value{Count: math.MaxUint64}
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

// ends returns the first and the last value of the boot in which the blocks grew most.
func (t *timeline) ends(points []profile.Value) (first, last profile.Value) {
	if !t.complete {
		points = t.fill(points)
	}
	for i := range t.boots {
		b := &t.boots[i]
		f, l := points[b.dumps[0]], points[b.dumps[len(b.dumps)-1]]
		if i == 0 || int64(l.Count-f.Count) > int64(last.Count-first.Count) || l.Count-f.Count == last.Count-first.Count && int64(l.Bytes-f.Bytes) > int64(last.Bytes-first.Bytes) {
			first, last = f, l
		}
	}
	return first, last
}

// still reports whether the number of blocks hardly changes, as with one growing buffer, besides that one or two of them may be lost.
func (t *timeline) still(points []profile.Value) bool {
	changes, most := 0.0, 0.0
	for i := range t.boots {
		b := &t.boots[i]
		for k, d := range b.dumps {
			if most += 0.2; points[d].Count <= 2 {
				most += 3 * (1 - b.kept[k])
			}
		}
		for j := 1; j < len(b.dumps); j++ {
			changes += math.Abs(float64(points[b.dumps[j]].Count)/b.kept[j] - float64(points[b.dumps[j-1]].Count)/b.kept[j-1])
		}
	}
	return changes <= most
}

// sizesAgree is the least squared correlation of the blocks and bytes of the dumps with which the
// blocks that come have one mean size.
const sizesAgree = 0.9

// blockSize returns the mean size in bytes of the blocks that come and go, by which a path's bytes
// follow its blocks: others that stay may have another size. If the bytes do not follow the blocks, it
// returns the mean size of all blocks.
func (t *timeline) blockSize(points []profile.Value) float64 {
	var bytes, count float64
	var r regression
	for i := range t.boots {
		b := &t.boots[i]
		r.next()
		for j, d := range b.dumps {
			bytes, count = bytes+float64(points[d].Bytes), count+float64(points[d].Count)
			r.add(float64(points[d].Count)/b.kept[j], float64(points[d].Bytes)/b.kept[j])
		}
	}
	if slope, ok := r.slope(); ok {
		return slope
	}
	return bytes / math.Max(1, count)
}

// regression fits y to x by a slope and a constant for each boot.
type regression struct {
	xx, xy, yy        float64 // about the means of the boots before
	x0, y0, n, sx, sy float64 // of this boot: its first point, and sums of the distances from it
	bxx, bxy, byy     float64
}

// next begins a boot.
func (r *regression) next() {
	if r.n > 0 {
		r.xx, r.xy, r.yy = r.xx+r.bxx-r.sx*r.sx/r.n, r.xy+r.bxy-r.sx*r.sy/r.n, r.yy+r.byy-r.sy*r.sy/r.n
	}
	*r = regression{xx: r.xx, xy: r.xy, yy: r.yy}
}

func (r *regression) add(x, y float64) {
	if r.n == 0 {
		r.x0, r.y0 = x, y
	}
	x, y = x-r.x0, y-r.y0
	r.n, r.sx, r.sy = r.n+1, r.sx+x, r.sy+y
	r.bxx, r.bxy, r.byy = r.bxx+x*x, r.bxy+x*y, r.byy+y*y
}

// slope returns the slope if y follows x.
func (r *regression) slope() (float64, bool) {
	r.next()
	return r.xy / r.xx, r.xy > 0 && r.xy*r.xy >= sizesAgree*r.xx*r.yy
}

package leak

import (
	"math"
	"slices"
)

// maxBins is the largest number of bins of a boot. A boot with more points is reduced to bins of equal
// numbers of points, so that more points of the same memory only make each bin surer.
const maxBins = 64

// boot is a boot after reduction.
type boot struct {
	index   int // in Series.Boots
	version string
	// By bin: time, low level, floor (suffix minimum), and envelope (straight between the bins that
	// touch the floor).
	at, level, floor, env []float64
	touch                 []bool
	hook                  int     // bins at the end whose floor may still fall: the usual time that the memory is above it
	most                  float64 // largest rise above an earlier level
	step                  float64 // median change of the level from one bin to the next
	lost                  float64 // standard deviation of a level because of lost blocks, in bytes
}

// span returns the time of the boot.
func (b *boot) span() float64 { return b.at[len(b.at)-1] - b.at[0] }

// reduce bins the boot with an index, and finds its floor. It returns nil if fewer than minPoints points
// can be used.
func reduce(from *Boot, index int, quantum float64) *boot {
	b := &boot{index: index, version: from.Version}
	at, value := b.points(from, quantum)
	if len(at) < minPoints {
		return nil
	}
	b.bin(at, withoutDips(value, quantum))
	n := len(b.at)
	b.floor, b.env, b.touch = make([]float64, n), make([]float64, n), make([]bool, n)
	least := math.Inf(1)
	for i := n - 1; i >= 0; i-- {
		b.touch[i] = b.level[i] <= least+quantum/2
		least = math.Min(least, b.level[i])
		b.floor[i] = least
	}
	low := math.Inf(1)
	for _, v := range b.level {
		low = math.Min(low, v)
		b.most = math.Max(b.most, v-low)
	}
	steps := make([]float64, 0, n)
	for i := range b.level[1:] {
		steps = append(steps, math.Abs(b.level[i+1]-b.level[i]))
	}
	slices.Sort(steps)
	b.step = steps[len(steps)/2]
	b.envelope()
	b.hook = b.excursion()
	return b
}

// points returns the points that can be used, corrected for lost blocks.
func (b *boot) points(from *Boot, quantum float64) (at, value []float64) {
	n := min(len(from.At), len(from.Value))
	finite := func(x float64) bool { return math.Abs(x) < 1e300 }
	usable := from.Kept == nil
	for i := 0; usable && i < n; i++ {
		usable = finite(from.At[i]) && finite(from.Value[i]) && (i == 0 || from.At[i] > from.At[i-1])
	}
	if usable {
		return from.At[:n], from.Value[:n]
	}
	for i := range n {
		t, v, kept := from.At[i], from.Value[i], 1.0
		if i < len(from.Kept) {
			kept = from.Kept[i]
		}
		if !finite(t) || !finite(v) || !(kept > 0 && kept <= 1) || len(at) > 0 && t <= at[len(at)-1] {
			continue
		}
		at, value = append(at, t), append(value, v/kept)
		b.lost = math.Max(b.lost, math.Sqrt(math.Max(0, v)*quantum*(1-kept))/kept)
	}
	return at, value
}

// bin reduces the points to at most maxBins. The level of a bin is the tenth part quantile of its values
// (the least of up to nine), which cycles and bursts within the bin, and some damaged values, do not
// move. If blocks were lost, the bins are so large that the usual rise from one to the next is twice its deviation,
// and the level is the mean. The first bin may have fewer points.
func (b *boot) bin(at, value []float64) {
	n := len(at)
	k, lossy := (n+maxBins-1)/maxBins, false
	if b.lost > 0 {
		part := n / 3
		rise := 1.5 * math.Abs(mean(value[n-part:])-mean(value[:part]))
		if m := min(n/minLossy, int(math.Ceil(math.Pow(2*b.lost*float64(n)/math.Max(rise, 1e-9), 2.0/3)))); m > k {
			k, lossy = m, true
			b.lost /= math.Sqrt(float64(k))
		}
	}
	if k <= 1 {
		b.at, b.level = at, value
		return
	}
	buf := make([]float64, 0, k)
	for from, to := 0, (n-1)%k+1; from < n; from, to = to, to+k {
		buf = append(buf[:0], value[from:to]...)
		slices.Sort(buf)
		level := buf[len(buf)/10]
		if lossy {
			level = mean(buf)
		}
		b.at, b.level = append(b.at, mean(at[from:to])), append(b.level, level)
	}
}

// minLossy is the least number of bins of a boot that lost blocks.
const minLossy = 8

// withoutDips replaces single values that are far below both neighbours: lost digits, or an instant
// between free and allocate. They would lower the floor of everything before them.
func withoutDips(v []float64, quantum float64) []float64 {
	n := len(v)
	if n < 12 {
		return v
	}
	most := 0.0
	for i := 1; i < n-1; i++ {
		most = math.Max(most, math.Min(v[i-1], v[i+1])-v[i])
	}
	if most <= 3*quantum {
		return v
	}
	below := make([]float64, n) // how far below the lower neighbour
	for i := 1; i < n-1; i++ {
		below[i] = math.Min(v[i-1], v[i+1]) - v[i]
	}
	sorted := slices.Clone(below)
	slices.Sort(sorted)
	usual := math.Max(sorted[(n-1)*94/100], 0) // more than one in seventeen are no damage
	copy(sorted, v)
	slices.Sort(sorted)
	limit := math.Max(4*usual+3*quantum, (sorted[(n-1)*95/100]-sorted[(n-1)*5/100])/4)
	out := slices.Clone(v)
	for i := 1; i < n-1; i++ {
		if below[i] > limit {
			out[i] = math.Min(v[i-1], v[i+1])
		}
	}
	return out
}

// envelope joins the bins that touch the floor by straight lines. Where the levels jump to the floor of the next such bin and stay near
// it, the envelope does, too: the line would make a growth of a step and what is flat behind it.
func (b *boot) envelope() {
	last := -1
	for i, touches := range b.touch {
		if !touches {
			continue
		}
		flat := last >= 0 && i-last >= minFlat && b.jumped(last, i)
		for k := last + 1; k <= i; k++ {
			b.env[k] = b.floor[i]
			if last >= 0 && !flat {
				b.env[k] = b.floor[last] + (b.floor[i]-b.floor[last])*(b.at[k]-b.at[last])/(b.at[i]-b.at[last])
			}
		}
		last = i
	}
}

// A step is followed by a flat part if, over at least so many bins, half of the levels are nearer to the floor than this part of the step.
const (
	minFlat   = 3
	flatPart  = 0.25
	startStep = 4
)

// jumped reports whether the levels between two bins are near the floor of the second.
func (b *boot) jumped(from, to int) bool {
	rise := b.floor[to] - b.floor[from]
	above := slices.Clone(b.level[from+1 : to])
	slices.Sort(above)
	if above[len(above)/2]-b.floor[to] < flatPart*rise {
		return true
	}
	return b.at[from] <= b.at[0]+startUp*b.span() && rise > startStep*b.step
}

// excursion returns for how many bins the memory usually is above its floor near the end: the sixth
// tenth of the lengths, by bin, in the last part of the boot. (The floor of a flat part is its one lowest
// value.)
func (b *boot) excursion() int {
	var runs []int // for each bin the length of its excursion
	for from, i := 0, 0; i < len(b.touch); i++ {
		if b.touch[i] {
			for range i - from {
				runs = append(runs, i-from)
			}
			runs = append(runs, 0)
			from = i + 1
		}
	}
	runs = runs[len(runs)*6/10:]
	slices.Sort(runs)
	return runs[(len(runs)-1)*6/10]
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

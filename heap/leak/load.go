package leak

import (
	"iter"
	"maps"
	"math"
	"slices"
)

// Limits of the load.
const (
	minLoadPaths  = 8
	maxLoadPaths  = 256
	maxLoadValues = 1 << 22 // of all paths, if they are more than minLoadPaths: 32 MB
	loadGrowth    = 0.1     // a load that grows less is none
	loadEvidence  = -1      // and one of which the weight is less
	minLoadWeight = 2       // a path of less weight is not compared with it
	loadRatio     = 3       // what grows more than so many times as much is no load
	commonPart    = 0.4     // of the paths that grow by two thirds to three halves of what the load does
	beyondLeast   = 0.15    // of the growth of a path: less beyond the load is no leak
	loadDoubt     = 0.2     // of the rate that follows the load, by which a rate beyond it may be off
	loadMargin    = 2       // the load itself is uncertain: what is left of the weight counts so much more
)

// JudgeAll judges the call paths of a program, whose boots have the same times. The more of them grow, the less
// likely each is the leak. If what most of them have in common grows, it is the load: a path that does not grow beyond
// its part of the load is no leak. JudgeAll reads the paths a second time if there is a load, and keeps none of them.
func JudgeAll(paths iter.Seq[Series]) (list []Judgement) {
	var l load
	growth := map[int]float64{} // of the paths that may leak
	rivals := 0
	for s := range paths {
		j, _ := s.judge()
		if j.Weight > minLoadWeight {
			growth[len(list)] = lastGrowth(s.Boots)
		}
		if j.Rate > 0 && s.Kind == Path {
			rivals++
		}
		list = append(list, j)
		l.add(s)
	}
	l.correct(list, paths)
	together := alike(growth)
	for i := range list {
		j := &list[i]
		j.evidence.Rivals = float64(rivals)
		j.rate(l.kinds[i], rivals)
		if together[i] {
			j.Probability = math.Min(j.Probability, mostAlike)
		}
		j.answer()
	}
	return list
}

// Paths that grow by the same part of what they had at first grow with something that they share: so does a load, while what a bug adds
// has nothing to do with what a path had. mostAlike is less than Sure.
const (
	minAlike  = 3 // paths
	alikeBy   = 0.15
	mostAlike = 0.94
)

// lastGrowth returns the growth of the last boot, from its first sixteenth to its last one, as a part of the first.
func lastGrowth(boots []Boot) float64 {
	v := corrected(boots[len(boots)-1:])[0].Value
	if len(v) == 0 {
		return 0
	}
	k := max(1, len(v)/16)
	return mean(v[len(v)-k:])/mean(v[:k]) - 1
}

// alike returns the paths of which others grow by the same part.
func alike(growth map[int]float64) map[int]bool {
	list, sorted := map[int]bool{}, slices.Sorted(maps.Values(growth))
	for i, g := range growth {
		if g <= loadGrowth || g >= loadRatio {
			continue
		}
		from, _ := slices.BinarySearch(sorted, g*(1-alikeBy))
		to, _ := slices.BinarySearch(sorted, g*(1+alikeBy))
		list[i] = to-from >= minAlike
	}
	return list
}

// correct judges the paths that may leak without their part of the load, if there is one.
func (l *load) correct(list []Judgement, paths iter.Seq[Series]) {
	load := l.boots()
	if load == nil {
		return
	}
	if j := Judge(Series{Boots: load, Kind: Heap, Quantum: 0.01}); j.Weight < loadEvidence && !j.evidence.uneven || j.Gain < loadGrowth {
		return
	}
	most := growthOf(load) * loadRatio
	common := l.common(growthOf(load))
	i := -1
	for s := range paths {
		i++
		j := &list[i]
		if j.Weight <= minLoadWeight || len(values(s.Boots)) != len(values(load)) {
			continue // it does not leak, or has other times
		}
		follows := growthOf(corrected(s.Boots)) <= most
		s.Boots = beyond(corrected(s.Boots), load)
		own, _ := s.judge()
		if own.Gain < beyondLeast*j.Gain {
			own.Weight = math.Min(own.Weight, minLoadWeight-loadMargin)
		}
		w := j.Weight
		if own.Rate > 0 && common {
			doubt := loadDoubt * math.Max(0, j.Rate-own.Rate) // of the part that follows the load
			if own.Low-doubt <= 0 {
				own.Weight = math.Min(own.Weight, minLoadWeight-loadMargin)
			}
			j.Rate, j.Low, j.High, j.Gain = own.Rate, own.Rate-math.Hypot(own.Rate-own.Low, doubt), own.Rate+math.Hypot(own.High-own.Rate, doubt), own.Gain
		}
		if (follows || common) && own.Weight+loadMargin < w {
			j.Weight = own.Weight + loadMargin
			j.Why = "most call paths grew as much: the load, or a leak; a longer log decides"
		}
	}
}

// common reports whether many paths grow as the load does: so that it is one, and not their mean.
func (l *load) common(growth float64) bool {
	n := 0
	for _, c := range l.curves {
		last := c[len(c)-len(l.times[len(l.times)-1].At):]
		k := max(1, len(last)/8)
		if g := mean(last[len(last)-k:])/mean(last[:k]) - 1; g > growth*2/3 && g < growth*3/2 {
			n++
		}
	}
	return float64(n) > commonPart*float64(len(l.curves))
}

// growthOf returns the growth in the last boot as a part of its first value.
func growthOf(boots []Boot) float64 {
	v := boots[len(boots)-1].Value
	if len(v) == 0 || v[0] <= 0 {
		return math.Inf(1)
	}
	return v[len(v)-1]/v[0] - 1
}

// load has the values of the first call paths that vary, as multiples of their mean.
type load struct {
	kinds  []Kind
	times  []Boot
	curves [][]float64
}

func (l *load) add(s Series) {
	l.kinds = append(l.kinds, s.Kind)
	if n := len(l.curves); n == maxLoadPaths || n >= minLoadPaths && n*len(l.curves[0]) >= maxLoadValues {
		return
	}
	all := values(s.Boots)
	m := mean(all)
	points := 0
	for _, b := range s.Boots {
		points += len(b.At)
	}
	if len(all) == 0 || len(all) != points || !(m > 0) || slices.Max(all)-slices.Min(all) < s.Quantum/2 || len(l.curves) > 0 && len(all) != len(l.curves[0]) {
		return
	}
	for i := range all {
		all[i] /= m
	}
	l.times, l.curves = s.Boots, append(l.curves, all)
}

// boots returns the median of the curves, smoothed; nil if there are few.
func (l *load) boots() (list []Boot) {
	if len(l.curves) < minLoadPaths {
		return nil
	}
	at := 0
	column := make([]float64, len(l.curves))
	for _, b := range l.times {
		medians := make([]float64, len(b.At))
		for k := range medians {
			for i, c := range l.curves {
				column[i] = c[at]
			}
			slices.Sort(column)
			medians[k] = column[len(column)/2]
			at++
		}
		smooth := make([]float64, len(medians))
		for k := range smooth {
			n := min(len(medians)/16, k, len(medians)-1-k)
			smooth[k] = math.Max(0.05, mean(medians[k-n:k+n+1]))
		}
		list = append(list, Boot{At: b.At, Value: smooth})
	}
	return list
}

// values returns the values of all boots, corrected for lost blocks.
func values(boots []Boot) []float64 {
	n := 0
	for i := range boots {
		n += len(boots[i].Value)
	}
	all := make([]float64, 0, n)
	for _, b := range corrected(boots) {
		all = append(all, b.Value...)
	}
	return all
}

// corrected returns boots whose values are corrected for lost blocks.
func corrected(boots []Boot) []Boot {
	list := slices.Clone(boots)
	for i, b := range boots {
		if b.Kept == nil {
			continue
		}
		list[i].Value, list[i].Kept = slices.Clone(b.Value), nil
		for k := range min(len(b.Value), len(b.Kept)) {
			if b.Kept[k] > 0 {
				list[i].Value[k] /= b.Kept[k]
			}
		}
	}
	return list
}

// beyond returns by how much each boot grew beyond its part of the load: what it had at first, in proportion to the
// load.
func beyond(boots, load []Boot) []Boot {
	for i := range boots {
		b := &boots[i]
		n := min(len(b.Value), len(load[i].Value))
		if n == 0 {
			continue
		}
		first := max(1, n/16)
		part := mean(b.Value[:first]) / mean(load[i].Value[:first])
		value := slices.Clone(b.Value)
		for k := range n {
			value[k] -= part * load[i].Value[k]
		}
		b.Value = value
	}
	return boots
}

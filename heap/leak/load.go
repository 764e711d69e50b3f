package leak

import (
	"iter"
	"math"
	"slices"
)

// Limits of the load.
const (
	minLoadPaths  = 8
	maxLoadPaths  = 256
	loadGrowth    = 0.1 // a load that grows less is none
	loadEvidence  = -1  // and one of which the weight is less
	minLoadWeight = 2   // a path of less weight is not compared with it
	loadRatio     = 3   // what grows more than so many times as much is no load
	loadMargin    = 3   // the load itself is uncertain: what is left of the weight counts so much more
)

// JudgeAll judges the call paths of a program, whose boots have the same times. If what most of them have
// in common grows, it is the load: a path that does not grow if its values are divided by the load is no
// leak. It keeps only the paths that may leak in memory.
func JudgeAll(paths iter.Seq[Series]) (list []Judgement) {
	var l load
	kept := map[int]Series{}
	for s := range paths {
		j := Judge(s)
		if j.Weight > minLoadWeight {
			kept[len(list)] = s
		}
		list = append(list, j)
		l.add(s)
	}
	load := l.boots()
	if load == nil {
		return list
	}
	if j := Judge(Series{Boots: load, Kind: Heap, Quantum: 0.01}); j.Weight < loadEvidence || j.Gain < loadGrowth {
		return list
	}
	most := growthOf(load) * loadRatio
	for i, s := range kept {
		j := &list[i]
		if growthOf(divide(s.Boots, nil)) > most {
			continue
		}
		s.Boots = divide(s.Boots, load)
		if w := Judge(s).Weight + loadMargin; w < j.Weight {
			j.Weight, j.Probability, j.Verdict, j.Bound = w, s.Kind.Probability(w), Unknown, 0
			j.Why = "most call paths grew as much: the load, or a leak; a longer log decides"
			if j.answer(); j.Verdict != Unknown {
				j.Why = ""
			}
		}
	}
	return list
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
	times  []Boot
	curves [][]float64
}

func (l *load) add(s Series) {
	if len(l.curves) == maxLoadPaths {
		return
	}
	all := values(s.Boots)
	m := mean(all)
	if len(all) == 0 || !(m > 0) || slices.Max(all)-slices.Min(all) < s.Quantum/2 || len(l.curves) > 0 && len(all) != len(l.curves[0]) {
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
func values(boots []Boot) (all []float64) {
	for _, b := range boots {
		all = append(all, divide([]Boot{b}, nil)[0].Value...)
	}
	return all
}

// divide returns boots whose values are corrected for lost blocks, and divided by the load if it is not nil.
func divide(boots, load []Boot) []Boot {
	list := slices.Clone(boots)
	for i, b := range boots {
		list[i].Value, list[i].Kept = slices.Clone(b.Value), nil
		for k := range b.Value {
			if b.Kept != nil {
				list[i].Value[k] /= b.Kept[k]
			}
			if load != nil {
				list[i].Value[k] /= load[i].Value[k]
			}
		}
	}
	return list
}

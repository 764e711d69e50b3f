package leak

import (
	"math"
	"slices"
)

// Limits of the load.
const (
	minLoadPaths = 8
	maxLoadPaths = 256
	loadGrowth   = 0.1 // a load that grows less is none
	loadEvidence = -1  // and one of which the weight is less
	loadMargin   = 4   // the load itself is uncertain: what is left of the weight counts so much more
)

// JudgeAll judges the call paths of a program, whose boots have the same times. If what most of them have
// in common grows, it is the load: a path that does not grow if its values are divided by the load is no
// leak.
func JudgeAll(paths []Series) []Judgement {
	list := make([]Judgement, len(paths))
	for i, p := range paths {
		list[i] = Judge(p)
	}
	load := loadOf(paths)
	if load == nil {
		return list
	}
	if j := Judge(Series{Boots: load, Kind: Heap, Quantum: 0.01}); j.Weight < loadEvidence || j.Gain < loadGrowth {
		return list
	}
	for i, p := range paths {
		if j := &list[i]; j.Weight+prior[p.Kind].odds > -3 {
			p.Boots = divide(p.Boots, load)
			if most := Judge(p).Weight + loadMargin; most < j.Weight {
				j.Weight, j.Probability, j.Verdict = most, p.Kind.Probability(most), Unknown
				if j.answer(); j.Verdict == Unknown {
					j.Why = "it grows as most call paths do: the load grows; a longer log decides"
				}
			}
		}
	}
	return list
}

// loadOf returns the median over the paths that vary of their values as multiples of their mean, smoothed;
// nil if there are few.
func loadOf(paths []Series) []Boot {
	var curves [][]float64
	for _, p := range paths {
		all := values(p.Boots)
		m := mean(all)
		if len(all) == 0 || m <= 0 || slices.Max(all)-slices.Min(all) < p.Quantum/2 || len(curves) == maxLoadPaths {
			continue
		}
		for i := range all {
			all[i] /= m
		}
		curves = append(curves, all)
	}
	if len(curves) < minLoadPaths {
		return nil
	}
	var load []Boot
	at := 0
	column := make([]float64, len(curves))
	for _, b := range paths[0].Boots {
		medians := make([]float64, len(b.At))
		for k := range medians {
			for i, c := range curves {
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
		load = append(load, Boot{At: b.At, Value: smooth})
	}
	return load
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

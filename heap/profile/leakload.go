package profile

import "math"

// loadCurve is the load of a program over the dumps: what the values of its call paths have in common.
type loadCurve struct {
	dumps []int       // indexes of those that are examined
	paths [][]float64 // values by dump, as multiples of their mean
}

const (
	// maxLoadPaths is the number of call paths that are compared, and maxLoadValues that of their values.
	maxLoadPaths  = 256
	maxLoadValues = 1 << 18
	// loadPart is the part of the log over which the load is smoothed.
	loadPart = 1.0 / 8
	// loadBend is the most that the floor of a leak bends if its values are divided by the load: as much as that of
	// a leak whose rate changes.
	loadBend = 0.35
)

// add adds the values of a call path.
func (c *loadCurve) add(points []Value) {
	if len(c.paths) >= maxLoadPaths || len(c.paths)*len(c.dumps) >= maxLoadValues {
		return
	}
	mean := 0.0
	for _, d := range c.dumps {
		mean += float64(points[d].Count) / float64(len(c.dumps))
	}
	if mean == 0 {
		return
	}
	list := make([]float64, len(c.dumps))
	for k, d := range c.dumps {
		list[k] = float64(points[d].Count) / mean
	}
	c.paths = append(c.paths, list)
}

// curve returns the load at each examined dump: the median of the call paths, smoothed.
func (c *loadCurve) curve() []float64 {
	if len(c.paths) == 0 {
		return nil
	}
	medians, list := make([]float64, len(c.dumps)), make([]float64, len(c.paths))
	for k := range medians {
		for i, p := range c.paths {
			list[i] = p[k]
		}
		medians[k] = median(list)
	}
	half := int(float64(len(medians)) * loadPart / 2)
	curve := make([]float64, len(medians))
	for k := range curve {
		n := min(half, k, len(curve)-1-k)
		for i := k - n; i <= k+n; i++ {
			curve[k] += medians[i] / float64(2*n+1)
		}
		curve[k] = math.Max(curve[k], 0.05)
	}
	return curve
}

// compareWithLoad lowers the verdict of rows that no longer grow if their values are divided by the load.
func (p *Profile) compareWithLoad(l *Leaks, t *leakTrend, curve []float64) {
	points := make([]Value, len(p.dumps))
	grows := thresholds[len(thresholds)-1]
	for _, r := range l.Rows {
		if !r.Verdict.Sure() || curve == nil {
			continue
		}
		clear(points)
		p.addRows(points, r.rows)
		for k, d := range t.examined() {
			v := &points[d]
			v.Count, v.Bytes = uint64(math.Round(float64(v.Count)/curve[k])), uint64(math.Round(float64(v.Bytes)/curve[k]))
		}
		if e := t.examine(points); e.Z < grows.z || e.Bend > loadBend || e.Evenness < grows.h2 {
			r.Verdict = Grows
		}
	}
}

package growth

import "github.com/lwsbt/lwsbt/heap/profile"

// ofIntervals reports whether each used dump has only the blocks of its own interval. (see
// [Leaks].Intervals)
func ofIntervals(dumps []LeakDump) bool {
	n := 0
	for i := range dumps {
		d := &dumps[i]
		if !d.Used || d.Total.Count == 0 {
			continue
		}
		if !d.Fresh {
			return false
		}
		n++
	}
	return n >= minBootDumps
}

// addUp replaces the values of each dump by the sums of those of the dumps of its boot so far, if the
// dumps are of intervals.
func (l *Leaks) addUp(points []profile.Value) {
	if !l.Intervals {
		return
	}
	sums := map[boot]profile.Value{}
	for i := range points {
		sum := sums[l.Dumps[i].boot]
		if l.Dumps[i].Used {
			sum.Add(points[i])
		}
		points[i], sums[l.Dumps[i].boot] = sum, sum
	}
}

// IntervalTotal returns the sum of the used dumps.
func (l *Leaks) IntervalTotal() (sum profile.Value) {
	for i := range l.Dumps {
		if l.Dumps[i].Used {
			sum.Add(l.Dumps[i].Total)
		}
	}
	return sum
}

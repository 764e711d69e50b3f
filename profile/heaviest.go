package profile

import "slices"

// Heaviest returns a dump with the n call paths of d that hold the most, and the rest as
// [Other], and how many those are; d itself if it has no more. The dump is not one of
// the profile's.
func (p *Profile) Heaviest(d *Dump, w Weight, n int) (heaviest *Dump, left int) {
	var sums []uint64
	for _, v := range d.Values() {
		sums = append(sums, w.Of(v))
	}
	if len(sums) <= n {
		return d, 0
	}
	slices.Sort(sums)
	least := sums[len(sums)-n]
	at, _ := slices.BinarySearch(sums, least+1)
	equal := n // of those that hold just that much, how many are kept
	if least < 1<<64-1 {
		equal = n - (len(sums) - at)
	}
	sum := *d
	sum.dense, sum.sparse = array[Value]{}, make([]pathValue, 0, n+1)
	var rest Value
	for id, v := range d.Values() {
		switch s := w.Of(v); {
		case s > least:
		case s == least && equal > 0:
			equal--
		default:
			left++
			p.Saturated = rest.Add(v) || p.Saturated
			continue
		}
		sum.sparse = append(sum.sparse, pathValue{id, v})
	}
	other := p.OtherPath()
	at, known := slices.BinarySearchFunc(sum.sparse, other, func(v pathValue, id PathID) int { return int(v.path) - int(id) })
	if !known {
		sum.sparse = slices.Insert(sum.sparse, at, pathValue{path: other})
	}
	p.Saturated = sum.sparse[at].Add(rest) || p.Saturated
	return &sum, left
}

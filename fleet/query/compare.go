package query

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// heldPath is a call path of a build, and what the devices hold with it.
type heldPath struct {
	side    int // 0 for the build before, 1 for that after
	path    int64
	devices []int32
	bytes   []float64 // by devices
	sum     float64
	stack   []Frame
}

// matched is the paths of two builds that have the same key.
type matched struct {
	key    string
	paths  [2][]*heldPath // before and after
	sum    [2]float64
	bytes  sample
	limits []float64 // which tests compare the bytes with
	signs  float64   // p-value of the devices that ran both builds
}

// match matches paths by a key. It returns the share of the bytes of a build that paths of both builds
// hold, the larger of the two shares.
func match(paths []*heldPath, key func(*heldPath) string) (list []*matched, share float64) {
	byKey := map[string]*matched{}
	for _, p := range paths {
		k := key(p)
		m := byKey[k]
		if m == nil {
			m = &matched{key: k}
			byKey[k], list = m, append(list, m)
		}
		m.paths[p.side], m.sum[p.side] = append(m.paths[p.side], p), m.sum[p.side]+p.sum
	}
	var both, all [2]float64
	for _, m := range list {
		for side, sum := range m.sum {
			if all[side] += sum; m.paths[0] != nil && m.paths[1] != nil {
				both[side] += sum
			}
		}
	}
	for side := range all {
		if all[side] == 0 {
			return list, 1
		}
		share = max(share, both[side]/all[side])
	}
	return list, share
}

// key returns what a path has in common with that of the other build: the names of its functions, or its addresses.
func (d *Diff) key(p *heldPath) string {
	if d.ByName {
		return cmp.Or(functionsOf(p.stack), strconv.FormatInt(p.path, 10))
	}
	return strconv.FormatInt(p.path, 10)
}

// match matches the paths by the names of their functions, or by address if that matches more of the bytes.
func (d *Diff) match(paths []*heldPath) []*matched {
	d.ByName = false
	addresses, same := match(paths, d.key)
	var named [2]bool
	for _, p := range paths {
		named[p.side] = named[p.side] || slices.ContainsFunc(p.stack, func(f Frame) bool { return f.Function != "" })
	}
	d.ByName = true
	names, share := match(paths, d.key)
	if d.ByName = named[0] && named[1] && share >= same-0.01; d.ByName {
		addresses, same = names, share
	}
	d.Comparable = same >= 0.5
	return addresses
}

// compare sets what d says of the paths. It returns those that match.
func (d *Diff) compare(paths []*heldPath) []*matched {
	list := d.match(paths)
	n := [2]int64{d.DevicesBefore, d.DevicesAfter}
	d.Paths, d.Before, d.After, d.Rows = len(list), 0, 0, nil
	held, sizes := newTests(n), newTests(n)
	var pairs paired
	values := make([][2]float64, len(d.both))
	for _, m := range list {
		m.signs = pairs.add(m.merge(d.both, values))
		d.Before, d.After = d.Before+m.sum[0]/float64(n[0]), d.After+m.sum[1]/float64(n[1])
		m.limits = m.bytes.limits(n)
		held.add(m.bytes.above(0))
		for _, limit := range m.limits {
			sizes.add(m.bytes.above(limit))
		}
	}
	if !d.Comparable {
		return nil
	}
	kinds := 0
	for _, some := range []bool{len(held.number) > 0, len(sizes.number) > 0, len(pairs) > 0} {
		if some {
			kinds++
		}
	}
	for _, m := range list {
		with := m.bytes.above(0)
		c := Change{Before: m.sum[0] / float64(n[0]), After: m.sum[1] / float64(n[1]), Had: with[0], Have: with[1], Chain: m.key, PHeld: held.alone(with)}
		p := 1.0
		for _, limit := range m.limits {
			p = min(p, sizes.alone(m.bytes.above(limit)))
		}
		c.P = min(1, float64(max(1, kinds))*min(held.any(c.PHeld), sizes.any(p), pairs.any(m.signs)))
		c.describe(m)
		d.Rows = append(d.Rows, c)
	}
	d.sort()
	return list
}

// sort sorts the rows.
func (d *Diff) sort() {
	words := []string{Changed, Perhaps, Possibly, NoEvidence}
	slices.SortStableFunc(d.Rows, func(a, b Change) int {
		return cmp.Or(slices.Index(words, a.Evidence)-slices.Index(words, b.Evidence), cmp.Compare(b.Delta(), a.Delta()), strings.Compare(a.Chain, b.Chain))
	})
}

// describe sets the kind of a change, the word for its evidence, its paths and their frames.
func (c *Change) describe(m *matched) {
	ids := [2]int64{-1, -1}
	for side, paths := range m.paths {
		for _, p := range paths {
			ids[side], c.Stack = p.path, p.stack
		}
	}
	c.PathOld, c.PathNew = ids[0], ids[1]
	switch {
	case c.Had == 0:
		c.Kind = "new"
	case c.Have == 0:
		c.Kind = "gone"
	case c.After > c.Before:
		c.Kind = "grown"
	default:
		c.Kind = "shrunk"
	}
	c.setEvidence()
}

// setEvidence sets the word for the p-values.
func (c *Change) setEvidence() {
	c.Evidence = NoEvidence
	switch {
	case c.P <= 1e-4:
		c.Evidence = Changed
	case c.P <= 1e-2:
		c.Evidence = Perhaps
	case c.P <= 0.1 || c.PHeld <= 0.05 && (c.PControls == nil || *c.PControls <= 0.1):
		c.Evidence = Possibly
	}
}

// merge sets the bytes of the devices, and returns those of the devices that ran both builds. A device that holds several
// of the paths has the sum. The bytes are rounded: a sum in another order must not be on the other side of a limit.
// values is memory for a value per device.
func (m *matched) merge(both []bool, values [][2]float64) (pairs [][2]float64) {
	clear(values)
	for side, paths := range m.paths {
		for _, p := range paths {
			for i, device := range p.devices {
				values[device][side] += p.bytes[i]
			}
			p.devices, p.bytes = nil, nil
		}
	}
	for device, v := range values {
		for side := range v {
			if v[side] = math.Round(v[side]*1000) / 1000; v[side] > 0 {
				m.bytes[side] = append(m.bytes[side], v[side])
			}
		}
		if both[device] && v != [2]float64{} {
			pairs = append(pairs, v)
		}
	}
	for side := range m.bytes {
		slices.Sort(m.bytes[side])
		m.sum[side] = 0 // in this order: the difference of equal builds is 0
		for _, v := range m.bytes[side] {
			m.sum[side] += v
		}
	}
	return pairs
}

// sample is what the devices of two groups hold, ascending, without those that hold nothing.
type sample [2][]float64

// limits returns the percentiles 50, 85, 90, 95, 97.5 and 99 of what n devices of both groups hold, without those that are 0.
func (s sample) limits(n [2]int64) (list []float64) {
	all := slices.Concat(s[0], s[1])
	slices.Sort(all)
	for _, percent := range []float64{50, 85, 90, 95, 97.5, 99} {
		nth := int64(math.Ceil(percent/100*float64(n[0]+n[1]))) - 1 - (n[0] + n[1] - int64(len(all)))
		if nth >= 0 && all[nth] > 0 {
			list = append(list, all[nth])
		}
	}
	return slices.Compact(list)
}

// above returns how many devices of each group hold more than a limit.
func (s sample) above(limit float64) (n [2]int64) {
	for side, list := range s {
		n[side] = int64(len(list) - sort.Search(len(list), func(i int) bool { return list[i] > limit }))
	}
	return n
}

// tests are Fisher's exact tests of two builds. Each asks whether the devices that exceed a limit are divided
// between the builds as if chosen at random.
type tests struct {
	devices [2]int64
	number  map[int64]float64 // of tests, by the number of devices that exceed the limit
	tails   map[int64]*tails
}

// tails are the sums of a hypergeometric distribution: below[i] and above[i] are the probabilities that of the devices
// that exceed the limit at most, and at least, first+i are of the build before. Values of less than 1e-30 are left out.
type tails struct {
	first        int64
	below, above []float64
}

func newTests(devices [2]int64) *tests {
	return &tests{devices, map[int64]float64{}, map[int64]*tails{}}
}

// add adds a test. One that has the same outcome for all divisions does not count.
func (t *tests) add(above [2]int64) {
	n, m, k := t.devices[0], t.devices[1], above[0]+above[1]
	if k == 0 || k == n+m {
		return
	}
	if t.number[k]++; t.tails[k] != nil {
		return
	}
	choose := func(n, k int64) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		y, _ := math.Lgamma(float64(k + 1))
		z, _ := math.Lgamma(float64(n - k + 1))
		return x - y - z
	}
	share := float64(n) / float64(n+m)
	mean := float64(k) * share
	far := 12*math.Sqrt(mean*(1-share)*float64(n+m-k)/float64(n+m)) + 30
	low, high := max(0, k-m, int64(mean-far)), min(n, k, int64(mean+far))
	x := &tails{low, make([]float64, high-low+1), make([]float64, high-low+1)}
	of := func(i int) float64 {
		a := low + int64(i)
		return math.Exp(choose(n, a) + choose(m, k-a) - choose(n+m, k))
	}
	var up, down float64
	for i := range x.below {
		j := len(x.below) - 1 - i
		up, down = up+of(i), down+of(j)
		x.below[i], x.above[j] = up, down
	}
	t.tails[k] = x
}

// alone returns the two-sided p-value of a test.
func (t *tests) alone(above [2]int64) float64 {
	x := t.tails[above[0]+above[1]]
	if x == nil {
		return 1
	}
	i := min(max(0, above[0]-x.first), int64(len(x.below)-1))
	return min(1, 2*min(x.below[i], x.above[i]))
}

// any returns a limit of the probability that any of the tests has a p-value of at most p: the sum of the
// probabilities, which are 0 for tests that have no such outcome.
func (t *tests) any(p float64) (sum float64) {
	if p >= 1 {
		return 1
	}
	p *= 1 + 1e-9 // equal probabilities differ by rounding
	for _, k := range slices.Sorted(maps.Keys(t.number)) {
		x := t.tails[k]
		if i := sort.Search(len(x.below), func(i int) bool { return 2*x.below[i] > p }); i > 0 {
			sum += t.number[k] * x.below[i-1]
		}
		if i := sort.Search(len(x.above), func(i int) bool { return 2*x.above[i] <= p }); i < len(x.above) {
			sum += t.number[k] * x.above[i]
		}
	}
	return min(1, sum)
}

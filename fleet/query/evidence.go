package query

import (
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/fleet/query/oldrule"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// growth is a call path that grows on a device.
type growth struct {
	device  int // number
	verdict oldrule.Verdict
	leaks   bool // it does by the dumps of the device, at the present rate; or a cache fills since some time
	changed bool
	alone   bool    // the path leaks by the dumps of this device, and changes far less on others
	rate    float64 // present, bytes per hour; 0 if not timed
	gain    float64 // rise of the floor in bytes
	bend    float64
	free    int64   // bytes, -1 if not known
	since   int64   // time of the dump since which it grows, Unix time in µs
	excess  float64 // intervals in which the floor rose, less the expected number
	most    float64 // largest excess
	flush   parts   // growth before and after the path fell to nearly nothing at once; no times if it did not
	shape
}

// shape is how a path grew on a device since it began to grow, in bytes. Each boot is divided into
// thirds; the values are added up over the boots. last compares the last tenth of each boot, a day if that is
// more, with the time before it.
type shape struct {
	net          float64 // last third less first
	thirds       parts   // from the first third to the middle one, and on to the last
	last         parts   // before the last tenth, and then
	first, final float64 // means of the first and of the last third
	boots        int
	squares      float64 // sum of the squares of net in each boot
	low, high    float64 // least and largest value
	tenths       [9]step // the last tenth of each boot, as for last, and those before it
}

// step is a rise in a time, added up over boots or devices.
type step struct{ rise, time float64 }

// parts are two parts of a growth, one after the other.
type parts struct{ rise, time [2]float64 } // time in hours, or dumps

// add adds the growth between three points.
func (p *parts) add(t1, v1, t2, v2, t3, v3 float64) {
	p.rise[0], p.rise[1] = p.rise[0]+v2-v1, p.rise[1]+v3-v2
	p.time[0], p.time[1] = p.time[0]+t2-t1, p.time[1]+t3-t2
}

// pathSum adds up the devices with a call path.
type pathSum struct {
	grows   []growth
	shrank  int       // devices on which it shrinks, by the same rule
	others  []float64 // change on each device on which it does not grow, bytes
	swings  []float64 // on each of these, the difference of its largest and its least value
	growths []float64 // growth on each device, as a fraction
	first   float64   // mean bytes of the first and of the last third of the boots, all devices
	last    float64
	all     halves // of all devices
}

// halves adds up the rates of devices in two parts of their growth.
type halves struct {
	n, before, after        float64
	squares, product, later float64 // sums of before², of before × after, and of after²
}

func (h *halves) add(p *parts) {
	if p.time[0] <= 0 || p.time[1] <= 0 {
		return
	}
	a, b := p.rise[0]/p.time[0], p.rise[1]/p.time[1]
	h.n, h.before, h.after = h.n+1, h.before+a, h.after+b
	h.squares, h.product, h.later = h.squares+a*a, h.product+a*b, h.later+b*b
}

// pace returns the ratio of the rates, after to before, and its standard error, which is 0 for one device.
func (h *halves) pace() (ratio, err float64) {
	switch {
	case h.n == 0:
		return 1, unknown
	case h.before <= 0:
		return unknown, unknown
	}
	ratio = min(h.after/h.before, unknown)
	squares := max(0, h.later-2*ratio*h.product+ratio*ratio*h.squares)
	return ratio, min(math.Sqrt(squares*h.n/max(1, h.n-1))/h.before, unknown)
}

// add adds the evidence of a device.
func (p *pathSum) add(number int, d *device, values []profile.Value) {
	e := d.test.Examine(values)
	all := shapeOf(d.test.Boots, 0, e.Scale)
	p.first, p.last = p.first+all.first, p.last+all.final
	p.all.add(&all.thirds)
	if all.first > 0 {
		p.growths = append(p.growths, all.final/all.first-1)
	}
	t := all.repeated()
	if e.Backward >= oldrule.Grows || -t >= often {
		p.shrank++
	}
	if e.Z >= minZ {
		e.Verdict = max(e.Verdict, oldrule.Grows)
	}
	if up, down := late(d.test.Boots, e.Scale); down && e.Backward < oldrule.Grows {
		p.shrank++
	} else if up.time > 0 && (e.Verdict < oldrule.Grows || e.Gain <= 0) {
		e.Verdict, e.Gain, e.Rate, e.Changed, e.Since = oldrule.Grows, up.rise, up.rise/up.time, true, up.since
	}
	if t >= often {
		e.Verdict, e.Gain, e.Rate = max(e.Verdict, oldrule.Grows), max(e.Gain, all.net), all.net/(all.thirds.time[0]+all.thirds.time[1])
	}
	if e.Verdict < oldrule.Grows || e.Gain <= 0 || e.Changed && !newHigh(d.test.Boots, e.Since) {
		if all.net != 0 {
			p.others, p.swings = append(p.others, all.net), append(p.swings, all.high-all.low)
		}
		return
	}
	g := growth{device: number, verdict: e.Verdict, leaks: e.Verdict == oldrule.Leaking || e.Changed && (e.Verdict.Sure() || e.More > 0), changed: e.Changed, gain: e.Gain, bend: e.Bend, free: d.free,
		since: d.time(e.Since), excess: float64(e.Rose) - e.Chance, most: float64(e.Intervals+e.Boots) - e.Chance, shape: all}
	if e.Changed {
		g.shape = shapeOf(d.test.Boots, e.Since, e.Scale)
	}
	for _, b := range d.test.Boots {
		g.flush.addFlush(b.At, b.Value)
	}
	if d.test.Timed() {
		g.rate = e.Rate
	}
	p.grows = append(p.grows, g)
}

// addFlush adds the growth before and after the largest fall from one dump to the next, if that is a third or more of what
// the values differ, and leaves a quarter or less.
func (p *parts) addFlush(at, value []float64) {
	k, last := 1, len(value)-1
	for i := range value[1:] {
		if value[i]-value[i+1] > value[k-1]-value[k] {
			k = i + 1
		}
	}
	if k >= 3 && last-k >= 2 && 3*(value[k-1]-value[k]) >= slices.Max(value)-slices.Min(value) && 4*value[k] <= value[k-1] {
		p.add(at[0], value[0], at[k-1], value[k-1], at[k-1], value[k-1])
		p.add(at[k], value[k], at[k], value[k], at[last], value[last])
	}
}

// flushed reports whether the path fell to nearly nothing on half or more of the devices on which it grows, and rises since
// then as it did before.
func (p *pathSum) flushed() bool {
	var sum parts
	n := 0
	for i := range p.grows {
		if f := &p.grows[i].flush; f.time[1] > 0 {
			n++
			sum.add(0, 0, f.time[0], f.rise[0], f.time[0]+f.time[1], f.rise[0]+f.rise[1])
		}
	}
	return n > 0 && 2*n >= len(p.grows) && sum.rise[1]/sum.time[1] <= again*sum.rise[0]/sum.time[0]
}

// risen is a growth since a dump.
type risen struct {
	step
	since int
}

// late finds the growth of the last boot since some tenth of its dumps, and reports whether the path shrinks in the same way if
// the dumps are taken in reverse order.
func late(boots []oldrule.LeakBoot, scale float64) (up risen, down bool) {
	b := boots[len(boots)-1]
	k := len(b.Value)
	n := max(1, k/10)
	var rises, falls [9]float64 // the last first
	count := min(len(rises), k/n-1)
	for i := range count {
		end := k - i*n
		rises[i] = (mean(b.Value[end-n:end]) - mean(b.Value[end-2*n:end-n])) * scale
		falls[count-1-i] = -rises[i]
	}
	least := min(n+1, 3) // one step within means of several dumps is two
	down = lastFar(falls[:count], least) > 0
	if m := lastFar(rises[:count], least); m > 0 {
		up.since = b.Dumps[k-(m+1)*n]
		up.time = mean(b.At[k-n:]) - mean(b.At[k-(m+1)*n:k-m*n])
		up.rise = quantile(rises[:m], 0.5) * float64(m) // the first is a part of one
	}
	return up, down
}

// lastFar returns how many of the first rises are each far more than any of the others, without the one between them, 0 if
// they are less than least, or the others less than three.
func lastFar(rises []float64, least int) int {
	for m := len(rises) - 4; m >= least; m-- {
		most := 0.0
		for _, r := range rises[m+1:] {
			most = max(most, math.Abs(r))
		}
		if lowest := slices.Min(rises[:m]); lowest > 0 && lowest > far*most {
			return m
		}
	}
	return 0
}

// minZ is the least z of a device on which a path grows, however late or early in the boot.
const minZ = 4

// Limits of a growth that comes again in each boot, although it is small beside the noise.
const (
	manyBoots = 5
	often     = 4 // standard errors
)

// repeated returns the mean growth in a boot in standard errors, 0 if there are few boots.
func (s *shape) repeated() float64 {
	n := float64(s.boots)
	if s.boots < manyBoots {
		return 0
	}
	variance := max(0, s.squares-s.net*s.net/n) / (n - 1)
	return s.net / math.Sqrt(n*variance+1e-9*s.squares+1e-9)
}

// newHigh reports whether the values grow since a dump beyond all before, by half of that growth in
// the last boot or more. A cache that is flushed, or that fills again after a boot, returns to a level it had.
func newHigh(boots []oldrule.LeakBoot, since int) bool {
	var most float64
	for _, b := range boots {
		from, _ := slices.BinarySearch(b.Dumps, since)
		for _, v := range b.Value[:from] {
			most = max(most, v)
		}
	}
	b := &boots[len(boots)-1]
	from, _ := slices.BinarySearch(b.Dumps, since)
	k := len(b.Value)
	last := mean(b.Value[k-min(3, k-from):])
	return last-most >= (last-b.Value[from])/2
}

// shapeOf returns the shape of the values in the boots from a dump on.
func shapeOf(boots []oldrule.LeakBoot, since int, scale float64) (s shape) {
	for _, b := range boots {
		from, _ := slices.BinarySearch(b.Dumps, since)
		at, value := b.At[from:], b.Value[from:]
		k := len(at)
		if k < 3 {
			continue
		}
		n := k / 3
		t1, v1 := mean(at[:n]), mean(value[:n])*scale
		t2, v2 := mean(at[n:k-n]), mean(value[n:k-n])*scale
		t3, v3 := mean(at[k-n:]), mean(value[k-n:])*scale
		s.net, s.first, s.final = s.net+v3-v1, s.first+v1, s.final+v3
		if s.boots == 0 {
			s.low = math.Inf(1)
		}
		s.low, s.high = min(s.low, slices.Min(value)*scale), max(s.high, slices.Max(value)*scale)
		s.boots, s.squares = s.boots+1, s.squares+(v3-v1)*(v3-v1)
		s.thirds.add(t1, v1, t2, v2, t3, v3)
		s.addLast(at, value, scale)
	}
	return s
}

// day is in hours.
const day = 24

// addLast compares the last tenth of a boot with the time before.
func (s *shape) addLast(at, value []float64, scale float64) {
	k := len(at)
	span := at[k-1] - at[0]
	width := max(span/10, min(day, span/3))
	if width > day && float64(k) > 2*span/day { // whole days: a path may have a cycle of a day, and at weekends
		width -= math.Mod(width, day)
	}
	part := func(from, to float64) (t, v float64, ok bool) { // from < at ≤ to
		i, _ := slices.BinarySearch(at, math.Nextafter(from, math.Inf(1)))
		j, _ := slices.BinarySearch(at, math.Nextafter(to, math.Inf(1)))
		if i >= j {
			return 0, 0, false
		}
		return mean(at[i:j]), mean(value[i:j]) * scale, true
	}
	t1, v1, ok1 := part(math.Nextafter(at[0], math.Inf(-1)), at[0]+width)
	t2, v2, ok2 := part(at[k-1]-2*width, at[k-1]-width)
	t3, v3, ok3 := part(at[k-1]-width, at[k-1])
	if k < 8 || !ok1 || !ok2 || !ok3 || t2 <= t1 {
		return
	}
	s.last.add(t1, v1, t2, v2, t3, v3)
	for i := range s.tenths {
		s.tenths[i].rise, s.tenths[i].time = s.tenths[i].rise+v3-v2, s.tenths[i].time+t3-t2
		t3, v3 = t2, v2
		if t2, v2, ok2 = part(at[k-1]-float64(i+3)*width, at[k-1]-float64(i+2)*width); !ok2 {
			break
		}
	}
}

func mean(list []float64) (m float64) {
	for _, v := range list {
		m += v / float64(len(list))
	}
	return m
}

// typical returns the growth of the path on the typical device, as a fraction.
func (p *pathSum) typical(devices int64) float64 {
	return quantile(append(make([]float64, int(devices)-len(p.growths)), p.growths...), 0.5)
}

// leaveOut moves devices from those on which the path grows to the others.
func (p *pathSum) leaveOut(without func(*growth) bool) {
	p.grows = slices.DeleteFunc(p.grows, func(g growth) bool {
		out := without(&g)
		if out {
			p.others = append(p.others, g.net)
		}
		return out
	})
}

// spread returns how much the path changes on a device on which it does not grow, in bytes.
func (p *pathSum) spread() float64 { return largestOf(p.others) }

// swing returns how much the values differ on a device on which the path does not grow, in bytes.
func (p *pathSum) swing() float64 { return largestOf(p.swings) }

// largestOf returns the largest size of numbers, without some outliers.
func largestOf(others []float64) float64 {
	if len(others) == 0 {
		return 0
	}
	list := make([]float64, len(others))
	for i, v := range others {
		list[i] = math.Abs(v)
	}
	slices.Sort(list)
	return list[len(list)-1-max(int(outliers*float64(len(list))), min(1, len(list)/10))]
}

// changes returns the sums of the changes on the devices on which the path grows and on the others, in bytes, and
// of their squares.
func (p *pathSum) changes() (grown, grownSquares, other, otherSquares float64) {
	for i := range p.grows {
		v := p.grows[i].net
		grown, grownSquares = grown+v, grownSquares+v*v
	}
	for _, v := range p.others {
		other, otherSquares = other+v, otherSquares+v*v
	}
	return grown, grownSquares, other, otherSquares
}

// mean returns the mean change of all devices in standard errors.
func (p *pathSum) mean() float64 {
	grown, grownSquares, other, otherSquares := p.changes()
	return (grown + other) / math.Sqrt(max(1, grownSquares+otherSquares))
}

// opposed reports whether the path goes up and down: it shrinks on the other devices by a third or more of what it grows
// on some, and it is uncertain whether it grows on the mean of all devices; or by half, and it grows on many devices.
func (p *pathSum) opposed() bool {
	grown, _, other, _ := p.changes()
	if 4*len(p.grows) >= len(p.grows)+len(p.others) && other < halved*grown { // a saw-tooth at another phase on each device
		return true
	}
	return other < opposed*grown && p.mean() < drift
}

// shared reports whether the path grows on the other devices, too, by a third or more of what it grows on those: a
// warm-up, perhaps, of which noise hides a part.
func (p *pathSum) shared() bool {
	grown, _, other, squares := p.changes()
	return len(p.grows) > 0 && other > errors2*math.Sqrt(squares) && other/float64(len(p.others)) >= grown/float64(len(p.grows))/3
}

// unknown is a ratio of rates, or its standard error, that says nothing.
const unknown = 10

// quantile returns a quantile of values, which it sorts, by interpolation between them.
func quantile(list []float64, p float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	at := p * float64(len(list)-1)
	i := min(int(at), len(list)-1)
	j := min(i+1, len(list)-1)
	return list[i] + (at-float64(i))*(list[j]-list[i])
}

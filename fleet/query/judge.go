package query

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// Rule is the version of the judgement: rows of another are judged again.
const Rule = 1

// manyBoots is the number of boots from which on growth in each of them is compared.
const manyBoots = 5

// judgeDevice judges a device by its dumps, without its call paths.
func judgeDevice(d *device, build string, at int64) store.JudgedDevice {
	last := &d.dumps[len(d.dumps)-1]
	j := store.JudgedDevice{Build: build, Device: last.Device, At: at, Rule: Rule, Boot: last.Boot, Dump: last.Dump, Boots: int64(len(d.line.Boots)),
		Timed: d.timed(), Free: d.free, Ended: -1}
	var lengths []float64 // of the boots, hours
	for i := range d.dumps {
		m := &d.dumps[i]
		if i == 0 || m.Boot != d.dumps[i-1].Boot {
			lengths = append(lengths, 0)
		}
		k := len(lengths) - 1
		lengths[k] = math.Max(lengths[k], (time.Duration(m.Uptime) * time.Microsecond).Hours())
	}
	d.judgeHeaps(&j)
	n := len(lengths) - 1
	j.Uptime, j.Longest = lengths[n], slices.Max(lengths)
	if n >= 3 {
		j.Ended = quantile(lengths[:n], 0.5)
	}
	return j
}

// judgeHeaps sets the heap that is full first by its own growth, if the device has several.
func (d *device) judgeHeaps(j *store.JudgedDevice) {
	series := map[string]*leak.Series{}
	free := map[string]int64{}
	var names []string
	for i, b := range d.line.Boots {
		for k, at := range b.Dumps {
			var list []store.Heap
			if text := d.dumps[at].Heaps; text == "" || json.Unmarshal([]byte(text), &list) != nil {
				continue
			}
			for _, h := range list {
				s := series[h.Name]
				if s == nil {
					s = &leak.Series{Kind: leak.Heap}
					series[h.Name], names = s, append(names, h.Name)
				}
				for len(s.Boots) <= i {
					s.Boots = append(s.Boots, leak.Boot{})
				}
				o := &s.Boots[i]
				o.At, o.Value = append(o.At, b.At[k]), append(o.Value, float64(h.Size-h.Free))
				free[h.Name] = h.Free
			}
		}
	}
	if j.Heaps = int64(len(names)); j.Heaps < 2 {
		return
	}
	first := math.Inf(1)
	for _, name := range names {
		r := leak.Judge(*series[name])
		if in := float64(free[name]) / r.Rate; r.Verdict == leak.Leak && r.Rate > 0 && in < first {
			first, j.Heap, j.HeapFree, j.HeapRate = in, name, free[name], r.Rate
		}
	}
}

// judge judges the values of a call path in each dump of the device.
func (d *device) judge(path int64, values []profile.Value) store.Judged {
	s := d.line.Series(values)
	j := leak.Judge(s)
	r := store.Judged{Path: path, Boots: int64(len(s.Boots)), Weight: j.Weight, Rate: j.Rate, Err: math.Min((j.High-j.Low)/2/1.645, 1e12)}
	seen := map[int64]bool{}
	for i, v := range values {
		if v.Count > 0 {
			seen[d.dumps[i].Boot] = true
		}
	}
	r.Seen = int64(len(seen))
	grown := addShape(&r, s.Boots)
	if len(s.Boots) > 0 && (j.Since.Boot > 0 || late(&s.Boots[j.Since.Boot], j.Since.At)) {
		at := j.Since
		if b := &s.Boots[at.Boot]; at.Boot == len(s.Boots)-1 {
			at.At = hinge(b.At, corrected(b), at.At)
		}
		r.Since = d.time(d.line.Dump(at))
	}
	if r.Weight < unclear {
		d.recent(&r, s.Boots)
	}
	if slices.ContainsFunc(s.Boots, func(b leak.Boot) bool { return flushed(b.At, corrected(&b)) }) {
		r.Weight, r.Recent = math.Min(r.Weight, -4), false
	}
	if n := len(s.Boots); n >= manyBoots {
		begun := late(&s.Boots[j.Since.Boot], j.Since.At)
		alone := j.Boots < n && j.Since.Boot == n-j.Boots && !steady(grown)
		if j.Boots >= manyBoots && begun || alone { // it begins at the same uptime of each boot, as a cache does, or the other boots do not have it
			r.Weight, r.Recent = math.Min(r.Weight, -4), false
		}
	}
	return r
}

// hinge returns the time near an approximate begin of a growth at which a constant and then a straight line fit the values best.
func hinge(at, value []float64, near float64) (best float64) {
	least, span := math.Inf(1), at[len(at)-1]-at[0]
	best = near
	for k := 1; k < len(at)-2; k++ {
		if math.Abs(at[k]-near) > span/5 {
			continue
		}
		var n, x, y, xx, xy, yy float64
		for i, v := range value {
			u := math.Max(0, at[i]-at[k])
			n, x, y, xx, xy, yy = n+1, x+u, y+v, xx+u*u, xy+u*v, yy+v*v
		}
		sxx, sxy := xx-x*x/n, xy-x*y/n
		if rest := yy - y*y/n - sxy*sxy/sxx; rest < least {
			least, best = rest, at[k]
		}
	}
	return best
}

// corrected returns the values of a boot, corrected for lost blocks.
func corrected(b *leak.Boot) []float64 {
	value := slices.Clone(b.Value)
	for k := range b.Kept {
		value[k] /= b.Kept[k]
	}
	return value
}

// Limits of growth that began a short time ago.
const (
	unclear      = 2 // of a larger weight of the model, no other is looked for
	recentWeight = 6 // the largest weight of it
	far          = 3 // each rise is so many times as large as any change before
)

// recent sets the weight, the rate and the begin of a growth in the last tenths of the last boot, if each rise is larger than any
// change before, and the path became larger than ever before: the model needs more values for it. In a random series, the last k
// of n changes are the largest ones once in "n over k" series.
func (d *device) recent(r *store.Judged, boots []leak.Boot) {
	if len(boots) == 0 {
		return
	}
	b := &boots[len(boots)-1]
	at, value := b.At, corrected(b)
	n := max(1, len(value)/10)
	count := min(10, len(value)/n) - 1
	end := func(i int) int { return len(value) - i*n } // of a tenth, 0 is the last
	var rises []float64                                // the last first
	for i := range count {
		rises = append(rises, mean(value[end(i)-n:end(i)])-mean(value[end(i)-2*n:end(i)-n]))
	}
	m := lastFar(rises, min(n+1, 3)) // one step within means of several dumps is two
	if m == 0 {
		return
	}
	from := end(m) - n
	most := slices.Max(value[:max(1, from)])
	for _, b := range boots[:len(boots)-1] {
		most = max(most, slices.Max(corrected(&b)))
	}
	if last := mean(value[len(value)-min(3, len(value)-from):]); last-most < (last-value[from])/2 {
		return
	}
	weight := 0.0 // logarithm of count over m
	for i := range m {
		weight += math.Log(float64(count-i) / float64(i+1))
	}
	span := mean(at[end(0)-n:]) - mean(at[from:from+n])
	if weight = min(weight, recentWeight); weight <= r.Weight || span <= 0 {
		return
	}
	r.Weight, r.Recent = weight, true
	r.Rate = quantile(rises[:m], 0.5) * float64(m) / span // the first is a part of one
	r.Err = r.Rate / 2
	r.Since = d.time(d.line.Dump(leak.Moment{Boot: len(boots) - 1, At: hinge(at, value, at[from+n])}))
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

// flushed reports whether the values fell from one to the next to a quarter or less, by a third of what they differ or more, and
// rise since then at most 1.5 times as fast as before.
func flushed(at, value []float64) bool {
	k, last := 1, len(value)-1
	for i := range value[1:] {
		if value[i]-value[i+1] > value[k-1]-value[k] {
			k = i + 1
		}
	}
	if k < 3 || last-k < 2 || 3*(value[k-1]-value[k]) < slices.Max(value)-slices.Min(value) || 4*value[k] > value[k-1] {
		return false
	}
	before := (value[k-1] - value[0]) / (at[k-1] - at[0])
	return before > 0 && (value[last]-value[k])/(at[last]-at[k]) <= 1.5*before
}

// late reports whether a time is not at the begin of a boot.
func late(b *leak.Boot, at float64) bool {
	return at > b.At[0]+0.15*(b.At[len(b.At)-1]-b.At[0])
}

// steady reports whether growths are three standard errors above 0.
func steady(grown []float64) bool {
	var sum, squares float64
	for _, g := range grown {
		sum, squares = sum+g, squares+g*g
	}
	n := float64(len(grown))
	return sum >= 3*math.Sqrt(n*math.Max(0, squares-sum*sum/n)/(n-1))
}

// addShape adds how the values change within the boots, and from one to the next. It returns the growth in each boot.
func addShape(r *store.Judged, boots []leak.Boot) (grown []float64) {
	var rise, span [2]float64
	var end, before float64 // of the last boot: the values at its end, and its growth
	low, high := math.Inf(1), 0.0
	for i, b := range boots {
		value := corrected(&b)
		low, high = min(low, slices.Min(value)), max(high, slices.Max(value))
		k := len(value)
		m := max(1, k/3)
		v := [3]float64{mean(value[:m]), mean(value[m : k-m]), mean(value[k-m:])}
		t := [3]float64{mean(b.At[:m]), mean(b.At[m : k-m]), mean(b.At[k-m:])}
		for part := range rise {
			rise[part] += v[part+1] - v[part]
			span[part] += t[part+1] - t[part]
		}
		r.Net, r.Level = r.Net+v[2]-v[0], r.Level+v[0]
		grown = append(grown, v[2]-v[0])
		q := max(1, k/6)
		begin := mean(value[:q])
		if i > 0 {
			r.Jump, r.Grown = r.Jump+begin-end, r.Grown+before
		}
		end = mean(value[k-q:])
		before = end - begin
	}
	if n := float64(len(boots)); n > 0 {
		r.Net, r.Level, r.Swing = r.Net/n, r.Level/n, high-low
	}
	if span[0] > 0 && span[1] > 0 {
		r.Early, r.Late = rise[0]/span[0], rise[1]/span[1]
	}
	return grown
}

func mean(list []float64) (m float64) {
	for _, v := range list {
		m += v / float64(len(list))
	}
	return m
}

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

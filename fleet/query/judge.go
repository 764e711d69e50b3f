package query

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// Rule is the version of the judgement: rows of another are judged again.
const Rule = 4

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

// judgeHeaps sets the heap that is full first by its own growth, if the device has several, or their names if none grows.
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
	j.Heap = strings.Join(names, ", ")
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
	m := leak.JudgeMember(s)
	r := store.Judged{Path: path, Boots: int64(len(s.Boots)), Weight: m.Weight, Shape: m.Shape, Rate: m.Rate, Err: math.Min((m.High-m.Low)/2/1.645, 1e12),
		Net: m.Net, Level: m.Level, Swing: m.Swing, Early: m.Early, Late: m.Late, Jump: m.Jump, Grown: m.Grown}
	seen := map[int64]bool{}
	for i, v := range values {
		if v.Count > 0 {
			seen[d.dumps[i].Boot] = true
		}
	}
	r.Seen = int64(len(seen))
	if at := m.Since; len(s.Boots) > 0 && (at.Boot > 0 || late(&s.Boots[at.Boot], at.At)) {
		r.Since = d.time(d.line.Dump(at))
	}
	return r
}

// late reports whether a time is not at the begin of a boot. A boot whose dumps all lack the blocks of the path has no times.
func late(b *leak.Boot, at float64) bool {
	return len(b.At) > 0 && at > b.At[0]+0.15*(b.At[len(b.At)-1]-b.At[0])
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

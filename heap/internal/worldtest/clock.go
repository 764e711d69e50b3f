package worldtest

import (
	"math"
	"slices"
)

// intervals are the seconds between reports of usual devices.
var intervals = []float64{10, 60, 300, 600, 900, 1800, 3600, 6 * 3600}

// schedule gives a log its boots and the times of its reports.
func (d *draw) schedule(w World, reports int) {
	reports = max(reports, 12)
	interval := intervals[d.IntN(len(intervals))] / 3600
	interval = math.Min(interval, 90*24/float64(reports))
	interval = math.Max(interval, w.days*24/float64(reports))
	boots := 1
	if w.boots == 0 && d.Float64() < 0.4 {
		boots = 2 + d.IntN(min(5, reports/6)) // six reports each, at least
		boots = min(boots, reports/6)
	}
	d.split(reports, boots, interval)
	if w.clock != nil {
		w.clock(d)
	}
	d.measure()
}

// split spreads reports over boots, a fixed interval apart but for a second or so.
func (d *draw) split(reports, boots int, interval float64) {
	counts := make([]int, boots)
	least := min(6, reports/boots)
	for i := range counts {
		counts[i] = least
	}
	reports -= least * boots
	for cut := boots - 1; cut >= 0; cut-- {
		more := reports
		if cut > 0 {
			more = int(float64(reports) * d.uniform(0, 2/float64(cut+1)))
		}
		counts[cut] += min(more, reports)
		reports -= min(more, reports)
	}
	d.boots = nil
	start := 0.0
	for _, n := range counts {
		b := Boot{Start: start, Hours: make([]float64, n)}
		for i := range b.Hours {
			b.Hours[i] = 3.0/3600 + interval*(float64(i)+d.uniform(0, 0.01))
		}
		d.boots = append(d.boots, b)
		start += b.Hours[n-1] + interval*d.uniform(0.1, 1)
	}
}

// measure takes the hours of the log and of its last boot.
func (d *draw) measure() {
	b := d.boots[len(d.boots)-1]
	d.last = b.Hours[len(b.Hours)-1]
	d.total = b.Start + d.last
	d.reset()
}

// reset makes empty parts for the log's reports.
func (d *draw) reset() {
	d.parts = parts{lost: d.blank(), held: d.blank(), noise: d.blank(), fills: d.blank()}
}

// blank returns a value of zero for each report.
func (d *draw) blank() [][]float64 {
	values := make([][]float64, len(d.boots))
	for i, b := range d.boots {
		values[i] = make([]float64, len(b.Hours))
	}
	return values
}

// retime replaces the interval before each report of every boot by what next returns for it.
func (d *draw) retime(next func(interval float64) float64) {
	start := 0.0
	for b := range d.boots {
		hours := d.boots[b].Hours
		was := slices.Clone(hours)
		for i := 1; i < len(hours); i++ {
			hours[i] = hours[i-1] + next(was[i]-was[i-1])
		}
		d.boots[b].Start = start
		start += hours[len(hours)-1] + hours[1] - hours[0]
	}
}

// irregular makes intervals log-normal.
func irregular(d *draw) {
	d.retime(func(interval float64) float64 { return interval * math.Exp(d.NormFloat64()) })
}

// pauses makes one to three intervals very long.
func pauses(d *draw) {
	d.retime(func(interval float64) float64 {
		if d.Float64() < 2/float64(len(d.boots[0].Hours)) {
			return interval * d.uniform(5, 40)
		}
		return interval
	})
}

// crashes makes many boots of 3 to 8 reports.
func crashes(d *draw) {
	n, interval := 0, d.boots[0].Hours[1]-d.boots[0].Hours[0]
	for _, b := range d.boots {
		n += len(b.Hours)
	}
	d.boots = nil
	for start := 0.0; n > 0; {
		of := min(n, 3+d.IntN(6))
		if n -= of; n < 3 {
			of, n = of+n, 0
		}
		b := Boot{Start: start, Hours: make([]float64, of)}
		for i := range b.Hours {
			b.Hours[i] = 3.0/3600 + interval*float64(i)
		}
		d.boots = append(d.boots, b)
		start += interval * (float64(of) + d.uniform(0, 0.5))
	}
}

// flank makes the log 5 to 11 hours long.
func flank(d *draw) {
	n := len(d.boots[0].Hours)
	d.split(n, 1, d.uniform(5, 11)/float64(n))
}

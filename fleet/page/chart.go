package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// trend returns a line chart of values by day, as SVG, whose height is that of the largest value of all rows. A negative value is not known.
func trend[T int64 | float64](list []T, most T, unit string) template.HTML {
	if len(list) < 2 || most <= 0 {
		return ""
	}
	var b strings.Builder
	last := list[len(list)-1]
	fmt.Fprintf(&b, `<svg class="trend" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label="%[1]s"><title>%[1]s</title><polyline class="line" points="`,
		fmt.Sprintf("%s %s on the last day, axis up to %s", Bytes(last), unit, Bytes(most)))
	for i, v := range list {
		if v < 0 {
			b.WriteString(`"/><polyline class="line" points="`)
			continue
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", 100*float64(i)/float64(len(list)-1), 23-22*float64(v)/float64(most))
	}
	return template.HTML(b.String() + `"/></svg>`)
}

// curve returns the bytes of the median device and the band of nine of ten devices, as SVG.
func curve(list []query.Point, unit string) template.HTML {
	if len(list) < 2 {
		return ""
	}
	most := 1.0
	for _, p := range list {
		most = max(most, p.High)
	}
	from, to := list[0].At, list[len(list)-1].At
	x := func(p query.Point) float64 { return 400 * (p.At - from) / (to - from) }
	y := func(v float64) float64 { return 104 - 90*v/most }
	var above, below, median string
	for _, p := range list {
		above += fmt.Sprintf("%.1f,%.1f ", x(p), y(p.High))
		below = fmt.Sprintf("%.1f,%.1f ", x(p), y(p.Low)) + below
		median += fmt.Sprintf("%.1f,%.1f ", x(p), y(p.Median))
	}
	label := fmt.Sprintf("bytes per device by %s: median, and nine of ten devices; up to %s", unit, whole(most))
	return template.HTML(fmt.Sprintf(`<figure class="curve"><svg viewBox="0 0 404 122" role="img" aria-label="%s"><text x="0" y="10">%s</text><line class="grid" x1="0" x2="400" y1="14.5" y2="14.5"/><line class="grid" x1="0" x2="400" y1="104.5" y2="104.5"/><polygon class="band" points="%s%s"/><polyline class="line" points="%s"/><text x="0" y="118">%s</text><text x="400" y="118" text-anchor="end">%s</text></svg><figcaption>%[1]s</figcaption></figure>`,
		label, whole(most), above, below, median, whole(from), whole(to)))
}

// whole returns a number, rounded.
func whole(v float64) string { return cli.Number(int64(math.Round(v))) }

// inUnit returns hours in a unit that suits the typical number.
func inUnit(hours []float64) ([]float64, string) {
	factor, unit := 1.0, "hours"
	switch typical := hours[len(hours)/2]; {
	case typical < 2:
		factor, unit = 60, "minutes"
	case typical > 4*year:
		factor, unit = 1.0/year, "years"
	case typical > 72:
		factor, unit = 1.0/24, "days"
	}
	list := make([]float64, len(hours))
	for i, h := range hours {
		list[i] = h * factor
	}
	return list, unit
}

// round returns the smallest number at least v that is 1, 2 or 5 times a power of ten.
func round(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= v*(1-1e-9) {
			return n * power
		}
	}
	return 10 * power
}

// Size of a histogram, in pixels.
const (
	columns = 10 // about
	wide    = 240
	high    = 72
	left    = 34 // for the numbers of devices
)

// histogram returns the numbers of devices by value, as SVG with axes. The values are sorted. It leaves out those far
// above the median, which would hide the others, and the caption has their number.
func histogram(list []float64, what, unit string) template.HTML {
	if len(list) < 3 {
		return "<span></span>"
	}
	more, all := "", len(list)
	if far, _ := slices.BinarySearch(list, 3*list[all/2]); list[all/2] > 0 && far < all {
		list = list[:far]
		more = fmt.Sprintf("; %s more above %s", cli.Number(int64(all-far)), whole(list[far-1]))
	}
	low, most := list[0], list[len(list)-1]
	if most-low <= math.Abs(most)/100 {
		return "<span></span>" // one column
	}
	step := round((most - low) / columns)
	from := math.Floor(low/step) * step
	counts := make([]int, int((most-from)/step)+1)
	for _, v := range list {
		counts[min(int((v-from)/step), len(counts)-1)]++
	}
	tallest := slices.Max(counts)
	label := func(v float64) string {
		if step < 1 {
			return strconv.FormatFloat(v, 'f', int(math.Ceil(-math.Log10(step)-1e-9)), 64)
		}
		return whole(v)
	}
	to := from + step*float64(len(counts))
	var b strings.Builder
	fmt.Fprintf(&b, `<figure class="bars"><svg width="%d" height="%d" role="img" aria-label="devices by %s, %s to %s %s">`, left+wide+8, high+28, what, label(from), label(to), unit)
	fmt.Fprintf(&b, `<line class="grid" x1="%d" y1="11.5" x2="%d" y2="11.5"/><line class="grid" x1="%[1]d" y1="%[3]d.5" x2="%[2]d" y2="%[3]d.5"/>`, left, left+wide, high+10)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><text x="%[1]d" y="%[4]d" text-anchor="end">0</text>`, left-5, 15, cli.Number(int64(tallest)), high+14)
	width := wide / float64(len(counts))
	for i, n := range counts {
		if n > 0 {
			h := max(2, (high-1)*float64(n)/float64(tallest))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s: %s to %s %s</title></rect>`, left+float64(i)*width+.5, high+10-h, width-1, h,
				cli.Count(int64(n), "device"), label(from+step*float64(i)), label(from+step*float64(i+1)), unit)
		}
	}
	ticks := []int{0, len(counts) / 2, len(counts)}
	for i, anchor := range []string{"start", "middle", "end"} {
		if i != 1 || len(counts) > 3 {
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="%s">%s</text>`, left+float64(ticks[i])*width, high+25, anchor, label(from+step*float64(ticks[i])))
		}
	}
	fmt.Fprintf(&b, `</svg><figcaption>devices by %s, %s%s</figcaption></figure>`, what, unit, more)
	return template.HTML(b.String())
}

// plot maps the dumps of a device to the pixels of a chart.
type plot struct {
	first     time.Time
	span, top float64 // seconds and bytes
	left      float64 // for the labels
}

func (p plot) x(t time.Time) float64   { return p.left + (800-p.left)*t.Sub(p.first).Seconds()/p.span }
func (p plot) y(bytes float64) float64 { return 200 - 185*bytes/p.top }

// chart draws the bytes of a device's dumps over time, with a line for each boot, and the free bytes if they are known.
func chart(l *query.Timeline) template.HTML {
	if len(l.Dumps) < 2 {
		return ""
	}
	first, last := l.Dumps[0].Received, l.Dumps[len(l.Dumps)-1].Received
	p := plot{first: first, span: max(1, last.Sub(first).Seconds()), top: 1}
	known := false
	for _, d := range l.Dumps {
		p.top = max(p.top, float64(d.Bytes), float64(d.HeapFree))
		known = known || d.HeapFree >= 0
	}
	p.left = 10 * float64(len(whole(p.top)))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 -14 804 234" role="img" aria-label="bytes over time, up to %s"><text x="%.0f" y="-3" text-anchor="end">bytes</text>`, whole(p.top), p.left-8)
	step := round(p.top / 4)
	for v := 0.0; v <= p.top; v += step {
		fmt.Fprintf(&b, `<line class="grid" x1="%.0f" y1="%.1f" x2="800" y2="%.1[2]f"/><text x="%.0[3]f" y="%.1[4]f" text-anchor="end">%[5]s</text>`, p.left, p.y(v), p.left-8, p.y(v)+4, whole(v))
	}
	for i, anchor := range []string{"start", "middle", "end"} {
		zone := []string{"", "", " UTC"}[i]
		t := first.Add(last.Sub(first) / 2 * time.Duration(i))
		fmt.Fprintf(&b, `<text x="%.1f" y="216" text-anchor="%s">%s%s</text>`, p.x(t), anchor, Date(t), zone)
	}
	for i := 0; i < len(l.Dumps); {
		var used, free strings.Builder
		boot := l.Dumps[i].Boot
		for ; i < len(l.Dumps) && l.Dumps[i].Boot == boot; i++ {
			d := l.Dumps[i]
			fmt.Fprintf(&used, "%.1f,%.1f ", p.x(d.Received), p.y(float64(d.Bytes)))
			if d.HeapFree >= 0 {
				fmt.Fprintf(&free, "%.1f,%.1f ", p.x(d.Received), p.y(float64(d.HeapFree)))
			}
		}
		fmt.Fprintf(&b, `<polyline class="line" points="%s"/><polyline class="line free" points="%s"/>`, used.String(), free.String())
	}
	for _, d := range l.Dumps {
		class := "dot"
		if !d.Complete {
			class = "dot bad"
		} else if len(l.Dumps) > 300 {
			continue // the line is enough
		}
		fmt.Fprintf(&b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s: %s bytes</title></circle>`, class, p.x(d.Received), p.y(float64(d.Bytes)), Date(d.Received), cli.Number(d.Bytes))
	}
	b.WriteString(`</svg><p class="legend"><span class="key">in use, by dump (hollow: incomplete)</span>`)
	if known {
		b.WriteString(`<span class="key free">free</span>`)
	}
	return template.HTML(b.String() + "</p>")
}

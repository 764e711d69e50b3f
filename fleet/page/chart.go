package page

import (
	"fmt"
	"html/template"
	"math"
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

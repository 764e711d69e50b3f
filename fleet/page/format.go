package page

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// functions holds the functions of the templates.
var functions = template.FuncMap{
	"damaged": func() int { return 0 }, // see New
	"style":   func() string { return style },
	"short":   short,
	"build":   func(b string) string { return "/build/" + url.PathEscape(b) },
	"device":  func(d string) string { return "/device/" + url.PathEscape(d) },
	"number":  func(n int64) string { return cli.Number(n) },
	"mean":    mean,
	"signed":  func(v float64) string { return sign(v) + mean(math.Abs(v)) },
	"percent": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
	"rate":    rate,
	"hours":   hours,
	"free":    free,
	"date":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
	"delta":   func(g query.Growth) float64 { return g.After - g.Before },
	"site":    site,
	"trend":   trend,
	"chart":   chart,
	"count":   func(l []query.Leak, what string) string { return cli.Count(int64(len(l)), what) },
	"near":    func(l []query.Leak) []query.Leak { n, _ := fold(l); return n },
	"changed": func(l []query.Change) []query.Change { return l[:sure(l)] },
	"random":  func(l []query.Change) []query.Change { return l[sure(l):] },
	"far":     func(l []query.Leak) []query.Leak { _, f := fold(l); return f },
	"rates": func(l query.Leak) template.HTML {
		return histogram(l.Rates, "rate", func(v float64) string { return mean(v) + " bytes/h" })
	},
	"days": func(x query.Exhaustion) template.HTML {
		return histogram(x.Each, "time to exhaustion", func(v float64) string { return hours(&v) })
	},
}

// short returns the first digits of a build ID.
func short(build string) string {
	if len(build) > 12 {
		build = build[:12]
	}
	return cli.Printable(build)
}

func sign(v float64) string {
	if v < 0 {
		return "−"
	}
	return "+"
}

// mean returns a mean of bytes, rounded.
func mean(v float64) string { return cli.Number(int64(math.Round(v))) }

// rate formats bytes per hour; v is nil if no times are known.
func rate(v *float64) string {
	if v == nil {
		return "–"
	}
	return sign(*v) + mean(math.Abs(*v)) + " bytes/h"
}

// year is a year in hours.
const year = 365 * 24

// fold divides the rows of a build. Paths without the word leak or probably that slow down, or that need a year or more to
// exhaust the heap, are of little interest.
func fold(list []query.Leak) (near, far []query.Leak) {
	for _, l := range list {
		if !l.Verdict.Sure() && (l.Slowing || l.Hours == nil || *l.Hours > year) {
			far = append(far, l)
		} else {
			near = append(near, l)
		}
	}
	return near, far
}

// sure returns the number of changes with evidence, which are the first.
func sure(list []query.Change) int {
	if i := slices.IndexFunc(list, func(c query.Change) bool { return c.Evidence == query.NoEvidence }); i >= 0 {
		return i
	}
	return len(list)
}

// hours formats a time; v is nil or negative if the time is not known.
func hours(v *float64) string {
	switch {
	case v == nil || *v < 0 || math.IsInf(*v, 0) || math.IsNaN(*v):
		return "–"
	case *v < 1:
		return fmt.Sprintf("%.0f min", *v*60)
	case *v < 72:
		return fmt.Sprintf("%.0f h", *v)
	}
	return fmt.Sprintf("%.0f days", *v/24)
}

// free formats a number of bytes; v is negative if the number is not known.
func free(v float64) string {
	if v < 0 {
		return "–"
	}
	return mean(v)
}

// site returns the innermost frame that is not an allocator function.
func site(stack []query.Frame) string {
	for _, f := range stack {
		if !profile.Allocator(f.Function) {
			return f.String()
		}
	}
	if len(stack) > 0 {
		return stack[0].String()
	}
	return "no address"
}

// trend returns a line chart of the values, as SVG.
func trend(list []float64) template.HTML {
	if len(list) < 2 {
		return ""
	}
	return template.HTML(fmt.Sprintf(`<svg class="trend" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label="from %s to %s bytes"><polyline class="line" points="%s"/></svg>`,
		mean(list[0]), mean(list[len(list)-1]), points(list, 100, 24)))
}

// columns is the number of columns of a histogram.
const columns = 12

// histogram returns the numbers of devices by value, as SVG. The values are sorted. It leaves out the largest 1 %, which
// would hide the others.
func histogram(list []float64, what string, format func(float64) string) template.HTML {
	if len(list) < 3 {
		return "<span></span>"
	}
	list = list[:len(list)-len(list)/100]
	low, high := list[0], list[len(list)-1]
	var counts [columns]int
	for _, v := range list {
		i := 0
		if high > low {
			i = min(int((v-low)/(high-low)*columns), columns-1)
		}
		counts[i]++
	}
	return bars(counts[:], fmt.Sprintf("devices by %s, %s to %s", what, format(low), format(high)))
}

// bars returns a bar chart with a caption, as SVG. It escapes nothing.
func bars(counts []int, caption string) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<figure class="bars"><svg width="160" height="34" viewBox="0 0 160 34" role="img" aria-label="%s"><line x1="0" y1="33.5" x2="160" y2="33.5"/>`, caption)
	width := 160 / float64(len(counts))
	for i, n := range counts {
		if n > 0 {
			height := max(2, 32*float64(n)/float64(slices.Max(counts)))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`, float64(i)*width, 33-height, width-1, height, cli.Count(int64(n), "device"))
		}
	}
	fmt.Fprintf(&b, `</svg><figcaption>%s</figcaption></figure>`, caption)
	return template.HTML(b.String())
}

// points returns the coordinates of the points of a line chart, whose height is the range of the values, at least a tenth
// of the largest: small noise stays flat.
func points(list []float64, width, height float64) string {
	most := max(1, slices.Max(list))
	least := min(slices.Min(list), most*0.9)
	var b strings.Builder
	for i, v := range list {
		fmt.Fprintf(&b, "%.1f,%.1f ", width*float64(i)/float64(len(list)-1), height-1-(height-2)*(v-least)/(most-least))
	}
	return strings.TrimSpace(b.String())
}

// chart draws the bytes of a device's dumps over time, with a line for each boot.
func chart(l *query.Timeline) template.HTML {
	if len(l.Dumps) < 2 {
		return ""
	}
	first, last := l.Dumps[0].Received, l.Dumps[len(l.Dumps)-1].Received
	span := max(1, last.Sub(first).Seconds())
	most := int64(1)
	for _, d := range l.Dumps {
		most = max(most, d.Bytes)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 800 218" role="img" aria-label="bytes over time, up to %s"><line class="grid" x1="0" y1="199" x2="800" y2="199"/><text x="0" y="11">%[1]s bytes</text><text x="0" y="214">%[2]s</text><text x="800" y="214" text-anchor="end">%[3]s</text>`,
		cli.Number(most), first.UTC().Format(time.DateOnly), last.UTC().Format(time.DateOnly))
	for i := 0; i < len(l.Dumps); {
		var xs []string
		boot := l.Dumps[i].Boot
		for ; i < len(l.Dumps) && l.Dumps[i].Boot == boot; i++ {
			d := l.Dumps[i]
			x, y := 800*d.Received.Sub(first).Seconds()/span, 199-184*float64(d.Bytes)/float64(most)
			xs = append(xs, fmt.Sprintf("%.1f,%.1f", x, y))
			class := "whole"
			if !d.Complete {
				class = "part"
			}
			fmt.Fprintf(&b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s: %s bytes</title></circle>`, class, x, y, d.Received.UTC().Format("2006-01-02 15:04"), cli.Number(d.Bytes))
		}
		fmt.Fprintf(&b, `<polyline class="line" points="%s"/>`, strings.Join(xs, " "))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

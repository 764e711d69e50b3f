package page

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
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
	"query":   func(pairs ...string) template.URL { return template.URL(values(pairs).Encode()) },
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
	"word":    word,
	"trend":   trend,
	"chart":   chart,
	"scale":   func(v, of float64) string { return fmt.Sprintf("%.1f", 100*min(1, max(0, v/max(of, 1e-9)))) },
}

// word returns the word for the evidence of a call path.
func word(l query.Leak) string {
	if l.Slowing {
		return "slowing"
	}
	return l.Verdict.String()
}

func values(pairs []string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// short returns the first digits of a build ID.
func short(build string) string {
	if len(build) > 12 {
		return build[:12]
	}
	return build
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
	return sign(*v) + mean(math.Abs(*v)) + "/h"
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
	return template.HTML(fmt.Sprintf(`<svg class="trend" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><polyline points="%s"/></svg>`,
		points(list, nil, 100, 24)))
}

// points returns the coordinates of the points of a line chart. at holds the x positions, as
// fractions of width; nil means equal distances.
func points(list, at []float64, width, height float64) string {
	most := 0.0
	for _, v := range list {
		most = max(most, v)
	}
	var b strings.Builder
	for i, v := range list {
		x := float64(i) / float64(max(1, len(list)-1))
		if at != nil {
			x = at[i]
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", x*width, height-1-(height-2)*v/max(most, 1))
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
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 800 200" role="img" aria-label="bytes over time, up to %s"><line x1="0" y1="199" x2="800" y2="199"/>`, cli.Number(most))
	for i := 0; i < len(l.Dumps); {
		var xs []string
		boot := l.Dumps[i].Boot
		for ; i < len(l.Dumps) && l.Dumps[i].Boot == boot; i++ {
			d := l.Dumps[i]
			x, y := 800*d.Received.Sub(first).Seconds()/span, 199-190*float64(d.Bytes)/float64(most)
			xs = append(xs, fmt.Sprintf("%.1f,%.1f", x, y))
			class := "whole"
			if !d.Complete {
				class = "part"
			}
			fmt.Fprintf(&b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s: %s bytes</title></circle>`, class, x, y, d.Received.UTC().Format("2006-01-02 15:04"), cli.Number(d.Bytes))
		}
		fmt.Fprintf(&b, `<polyline points="%s"/>`, strings.Join(xs, " "))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	growth "github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Picture is a drawing of a growth: the values, their floor, the segments of constant rate, where the growth began and
// ended, the largest free block, and the way to exhaustion. Its numbers are in units of its viewBox.
type Picture struct {
	Label  string  `json:"label"` // for those who do not see it
	Shapes []shape `json:"shapes"`
	Texts  []label `json:"texts"`
}

// shape is a path with a class of the style sheet.
type shape struct {
	Class string `json:"class"`
	D     string `json:"d"`
}

// label is a text at a point.
type label struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Anchor string  `json:"anchor"` // start, middle or end
	Text   string  `json:"text"`
}

// Size of a picture, and of the space around its plot.
const (
	pictureWidth  = 640
	pictureHeight = 180
	padLeft       = 76
	padRight      = 10
	padTop        = 18
	padBottom     = 24
)

// markLeast is the least distance of a mark from the begin of the log.
const markLeast = 12

// A leak is drawn until the memory is full, if that takes at most maxAhead times as long as the log. Otherwise the
// last part of the width, of ahead, shows where it goes.
const (
	maxAhead = 3
	ahead    = 0.2
)

// Drawing is what Draw draws.
type Drawing struct {
	Series    growth.Series
	Judgement *growth.Judgement
	// Full is the value of the series at which nothing is free. If it is known, the picture shows what is free,
	// else, if it is 0, what is in use.
	Full float64
	// Largest has the bytes of the largest free block, by boot of the series; nil if it is not known.
	Largest []growth.Boot
	Time    func(float64) string // writes a time in the unit of the series
}

// plot converts times and values to points of the picture.
type plot struct {
	*Drawing
	starts     []float64 // by boot: the time before it, all boots added up
	end, width float64   // of all boots, and with what is to come
	low, high  float64   // shown values
	left       float64   // time until the memory is full, 0 if that is not known
}

func (p *plot) x(boot int, at float64) float64 {
	return padLeft + (p.starts[boot]+at)/p.width*(pictureWidth-padLeft-padRight)
}

// shown returns what is shown of a value: what is free, or the value.
func (p *plot) shown(v float64) float64 {
	if p.Full > 0 {
		return p.Full - v
	}
	return v
}

func (p *plot) yShown(v float64) float64 {
	return padTop + (p.high-math.Min(p.high, math.Max(p.low, v)))/(p.high-p.low)*(pictureHeight-padTop-padBottom)
}

func (p *plot) y(v float64) float64 { return p.yShown(p.shown(v)) }

// Draw draws a series as it is judged; nil if it has no values.
func Draw(d Drawing) *Picture {
	p, ok := newPlot(&d)
	if !ok {
		return nil
	}
	unit := "bytes in use"
	if d.Full > 0 {
		unit = "bytes free"
	}
	pic := &Picture{Label: fmt.Sprintf("%s over %s, %s to %s", unit, d.Time(p.end), plain(p.low), plain(p.high))}
	pic.addAxes(&p, unit)
	last := len(d.Series.Boots) - 1
	for i, b := range d.Series.Boots {
		x := func(at float64) float64 { return p.x(i, at) }
		pic.line("values", b.At, b.Value, x, p.y)
		if i > 0 && len(b.At) > 0 {
			pic.mark("boot", p.x(i, 0), "")
		}
		if i < len(d.Largest) {
			pic.line("largest", d.Largest[i].At, d.Largest[i].Value, x, p.yShown)
		}
	}
	pic.nameLargest(&p)
	j := d.Judgement
	for _, t := range growth.Trace(d.Series, j) {
		pic.line("floor", t.At, t.Floor, func(at float64) float64 { return p.x(t.Boot, at) }, p.y)
		for _, g := range t.Segments {
			class := "segment"
			if g.Present && j.Verdict == growth.Leak {
				class = "present"
			}
			pic.add(class, fmt.Sprintf("M%.1f %.1fL%.1f %.1f", p.x(t.Boot, g.From), p.y(g.Start), p.x(t.Boot, g.To), p.y(g.End)))
		}
	}
	if x := p.x(j.Since.Boot, j.Since.At); (j.Verdict == growth.Leak || j.Until != nil) && x > p.x(0, firstTime(d.Series.Boots[0]))+markLeast {
		pic.mark("since", x, "since")
	}
	if j.Until != nil {
		pic.mark("until", p.x(j.Until.Boot, j.Until.At), "ended")
	}
	if j.Verdict == growth.Leak {
		pic.mark("now", p.x(last, lastTime(d.Series.Boots[last])), "")
		pic.addWay(&p, d.Series.Boots[last], last)
	}
	return pic
}

// newPlot finds the ranges of times and values.
func newPlot(d *Drawing) (p plot, ok bool) {
	p = plot{Drawing: d, low: math.Inf(1), high: math.Inf(-1)}
	show := func(v float64) { p.low, p.high = math.Min(p.low, v), math.Max(p.high, v) }
	v := 0.0
	for _, b := range d.Series.Boots {
		p.starts = append(p.starts, p.end)
		p.end += lastTime(b)
		for _, v = range b.Value {
			show(p.shown(v))
		}
	}
	for _, b := range d.Largest {
		for _, v := range b.Value {
			show(v)
		}
	}
	p.width = p.end
	if j := d.Judgement; j.Verdict == growth.Leak {
		p.width = p.end / (1 - ahead)
		if d.Full > 0 && j.Rate > 0 {
			p.left = math.Max(0, d.Full-v) / j.Rate
		}
		if p.left > 0 && p.left <= maxAhead*p.end {
			p.width = math.Max(p.width, (p.end+p.left)*1.05)
			show(0)
		} else {
			show(p.shown(v + j.Rate*(p.width-p.end)))
		}
	}
	if !(p.high > p.low) {
		p.high = p.low + math.Max(1, p.low/100)
	}
	return p, p.end > 0 && !math.IsInf(p.low, 0)
}

func firstTime(b growth.Boot) float64 {
	if len(b.At) == 0 {
		return 0
	}
	return b.At[0]
}

func lastTime(b growth.Boot) float64 {
	if len(b.At) == 0 {
		return 0
	}
	return b.At[len(b.At)-1]
}

// addAxes draws the axes, with round values and their unit, and the time of the log.
func (pic *Picture) addAxes(p *plot, what string) {
	unit, of := what, 1.0
	for _, u := range []string{"KiB", "MiB", "GiB"} {
		if p.high < 200_000*of || p.high-p.low < 2*1024*of { // steps are whole
			break
		}
		of, unit = of*1024, u+" "+strings.TrimPrefix(what, "bytes ")
	}
	height := (p.high - p.low) / of
	step := math.Max(1, math.Pow(10, math.Floor(math.Log10(height/2))))
	for _, times := range []float64{5, 2} {
		if step*times <= height/2 {
			step *= times
			break
		}
	}
	for v := math.Ceil(p.low/of/step) * step; v*of <= p.high; v += step {
		y := p.yShown(v * of)
		pic.add("grid", fmt.Sprintf("M%d %.1fH%d", padLeft, y, pictureWidth-padRight))
		pic.text(padLeft-6, y+4, "end", plain(v))
	}
	pic.add("axis", fmt.Sprintf("M%d %dV%dH%d", padLeft, padTop, pictureHeight-padBottom, pictureWidth-padRight))
	pic.text(padLeft-6, padTop-6, "start", unit)
	last := len(p.starts) - 1
	pic.text(p.x(last, p.end-p.starts[last]), pictureHeight-8, "end", p.Time(p.end))
}

// addWay draws the way to exhaustion: between the rates Low and High, until the memory is full or the picture ends.
func (pic *Picture) addWay(p *plot, b growth.Boot, boot int) {
	if len(b.At) == 0 {
		return
	}
	j, at, v := p.Judgement, lastTime(b), b.Value[len(b.Value)-1]
	point := func(rate float64) string {
		time := p.width - p.end
		if p.Full > 0 && rate > 0 {
			time = math.Min(time, math.Max(0, p.Full-v)/rate)
		}
		return fmt.Sprintf("%.1f %.1f", p.x(boot, at+time), p.y(v+rate*time))
	}
	from := fmt.Sprintf("M%.1f %.1fL", p.x(boot, at), p.y(v))
	corner := "" // of the slowest, at the end of the picture, that of the fastest when it is full
	if p.Full > 0 && p.left > 0 && p.left <= maxAhead*p.end && j.Low > 0 && (p.Full-v)/j.Low > p.width-p.end {
		corner = fmt.Sprintf("L%d %.1f", pictureWidth-padRight, p.y(p.Full))
	}
	pic.add("interval", from+point(j.High)+corner+"L"+point(math.Max(0, j.Low))+"Z")
	pic.add("way", from+point(j.Rate))
	switch {
	case p.left == 0:
	case p.left <= maxAhead*p.end:
		x := p.x(boot, at+p.left)
		pic.add("full", fmt.Sprintf("M%.1f %.1fV%.1f", x, p.y(p.Full)-6, p.y(p.Full)+6))
		pic.text(math.Min(x+20, pictureWidth-padRight), padTop-6, "end", "full in "+p.Time(p.left))
	default:
		pic.text(pictureWidth-padRight, padTop-6, "end", "full in "+p.Time(p.left)+" →")
	}
}

// plain writes a number of bytes without a sign.
func plain(v float64) string { return strings.TrimPrefix(printable.Amount(v), "+") }

// maxDrawn is the largest number of points of a line.
const maxDrawn = 400

// line adds a line through points.
func (pic *Picture) line(class string, at, value []float64, x, y func(float64) float64) {
	var d strings.Builder
	n := len(at)
	step := max(1, n/maxDrawn)
	for i := 0; i < n; i += step {
		fmt.Fprintf(&d, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x(at[i]), y(value[i]))
	}
	if d.Len() > 0 {
		pic.add(class, d.String())
	}
}

// labelWidth is that of "largest block", with some space.
const labelWidth = 105

// nameLargest writes a label below the line of the largest block, or above both lines if it is near the axis.
func (pic *Picture) nameLargest(p *plot) {
	if len(p.Largest) == 0 || len(p.Largest[0].At) == 0 {
		return
	}
	x := p.x(0, p.Largest[0].At[0]) + 4
	below, above := math.Inf(-1), math.Inf(1)
	span := func(boot int, at, value []float64, y func(float64) float64) {
		for i, v := range value {
			if next := at[min(i+1, len(at)-1)]; p.x(boot, next) >= x && p.x(boot, at[max(i-1, 0)]) <= x+labelWidth {
				below, above = math.Max(below, y(v)), math.Min(above, y(v))
			}
		}
	}
	for i, b := range p.Largest {
		span(i, b.At, b.Value, p.yShown)
	}
	if below += 13; below > pictureHeight-padBottom-3 {
		for i, b := range p.Series.Boots {
			span(i, b.At, b.Value, p.y)
		}
		below = math.Max(padTop+10, above-5)
	}
	pic.text(x, below, "start", "largest block")
}

// mark draws a vertical line with a text.
func (pic *Picture) mark(class string, x float64, text string) {
	pic.add(class, fmt.Sprintf("M%.1f %dV%d", x, padTop, pictureHeight-padBottom))
	if text != "" {
		pic.text(x+3, padTop+10, "start", text)
	}
}

func (pic *Picture) add(class, d string) { pic.Shapes = append(pic.Shapes, shape{class, d}) }

func (pic *Picture) text(x, y float64, anchor, text string) {
	pic.Texts = append(pic.Texts, label{x, y, anchor, printable.Text(text)})
}

// SVG returns the picture as an element of a page.
func (pic *Picture) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="growth" viewBox="0 0 %d %d" role="img" aria-label="%s">`, pictureWidth, pictureHeight, html.EscapeString(pic.Label))
	for _, s := range pic.Shapes {
		fmt.Fprintf(&b, `<path class="%s" d="%s"/>`, s.Class, s.D)
	}
	for _, t := range pic.Texts {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, t.X, t.Y, t.Anchor, html.EscapeString(t.Text))
	}
	b.WriteString("</svg>")
	return b.String()
}

package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	growth "github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Picture is a drawing of a growth: the values, their floor, the segments of constant rate, where the present
// growth began, and the way to exhaustion. Its numbers are in units of its viewBox.
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
	padLeft       = 64
	padRight      = 10
	padTop        = 14
	padBottom     = 24
)

// sinceLeast is the least distance of the mark of the begin from that of the log.
const sinceLeast = 12

// way is the part of the width that shows what is to come.
const way = 0.2

// plot converts times and values to points of the picture.
type plot struct {
	starts     []float64 // by boot: the time before it, all boots added up
	end, width float64   // of all boots, and with what is to come
	low, high  float64   // values
}

func (p *plot) x(boot int, at float64) float64 {
	return padLeft + (p.starts[boot]+at)/p.width*(pictureWidth-padLeft-padRight)
}

func (p *plot) y(v float64) float64 {
	return padTop + (p.high-v)/(p.high-p.low)*(pictureHeight-padTop-padBottom)
}

// Draw draws a series as j judges it. full is the value at which the heap is full, 0 if it is not known, and
// per writes a time in the unit of the series.
func Draw(s growth.Series, j *growth.Judgement, full float64, per func(float64) string) *Picture {
	p, ok := newPlot(s, j, full)
	if !ok {
		return nil
	}
	pic := &Picture{Label: fmt.Sprintf("memory in use over %s, %s to %s bytes", per(p.end), printable.Amount(p.low)[1:], printable.Amount(p.high)[1:])}
	var axis strings.Builder
	fmt.Fprintf(&axis, "M%d %dV%dH%d", padLeft, padTop, pictureHeight-padBottom, pictureWidth-padRight)
	pic.add("axis", axis.String())
	last := len(s.Boots) - 1
	for i, b := range s.Boots {
		pic.line("values", b.At, b.Value, func(at float64) float64 { return p.x(i, at) }, p.y)
		if i > 0 && len(b.At) > 0 {
			pic.add("boot", fmt.Sprintf("M%.1f %dV%d", p.x(i, 0), padTop, pictureHeight-padBottom))
		}
	}
	for _, t := range growth.Trace(s, j) {
		pic.line("floor", t.At, t.Floor, func(at float64) float64 { return p.x(t.Boot, at) }, p.y)
		for _, g := range t.Segments {
			class := "segment"
			if g.Present && j.Verdict == growth.Leak {
				class = "present"
			}
			pic.add(class, fmt.Sprintf("M%.1f %.1fL%.1f %.1f", p.x(t.Boot, g.From), p.y(g.Start), p.x(t.Boot, g.To), p.y(g.End)))
		}
	}
	if j.Verdict == growth.Leak {
		if x := p.x(j.Since.Boot, j.Since.At); x > padLeft+sinceLeast {
			pic.add("since", fmt.Sprintf("M%.1f %dV%d", x, padTop, pictureHeight-padBottom))
			pic.text(x, pictureHeight-8, "middle", "since")
		}
		pic.addWay(&p, s.Boots[last], last, j, full)
		if full > 0 && j.Rate > 0 {
			b := s.Boots[last]
			pic.text(pictureWidth-padRight, pictureHeight-8, "end", "full in "+per((full-b.Value[len(b.Value)-1])/j.Rate))
		}
	}
	pic.text(padLeft-6, p.y(p.high)+4, "end", printable.Amount(p.high)[1:])
	pic.text(padLeft-6, p.y(p.low)+4, "end", strings.TrimPrefix(printable.Amount(p.low), "+"))
	pic.text(p.x(last, lastTime(s.Boots[last])), pictureHeight-8, "end", per(p.end))
	return pic
}

// newPlot finds the ranges of times and values.
func newPlot(s growth.Series, j *growth.Judgement, full float64) (p plot, ok bool) {
	p.low, p.high = math.Inf(1), math.Inf(-1)
	for _, b := range s.Boots {
		p.starts = append(p.starts, p.end)
		p.end += lastTime(b)
		for _, v := range b.Value {
			p.low, p.high = math.Min(p.low, v), math.Max(p.high, v)
		}
	}
	p.width = p.end
	if j.Verdict == growth.Leak {
		p.width = p.end / (1 - way)
		p.high = math.Max(p.high, p.high+j.Rate*(p.width-p.end))
		if full > 0 {
			p.high = math.Min(p.high, full)
		}
	}
	if !(p.high > p.low) {
		p.high = p.low + 1
	}
	return p, p.end > 0 && !math.IsInf(p.low, 0)
}

func lastTime(b growth.Boot) float64 {
	if len(b.At) == 0 {
		return 0
	}
	return b.At[len(b.At)-1]
}

// addWay draws the way to exhaustion: between the rates Low and High, until the heap is full or the picture ends.
func (pic *Picture) addWay(p *plot, b growth.Boot, boot int, j *growth.Judgement, full float64) {
	if len(b.At) == 0 {
		return
	}
	at, v := lastTime(b), b.Value[len(b.Value)-1]
	end := func(rate float64) (x, y float64) {
		time := p.width - p.end
		if full > v && rate > 0 {
			time = math.Min(time, (full-v)/rate)
		}
		to := math.Min(p.high, math.Max(p.low, v+rate*time))
		return p.x(boot, at+time), p.y(to)
	}
	x, y := p.x(boot, at), p.y(v)
	x1, y1 := end(j.High)
	x2, y2 := end(math.Max(0, j.Low))
	x0, y0 := end(j.Rate)
	pic.add("interval", fmt.Sprintf("M%.1f %.1fL%.1f %.1fL%.1f %.1fZ", x, y, x1, y1, x2, y2))
	pic.add("way", fmt.Sprintf("M%.1f %.1fL%.1f %.1f", x, y, x0, y0))
	if full > 0 && full <= p.high {
		pic.add("full", fmt.Sprintf("M%d %.1fH%d", padLeft, p.y(full), pictureWidth-padRight))
		pic.text(pictureWidth-padRight, p.y(full)-3, "end", "full")
	}
}

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

package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// point returns a point of a line in SVG.
func point(x, y float64) string { return fmt.Sprintf("%.1f,%.1f ", x, y) }

// line is a line chart of values by day. Its parts are between days of which the value is not known.
type line struct {
	Label string
	Parts []string
}

// trend returns a line whose height is that of the largest value of all rows, nil if there is none. A negative value is not known.
func trend[T int64 | float64](list []T, most T, unit string) *line {
	if len(list) < 2 || most <= 0 {
		return nil
	}
	l := &line{Label: fmt.Sprintf("%s %s on the last day, axis up to %s", Bytes(list[len(list)-1]), unit, Bytes(most)), Parts: []string{""}}
	for i, v := range list {
		if v < 0 {
			l.Parts = append(l.Parts, "")
			continue
		}
		l.Parts[len(l.Parts)-1] += point(100*float64(i)/float64(len(list)-1), 23-22*float64(v)/float64(most))
	}
	return l
}

// curves are the bytes of the median device, and the band of nine of ten devices.
type curves struct {
	Unit           string
	Most, From, To float64
	Band, Median   string
}

func curve(list []query.Point, unit string) *curves {
	if len(list) < 2 {
		return nil
	}
	c := &curves{Unit: unit, Most: 1, From: list[0].At, To: list[len(list)-1].At}
	for _, p := range list {
		c.Most = max(c.Most, p.High)
	}
	below := ""
	for _, p := range list {
		x, y := 400*(p.At-c.From)/(c.To-c.From), func(v float64) float64 { return 104 - 90*v/c.Most }
		c.Band += point(x, y(p.High))
		below = point(x, y(p.Low)) + below
		c.Median += point(x, y(p.Median))
	}
	c.Band += below
	return c
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

// plot is a chart of the bytes of a device's dumps over time, with a line for each boot, and the free bytes if they are known.
type plot struct {
	First, Middle, Last time.Time
	Top, Left           float64 // bytes at the top; place for the labels
	Grid                []float64
	Used, Free          []string // by boot
	Dots                []query.Moment
}

func (p *plot) X(t time.Time) float64 {
	return p.Left + (800-p.Left)*t.Sub(p.First).Seconds()/max(1, p.Last.Sub(p.First).Seconds())
}
func (p *plot) Y(bytes float64) float64 { return 200 - 185*bytes/p.Top }

// HasFree reports whether a dump has the number of free bytes.
func (p *plot) HasFree() bool { return strings.Join(p.Free, "") != "" }

func chart(l *query.Timeline) *plot {
	if len(l.Dumps) < 2 {
		return nil
	}
	p := &plot{First: l.Dumps[0].Received, Last: l.Dumps[len(l.Dumps)-1].Received, Top: 1}
	p.Middle = p.First.Add(p.Last.Sub(p.First) / 2)
	for _, d := range l.Dumps {
		p.Top = max(p.Top, float64(d.Bytes), float64(d.HeapFree))
	}
	p.Left = 10 * float64(len(whole(p.Top)))
	step := round(p.Top / 4)
	for v := 0.0; v <= p.Top; v += step {
		p.Grid = append(p.Grid, v)
	}
	for i, d := range l.Dumps {
		if i == 0 || d.Boot != l.Dumps[i-1].Boot {
			p.Used, p.Free = append(p.Used, ""), append(p.Free, "")
		}
		boot := len(p.Used) - 1
		p.Used[boot] += point(p.X(d.Received), p.Y(float64(d.Bytes)))
		if d.HeapFree >= 0 {
			p.Free[boot] += point(p.X(d.Received), p.Y(float64(d.HeapFree)))
		}
		if !d.Complete || len(l.Dumps) <= 300 { // else the line is enough
			p.Dots = append(p.Dots, d)
		}
	}
	return p
}

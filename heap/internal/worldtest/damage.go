package worldtest

import (
	"math"
	"strconv"
)

// digits damages 0.5 to 2 % of the values: a digit is lost at the begin or the end, or another.
func digits(d *draw, log *Log) {
	share := d.uniform(0.005, 0.02)
	for _, values := range log.Series[0].Values {
		for i, v := range values {
			text := []byte(strconv.FormatFloat(v, 'f', 0, 64))
			if d.Float64() >= share || len(text) < 2 {
				continue
			}
			switch d.IntN(3) {
			case 0:
				text = text[1:]
			case 1:
				text = text[:len(text)-1]
			default:
				text[d.IntN(len(text))] = byte('0' + d.IntN(10))
			}
			values[i], _ = strconv.ParseFloat(string(text), 64) // digits only
		}
	}
}

// lose drops 5 to 30 % of the lines, never the first two of a boot nor the last.
func lose(d *draw, log *Log) {
	share := d.uniform(0.05, 0.3)
	s := &log.Series[0]
	for b := range log.Boots {
		n := 0
		for i := range log.Boots[b].Hours {
			if i > 1 && i+1 < len(log.Boots[b].Hours) && d.Float64() < share {
				continue
			}
			for _, of := range [][]float64{log.Boots[b].Hours, s.Values[b], s.parts.lost[b], s.parts.held[b], s.parts.noise[b], s.parts.fills[b]} {
				of[n] = of[i]
			}
			n++
		}
		log.Boots[b].Hours, s.Values[b] = log.Boots[b].Hours[:n], s.Values[b][:n]
		for _, of := range []*[]float64{&s.parts.lost[b], &s.parts.held[b], &s.parts.noise[b], &s.parts.fills[b]} {
			*of = (*of)[:n]
		}
	}
}

// jump sets the clock once, forward or back, so that times after it are off by the same amount.
func jump(d *draw, log *Log) {
	hours := log.Boots[0].Hours
	by := d.uniform(-0.2, 0.2) * d.last
	for i := len(hours)/5 + d.IntN(len(hours)*3/5); i < len(hours); i++ {
		hours[i] = math.Max(0, hours[i]+by)
	}
}

// untime takes the times away: rates are per report.
func untime(_ *draw, log *Log) {
	t := &log.Series[0].Truth
	hours := log.Boots[len(log.Boots)-1].Hours
	t.Rate *= hours[len(hours)-1] / float64(len(hours)-1)
	t.Since = 0
	for b := range log.Boots {
		log.Boots[b].Hours = nil
	}
	log.Untimed = true
}

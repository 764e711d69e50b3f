// Package leaktext has the sentences in which reports say what leaks.
package leaktext

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Headline returns a sentence with the number of leaks, or what is known instead.
func Headline(found *growth.Leaks) string {
	leaks, unknown := found.Leaking(), len(found.Unknown())
	switch {
	case len(leaks) > 0:
		sure := 0
		for _, r := range leaks {
			if r.Sure() {
				sure++
			}
		}
		s := printable.Count(len(leaks), "leak")
		switch {
		case sure == len(leaks):
		case len(leaks) == 1:
			s += " (" + percent(leaks[0].Probability) + ")"
		case sure == 0:
			s += " (none of them sure)"
		default:
			s += fmt.Sprintf(" (%d of them sure)", sure)
		}
		return s
	case found.Used < minDumps:
		return fmt.Sprintf("cannot tell (that takes at least %d dumps)", minDumps)
	case unknown > 0:
		return losesBlocks(found) + "cannot tell of " + printable.Count(unknown, "call path") + "; none of the others above " + bound(found)
	}
	return losesBlocks(found) + "none above " + bound(found)
}

// minDumps is the least number of dumps that say that nothing grows: four intervals (heap/docs/leaks.md).
const minDumps = 5

func bound(found *growth.Leaks) string {
	most := found.Bound
	for _, r := range found.Ended() {
		most = math.Max(most, r.Bound)
	}
	return BytesPer(found.Per, found.Span, most)
}

// percent writes a probability, such as "97 %". It never says 100 %, nor 95 % of a leak that is not sure.
func percent(p float64) string {
	n := min(99, int(100*p+0.5))
	if sure := int(100 * leak.Sure); p < leak.Sure {
		n = min(n, sure-1)
	}
	return fmt.Sprintf("%d %%", n)
}

// Verdict writes an answer, such as "leak, 97 %" or "none above 3 bytes per hour".
func Verdict(j *leak.Judgement, per growth.Unit, span time.Duration) string {
	switch j.Verdict {
	case leak.Leak:
		return "leak, " + percent(j.Probability)
	case leak.None:
		return "none above " + BytesPer(per, span, j.Bound)
	}
	return "cannot tell: " + j.Why
}

// Examined returns a description of the examined dumps.
func Examined(found *growth.Leaks) string {
	s := printable.Count(found.Used, "dump")
	if found.Boots > 1 {
		s += fmt.Sprintf(" of %d boots", found.Boots)
	}
	if found.Span > 0 {
		s += " over " + printable.Duration(found.Span.Hours())
	}
	return s
}

// shortRun is the time below which rates are per second and not per hour.
const shortRun = 2 * time.Minute

// unit returns the unit of a rate, and by what a rate per hour is divided for it.
func unit(per growth.Unit, span time.Duration) (string, float64) {
	if per == growth.PerHour && span < shortRun {
		return "second", 3600
	}
	return string(per), 1
}

// BytesPer writes a rate without a sign, such as "40 bytes per hour".
func BytesPer(per growth.Unit, span time.Duration, rate float64) string {
	name, n := unit(per, span)
	return fmt.Sprintf("%s bytes per %s", strings.TrimPrefix(printable.Amount(rate/n), "+"), name)
}

// Rate writes a rate and its 90 % interval, such as "+69.3 bytes per dump (62.8 to 75.8)".
func Rate(per growth.Unit, span time.Duration, rate, low, high float64) string {
	name, n := unit(per, span)
	s := fmt.Sprintf("%s bytes per %s", printable.Amount(rate/n), name)
	plain := func(v float64) string { return strings.TrimPrefix(printable.Amount(v/n), "+") }
	if from, to := plain(low), plain(high); from != to {
		s += fmt.Sprintf(" (%s to %s)", from, to)
	}
	return s
}

// RateOf writes the rate of a row: the present one, or that which ended.
func RateOf(found *growth.Leaks, r *growth.Leak) string {
	if r.Verdict == leak.None && r.Until != nil {
		return Rate(found.Per, found.Span, r.Former, r.Former, r.Former)
	}
	return Rate(found.Per, found.Span, r.Rate, r.Low, r.High)
}

// Short writes a verdict in a word or two: "leak, 97 %", "cannot tell", "none".
func Short(j *leak.Judgement) string {
	switch j.Verdict {
	case leak.Leak:
		return "leak, " + percent(j.Probability)
	case leak.None:
		return "none"
	}
	return "cannot tell"
}

// Notes returns lines on a row: why it is not known whether it leaks, since when and in which firmware
// versions it grows, and when the heap is full if it leaks.
func Notes(found *growth.Leaks, r *growth.Leak) (lines []string) {
	until := ""
	if x := found.IfLeak(r); x != nil {
		until = "if it leaks, the heap is exhausted in " + Left(x)
	}
	why := r.Why
	if r.Verdict == leak.Unknown {
		why = fmt.Sprintf("%s for a leak: %s", percent(r.Probability), r.Why)
	}
	for _, text := range []string{why, Since(found, r), Versions(found.Per, found.Span, r.Versions), until} {
		if text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// Since returns since when a row grows, or until when it grew; "" if it grows since the log begins.
func Since(found *growth.Leaks, r *growth.Leak) string {
	at := func(i int) string {
		d := &found.Dumps[i]
		return d.Name + place(d.Boot, d.Time, d.Timed, d.FromStart(), found.Boots)
	}
	s := ""
	if r.SinceDump >= 0 {
		s = "since about " + at(r.SinceDump)
	}
	if r.UntilDump >= 0 {
		if s != "" {
			s += "; "
		}
		s += fmt.Sprintf("did not grow after about %s (at most %s)", at(r.UntilDump), BytesPer(found.Per, found.Span, math.Max(0, r.High)))
	}
	return s
}

// place returns a boot, if there are several, and a time in it.
func place(boot int, at time.Duration, timed, fromStart bool, boots int) (s string) {
	if boots > 1 {
		s = fmt.Sprintf(", boot %d", boot)
	}
	if timed && at > 0 {
		from := "start"
		if !fromStart {
			from = "first dump"
		}
		s += fmt.Sprintf(", %s after its %s", printable.Duration(at.Hours()), from)
	}
	return s
}

// Versions returns what each firmware version does, "" if there is only one.
func Versions(per growth.Unit, span time.Duration, list []growth.Version) string {
	var texts []string
	for i := range list {
		v := &list[i]
		text := v.Name + ": " + Short(&v.Judgement)
		switch v.Verdict {
		case leak.Leak:
			text += ", " + BytesPer(per, span, v.Rate)
		case leak.None:
			text += " above " + BytesPer(per, span, v.Bound)
		}
		texts = append(texts, text)
	}
	return strings.Join(few(texts), "; ")
}

// maxListed is the largest number of rows that are listed of those that may leak, and of those that grew.
const maxListed = 3

// Listed returns the rows that leak, and the first of those of which it is not known and of those that grew.
func Listed(found *growth.Leaks) (leaks, unknown, ended []*growth.Leak) {
	cut := func(list []*growth.Leak) []*growth.Leak { return list[:min(maxListed, len(list))] }
	return found.Leaking(), cut(found.Unknown()), cut(found.Ended())
}

// few returns the first three of many texts, and the number of the others.
func few(texts []string) []string {
	if n := len(texts) - 3; n > 0 {
		return append(slices.Clone(texts[:3]), fmt.Sprintf("%d more", n))
	}
	return texts
}

// Basis returns lines on the dumps that were left out, and on the limits of the answer.
func Basis(found *growth.Leaks) (lines []string) {
	left := map[string][]string{}
	var reasons, untimed []string
	for _, d := range found.Dumps {
		if d.Used && d.Note != "" {
			untimed = append(untimed, d.Name)
		}
		if !d.Used {
			if left[d.Reason] == nil {
				reasons = append(reasons, d.Reason)
			}
			left[d.Reason] = append(left[d.Reason], d.Name)
		}
	}
	for _, reason := range reasons {
		lines = append(lines, fmt.Sprintf("left out: %s (%s)", strings.Join(few(left[reason]), ", "), reason))
	}
	if len(untimed) > 0 {
		lines = append(lines, fmt.Sprintf("times that do not fit their neighbours are not used: %s", strings.Join(few(untimed), ", ")))
	}
	if found.Intervals {
		sum := found.IntervalTotal()
		lines = append(lines, fmt.Sprintf("each dump has only the blocks of its own interval, none at an address of another: they add up to %s bytes in %s",
			printable.Number(sum.Bytes), printable.Number(sum.Count)+" blocks"))
	}
	if found.Missing > 0.0005 {
		lines = append(lines, fmt.Sprintf("%.1f %% of the blocks are missing: values are corrected, and intervals allow for it", 100*found.Missing))
	}
	return lines
}

// Begin marks in bars where the growth began.
const Begin = '┊'

// Bars draws points as bars, scaled from the least to the largest, and as dots those that are NaN. If there are
// more than width points, it leaves out some at even distances, but keeps the first and the last. Before the
// point begin, if that is not the first, it draws Begin.
func Bars(points []float64, begin, width int) string {
	low, high := math.Inf(1), math.Inf(-1)
	var heights []float64
	mark := -1
	n := min(len(points), width)
	for i := range n {
		k := int(math.Round(float64(i*(len(points)-1)) / float64(max(1, n-1))))
		if h := points[k]; !math.IsNaN(h) {
			low, high = min(low, h), max(high, h)
		}
		if begin > 0 && k >= begin && mark < 0 {
			mark = i
		}
		heights = append(heights, points[k])
	}
	bars, out := []rune("▁▂▃▄▅▆▇█"), []rune{}
	for i, h := range heights {
		if i == mark && i > 0 {
			out = append(out, Begin)
		}
		switch {
		case math.IsNaN(h):
			out = append(out, '·')
		case high > low:
			out = append(out, bars[int((h-low)/(high-low)*float64(len(bars)-1))])
		default:
			out = append(out, bars[0])
		}
	}
	return string(out)
}

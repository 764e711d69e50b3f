// Package leaktext has the words in which reports tell what leaks.
package leaktext

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Headline returns a sentence with the number of leaks.
func Headline(found *profile.Leaks) string {
	n, ended := map[profile.Verdict]int{}, 0
	for _, r := range found.Sure() {
		n[r.Verdict]++
	}
	for _, r := range found.Rows {
		switch {
		case r.Ended != nil:
			ended++
		case r.Verdict == profile.Grows:
			n[profile.Grows]++
		}
	}
	var list []string
	if k := n[profile.Leaking]; k > 0 {
		list = append(list, printable.Count(k, "leak"))
	}
	if k := n[profile.Probably]; k > 0 {
		list = append(list, printable.Count(k, "probable leak"))
	}
	if len(list) > 0 {
		return strings.Join(list, ", ")
	}
	if k := n[profile.Grows]; k > 0 {
		list = append(list, printable.Count(k, "call path")+" may be one")
	}
	if ended > 0 {
		list = append(list, printable.Count(ended, "call path")+" stopped growing")
	}
	if len(list) > 0 {
		return "no leak found (" + strings.Join(list, ", ") + ")"
	}
	return "no leak found"
}

// Examined returns a description of the examined dumps.
func Examined(found *profile.Leaks) string {
	s := printable.Count(found.Used, "dump")
	if found.Boots > 1 {
		s += fmt.Sprintf(" of %d boots", found.Boots)
	}
	if found.Timed {
		s += " over " + printable.Duration(found.Span.Hours())
	}
	return s
}

// shortRun is the time below which rates are per second and not per hour.
const shortRun = 2 * time.Minute

// Rate writes a rate and its margin, bytes per hour or dump, such as
// "+69.3 ± 6.5 bytes per dump".
func Rate(found *profile.Leaks, v, margin float64) string {
	return rate(per(found), found.Span, v, margin)
}

func per(found *profile.Leaks) profile.Unit {
	if found.Timed {
		return profile.PerHour
	}
	return profile.PerDump
}

func rate(per profile.Unit, span time.Duration, v, margin float64) string {
	if per == profile.PerHour && span < shortRun {
		per, v, margin = "second", v/3600, margin/3600
	}
	return fmt.Sprintf("%s ± %s bytes per %s", printable.Amount(v), printable.Amount(margin)[1:], per)
}

// RateOf writes the rate of a call path: the present one, or of one that stopped growing that before.
func RateOf(found *profile.Leaks, r *profile.Leak) string {
	if x := r.Ended; x != nil {
		return Rate(found, x.Rate, x.Margin)
	}
	return Rate(found, r.Rate, r.Margin)
}

// Evidence describes the evidence of a call path.
func Evidence(r *profile.Leak) string {
	s := fmt.Sprintf("kept memory grew in %d of %s (%.0f expected in random order)", r.Rose, printable.Count(r.Intervals, "interval"), r.Chance)
	if r.Ended == nil {
		s += evidence(&r.Evidence)
	}
	return s
}

// Notes returns lines on a call path: since when and in which firmware versions it grows, and of one
// that is not sure, what will tell, and when the heap is full if it leaks.
func Notes(found *profile.Leaks, r *profile.Leak) (lines []string) {
	undecided, until := "", ""
	if r.More > 0 {
		undecided = undecidedText(per(found), r.More)
	}
	if x := found.IfLeak(r); x != nil {
		until = "if it leaks, the heap is exhausted in " + Left(x)
	}
	for _, text := range []string{Since(found, r), Versions(found, r), undecided, until} {
		if text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// undecidedText tells a leak from a cache.
func undecidedText(unit profile.Unit, more float64) string {
	left := span(unit, more)
	if unit != profile.PerHour {
		left = printable.Count(uint64(math.Ceil(more)), string(unit))
	}
	return fmt.Sprintf("a leak, or a cache that fills: after %s more, it is probably a leak", left)
}

// Since returns since when and until when a call path grows, "" if its rate is the same in the whole log.
func Since(found *profile.Leaks, r *profile.Leak) string {
	at := func(i int) string {
		d := &found.Dumps[i]
		return d.Name + place(d, found.Boots, found.Timed, "dump")
	}
	first := r.Since == slices.IndexFunc(found.Dumps, func(d profile.LeakDump) bool { return d.Used })
	switch {
	case !r.Changed:
		return ""
	case r.Ended != nil && first:
		return "ended about " + at(r.Ended.Dump)
	case r.Ended != nil:
		return "not before " + at(r.Since) + "; ended about " + at(r.Ended.Dump)
	case first:
		return "the rate changed during the log; this is the present one"
	}
	return "not before " + at(r.Since)
}

// place returns the boot of a dump, if there are several, and its time there, if the dumps have times.
func place(d *profile.LeakDump, boots int, timed bool, first string) (s string) {
	if boots > 1 {
		s = fmt.Sprintf(", boot %d", d.Boot)
	}
	if timed && d.Time > 0 {
		from := "start"
		if !d.FromStart() {
			from = "first " + first
		}
		s += fmt.Sprintf(", %s after its %s", printable.Duration(d.Time.Hours()), from)
	}
	return s
}

// Versions returns in which firmware versions a call path grows, "" if there is only one.
func Versions(found *profile.Leaks, r *profile.Leak) string {
	return versions(r.Versions, func(v *profile.Version) string { return Rate(found, v.Rate, v.Margin) })
}

func versions(list []profile.Version, rate func(v *profile.Version) string) string {
	var grows, none, unknown []string
	for i := range list {
		switch v := &list[i]; {
		case v.Grows:
			grows = append(grows, v.Name+": "+rate(v))
		case v.Unknown:
			unknown = append(unknown, v.Name)
		default:
			none = append(none, v.Name)
		}
	}
	if len(grows) == 0 {
		return ""
	}
	n := len(list) - len(grows)
	switch newest := list[len(list)-1]; {
	case n > 0 && !slices.ContainsFunc(list[n:], func(v profile.Version) bool { return !v.Grows }):
		grows = []string{"since " + list[n].Name}
	case !newest.Grows && !newest.Unknown:
		grows[0] = "only in " + grows[0]
	}
	text := few(grows)
	if len(none) > 0 {
		text += "; none in " + few(none)
	}
	if len(unknown) > 0 {
		text += "; too little of " + few(unknown) + " to tell"
	}
	return text
}

// evidence describes the growth of kept memory: of the floor (see profile.Evidence).
func evidence(e *profile.Evidence) string {
	s := ", in both halves of the log"
	if e.Evenness < 0.5 {
		s = ", most of it in one half"
	}
	switch {
	case e.Bend <= 0.12:
		s += ", steadily"
	case e.Bend > 0.25:
		s += ", unevenly"
	}
	if e.ByBytes {
		s += "; the blocks grow"
	}
	return s
}

// maxGrowing is the number of call paths that grow, and of those that stopped, that Growing returns.
const maxGrowing = 3

// Growing returns the call paths that grow, the first three, without those of functions that leak:
// those that grow steadily, and those whose growth may be noise. ended has the first three that
// stopped growing.
func Growing(found *profile.Leaks) (steady, uneven, ended []*profile.Leak) {
	leaks := map[string]bool{}
	for _, f := range found.Functions {
		leaks[f.Innermost().Func] = true
	}
	for _, r := range found.Rows {
		if r.Verdict != profile.Grows || leaks[r.Innermost().Func] {
			continue
		}
		switch more := len(steady)+len(uneven) < maxGrowing; {
		case r.Ended != nil && len(ended) < maxGrowing:
			ended = append(ended, r)
		case r.Ended != nil || !more:
		case r.More > 0:
			steady = append(steady, r)
		default:
			uneven = append(uneven, r)
		}
	}
	return steady, uneven, ended
}

// few joins names, the first three of many.
func few(names []string) string {
	if n := len(names) - 3; n > 0 {
		names = append(slices.Clone(names[:3]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// Basis returns lines on the dumps that were left out, and on the limits of the answer.
func Basis(found *profile.Leaks) (lines []string) {
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
		lines = append(lines, fmt.Sprintf("left out: %s (%s)", few(left[reason]), reason))
	}
	if len(untimed) > 0 {
		lines = append(lines, fmt.Sprintf("times that do not fit their neighbours are not used: %s", few(untimed)))
	}
	if found.Intervals {
		sum := found.IntervalTotal()
		lines = append(lines, fmt.Sprintf("each dump has only the blocks of its own interval, none at an address of another: they add up to %s bytes in %s",
			printable.Number(sum.Bytes), printable.Number(sum.Count)+" blocks"))
	}
	if found.Missing > 0.0005 {
		lines = append(lines, fmt.Sprintf("%.1f %% of the blocks are missing: rates are corrected, and paths are ranked by a low estimate", 100*found.Missing))
	}
	if !found.Enough {
		lines = append(lines, "too few dumps to say leak: give 7 or more of a boot")
	}
	return lines
}

package leaktext

import (
	"fmt"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// span writes a time in a unit. The dump in which the heap is full counts.
func span(per growth.Unit, v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "never"
	case per == growth.PerHour:
		return printable.Duration(v)
	}
	return printable.Signed(math.Ceil(v - 1e-6))[1:]
}

// Left returns the time until the heap is full, such as "3 h (2 h to 5 h)".
func Left(x *growth.Exhaustion) string {
	in := span(x.Per, x.In)
	if x.Per != growth.PerHour {
		in += " " + string(x.Per) + "s"
	}
	if from, to := span(x.Per, x.From), span(x.Per, x.To); from != to {
		in += fmt.Sprintf(" (%s to %s)", from, to)
	}
	return in
}

// Exhaustion returns when the first heap will be full, or else has no free block; "" if neither is known.
func Exhaustion(found *growth.Leaks) string {
	if t := firstUnusable(found); t != nil {
		x := t.Unusable
		return fmt.Sprintf("largest free block %s bytes: none left in %s at %s", printable.Number(x.Free), Left(x), Rate(x.Per, t.Span, x.Rate, x.Low, x.High))
	}
	x := found.Exhaustion
	if x == nil {
		return ""
	}
	in := ""
	if x.Heap != "" {
		in = " in heap " + x.Heap
	}
	at := found.Span
	if i := slices.IndexFunc(found.Heaps, func(t growth.HeapTrend) bool { return t.Exhaustion == x }); i >= 0 {
		at = found.Heaps[i].Span
		if found.Heaps[i].Last.OnlyUsed() {
			in = " (--heap less " + HeapName(&found.Heaps[i]) + ")"
			if found.Heaps[i].Last.Size.Known {
				in = " (the limit less " + HeapName(&found.Heaps[i]) + ")"
			}
		}
	}
	if i := slices.IndexFunc(found.Heaps, func(t growth.HeapTrend) bool { return t.Exhaustion == x && t.Filled != nil }); i >= 0 {
		t := &found.Heaps[i]
		return fmt.Sprintf("free %s bytes%s: exhausted since about %s, at %s", printable.Number(x.Free), in, moment(t, t.Filled), Rate(x.Per, at, x.Rate, x.Low, x.High))
	}
	s := fmt.Sprintf("free %s bytes%s: exhausted in %s at %s", printable.Number(x.Free), in, Left(x), Rate(x.Per, at, x.Rate, x.Low, x.High))
	if n := len(found.MayLeak()); n > 0 && !slices.ContainsFunc(found.Heaps, func(t growth.HeapTrend) bool { return t.Exhaustion == x }) {
		s += ", if " + printable.Count(n, "call path") + map[bool]string{true: " that it cannot tell of leaks", false: " that it cannot tell of leak"}[n == 1]
	}
	return s
}

// firstUnusable returns the heap of which the largest free block is lost first, nil if there is none or one will be full.
func firstUnusable(found *growth.Leaks) (first *growth.HeapTrend) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		if x := t.Unusable; x != nil && found.Exhaustion == nil && (first == nil || x.In < first.Unusable.In) {
			first = t
		}
	}
	return first
}

// losesBlocks returns the begin of a headline of heaps that do not leak, but whose largest free block is lost.
func losesBlocks(found *growth.Leaks) string {
	if t := firstUnusable(found); t != nil {
		return "fragmentation: at this rate no free block in " + Left(t.Unusable) + "; "
	}
	return ""
}

// Heaps returns lines on each heap: whether it leaks, when it is exhausted unless that is
// found.Exhaustion, what is free, and whether it is fragmented. If width is not 0, it draws the memory in use
// in so many bars.
func Heaps(found *growth.Leaks, width int) (lines []string) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		s := HeapName(t) + ": " + state(t)
		if t.Verdict == leak.Leak {
			s += ", " + Rate(t.Per, t.Span, t.Rate, t.Low, t.High)
		}
		lines = append(lines, s)
		if x := t.Exhaustion; x != nil && x != found.Exhaustion {
			lines = append(lines, "  exhausted in "+Left(x))
		}
		if values, begin := t.Values(); width > 0 && len(values) > 2 {
			lines = append(lines, "  "+Bars(values, begin, width))
		}
		lines = append(lines, "  "+change(t))
		lines = append(lines, since(t)...)
		if s := largest(t); s != "" {
			lines = append(lines, "  "+s)
		}
		if x := t.Unusable; x != nil {
			lines = append(lines, fmt.Sprintf("  the largest free block: %s, none left in %s at %s", Short(t.Largest), Left(x), Rate(x.Per, t.Span, x.Rate, x.Low, x.High)))
		}
		if t.Misread > 0 {
			lines = append(lines, fmt.Sprintf("  not used: %s with a damaged number", printable.Count(t.Misread, "report")))
		}
	}
	return lines
}

// Trend describes whether a heap leaks, how fast it shrinks, and when it is exhausted.
func Trend(t *growth.HeapTrend) []string {
	list := []string{state(t)}
	if t.Verdict == leak.Leak {
		list = append(list, Rate(t.Per, t.Span, t.Rate, t.Low, t.High))
	}
	if t.Exhaustion != nil {
		list = append(list, "exhausted in "+Left(t.Exhaustion))
	}
	if t.Fragmenting {
		list = append(list, "ever more fragmented")
	}
	return list
}

// since returns since when a heap shrinks, or until when it did, and in which firmware versions.
func since(t *growth.HeapTrend) (lines []string) {
	if t.Began != nil && t.Verdict != leak.None {
		lines = append(lines, "  since about "+moment(t, t.Began))
	}
	if t.Stopped != nil {
		lines = append(lines, fmt.Sprintf("  it shrank by %s until about %s", BytesPer(t.Per, t.Span, t.Former), moment(t, t.Stopped)))
	}
	if t.Filled != nil {
		since := "since about " + moment(t, t.Filled)
		if t.Boots > 1 && t.FullBoots == t.Boots {
			since = fmt.Sprintf("in each of %d boots, in the last ", t.Boots) + since
		}
		lines = append(lines, "  exhausted "+since)
	}
	if s := Versions(t.Per, t.Span, t.Versions); s != "" {
		lines = append(lines, "  "+s)
	}
	return lines
}

// moment returns where a report of a heap is.
func moment(t *growth.HeapTrend, r *growth.HeapReport) string {
	time, known := r.Uptime()
	return fmt.Sprintf("line %d%s", r.Line, place(r.Boot, time, known, true, t.Boots))
}

// HeapName returns the name of a heap, such as "heap PSRAM".
func HeapName(t *growth.HeapTrend) string {
	switch {
	case t.Name == "":
		return "heap"
	case t.Last.OnlyUsed():
		return t.Name
	}
	return "heap " + t.Name
}

// state describes whether a heap leaks.
func state(t *growth.HeapTrend) string {
	if !t.Last.Free.Known && !t.Last.Used.Known {
		return "the log does not say what is free"
	}
	s := Verdict(&t.Judgement, t.Per, t.Span)
	switch {
	case t.Filled != nil:
		s += "; exhausted"
	case t.NearlyFull():
		s += "; nearly full"
	}
	return s
}

// change describes what is used and free, and how that has changed in the last boot.
func change(t *growth.HeapTrend) string {
	first, last := t.First.Heap, t.Last.Heap
	if t.Reports == 1 {
		first = last
	}
	s := ""
	if last.OnlyUsed() {
		return "used " + arrow(first.Used, last.Used)
	}
	if last.Size.Known && last.Free.Known {
		s = "used " + arrow(used(&first), used(&last)) + ", "
	}
	s += "free " + arrow(first.Free, last.Free)
	if last.Size.Known {
		s += " of " + amount(last.Size)
	}
	if t.Least.Known && t.Least.Bytes > 0 && t.Least.Bytes < last.Free.Bytes {
		s += ", never below " + amount(t.Least)
	}
	return s
}

func used(h *profile.Heap) profile.Amount {
	return profile.Amount{Bytes: h.Size.Bytes - min(h.Free.Bytes, h.Size.Bytes), Known: h.Size.Known && h.Free.Known}
}

// largest describes the largest free block, "" if it is not known.
func largest(t *growth.HeapTrend) string {
	f, known := t.Last.Fragmentation()
	if !known {
		return ""
	}
	part := func(f float64) string { return fmt.Sprintf("%.0f %%", 100*(1-f)) }
	share := part(f)
	if first, known := t.First.Fragmentation(); known && part(first) != share {
		share = part(first) + " → " + share
	}
	words := "not fragmented"
	switch {
	case t.Last.Free.Bytes == 0:
		words = "full"
	case t.Fragmenting && t.Fragmented():
		words = "fragmented, and ever more"
	case t.Fragmenting:
		words = "ever more fragmented"
	case t.Fragmented():
		words = "fragmented"
	}
	return fmt.Sprintf("largest %s (%s of free): %s", arrow(t.First.Largest, t.Last.Largest), share, words)
}

// arrow writes an amount and what it has become.
func arrow(first, last profile.Amount) string {
	if first == last || !first.Known {
		return amount(last)
	}
	return amount(first) + " → " + amount(last)
}

// HeapHeadline returns a sentence on the heaps of a log without dumps.
func HeapHeadline(found *growth.Leaks) string {
	leaks, unknown, reports, boots, filled := 0, 0, 0, 0, 0
	span := 0.0
	var most *growth.HeapTrend // with the largest bound
	for i := range found.Heaps {
		t := &found.Heaps[i]
		if t.Filled != nil {
			filled++
		}
		switch {
		case t.Verdict == leak.Leak:
			leaks++
		case t.Verdict == leak.Unknown:
			unknown++
		case most == nil || t.Bound > most.Bound:
			most = t
		}
		reports, boots, span = reports+t.Reports, max(boots, t.Boots), max(span, t.Span.Hours())
	}
	of := " of the allocator"
	used := len(found.Heaps) > 0 && !slices.ContainsFunc(found.Heaps, func(t growth.HeapTrend) bool { return !t.Last.OnlyUsed() })
	if used {
		of = " of what is used"
	}
	s := "cannot tell"
	switch {
	case boots == 0:
		return printable.Count(reports, "report") + of + ", too few to tell"
	case leaks > 0 && used:
		s = "memory leaks"
	case leaks == 1 && filled == 1 && len(found.Heaps) == 1:
		s = "the heap leaks, and is exhausted,"
	case leaks == 1 && len(found.Heaps) == 1:
		s = "the heap leaks"
	case leaks > 0:
		s = fmt.Sprintf("%d of %d heaps %s", leaks, len(found.Heaps), map[bool]string{true: "leaks", false: "leak"}[leaks == 1])
	case filled > 0 && len(found.Heaps) == 1:
		s = "the heap is exhausted"
	case filled > 0:
		s = fmt.Sprintf("%d of %d heaps exhausted", filled, len(found.Heaps))
	case most != nil && unknown == 0:
		s = losesBlocks(found) + "none above " + BytesPer(most.Per, most.Span, most.Bound)
	default:
		s = losesBlocks(found) + s
	}
	s += " in " + printable.Count(reports, "report") + of
	if boots > 1 {
		s += fmt.Sprintf(" of %d boots", boots)
	}
	if span > 0 {
		s += " over " + printable.Duration(span)
	}
	return s
}

// Free describes what is free in a heap, such as "internal: 2,000 of 65,536 free, largest 1,024".
func Free(h *profile.Heap) string {
	s := ""
	if h.Name != "" {
		s = h.Name + ": "
	}
	if h.OnlyUsed() {
		return s + amount(h.Used) + " used"
	}
	s += amount(h.Free)
	if h.Size.Known {
		s += " of " + amount(h.Size)
	}
	s += " free"
	if h.Largest.Known {
		s += ", largest " + amount(h.Largest)
	}
	return s
}

// amount writes a number of bytes.
func amount(a profile.Amount) string {
	if !a.Known {
		return "?"
	}
	return printable.Number(a.Bytes)
}

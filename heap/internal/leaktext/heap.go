package leaktext

import (
	"fmt"
	"math"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// span writes a time in a unit. The dump in which the heap is full counts.
func span(per profile.Unit, v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "never"
	case per == profile.PerHour:
		return printable.Duration(v)
	}
	return printable.Signed(math.Ceil(v - 1e-6))[1:]
}

// Left returns the time until the heap is full, such as "3 h (2 h to 5 h)".
func Left(x *profile.Exhaustion) string {
	in := span(x.Per, x.In)
	if x.Per != profile.PerHour {
		in += " " + string(x.Per) + "s"
	}
	if from, to := span(x.Per, x.From), span(x.Per, x.To); from != to {
		in += fmt.Sprintf(" (%s to %s)", from, to)
	}
	return in
}

// Exhaustion returns when the first heap will be full, "" if it is not known.
func Exhaustion(found *profile.Leaks) string {
	x := found.Exhaustion
	if x == nil {
		return ""
	}
	in := ""
	if x.Heap != "" {
		in = " in heap " + x.Heap
	}
	at := found.Span
	if i := slices.IndexFunc(found.Heaps, func(t profile.HeapTrend) bool { return t.Exhaustion == x }); i >= 0 {
		at = found.Heaps[i].Span
		if found.Heaps[i].Last.OnlyUsed() {
			in = " (--heap less " + HeapName(&found.Heaps[i]) + ")"
		}
	}
	return fmt.Sprintf("free %s bytes%s: exhausted in %s at %s", printable.Number(x.Free), in, Left(x), rate(x.Per, at, x.Rate, x.Margin))
}

// Fragmentation returns a message on each heap that becomes fragmented.
func Fragmentation(found *profile.Leaks) (list []string) {
	for i := range found.Heaps {
		if s := fragmentation(&found.Heaps[i]); s != "" {
			list = append(list, s)
		}
	}
	return list
}

func fragmentation(t *profile.HeapTrend) string {
	if !t.Fragmenting {
		return ""
	}
	of := ""
	if t.Name != "" {
		of = " of heap " + t.Name
	}
	return fmt.Sprintf("fragmentation%s: the largest free block went from %s to %s bytes, what is free from %s to %s (btheap map)", of,
		printable.Number(t.First.Largest.Bytes), printable.Number(t.Last.Largest.Bytes), printable.Number(t.First.Free.Bytes), printable.Number(t.Last.Free.Bytes))
}

// Heaps returns lines on each heap: whether it leaks, when it is exhausted unless that is
// found.Exhaustion, what is free, and whether it is fragmented.
func Heaps(found *profile.Leaks) (lines []string) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		lines = append(lines, HeapName(t)+": "+state(t))
		if x, first := t.Exhaustion, found.Exhaustion; x != nil && (first == nil || first.Heap != t.Name) {
			lines = append(lines, fmt.Sprintf("  exhausted in %s at %s", Left(x), rate(x.Per, t.Span, x.Rate, x.Margin)))
		}
		lines = append(lines, "  "+change(t))
		if t.Verdict >= profile.Grows {
			lines = append(lines, since(t)...)
		}
		if s := largest(t); s != "" {
			lines = append(lines, "  "+s)
		}
		if t.Misread > 0 {
			lines = append(lines, fmt.Sprintf("  not used: %s with a damaged number", printable.Count(t.Misread, "report")))
		}
	}
	return lines
}

// Trend describes whether a heap leaks, how fast it shrinks, and when it is exhausted.
func Trend(t *profile.HeapTrend) []string {
	list := []string{state(t)}
	if t.Verdict >= profile.Grows || t.Grows() {
		list = append(list, rate(t.Per, t.Span, t.Rate, t.Margin))
	}
	if t.Exhaustion != nil {
		list = append(list, "exhausted in "+Left(t.Exhaustion))
	}
	if t.Fragmenting {
		list = append(list, "ever more fragmented")
	}
	return list
}

// Heap describes a heap that shrinks in a line, such as "leak: heap PSRAM: +120 ± 3 bytes per hour, free
// 2,000 → 1,000".
func Heap(t *profile.HeapTrend) string {
	what, first, last := "free", t.First.Free, t.Last.Free
	if t.Last.OnlyUsed() {
		what, first, last = "used", t.First.Used, t.Last.Used
	}
	return fmt.Sprintf("%s: %s: %s, %s %s", state(t), HeapName(t), rate(t.Per, t.Span, t.Rate, t.Margin), what, arrow(first, last))
}

// since returns since when a heap shrinks, in which firmware versions, and what tells a leak from a cache.
func since(t *profile.HeapTrend) (lines []string) {
	at := func(what string, d *profile.LeakDump) {
		lines = append(lines, fmt.Sprintf("  %s line %d%s", what, d.Line, place(d, t.Boots, t.Per == profile.PerHour, "report")))
	}
	if x := t.Ended; x != nil {
		lines = append(lines, "  it shrank by "+rate(t.Per, t.Span, x.Rate, x.Margin)[1:]+", and stopped")
	}
	if t.Changed && t.Evidence.Since > 0 {
		at("not before", &t.Began)
	}
	if t.Ended != nil {
		at("ended about", &t.Until)
	}
	if s := versions(t.Versions, func(v *profile.Version) string { return rate(t.Per, t.Span, v.Rate, v.Margin) }); s != "" {
		lines = append(lines, "  "+s)
	}
	if t.More > 0 {
		lines = append(lines, "  "+undecidedText(t.Per, t.More))
	}
	return lines
}

// HeapName returns the name of a heap, such as "heap PSRAM".
func HeapName(t *profile.HeapTrend) string {
	switch {
	case t.Name == "":
		return "heap"
	case t.Last.OnlyUsed():
		return t.Name
	}
	return "heap " + t.Name
}

// state describes whether a heap leaks.
func state(t *profile.HeapTrend) string {
	s := ""
	switch {
	case !t.Last.Free.Known && !t.Last.Used.Known:
		return "the log does not say what is free"
	case t.Boots == 0:
		s = fmt.Sprintf("%s; 3 or more of a boot show a trend", printable.Count(t.Reports, "report"))
	case t.Verdict == profile.Leaking:
		s = "leak"
	case t.Verdict == profile.Probably:
		s = "probably a leak"
	case t.Grows() && !enough(t):
		s = "shrinks"
		if t.Last.OnlyUsed() {
			s = "grows"
		}
		s += fmt.Sprintf(", but %s are too few to say leak", printable.Count(t.Reports, "report"))
	case t.Grows():
		s = "may be a leak"
	default:
		s = "no leak"
	}
	if t.Full() {
		s += "; nearly full"
	}
	return s
}

// enough reports whether a heap that shrinks in every interval is called a leak.
func enough(t *profile.HeapTrend) bool { return t.Rose < t.Intervals || t.Intervals >= 6 }

// change describes what is used and free, and how that has changed in the last boot.
func change(t *profile.HeapTrend) string {
	first, last := t.First.Heap, t.Last.Heap
	if t.Reports == 1 {
		first = last
	}
	s := ""
	if last.OnlyUsed() {
		s = "used " + arrow(first.Used, last.Used)
		if t.Grows() && t.Exhaustion == nil {
			s += " at " + rate(t.Per, t.Span, t.Rate, t.Margin)
		}
		return s
	}
	if last.Size.Known && last.Free.Known {
		s = "used " + arrow(used(&first), used(&last)) + ", "
	}
	s += "free " + arrow(first.Free, last.Free)
	if last.Size.Known {
		s += " of " + amount(last.Size)
	}
	if t.Least.Known && t.Least.Bytes < last.Free.Bytes {
		s += ", never below " + amount(t.Least)
	}
	return s
}

func used(h *profile.Heap) profile.Amount {
	return profile.Amount{Bytes: h.Size.Bytes - min(h.Free.Bytes, h.Size.Bytes), Known: h.Size.Known && h.Free.Known}
}

// largest describes the largest free block, "" if it is not known.
func largest(t *profile.HeapTrend) string {
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
func HeapHeadline(found *profile.Leaks) string {
	sure, reports, boots := 0, 0, 0
	span := 0.0
	for i := range found.Heaps {
		t := &found.Heaps[i]
		if t.Verdict.Sure() {
			sure++
		}
		reports, boots, span = reports+t.Reports, max(boots, t.Boots), max(span, t.Span.Hours())
	}
	s, of := "no leak found", " of the allocator"
	used := len(found.Heaps) > 0 && found.Heaps[0].Last.OnlyUsed() // all, or none
	if used {
		of = " of what is used"
	}
	switch {
	case boots == 0:
		return printable.Count(reports, "report") + of + ", too few to find leaks"
	case sure > 0 && used:
		s = "memory leaks"
	case sure == 1 && len(found.Heaps) == 1:
		s = "the heap leaks"
	case sure == 1:
		s = fmt.Sprintf("1 of %d heaps leaks", len(found.Heaps))
	case sure > 1:
		s = fmt.Sprintf("%d of %d heaps leak", sure, len(found.Heaps))
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

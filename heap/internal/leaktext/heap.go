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
		return Duration(v)
	}
	return Signed(math.Ceil(v - 1e-6))[1:]
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

// Free describes what is free in a heap, such as "internal: 2,000 of 65,536 free, largest 1,024".
func Free(h *profile.Heap) string {
	s := ""
	if h.Name != "" {
		s = h.Name + ": "
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

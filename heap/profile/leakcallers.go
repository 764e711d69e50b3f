package profile

import (
	"cmp"
	"slices"
)

// Caller is one of the callers of a function that leaks.
type Caller struct {
	// Stack is the call site in the function and, if there is one, that of its caller.
	Stack []Site
	Bytes uint64  // growth within the last boot: the value in its last used dump less the least one
	Share float64 // of the growth of all callers, from 0 to 1
}

// Callers returns the call sites of a function that leaks, with their callers: those that grew
// most first. It is nil for a call path.
func (l *Leak) Callers() []Caller {
	var list []Caller
	index, sum := map[[2]Site]int{}, uint64(0)
	for _, row := range l.calls {
		stack := row.inner(2)
		grown := l.grown(row)
		if grown == 0 {
			continue
		}
		key := [2]Site{}
		copy(key[:], stack)
		i, ok := index[key]
		if !ok {
			i = len(list)
			index[key] = i
			list = append(list, Caller{Stack: stack})
		}
		list[i].Bytes += grown
		sum += grown
	}
	for i := range list {
		list[i].Share = float64(list[i].Bytes) / float64(sum)
	}
	slices.SortStableFunc(list, func(a, b Caller) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list
}

// grown returns the growth of a call path in the last boot with a used dump.
func (l *Leak) grown(row Row) uint64 {
	last, low := Value{}, ^uint64(0)
	at := boot{}
	points := row.Points()
	l.leaks.addUp(points)
	for i, d := range l.leaks.Dumps {
		if !d.Used {
			continue
		}
		if d.boot != at {
			at, low = d.boot, ^uint64(0)
		}
		last = points[i]
		low = min(low, last.Bytes)
	}
	if low > last.Bytes {
		return 0
	}
	return last.Bytes - low
}

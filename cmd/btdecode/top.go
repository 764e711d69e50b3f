package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// topSink prints the call sites that hold the most.
type topSink struct {
	*stacks
	w      *bufio.Writer
	n      int
	stderr io.Writer
}

// sums is what a call site holds: flat, where it is the innermost frame that is
// not hidden, and cumulative, where it is any.
type sums struct {
	site
	flatBytes, flatCount, cumBytes, cumCount int64
}

func (t *topSink) close() error {
	bySite := map[site]*sums{}
	var list []*sums
	at := func(s site) *sums {
		if bySite[s] == nil {
			bySite[s] = &sums{site: s}
			list = append(list, bySite[s])
		}
		return bySite[s]
	}
	var bytes, count int64
	for _, st := range t.list {
		bytes, count = bytes+st.bytes, count+st.count
		seen := map[site]bool{} // a recursive call counts once
		for i, s := range t.sites(st) {
			a := at(s)
			if i == 0 {
				a.flatBytes, a.flatCount = a.flatBytes+st.bytes, a.flatCount+st.count
			}
			if !seen[s] {
				seen[s] = true
				a.cumBytes, a.cumCount = a.cumBytes+st.bytes, a.cumCount+st.count
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *sums) int {
		return cmp.Or(cmp.Compare(b.flatBytes, a.flatBytes), cmp.Compare(b.cumBytes, a.cumBytes),
			cmp.Compare(a.fn, b.fn), cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	fmt.Fprintf(t.w, "%d bytes in %d allocations, %d call stacks, %d call sites\n", bytes, count, len(t.list), len(list))
	fmt.Fprintf(t.w, "%12s %6s %9s %12s %6s %9s  %s\n", "FLAT BYTES", "", "COUNT", "CUM BYTES", "", "COUNT", "CALL SITE")
	for _, a := range list[:min(t.n, len(list))] {
		fmt.Fprintf(t.w, "%12d %5.1f%% %9d %12d %5.1f%% %9d  %s\n", a.flatBytes, share(a.flatBytes, bytes), a.flatCount,
			a.cumBytes, share(a.cumBytes, bytes), a.cumCount, a.describe())
	}
	if t.noSize > 0 {
		fmt.Fprintf(t.w, "%d records were cut before their size and count no bytes\n", t.noSize)
	}
	return nil
}

func share(part, all int64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

// describe is the function and where in it.
func (s site) describe() string {
	switch {
	case s.file == "":
		return s.name()
	case s.line == 0:
		return s.name() + " " + s.file
	}
	return fmt.Sprintf("%s %s:%d", s.name(), s.file, s.line)
}

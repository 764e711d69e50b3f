package main

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// foldedSink writes a line a call stack, outermost function first, and its bytes
// or allocations: what flamegraph.pl and its like read.
type foldedSink struct {
	*stacks
	w     *bufio.Writer
	count bool
}

func (f *foldedSink) close() error {
	sums := map[string]int64{}
	for _, st := range f.list {
		var names []string
		for _, s := range slices.Backward(f.sites(st)) {
			names = append(names, strings.NewReplacer(";", ":", "\n", " ").Replace(s.name()))
		}
		if len(names) == 0 {
			names = []string{"(no frames)"}
		}
		n := st.bytes
		if f.count {
			n = st.count
		}
		sums[strings.Join(names, ";")] += n
	}
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		if _, err := fmt.Fprintf(f.w, "%s %d\n", key, sums[key]); err != nil {
			return err
		}
	}
	return nil
}

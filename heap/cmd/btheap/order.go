package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// inOrder returns files in the order of their first dates, or else of the numbers in their names: of a
// shell, device-10.log comes before device-9.log. told is false if neither decides.
func inOrder(files []string) (list []string, told bool) {
	if len(files) < 2 || slices.Contains(files, cli.Stdio) {
		return files, true
	}
	list = slices.Clone(files)
	dates := map[string]time.Time{}
	for _, f := range files {
		if at, ok := heaplog.FirstDate(f); ok {
			dates[f] = at
		}
	}
	if len(dates) == len(files) {
		slices.SortStableFunc(list, func(a, b string) int { return dates[a].Compare(dates[b]) })
		return list, true
	}
	if slices.ContainsFunc(files, func(f string) bool { return words(f) != words(files[0]) }) || words(files[0]) == files[0] {
		return files, false
	}
	slices.SortStableFunc(list, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) })
	return list, true
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

// words returns a name with its numbers as #.
func words(name string) string {
	return strings.Join(strings.FieldsFunc(name, isDigit), "#")
}

// numbers returns the numbers in a name.
func numbers(name string) (list []uint64) {
	for _, f := range strings.FieldsFunc(name, func(c rune) bool { return !isDigit(c) }) {
		n, err := strconv.ParseUint(f, 10, 64)
		list = append(list, cmp.Or(n, map[bool]uint64{true: 1<<64 - 1}[err != nil]))
	}
	return list
}

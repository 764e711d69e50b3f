package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Limits of the sources on a page.
const (
	around        = 6       // lines before and after each call site
	maxSourceLine = 400     // characters
	maxSource     = 2 << 20 // bytes of all files
)

// source is a run of lines of a file: the number of the first, and the lines.
type source [2]any

// addSources adds the lines around each call site.
func (d *data) addSources(read func(file string) ([]byte, bool)) {
	if read == nil {
		return
	}
	lines := map[string][]int{}
	for _, s := range d.Sites {
		if file, line := s.File, s.Line; file != "" && line > 0 {
			lines[file] = append(lines[file], line)
		}
	}
	d.Sources = map[string][]source{}
	size, left := 0, 0
	for _, file := range slices.Sorted(maps.Keys(lines)) {
		text, found := read(file)
		if !found {
			continue
		}
		runs, n := excerpts(strings.Split(string(text), "\n"), lines[file])
		if size+n > maxSource {
			left++
			continue
		}
		size += n
		if len(runs) > 0 {
			d.Sources[file] = runs
		}
	}
	if left > 0 {
		d.Notes = append(d.Notes, printable.Count(left, "source file")+" would make the page too large and are left out.")
	}
}

// excerpts returns the lines of a text around some, and their size in bytes.
func excerpts(text []string, some []int) (runs []source, size int) {
	slices.Sort(some)
	var list []string
	first := 0
	end := func() {
		if len(list) > 0 {
			runs = append(runs, source{first, list})
		}
		list = nil
	}
	next := 1 // first line that is in no run yet
	for _, line := range some {
		from := max(next, line-around)
		if from > next || len(list) == 0 {
			end()
			first = from
		}
		for next = max(next, from); next <= min(line+around, len(text)); next++ {
			s := strings.TrimRight(strings.ReplaceAll(text[next-1], "\t", "    "), "\r")
			s = printable.Text(s[:min(len(s), maxSourceLine)])
			list, size = append(list, s), size+len(s)
		}
	}
	end()
	return runs, size
}

package forms

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/systems.md")

// The table of the document is that of the code.
func TestDocument(t *testing.T) {
	const path = "../../../docs/systems.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "<!-- table -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !ok2 {
		t.Fatal("no table")
	}
	doc := before + "<!-- table -->\n| read | from |\n| --- | --- |\n" + levelRows() + traceRows() + "<!-- end -->\n" + after
	if *update {
		err = os.WriteFile(path, []byte(doc), 0o644)
	}
	if err != nil || !*update && doc != string(text) {
		t.Errorf("%v: the table differs: go test ./heap/heaplog/internal/forms -run Document -update", err)
	}
}

// levelRows has a row for each quantity, with the words that say it.
func levelRows() string {
	var b strings.Builder
	for _, q := range []Quantity{Free, Used, Largest, Least, Peak, Total, Limit} {
		var list []string
		for _, v := range vocabulary {
			if v[0] != string(q) {
				continue
			}
			text := v[1]
			if v[2] != "" {
				text += " with " + v[2]
			}
			if v[3] != "" {
				text += " without " + v[3]
			}
			list = append(list, text)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", q, strings.Join(list, "; "))
	}
	var systems []string
	for _, f := range lineForms {
		if !slices.Contains(systems, f[0]) {
			systems = append(systems, f[0])
		}
	}
	slices.Sort(systems)
	fmt.Fprintf(&b, "| lines without such words | %s |\n", strings.Join(systems, ", "))
	return b.String()
}

// traceRows has a row for each system, with the files that print its traces.
func traceRows() string {
	var b strings.Builder
	var names []string
	for i := range traceForms {
		names = append(names, traceForms[i].system)
	}
	for _, system := range slices.Compact(names) {
		since := ""
		var files []string
		for i := range traceForms {
			f := &traceForms[i]
			if f.system != system || f.aside {
				continue
			}
			if since == "" || version(f.since) < version(since) {
				since = f.since
			}
			if file := "`" + f.source + "`"; !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
		fmt.Fprintf(&b, "| blocks: %s, from %s | %s |\n", system, since, strings.Join(files, ", "))
	}
	return b.String()
}

// version returns a version as a number.
func version(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

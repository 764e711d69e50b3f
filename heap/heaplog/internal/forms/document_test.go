package forms

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/systems.md")

// The tables of the document are those of the code.
func TestDocument(t *testing.T) {
	const path = "../../../docs/systems.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for name, rows := range map[string]string{"vocabulary": vocabularyTable(), "traces": traceTable()} {
		before, rest, ok := strings.Cut(doc, "<!-- "+name+" -->\n")
		_, after, ok2 := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !ok2 {
			t.Fatalf("no table %s", name)
		}
		doc = before + "<!-- " + name + " -->\n" + rows + "<!-- end -->\n" + after
	}
	if *update {
		err = os.WriteFile(path, []byte(doc), 0o644)
	}
	if err != nil || !*update && doc != string(text) {
		t.Errorf("%v: the tables differ: go test ./heap/heaplog/internal/forms -run Document -update", err)
	}
}

func vocabularyTable() string {
	var b strings.Builder
	b.WriteString("| counts | words | and | not |\n| --- | --- | --- | --- |\n")
	for _, v := range vocabulary {
		if v.q.level() && v.q != unknown {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", v.q, v.need, v.also, v.not)
		}
	}
	return b.String()
}

// version returns a version as a number.
func version(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// traceTable has a row for each file that prints a trace.
func traceTable() string {
	var b strings.Builder
	b.WriteString("| system | printed by | versions |\n| --- | --- | --- |\n")
	since, until := map[string]string{}, map[string]string{}
	var order []*form
	for i := range forms {
		f := &forms[i]
		if f.do == nil || f.aside() {
			continue
		}
		if since[f.source] == "" {
			order = append(order, f)
			since[f.source], until[f.source] = f.since, f.until
		}
		if version(f.since) < version(since[f.source]) {
			since[f.source] = f.since
		}
		if f.until == "" {
			until[f.source] = ""
		}
	}
	for _, f := range order {
		fmt.Fprintf(&b, "| %s | `%s` | from %s%s |\n", f.system, f.source, since[f.source], strings.TrimSuffix(" to "+until[f.source], " to "))
	}
	return b.String()
}

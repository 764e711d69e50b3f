package lwsbt

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notInCode are clauses that no code carries out, and why.
var notInCode = map[string]string{
	"BT-LOSS-4": "it describes what lws's own decoder prints; ref-c reproduces it as erratum 13",
}

var (
	anyClause   = regexp.MustCompile(`\bBT-[A-Z0-9]+-[1-9][0-9]*\b`)
	clauseHead  = regexp.MustCompile(`(?m)^\*\*(BT-[A-Z0-9]+-[1-9][0-9]*)\*\*`)
	clauseRange = regexp.MustCompile(`BT-[A-Z0-9]+-[0-9]+ *(?:to|–|-|\.\.\.?) *(?:BT-[A-Z0-9]+-)?[0-9]+\b`)
)

// specFile returns the text of a file of the specification.
func specFile(t *testing.T, name string) string {
	t.Helper()
	text, err := Spec.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sources calls f with each file of code, tests or not.
func sources(t *testing.T, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".go", ".c", ".h", ".py"}, filepath.Ext(path)) || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		f(filepath.ToSlash(path), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every clause of SPEC.md is named where code carries it out: in a comment of the
// product's Go code, outside of what tests implementations. Code names no clause
// that SPEC.md lacks, and no range of clauses.
func TestClausesAreNamedInCode(t *testing.T) {
	clauses := map[string]bool{}
	for _, name := range SpecFiles {
		for _, m := range clauseHead.FindAllStringSubmatch(specFile(t, name), -1) {
			clauses[m[1]] = true
		}
	}
	if len(clauses) < 55 {
		t.Fatalf("%d clauses in the specification, want at least 55", len(clauses))
	}
	named := map[string]bool{}
	sources(t, func(path, text string) {
		if path == "spec_test.go" {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if m := clauseRange.FindString(line); m != "" {
				t.Errorf("%s:%d: the range %q, expected each clause by its name", path, i+1, m)
			}
		}
		testing := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "conformance/")
		for _, id := range anyClause.FindAllString(text, -1) {
			if !clauses[id] && !testing {
				t.Errorf("%s: names %s, which SPEC.md lacks", path, id)
			}
			if strings.HasSuffix(path, ".go") && !testing {
				named[id] = true
			}
		}
	})
	for id := range clauses {
		why, listed := notInCode[id]
		switch {
		case !named[id] && !listed:
			t.Errorf("%s: no code names it, and it is not listed with a reason why", id)
		case named[id] && listed:
			t.Errorf("%s: listed as in no code (%s), but code names it", id, why)
		}
	}
	for id := range notInCode {
		if !clauses[id] {
			t.Errorf("%s is listed, but not in SPEC.md", id)
		}
	}
}

// The contents of SPEC.md list the sections of all its files. Each link leads to its heading,
// in SPEC.md or from one file to another.
func TestSpecContents(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^##+ (.+)$`)
	link := regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
	anchors := map[string]bool{}
	var want, got []string
	for _, name := range SpecFiles {
		for _, m := range heading.FindAllStringSubmatch(specFile(t, name), -1) {
			anchors[name+"#"+anchor(m[1])] = true
			if strings.HasPrefix(m[0], "## ") && m[1] != "Contents" {
				want = append(want, name+"#"+anchor(m[1]))
			}
		}
	}
	for _, name := range SpecFiles {
		for _, m := range link.FindAllStringSubmatch(specFile(t, name), -1) {
			to := name
			if m[1] != "" {
				to = path.Join(path.Dir(name), m[1])
			}
			if to += "#" + m[2]; !anchors[to] {
				t.Errorf("%s links to %s, which has no such heading", name, to)
			}
			if name == "SPEC.md" {
				got = append(got, to)
			}
		}
	}
	if len(want) < 20 {
		t.Errorf("%d sections, expected at least 20", len(want))
	}
	for _, section := range want {
		if !slices.Contains(got, section) {
			t.Errorf("SPEC.md has no link to %s", section)
		}
	}
}

// anchor returns the anchor of a heading, as GitHub makes it.
func anchor(heading string) string {
	heading = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(heading, " ", "-")
}

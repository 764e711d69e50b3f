// Package figures holds the tables of documents to the tests that measure them.
//
// A table stands between two lines of a Markdown file:
//
//	<!-- models: go test ./gen -run Nearness -update -->
//
//	| model | distance |
//	| --- | ---: |
//	| tree | 0.12 |
//
//	<!-- end of models -->
//
// The test calls [Check] with the name of the table and its text. With -update, Check writes the
// table into the file; without it, the test fails where the file has another text. The text after
// the colon is for readers.
package figures

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files and the tables of documents anew")

// Update reports whether the test was started with -update. Importing this package defines the
// flag, so a test that imports it must not define a flag of that name.
func Update() bool { return *update }

// Check compares a table with the one of that name in a file, whose path is relative to the
// directory of the test. With -update it writes the table into the file.
func Check(t testing.TB, file, name, table string) {
	t.Helper()
	check(t, file, name, table, 0)
}

// CheckWithin is Check for tables of measurements that vary, such as ratios of times. A number of
// the table may differ from the number at its place in the file by a factor of up to 1+within, and
// the last digit of both by 1; all other text must be equal.
func CheckWithin(t testing.TB, file, name, table string, within float64) {
	t.Helper()
	check(t, file, name, table, within)
}

func check(t testing.TB, file, name, table string, within float64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, old, after, err := cut(string(text), name)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	table = strings.Trim(table, "\n")
	if table == "" {
		t.Fatalf("%s: table %q: the test has measured nothing", file, name)
	}
	if Update() {
		if err := os.WriteFile(file, []byte(before+"\n"+table+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if place := difference(strings.Trim(old, "\n"), table, within); place != "" {
		t.Errorf("%s: table %q is not the one measured (-update writes it):\n%s", file, name, place)
	}
}

// cut splits a file around the table with a name: before ends with the line of the mark that
// begins it, and after begins with the empty line before the other mark.
func cut(text, name string) (before, table, after string, err error) {
	begin := regexp.MustCompile(`(?m)^<!-- ` + regexp.QuoteMeta(name) + `(?::.*)? -->\n`)
	end := fmt.Sprintf("<!-- end of %s -->\n", name)
	at := begin.FindAllStringIndex(text, -1)
	if len(at) != 1 {
		return "", "", "", fmt.Errorf("%d lines <!-- %s: … -->, expected 1", len(at), name)
	}
	before, rest := text[:at[0][1]], text[at[0][1]:]
	table, after, found := strings.Cut(rest, end)
	if !found || strings.Contains(after, end) {
		return "", "", "", fmt.Errorf("expected one line %q after <!-- %s -->", strings.TrimSpace(end), name)
	}
	return before, table, "\n" + end + after, nil
}

// difference returns the first lines that differ, or "".
func difference(old, table string, within float64) string {
	was, is := strings.Split(old, "\n"), strings.Split(table, "\n")
	for i := range max(len(was), len(is)) {
		var a, b string
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a != b && (within == 0 || !near(a, b, within)) {
			return fmt.Sprintf("line %d\nfile     %s\nmeasured %s", i+1, a, b)
		}
	}
	return ""
}

var number = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)

// spaces are the columns' padding and the digits of rulers, which change with the width of numbers.
var spaces = regexp.MustCompile(` +`)

// near reports whether two lines are equal but for numbers, and these differ by at most a factor.
func near(a, b string, within float64) bool {
	plain := func(s string) string { return spaces.ReplaceAllString(number.ReplaceAllString(s, "0"), " ") }
	if plain(a) != plain(b) {
		return false
	}
	x, y := number.FindAllString(a, -1), number.FindAllString(b, -1)
	for i := range x {
		v, w := value(x[i]), value(y[i])
		if math.Abs(v-w) > within*min(v, w)+math.Max(unit(x[i]), unit(y[i]))*1.001 {
			return false
		}
	}
	return true
}

// value returns the value of a number with commas between thousands.
func value(s string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// unit returns the value of 1 in the last digit of a number.
func unit(s string) float64 {
	_, digits, _ := strings.Cut(s, ".")
	return math.Pow(10, -float64(len(digits)))
}

// Package render writes reports of package conformance: tables and failures with their
// bits for people, and JSON and JUnit for machines.
package render

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// Formats returns the format names that [Report] accepts.
func Formats() []string { return []string{"table", "json", "junit"} }

// Report writes a report in one of the [Formats]. Set colour for tables on a terminal.
func Report(w io.Writer, r *conformance.Report, format string, colour bool) error {
	switch format {
	case "table":
		return renderTable(w, r, colour)
	case "json":
		return renderJSON(w, r)
	case "junit":
		return renderJUnit(w, r)
	}
	return fmt.Errorf("format %q, expected %s", format, strings.Join(Formats(), ", "))
}

// renderJSON writes a report as JSON. It escapes characters that would control a terminal.
func renderJSON(w io.Writer, r *conformance.Report) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return err
	}
	var safe strings.Builder
	for _, c := range b.String() {
		if c == '\n' || unicode.IsPrint(c) && !unicode.Is(unicode.Bidi_Control, c) {
			safe.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(&safe, `\u%04x`, unit)
		}
	}
	_, err := io.WriteString(w, safe.String())
	return err
}

// Colours of a terminal: failures, warnings, success.
const (
	red    = "31"
	yellow = "33"
	green  = "32"
)

func paint(s, colour string, on bool) string {
	if !on {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// stickyWriter remembers the first error and writes nothing after it.
type stickyWriter struct {
	w   io.Writer
	err error
}

func (s *stickyWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

func renderTable(out io.Writer, r *conformance.Report, colour bool) error {
	if err := Failures(out, r, colour, true); err != nil {
		return err
	}
	return Summary(out, r, colour, true)
}

// shownFailures is how many failures are written unless all are.
const shownFailures = 10

// Failures writes the failures of a report, those of the smallest requests first: the first few, or all.
func Failures(out io.Writer, r *conformance.Report, colour, all bool) error {
	var list []*conformance.Result
	for i := range r.Results {
		if res := &r.Results[i]; res.Status == conformance.Fail {
			list = append(list, res)
		}
	}
	slices.SortStableFunc(list, func(a, b *conformance.Result) int { return len(a.Failure.Request) - len(b.Failure.Request) })
	shown := list
	if !all && len(list) > shownFailures {
		shown = list[:shownFailures]
	}
	for _, res := range shown {
		if err := Failure(out, res, colour); err != nil {
			return err
		}
	}
	if n := len(list) - len(shown); n > 0 {
		_, err := fmt.Fprintf(out, "… and %d failures of longer requests, which -v writes\n\n", n)
		return err
	}
	return nil
}

// Failure writes the text of [Explain] for a failure.
func Failure(w io.Writer, res *conformance.Result, colour bool) error {
	_, err := fmt.Fprintf(w, "%s %s\n\n", paint("FAIL", red, colour), strings.Join(Explain(res), "\n"))
	return err
}

// Summary writes the part of a table after the failures: warnings, faults of the file of
// known failures, and one line with the counts. It also writes the counts by group and operation:
// those of groups that are not all right or, if verbose is set, of all.
func Summary(out io.Writer, r *conformance.Report, colour, verbose bool) error {
	w := &stickyWriter{w: out}
	for i := range r.Results {
		if res := &r.Results[i]; res.Warning != "" {
			fmt.Fprintf(w, "%s %s %s: %s\n", paint("warning", yellow, colour), res.ID, res.Op, cli.Printable(res.Warning))
		}
	}
	for _, s := range r.Stale {
		fmt.Fprintf(w, "%s %s\n", paint("STALE", red, colour), s)
	}
	if verbose || r.Failed() {
		if err := groups(w, r, verbose); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, countsText(r, colour))
	for _, op := range r.Dropped {
		fmt.Fprintln(w, paint(fmt.Sprintf("%s hung too often: its other cases were not asked", op), red, colour))
	}
	if r.Stopped != "" {
		fmt.Fprintf(w, "%s\n", paint(strings.Join(cli.Wrap("stopped: "+cli.Printable(r.Stopped), Width), "\n"), red, colour))
	}
	return w.err
}

// countsText returns the line with the counts, or several lines if the run failed.
func countsText(r *conformance.Report, colour bool) string {
	c := r.Counts
	verdict := paint("passed", green, colour)
	switch {
	case r.Failed():
		verdict = paint("FAILED", red, colour)
	case !r.Ran():
		verdict = paint("nothing asked", red, colour)
	}
	text := fmt.Sprintf("%s: %s %s; %s vectors in %s cases, each asked twice; seed %d",
		verdict, cli.Printable(r.Name), cli.Printable(r.Version), cli.Number(r.Vectors), cli.Number(r.Cases), r.Seed)
	var notes []string
	for _, n := range []struct {
		n    int
		what string
	}{{c.Fail, "failed"}, {len(r.Stale), "stale entries of known failures"}, {c.Known, "failed as known"}, {c.Skip, "skipped"},
		{c.Unasked, "not asked"}, {c.Warnings, "with warnings"}} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	switch {
	case len(notes) == 0:
		return text
	case r.Failed():
		return text + "\n" + strings.Join(cli.Wrap(strings.Join(notes, ", "), Width), "\n")
	}
	return text + "; " + strings.Join(notes, ", ")
}

// groups writes a table of statuses by group and operation: all, or those with a failure or a
// warning.
func groups(w *stickyWriter, r *conformance.Report, all bool) error {
	type key struct {
		group string
		op    conformance.Op
	}
	var order []key
	counts := map[key]*[5]int{}
	for _, res := range r.Results {
		group, _, _ := strings.Cut(res.ID, "/")
		k := key{group, res.Op}
		if counts[k] == nil {
			counts[k] = &[5]int{}
			order = append(order, k)
		}
		switch res.Status {
		case conformance.Pass:
			counts[k][0]++
		case conformance.Fail:
			counts[k][1]++
		case conformance.Known:
			counts[k][2]++
		case conformance.Skipped:
			counts[k][3]++
		}
		if res.Warning != "" {
			counts[k][4]++
		}
	}
	t := newTable(2, "vectors", "op", "pass", "fail", "known", "skip", "warn")
	for _, k := range order {
		n := counts[k]
		if all || n[1]+n[2]+n[4] > 0 {
			t.Rows = append(t.Rows, appendCounts([]string{k.group, string(k.op)}, n[:]...))
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return w.err
}

// appendCounts appends a cell for each number to a row; the cell for 0 is empty.
func appendCounts(row []string, numbers ...int) []string {
	for _, n := range numbers {
		text := ""
		if n > 0 {
			text = strconv.Itoa(n)
		}
		row = append(row, text)
	}
	return row
}

// newTable returns a table whose first text columns are text, and the others numbers.
func newTable(text int, head ...string) *cli.Table {
	t := &cli.Table{Head: head, Right: make([]bool, len(head))}
	for i := range t.Right {
		t.Right[i] = i >= text
	}
	return t
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitText    `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",cdata"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

func renderJUnit(out io.Writer, r *conformance.Report) error {
	w := &stickyWriter{w: out}
	all := junitSuites{}
	where := map[string]int{}
	add := func(suite string, c junitCase) {
		i, ok := where[suite]
		if !ok {
			i = len(all.Suites)
			where[suite] = i
			all.Suites = append(all.Suites, junitSuite{Name: suite})
		}
		s := &all.Suites[i]
		s.Cases = append(s.Cases, c)
		s.Tests++
		all.Tests++
		if c.Failure != nil {
			s.Failures++
			all.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
			all.Skipped++
		}
	}
	for i := range r.Results {
		res := &r.Results[i]
		c := junitCase{Class: "btconform." + res.Vector.Group(), Name: res.ID + " " + string(res.Op), File: res.File,
			Line: res.Row, Out: cli.Printable(res.Warning)}
		switch res.Status {
		case conformance.Fail:
			c.Failure = &junitText{cli.Printable("want " + res.Failure.Want + ", got " + res.Failure.Got),
				strings.Join(Explain(res), "\n")}
		case conformance.Known:
			c.Skipped = &junitMessage{"known failure: " + res.Link}
		case conformance.Skipped:
			c.Skipped = &junitMessage{"not offered"}
		case conformance.Unasked:
			c.Skipped = &junitMessage{"not asked: the run stopped, or the operation hung"}
		}
		add(res.Vector.Group(), c)
	}
	for _, s := range r.Stale {
		add("known failures", junitCase{Class: "btconform.known", Name: s, Failure: &junitText{Message: s}})
	}
	return writeJUnit(w, all)
}

func writeJUnit(w *stickyWriter, all junitSuites) error {
	io.WriteString(w, xml.Header)
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	io.WriteString(w, "\n")
	return w.err
}

// NoReport writes the reason why there is no report, in the format whose readers always expect a
// document: junit.
func NoReport(out io.Writer, format string, why error) error {
	if format != "junit" {
		return nil
	}
	c := junitCase{Class: "btconform", Name: "run", Failure: &junitText{Message: cli.Printable(why.Error())}}
	return writeJUnit(&stickyWriter{w: out}, junitSuites{Tests: 1, Failures: 1, Suites: []junitSuite{{Name: "btconform", Tests: 1, Failures: 1, Cases: []junitCase{c}}}})
}

package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// Width is the maximum width of output for people, in columns.
const Width = 80

// Explain describes a failure: the expected and the actual answer, the sentence of the
// clause, the bits by field with a caret at the first difference, and the command that repeats
// it. The lines have no line ends.
func Explain(r *conformance.Result) []string {
	f := r.Failure
	head := fmt.Sprintf("%s %s, %s:%d", r.ID, r.Op, r.File, r.Row)
	lines := []string{head, "  " + f.Variant}
	if f.Unstable {
		lines[1] += "; asked again, it answered correctly"
	}
	if r.Wrong > 1 || r.Cases > 1 {
		lines[1] += fmt.Sprintf("; wrong in %d of %d variants", r.Wrong, r.Cases)
	}
	lines = append(lines, compared(r.Op, f.Want, f.Got)...)
	if r.Vector != nil && r.Vector.Why != "" && !oneMistake.MatchString(r.Vector.Why) {
		lines = append(lines, indent("why   ", cli.Printable(r.Vector.Why))...)
	}
	lines = append(lines, quoteClauses(r)...)
	if !f.Answer.Trouble() {
		lines = append(lines, draw(f, r)...)
	}
	return append(lines, "  again: "+f.Again)
}

// answer breaks an answer into lines, without the middle of a long one.
func answer(label, text string) []string {
	return indent(label, shorten(cli.Printable(text)))
}

// maxShown is the number of bytes of an answer or of a text that are shown.
const maxShown = 800

// shorten leaves out the middle of a long text.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return text[:maxShown/2] + " … " + text[len(text)-maxShown/2:]
}

// oneMistake is the beginning of a remark that says no more than the clause, or names one mistake of several: that of
// this implementation may be another one.
var oneMistake = regexp.MustCompile(`^(catches|control|tests): `)

// quoteLines is how many lines of a clause are quoted.
const quoteLines = 4

// quote quotes a sentence of a clause.
func quote(id, text string) []string {
	lines := indent("", id+": "+text)
	if len(lines) > quoteLines {
		lines = lines[:quoteLines]
		lines[quoteLines-1] = clipped(lines[quoteLines-1]+" …", Width)
	}
	return lines
}

// quoteClauses quotes the sentence about the field that differs if there is one; else the requirement that the vector tests or, if it names none, the first
// sentence of its first clause. It also names the other requirements and clauses.
func quoteClauses(r *conformance.Result) []string {
	if r.Failure != nil && r.Failure.Answer.Trouble() { // it breaks the protocol, and no clause
		return indent("", "a vector of "+strings.Join(r.Clauses, ", "))
	}
	var strange, others []string
	text, quoted, exact := "", "", false
	if r.Failure != nil && r.Failure.Answer.Outcome == conformance.OK && !r.Vector.Rejects() {
		field, _, _ := conformance.FirstDifference(r.Op, r.Failure.Want, r.Failure.Got)
		if quoted, text = conformance.ClauseOf(r.Op, field); text != "" {
			exact = true
		}
	}
	for _, id := range r.Clauses {
		c := conformance.BuiltinSpec().Clause(id)
		if c == nil {
			strange = append(strange, "  "+id+" is not in SPEC.md")
			continue
		}
		musts := shownMusts(c, r)
		if len(musts) == 0 {
			others = append(others, id)
			if text == "" {
				quoted, text = id, c.Sentences()[0]
			}
			continue
		}
		for _, m := range musts {
			others = append(others, m.ID)
		}
		if !exact {
			m := musts[max(0, slices.IndexFunc(musts, func(m conformance.Must) bool { return m.Side == "" || m.Side == side(r.Op) }))]
			quoted, text, exact = m.ID, m.Text, true
		}
	}
	lines := strange
	if text != "" {
		lines = append(quote(quoted, text), strange...)
	}
	others = slices.DeleteFunc(others, func(id string) bool { return id == quoted || quoted != "" && strings.HasPrefix(id, quoted+".") })
	if len(others) > 0 {
		lines = append(lines, indent("", "see also "+strings.Join(others, ", "))...)
	}
	return lines
}

// shownMusts returns the requirements of the clause that the result's vector tests: the
// requirements that it names, or the only one of the clause.
func shownMusts(c *conformance.Clause, r *conformance.Result) []conformance.Must {
	all, _ := c.Musts() // SPEC.md has none without a number: ParseSpec checks it
	if len(all) == 1 {
		return all
	}
	return slices.DeleteFunc(all, func(m conformance.Must) bool { return !slices.Contains(r.Vector.Musts, m.ID) })
}

// side returns the side of a requirement, reader or writer, that the operation tests.
func side(op conformance.Op) string {
	if op.Writes() {
		return "writer"
	}
	return "reader"
}

// indent breaks text into lines of whole words. The first line follows two spaces and label; the others are
// aligned with it.
func indent(label, text string) []string {
	lines := cli.Wrap(text, Width-2-len(label))
	for i := range lines {
		if i > 0 {
			label = strings.Repeat(" ", len(label))
		}
		lines[i] = "  " + label + lines[i]
	}
	return lines
}

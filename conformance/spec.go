package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/lwsbt/lwsbt"
	"github.com/lwsbt/lwsbt/conformance/btv"
)

var (
	clauseStart = regexp.MustCompile(`^\*\*(BT-[A-Z][A-Z0-9]*-[1-9][0-9]*)\*\*(?: |$)`)
	notByVector = regexp.MustCompile(`\(not by vector: [^)]+\)`)
	wordMust    = regexp.MustCompile(`\bMUST(?: NOT)?([⁰¹²³⁴⁵⁶⁷⁸⁹]*)`)
	// the first group matches a writer
	readerOrWriter = regexp.MustCompile(`(?i)\b(?:readers?|decoders?|(writers?|encoders?))\b`)
	superscript    = strings.NewReplacer("⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4", "⁵", "5", "⁶", "6", "⁷", "7", "⁸", "8", "⁹", "9")
)

// Must is one requirement of a clause.
type Must struct {
	ID     string // such as BT-TEXT-2.3; the ID of the clause if the clause has only one MUST
	Text   string // the sentence or list item with the MUST; see [Clause.Sentences]
	Side   string // who must fulfil it: "reader", "writer", or "" if the sentence names neither
	vector bool   // vectors can test it
}

// Musts returns the requirements of the clause. It returns an error if there are several, and one has
// no number or the number of another.
func (c Clause) Musts() (musts []Must, err error) {
	all := wordMust.FindAllStringSubmatch(c.Text, -1)
	seen := map[string]bool{}
	for _, word := range all {
		m := Must{ID: c.ID, Text: c.sentenceWith(word[0])}
		m.vector = !notByVector.MatchString(m.Text)
		before, _, _ := strings.Cut(m.Text, word[0])
		if sides := readerOrWriter.FindAllStringSubmatch(before, -1); sides != nil {
			m.Side = [...]string{"reader", "writer"}[min(1, len(sides[len(sides)-1][1]))]
		}
		number := superscript.Replace(word[1])
		if number != "" {
			m.ID += "." + number
		}
		if number == "" && len(all) > 1 || number != "" && number[0] == '0' || seen[m.ID] {
			return nil, fmt.Errorf("%s has %d MUST, expected a number in superscript of its own after each: %q", c.ID, len(all), clip(m.Text))
		}
		seen[m.ID] = true
		musts = append(musts, m)
	}
	return musts, nil
}

// sentenceWith returns the sentence that contains must, or the whole clause if several
// sentences contain it, because it introduces a list.
func (c Clause) sentenceWith(must string) string {
	var found []string
	for _, s := range c.Sentences() {
		if slices.Contains(wordMust.FindAllString(s, -1), must) {
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return c.Text
}

// Clause is a numbered rule of the specification.
type Clause struct {
	ID   string
	Text string // text of the clause in one line, without the ID
	File string // such as SPEC.md
	Row  int    // line of the file

	paragraphs []string // text by paragraph and list item
	rows       []string // of its tables
}

// listItem matches the beginning of a list item.
var listItem = regexp.MustCompile(`^(?:-|[0-9]+\.) +`)

// sentenceEnd matches the end of a sentence: a full stop, an optional bracket, and a space before
// a character that can begin a sentence.
var sentenceEnd = regexp.MustCompile("[.]\\)? +[A-Z`(]")

// Sentences returns the sentences and the list items of the clause. Each item is completed by
// the words that introduce its list: "A reader", "MUST reject …".
func (c Clause) Sentences() []string {
	var all []string
	lead := ""
	for _, text := range c.paragraphs {
		if m := listItem.FindString(text); m != "" {
			item := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(text, m), ", and"), ";")
			all = append(all, strings.TrimPrefix(lead+" "+item, " "))
			continue
		}
		for {
			at := sentenceEnd.FindStringIndex(text)
			if at == nil {
				break
			}
			all = append(all, strings.TrimRight(text[:at[1]-1], " "))
			text = text[at[1]-1:]
		}
		lead = text
		if strings.HasSuffix(text, ".") || strings.HasSuffix(text, ")") {
			lead = ""
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return []string{c.Text}
	}
	return all
}

// Spec is a specification: its clauses and its examples, which are vectors.
type Spec struct {
	Clauses  []Clause
	Examples []*Vector
	byID     map[string]int
}

// Clause returns the clause with this ID, or nil.
func (s *Spec) Clause(id string) *Clause {
	if i, ok := s.byID[id]; ok {
		return &s.Clauses[i]
	}
	return nil
}

// add appends the clauses and examples of another file.
func (s *Spec) add(file *Spec) error {
	for _, c := range file.Clauses {
		if old := s.Clause(c.ID); old != nil {
			return faultAt(c.File, c.Row, "clause %s again, expected it once: %s:%d has it", c.ID, old.File, old.Row)
		}
		s.byID[c.ID] = len(s.Clauses)
		s.Clauses = append(s.Clauses, c)
	}
	s.Examples = append(s.Examples, file.Examples...)
	return nil
}

// parseSpec reads a file of the specification. A clause begins with a paragraph that starts with its ID in bold, and
// ends at the next clause or heading. Fenced blocks of type `btv` are examples, which are
// executed; those of type `text` are drawings. Any other fenced block is an error.
func parseSpec(name, text string) (*Spec, error) {
	p := &specParser{name: name, lines: strings.Split(text, "\n"), current: -1, spec: &Spec{byID: map[string]int{}}}
	for p.at < len(p.lines) {
		step := p.words
		if strings.HasPrefix(p.lines[p.at], "```") {
			step = p.block
		}
		if err := step(); err != nil {
			return nil, err
		}
	}
	for _, c := range p.spec.Clauses {
		if _, err := c.Musts(); err != nil {
			return nil, faultAt(name, c.Row, "%v", err)
		}
	}
	if len(p.spec.Clauses) == 0 {
		return nil, faultAt(name, 1, "no clauses, expected paragraphs that begin with **BT-…**")
	}
	return p.spec, nil
}

type specParser struct {
	name    string
	lines   []string
	at      int  // the line to read next, from 0
	current int  // index of the current clause, -1 if none
	empty   bool // the line before is empty
	spec    *Spec
}

func (p *specParser) fault(format string, args ...any) error {
	return faultAt(p.name, p.at+1, format, args...)
}

// block reads a fenced block.
func (p *specParser) block() error {
	info := strings.TrimPrefix(p.lines[p.at], "```")
	if info != "btv" && info != "text" {
		return p.fault("a fenced block of %q, expected btv or text", info)
	}
	n := slices.Index(p.lines[p.at+1:], "```")
	if n < 0 {
		return p.fault("a fenced block without its end, expected ```")
	}
	inside := p.lines[p.at+1 : p.at+1+n]
	if info == "btv" {
		records, err := btv.ParseRecords(p.name, strings.Join(inside, "\n"), p.at+2)
		var examples []*Vector
		if err == nil {
			examples, err = newVectors(records)
		}
		if err != nil {
			return err
		}
		if len(examples) == 0 {
			return p.fault("an example without records, expected at least one")
		}
		p.spec.Examples = append(p.spec.Examples, examples...)
	}
	p.at += n + 2
	return nil
}

// words reads a line outside of fenced blocks.
func (p *specParser) words() error {
	s, line := p.spec, p.lines[p.at]
	if m := clauseStart.FindStringSubmatch(line); m != nil {
		if _, ok := s.byID[m[1]]; ok {
			return p.fault("clause %s again, expected it once", m[1])
		}
		p.current = len(s.Clauses)
		s.byID[m[1]] = p.current
		s.Clauses = append(s.Clauses, Clause{ID: m[1], File: p.name, Row: p.at + 1})
		line = strings.TrimPrefix(line, m[0])
	}
	if strings.HasPrefix(line, "#") {
		p.current = -1
	}
	words := strings.TrimSpace(line)
	if p.current >= 0 && strings.HasPrefix(words, "|") {
		s.Clauses[p.current].rows = append(s.Clauses[p.current].rows, words)
	}
	if p.current >= 0 && words != "" && words[0] != '|' {
		c := &s.Clauses[p.current]
		c.Text = strings.TrimPrefix(c.Text+" "+words, " ")
		if n := len(c.paragraphs); n == 0 || p.empty || listItem.MatchString(line) {
			c.paragraphs = append(c.paragraphs, words)
		} else {
			c.paragraphs[n-1] += " " + words
		}
	}
	p.empty = words == ""
	p.at++
	return nil
}

// BuiltinSpec returns the specification of this module, all of its files. A test checks that they parse.
var BuiltinSpec = sync.OnceValue(func() *Spec {
	s, err := parseBuiltinSpec()
	if err != nil {
		return &Spec{}
	}
	return s
})

func parseBuiltinSpec() (*Spec, error) {
	all := &Spec{byID: map[string]int{}}
	for _, name := range lwsbt.SpecFiles {
		text, err := lwsbt.Spec.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parseSpec(name, string(text))
		if err != nil {
			return nil, err
		}
		if err := all.add(file); err != nil {
			return nil, err
		}
	}
	return all, nil
}

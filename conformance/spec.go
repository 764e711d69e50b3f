package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/lwsbt/lwsbt"
)

var (
	clauseID    = regexp.MustCompile(`^(BT-[A-Z][A-Z0-9]*-[1-9][0-9]*)(\.[1-9][0-9]*)?$`)
	clauseStart = regexp.MustCompile(`^\*\*(BT-[A-Z][A-Z0-9]*-[1-9][0-9]*)\*\*(?: |$)`)
	notByVector = regexp.MustCompile(`\(not by vector: [^)]+\)`)
	wordMust    = regexp.MustCompile(`\bMUST(?: NOT)?([⁰¹²³⁴⁵⁶⁷⁸⁹]*)`)
	ends        = regexp.MustCompile(`[.;:] `)
	superscript = strings.NewReplacer("⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4", "⁵", "5", "⁶", "6", "⁷", "7", "⁸", "8", "⁹", "9")
)

// Must is one requirement of a clause: what it says from one MUST up to the next.
type Must struct {
	ID     string // such as BT-TEXT-2.3, and that of the clause if it has one MUST alone
	Text   string
	vector bool // vectors can show it
}

// NeedsVectors reports whether vectors can show the requirement.
func (m Must) NeedsVectors() bool { return m.vector }

// Musts returns the requirements of the clause. An error says that a MUST has no number of its own
// though there are several.
func (c Clause) Musts() (musts []Must, err error) {
	all := wordMust.FindAllStringSubmatchIndex(c.Text, -1)
	seen := map[string]bool{}
	for i, at := range all {
		end := len(c.Text)
		if i+1 < len(all) { // without the words before the next MUST that belong to that
			end = all[i+1][0]
			if last := ends.FindAllStringIndex(c.Text[at[0]:end], -1); last != nil {
				end = at[0] + last[len(last)-1][0] + 1
			}
		}
		m := Must{ID: c.ID, Text: strings.TrimRight(c.Text[at[0]:end], " ")}
		m.vector = !notByVector.MatchString(m.Text)
		number := superscript.Replace(c.Text[at[2]:at[3]])
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

// Clause is a numbered rule of SPEC.md.
type Clause struct {
	ID   string
	Text string // its words in one line, without the ID
	Row  int    // line of SPEC.md
}

// NeedsVectors reports whether the clause has a MUST that vectors can show.
func (c Clause) NeedsVectors() bool {
	musts, _ := c.Musts()
	return slices.ContainsFunc(musts, func(m Must) bool { return m.vector })
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

// ParseSpec reads SPEC.md. A clause starts a paragraph with its ID in bold; its
// words go on to the next clause or heading. Fenced blocks are `btv`, examples
// that are executed, or `text`, drawings; any other is an error.
func ParseSpec(name, text string) (*Spec, error) {
	s := &Spec{byID: map[string]int{}}
	fault := func(row int, format string, args ...any) error {
		return &ParseError{name, row, fmt.Sprintf(format, args...)}
	}
	lines := strings.Split(text, "\n")
	current := -1 // clause that words belong to
	for i := 0; i < len(lines); i++ {
		line, row := lines[i], i+1
		if info, ok := strings.CutPrefix(line, "```"); ok {
			if info != "btv" && info != "text" {
				return nil, fault(row, "a fenced block of %q, expected btv or text", info)
			}
			end := i + 1
			for end < len(lines) && lines[end] != "```" {
				end++
			}
			if end == len(lines) {
				return nil, fault(row, "a fenced block without its end, expected ```")
			}
			if info == "btv" {
				examples, err := parseRecords(name, strings.Join(lines[i+1:end], "\n"), row+1)
				if err != nil {
					return nil, err
				}
				if len(examples) == 0 {
					return nil, fault(row, "an example without records, expected at least one")
				}
				s.Examples = append(s.Examples, examples...)
			}
			i = end
			continue
		}
		if m := clauseStart.FindStringSubmatch(line); m != nil {
			if _, ok := s.byID[m[1]]; ok {
				return nil, fault(row, "clause %s again, expected it once", m[1])
			}
			current = len(s.Clauses)
			s.byID[m[1]] = current
			s.Clauses = append(s.Clauses, Clause{ID: m[1], Row: row})
			line = strings.TrimPrefix(line, m[0])
		}
		if strings.HasPrefix(line, "#") {
			current = -1
		}
		if words := strings.TrimSpace(line); current >= 0 && words != "" && words[0] != '|' {
			c := &s.Clauses[current]
			c.Text = strings.TrimPrefix(c.Text+" "+words, " ")
		}
	}
	for _, c := range s.Clauses {
		if _, err := c.Musts(); err != nil {
			return nil, fault(c.Row, "%v", err)
		}
	}
	if len(s.Clauses) == 0 {
		return nil, fault(1, "no clauses, expected paragraphs that begin with **BT-…**")
	}
	return s, nil
}

// BuiltinSpec returns this module's SPEC.md, which parses: a test holds it to that.
var BuiltinSpec = sync.OnceValue(func() *Spec {
	s, err := ParseSpec(SpecFile, lwsbt.Spec)
	if err != nil {
		return &Spec{}
	}
	return s
})

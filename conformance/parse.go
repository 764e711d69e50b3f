package conformance

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

const firstLine = "btv 1"

// ParseError is an error in a vector file, a file of known failures, or a line of BTP/1. It
// has the place of the error, and a message with the expectation.
type ParseError struct {
	File string
	Row  int // from 1
	Msg  string
}

// Error returns "FILE:ROW: MESSAGE".
func (e *ParseError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Row, e.Msg) }

// Parse reads a .btv file. name is the file name for messages and for the places of vectors.
// Every error is a [*ParseError]. [Set.Check] resolves control vectors later.
func Parse(name string, text []byte) ([]*Vector, error) {
	p := &parser{file: name, head: &Head{}}
	line, rest, _ := strings.Cut(string(text), "\n")
	if line != firstLine {
		if bytes.IndexByte(text[:min(len(text), 512)], 0) >= 0 {
			return nil, p.fault("not a text file, expected one that begins with %q (a program to test goes after --)", firstLine)
		}
		return nil, p.fault("%q, expected %q", clip(line), firstLine)
	}
	return p.records(rest, 2, true)
}

// parseRecords reads records without first line and head, as in the examples of SPEC.md; row
// is the row of the first line of text.
func parseRecords(name, text string, row int) ([]*Vector, error) {
	p := &parser{file: name, head: &Head{}}
	return p.records(text, row, false)
}

type parser struct {
	file string
	row  int // of the current line
	head *Head
	vec  *Vector         // current record, nil between records
	seen map[string]bool // keys of the current record
	out  []*Vector
}

func (p *parser) fault(format string, args ...any) error {
	return &ParseError{p.file, max(p.row, 1), fmt.Sprintf(format, args...)}
}

func (p *parser) records(text string, row int, inHead bool) ([]*Vector, error) {
	p.seen = map[string]bool{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		p.row = row + i
		switch {
		case strings.HasSuffix(line, "\r"):
			return nil, p.fault("the line ends in a carriage return, expected a line feed alone")
		case strings.HasPrefix(line, "#"):
			continue
		case strings.TrimRight(line, " ") == "":
			if err := p.finish(); err != nil {
				return nil, err
			}
			inHead = false
			continue
		}
		key, value, err := p.pair(line)
		if err != nil {
			return nil, err
		}
		if p.seen[key] && key != "bits" && key != "digits" && key != "text" {
			return nil, p.fault("key %q again, expected it once", key)
		}
		if inHead {
			err = p.headKey(key, value)
		} else {
			if p.vec == nil {
				p.vec = &Vector{File: p.file, Row: p.row, Head: p.head}
			}
			err = p.key(key, value)
		}
		if err != nil {
			return nil, p.fault("%v", err)
		}
		p.seen[key] = true
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return p.out, nil
}

// pair splits "key: value  # comment".
func (p *parser) pair(line string) (key, value string, err error) {
	key, value, ok := strings.Cut(line, ":")
	if !ok || key == "" || strings.ContainsAny(key, " \t#") || value != "" && value[0] != ' ' {
		return "", "", p.fault("%q, expected key: value", clip(line))
	}
	value = strings.TrimLeft(value, " ")
	if key != "text" {
		value = cutComment(value)
	}
	if value == "" {
		return "", "", p.fault("%s: nothing, expected a value", key)
	}
	return key, value, nil
}

// cutComment removes a comment, which is "#…" at the start or after a space, and the spaces before it.
func cutComment(s string) string {
	if strings.HasPrefix(s, "#") {
		return ""
	}
	if i := strings.Index(s, " #"); i >= 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, " ")
}

func (p *parser) headKey(key, value string) error {
	h := p.head
	switch key {
	case "source":
		h.Source = value
	case "library":
		h.Library = value
	case "compiler":
		h.Compiler = value
	case "options":
		h.Options = value
	case "platform":
		if !isID(value) {
			return fmt.Errorf("platform %q, expected letters, digits and . _ - only", clip(value))
		}
		h.Platform = value
	case "machine":
		if _, err := codec.ParseMachine(value); err != nil {
			return err
		}
		h.machine = value
	case "spill":
		if value != "any" {
			return fmt.Errorf("spill %q, expected any", clip(value))
		}
		h.AnySpill = true
	default:
		return fmt.Errorf("head key %q, expected one of source library compiler options platform machine spill, "+
			"or a blank line before the first record", clip(key))
	}
	return nil
}

func (p *parser) key(key, value string) (err error) {
	v := p.vec
	switch key {
	case "id":
		if !isID(value) {
			return fmt.Errorf("id %q, expected letters, digits and . _ / - only", clip(value))
		}
		v.ID = value
	case "clause":
		for _, word := range strings.Fields(value) {
			m := clauseID.FindStringSubmatch(word)
			if m == nil {
				return fmt.Errorf("clause %q, expected an ID such as BT-FIELD-1, or BT-FIELD-1.2 of one MUST in it", clip(word))
			}
			if !slices.Contains(v.Clauses, m[1]) {
				v.Clauses = append(v.Clauses, m[1])
			}
			if m[2] != "" {
				v.Musts = append(v.Musts, word)
			}
		}
		slices.SortStableFunc(v.Musts, func(a, b string) int {
			return slices.Index(v.Clauses, clauseOf(a)) - slices.Index(v.Clauses, clauseOf(b))
		})
	case "op":
		v.Ops, err = parseOps(value)
	case "why":
		v.Why = value
	case "control":
		v.Control = value
	case "differs":
		v.Differs, err = parseDiffers(value)
	case "machine":
		v.Machine, err = codec.ParseMachine(value)
		v.HasMachine = true
	case "search":
		v.Search, err = codec.ParseSearch(value)
	case "word":
		switch value {
		case "32":
			v.Word = 32
		case "64":
			v.Word = 64
		default:
			return fmt.Errorf("word %q, expected 32 or 64", clip(value))
		}
	case "reading":
		if value != "strict" && value != "lenient" {
			return fmt.Errorf("reading %q, expected strict or lenient", clip(value))
		}
		v.Lenient = value == "lenient"
	case "in":
		if of, words, ok := strings.Cut(value, " "); ok && slices.Contains(inWords(), of) {
			v.WordsOf, v.Words = of, words
			return nil
		}
		var in Value
		in, err = parseValue(value)
		v.In = &in
	case "bits":
		if v.Bits == nil {
			v.Bits = &BitText{}
		}
		if err = v.Bits.add(value); err != nil {
			return fmt.Errorf("bits: %v", err)
		}
	case "digits":
		v.Digits = append(v.Digits, value)
	case "hex":
		v.Blob, err = parseHexPieces(value)
	case "line":
		v.Line = value
	case "text":
		var text *string
		if text, err = parseText(value); err == nil && v.Text != nil {
			*text = *v.Text + *text
		}
		v.Text = text
	case "want":
		var a Answer
		a, err = parseWant(value, false)
		v.Want = &a
	default:
		return p.evidence(key, value)
	}
	return err
}

// clauseOf returns the clause of a requirement.
func clauseOf(must string) string {
	id, _, _ := strings.Cut(must, ".")
	return id
}

// evidence reads want[NAME].
func (p *parser) evidence(key, value string) error {
	name, ok := strings.CutPrefix(key, "want[")
	name, ok2 := strings.CutSuffix(name, "]")
	if !ok || !ok2 || !isID(name) {
		return fmt.Errorf("key %q, expected one of id clause op why control differs machine search word reading in "+
			"bits digits hex line text want want[NAME]", clip(key))
	}
	a, err := parseWant(value, true)
	p.vec.Notes = append(p.vec.Notes, Evidence{name, a})
	return err
}

// finish closes the current record, if there is one.
func (p *parser) finish() error {
	v := p.vec
	if v == nil {
		clear(p.seen)
		return nil
	}
	p.vec, p.row = nil, v.Row
	seen := p.seen
	p.seen = map[string]bool{}
	if v.ID == "" {
		return p.fault("a record without id, expected id: NAME")
	}
	if !seen["machine"] && p.head.machine != "" {
		v.Machine, _ = codec.ParseMachine(p.head.machine)
		v.HasMachine = true
	}
	if v.Word == 0 {
		v.Word = 64
		if v.HasMachine {
			v.Word = v.Machine.Word()
		}
	}
	if err := v.validate(); err != nil {
		return p.fault("%s: %v", v.ID, err)
	}
	if pf := p.head.Platform; pf != "" && !strings.HasPrefix(v.ID, pf+"/") {
		v.ID = pf + "/" + v.ID
	}
	p.out = append(p.out, v)
	return nil
}

func parseOps(text string) (ops []Op, err error) {
	for _, word := range strings.Fields(text) {
		op, err := parseOp(word)
		if err != nil {
			return nil, err
		}
		for _, o := range ops {
			if o == op {
				return nil, fmt.Errorf("op %s twice, expected it once", op)
			}
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func parseOp(word string) (Op, error) {
	for _, op := range Ops() {
		if string(op) == word {
			return op, nil
		}
	}
	names := make([]string, 0, len(kinds))
	for _, op := range Ops() {
		names = append(names, string(op))
	}
	return "", fmt.Errorf("op %q, expected one of %s", clip(word), strings.Join(names, " "))
}

// parseHex reads bytes in lower-case hexadecimal; "-" means no bytes.
func parseHex(text string) ([]byte, error) {
	if text == "-" {
		return []byte{}, nil
	}
	data, err := hex.DecodeString(text)
	if err != nil || strings.ToLower(text) != text {
		return nil, fmt.Errorf("hex %q, expected pairs of digits 0-9 a-f, or - for no bytes", clip(text))
	}
	return data, nil
}

func formatHex(data []byte) string {
	if len(data) == 0 {
		return "-"
	}
	return hex.EncodeToString(data)
}

func isID(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '/' || c == '-' || c == '+'):
		default:
			return false
		}
	}
	return s != ""
}

// clip shortens text for quoting in messages.
func clip(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

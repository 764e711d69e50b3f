package btv

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

const firstLine = "btv 1"

// Parse reads a .btv file. name is the file name for messages and for the places of vectors.
// Every error is a [*ParseError].
func Parse(name string, text []byte) ([]*Vector, error) {
	p := &parser{file: name, head: &Head{}}
	line, rest, _ := strings.Cut(string(text), "\n")
	if line != firstLine {
		if bytes.IndexByte(text[:min(len(text), 512)], 0) >= 0 {
			return nil, p.fault("not a text file, expected one that begins with %q (a program to test goes after --)", firstLine)
		}
		return nil, p.fault("%q, expected %q", words.Clip(line), firstLine)
	}
	return p.records(rest, 2, true)
}

// ParseRecords reads records without first line and head, as in the examples of SPEC.md; row
// is the row of the first line of text.
func ParseRecords(name, text string, row int) ([]*Vector, error) {
	p := &parser{file: name, head: &Head{}}
	return p.records(text, row, false)
}

type parser struct {
	file string
	row  int // of the current line
	head *Head
	vec  *Vector         // current record, nil between records
	seen map[string]bool // keys of the head
	out  []*Vector
}

func (p *parser) fault(format string, args ...any) error {
	return &ParseError{p.file, max(p.row, 1), fmt.Sprintf(format, args...)}
}

func (p *parser) records(text string, row int, inHead bool) ([]*Vector, error) {
	p.seen = map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
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
		if inHead {
			err = p.headKey(key, value)
		} else {
			err = p.key(key, value)
		}
		if err != nil {
			return nil, p.fault("%v", err)
		}
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
		return "", "", p.fault("%q, expected key: value", words.Clip(line))
	}
	value = strings.TrimLeft(value, " ")
	if key != "text" {
		value = CutComment(value)
	}
	if value == "" {
		return "", "", p.fault("%s: nothing, expected a value", key)
	}
	return key, value, nil
}

// CutComment removes a comment, which is "#…" at the start or after a space, and the spaces before it.
func CutComment(s string) string {
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
	at := slices.IndexFunc(headKeys, func(k headKey) bool { return k.name == key })
	if at < 0 {
		return fmt.Errorf("head key %q, expected one of source library compiler options platform machine spill, "+
			"or a blank line before the first record", words.Clip(key))
	}
	if p.seen[key] {
		return fmt.Errorf("key %q again, expected it once", key)
	}
	p.seen[key] = true
	return headKeys[at].read(h, value)
}

// headKey is a key of the head.
type headKey struct {
	name string
	read func(h *Head, value string) error
}

var headKeys = []headKey{
	{"source", func(h *Head, value string) error { h.Source = value; return nil }},
	{"library", func(h *Head, value string) error { h.Library = value; return nil }},
	{"compiler", func(h *Head, value string) error { h.Compiler = value; return nil }},
	{"options", func(h *Head, value string) error { h.Options = value; return nil }},
	{"platform", func(h *Head, value string) error {
		if !isID(value) {
			return fmt.Errorf("platform %q, expected letters, digits and . _ - only", words.Clip(value))
		}
		h.Platform = value
		return nil
	}},
	{"machine", func(h *Head, value string) error {
		h.Machine = value
		_, err := codec.ParseMachine(value)
		return err
	}},
	{"spill", func(h *Head, value string) error {
		if value != "any" {
			return fmt.Errorf("spill %q, expected any", words.Clip(value))
		}
		h.AnySpill = true
		return nil
	}},
}

// key reads a key of a record.
func (p *parser) key(name, value string) error {
	if p.vec == nil {
		p.vec = &Vector{File: p.file, Row: p.row, Head: p.head, rows: map[string]int{}}
	}
	v := p.vec
	k := keyOf(name)
	if k == nil {
		return fmt.Errorf("key %q, expected one of %s", words.Clip(name), strings.Join(keyNames(), " "))
	}
	if _, again := v.rows[name]; again && !k.repeated {
		return fmt.Errorf("key %q again, expected it once", name)
	}
	v.rows[name] = p.row
	return k.read(v, name, value)
}

// finish closes the current record, if there is one.
func (p *parser) finish() error {
	v := p.vec
	if v == nil {
		return nil
	}
	p.vec, p.row = nil, v.Row
	if v.ID == "" {
		return p.fault("a record without id, expected id: NAME")
	}
	if !v.HasMachine && p.head.Machine != "" {
		v.Machine, _ = codec.ParseMachine(p.head.Machine)
		v.HasMachine = true
	}
	if v.Word == 0 {
		v.Word = 64
		if v.HasMachine {
			v.Word = v.Machine.Word()
		}
	}
	sortMusts(v.Musts, v.Clauses)
	if err := v.complete(); err != nil {
		return v.Fault("", err)
	}
	if pf := p.head.Platform; pf != "" && !strings.HasPrefix(v.ID, pf+"/") {
		v.ID = pf + "/" + v.ID
	}
	p.out = append(p.out, v)
	return nil
}

// complete computes the blob from bits, and checks that keys which say the same do not contradict
// each other.
func (v *Vector) complete() error {
	if v.Bits != nil {
		if v.Blob == nil {
			v.Blob = v.Bits.Blob()
		} else if err := v.Bits.matches(v.Blob); err != nil {
			return err
		}
	}
	if v.Line != "" {
		if v.Blob == nil {
			return errors.New("line without hex or bits, expected the blob it holds")
		}
		if want := "~m#" + base64.StdEncoding.EncodeToString(v.Blob); v.Line != want {
			return fmt.Errorf("line %q, expected %q for the hex", words.Clip(v.Line), words.Clip(want))
		}
	}
	if (v.Control == "") != (v.Differs.Kind == "") {
		return errors.New("control and differs, expected both or neither")
	}
	return nil
}

var clauseID = regexp.MustCompile(`^(BT-[A-Z][A-Z0-9]*-[1-9][0-9]*)(\.[1-9][0-9]*)?$`)

// key is a key of a record.
type key struct {
	name     string
	repeated bool
	read     func(v *Vector, name, value string) error
}

// keys lists the keys of records. The last one has any name of an implementation in its brackets.
var keys = []key{
	{name: "id", read: func(v *Vector, _, value string) error {
		if !isID(value) {
			return fmt.Errorf("id %q, expected letters, digits and . _ / - only", words.Clip(value))
		}
		v.ID = value
		return nil
	}},
	{name: "clause", read: (*Vector).readClauses},
	{name: "op", read: func(v *Vector, _, value string) error { v.OpNames = strings.Fields(value); return nil }},
	{name: "why", read: func(v *Vector, _, value string) error { v.Why = value; return nil }},
	{name: "control", read: func(v *Vector, _, value string) error { v.Control = value; return nil }},
	{name: "differs", read: func(v *Vector, _, value string) (err error) { v.Differs, err = ParseDiffers(value); return err }},
	{name: "machine", read: func(v *Vector, _, value string) (err error) {
		v.Machine, err = codec.ParseMachine(value)
		v.HasMachine = true
		return err
	}},
	{name: "search", read: func(v *Vector, _, value string) (err error) { v.Search, err = codec.ParseSearch(value); return err }},
	{name: "word", read: func(v *Vector, _, value string) error {
		v.Word = map[string]int{"32": 32, "64": 64}[value]
		if v.Word == 0 {
			return fmt.Errorf("word %q, expected 32 or 64", words.Clip(value))
		}
		return nil
	}},
	{name: "reading", read: func(v *Vector, _, value string) error {
		if value != "strict" && value != "lenient" {
			return fmt.Errorf("reading %q, expected strict or lenient", words.Clip(value))
		}
		v.Lenient = value == "lenient"
		return nil
	}},
	{name: "in", read: func(v *Vector, _, value string) error { v.InText = value; return nil }},
	{name: "bits", repeated: true, read: func(v *Vector, _, value string) error {
		if v.Bits == nil {
			v.Bits = &Bits{}
		}
		return v.Bits.add(value)
	}},
	{name: "digits", repeated: true, read: func(v *Vector, _, value string) (err error) {
		v.Digits, err = appendDigits(v.Digits, value)
		return err
	}},
	{name: "hex", read: func(v *Vector, _, value string) (err error) { v.Blob, err = parseHexPieces(value); return err }},
	{name: "line", read: func(v *Vector, _, value string) error { v.Line = value; return nil }},
	{name: "text", repeated: true, read: func(v *Vector, _, value string) error {
		text, err := parseText(value)
		if v.Text != nil {
			text = *v.Text + text
		}
		v.Text = &text
		return err
	}},
	{name: "want", read: func(v *Vector, _, value string) error { v.WantText = value; return nil }},
	{name: "want[NAME]", read: func(v *Vector, name, value string) error {
		v.Observed = append(v.Observed, Observed{observer(name), value})
		return nil
	}},
}

// keyOf returns the key with this name, or nil.
func keyOf(name string) *key {
	if observer(name) != "" {
		return &keys[len(keys)-1]
	}
	if at := slices.IndexFunc(keys[:len(keys)-1], func(k key) bool { return k.name == name }); at >= 0 {
		return &keys[at]
	}
	return nil
}

func keyNames() (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// observer returns the name in want[NAME], or "".
func observer(key string) string {
	name, ok := strings.CutPrefix(key, "want[")
	name, ok2 := strings.CutSuffix(name, "]")
	if !ok || !ok2 || !isID(name) {
		return ""
	}
	return name
}

func (v *Vector) readClauses(_, value string) error {
	for _, word := range strings.Fields(value) {
		m := clauseID.FindStringSubmatch(word)
		if m == nil {
			return fmt.Errorf("clause %q, expected an ID such as BT-FIELD-1, or BT-FIELD-1.2 of one MUST in it", words.Clip(word))
		}
		if !slices.Contains(v.Clauses, m[1]) {
			v.Clauses = append(v.Clauses, m[1])
		}
		if m[2] != "" {
			v.Musts = append(v.Musts, word)
		}
	}
	return nil
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

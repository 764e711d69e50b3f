package conformance

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/codec"
)

// jsonSchema is the address of the schema of [Set.WriteJSON], which is btv/schema.json.
const jsonSchema = "https://raw.githubusercontent.com/lwsbt/lwsbt/main/conformance/btv/schema.json"

// jsonFile is a set of vectors as JSON. Numbers that may have 64 bits are text.
type jsonFile struct {
	Schema string     `json:"$schema"`
	Count  int        `json:"count"`
	Tests  []jsonTest `json:"tests"`
}

// jsonTest is one operation on a vector.
type jsonTest struct {
	ID      string   `json:"id"` // of the vector
	Op      Op       `json:"op"`
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Source  string   `json:"source,omitempty"`
	Clauses []string `json:"clauses"`
	Musts   []string `json:"musts,omitempty"`
	Why     string   `json:"why,omitempty"`
	Control string   `json:"control,omitempty"`
	Differs string   `json:"differs,omitempty"`

	Word    int    `json:"word,omitempty"`
	Reading string `json:"reading,omitempty"`
	Machine string `json:"machine,omitempty"`
	Search  string `json:"search,omitempty"`

	Input   jsonValue `json:"input"`
	Request string    `json:"request"` // of BTP/1, with ID for its ID

	Result string     `json:"result"` // accept or reject
	Reason string     `json:"reason,omitempty"`
	Output *jsonValue `json:"output,omitempty"`

	Spills    []int `json:"spill_bits,omitempty"`
	AnySpills bool  `json:"any_spill_bits,omitempty"`
}

// jsonValue is an input or an output: bytes, a stack, or fields.
type jsonValue struct {
	Hex    *string           `json:"hex,omitempty"`
	Text   string            `json:"text,omitempty"`   // the bytes, if they are UTF-8
	Fields map[string]any    `json:"fields,omitempty"` // what BTP/1 has as words
	Depth  *int              `json:"depth,omitempty"`
	Size   *string           `json:"size,omitempty"` // decimal
	PCs    []string          `json:"pcs,omitempty"`  // hexadecimal, innermost first
	User   map[string]string `json:"user,omitempty"` // tag to value, decimal to hexadecimal
}

// WriteJSON writes the vectors as JSON, with an element for each operation, in the form of
// btv/schema.json.
func (s *Set) WriteJSON(w io.Writer) error {
	file := jsonFile{Schema: jsonSchema, Tests: []jsonTest{}}
	hello := Hello{Machines: codec.Machines()}
	for _, v := range s.Vectors {
		for _, op := range v.Ops {
			file.Tests = append(file.Tests, newJSONTest(newCheck(v, op, hello)))
		}
	}
	file.Count = len(file.Tests)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(file)
}

func newJSONTest(c check) jsonTest {
	v, r, text := c.v, c.asked, false
	t := jsonTest{ID: v.ID, Op: c.Op, File: v.File, Line: v.Row, Source: v.Head.Source, Clauses: v.Clauses, Musts: v.Musts,
		Why: v.Why, Control: v.Control, Request: r.Line("ID"), Result: "accept", Spills: c.spills, AnySpills: v.Head.AnySpill}
	if t.Clauses == nil {
		t.Clauses = []string{}
	}
	if v.Control != "" {
		t.Differs = v.Differs.String()
	}
	switch in := c.in.(type) {
	case stackInput:
		t.Machine, t.Search = r.Machine.String(), r.Search.String()
	case bytesInput:
		t.Word, text = r.word(), in.text
		if in.reading {
			t.Reading = readings[b2i(r.Lenient)]
		}
	}
	switch {
	case r.In != nil:
		t.Input = jsonStack(r.In)
	case r.Words != "":
		t.Input = jsonValue{Fields: fieldsOf(c.Op, r.Words)}
	default:
		t.Input = jsonBytes(r.Data, text)
	}
	if v.Rejects() {
		t.Result, t.Reason = string(Reject), v.Want.Reason
		return t
	}
	out := c.out.json(c.Op, c.expected())
	t.Output = &out
	return t
}

func jsonBytes(data []byte, text bool) (v jsonValue) {
	digits := hex.EncodeToString(data)
	v.Hex = &digits
	if text && utf8.Valid(data) {
		v.Text = string(data)
	}
	return v
}

func jsonStack(s *Value) jsonValue {
	size := strconv.FormatUint(s.Size, 10)
	v := jsonValue{Size: &size, PCs: make([]string, len(s.PCs))}
	for i, pc := range s.PCs {
		v.PCs[i] = strconv.FormatUint(pc, 16)
	}
	for _, f := range s.User {
		if v.User == nil {
			v.User = map[string]string{}
		}
		v.User[strconv.Itoa(int(f.Tag))] = strconv.FormatUint(f.Value, 16)
	}
	return v
}

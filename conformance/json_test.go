package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func schemaOfVectors(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("btv/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(jsonSchema, document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(jsonSchema)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// The vectors as JSON, those recorded from the library included, have the form of the schema.
func TestJSONSchema(t *testing.T) {
	schema := schemaOfVectors(t)
	recorded, err := Load([]string{recordedDir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []*Set{builtinSet(t), recorded.Select("x86_64-gcc12-O2/*", "x86_64-clang14-O2/*")} {
		var text bytes.Buffer
		if err := set.WriteJSON(&text); err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%v", err)
		}
		var file jsonFile
		if err := json.Unmarshal(text.Bytes(), &file); err != nil || file.Count < 900 || file.Count != len(file.Tests) {
			t.Errorf("%d tests, count=%d: %v", len(file.Tests), file.Count, err)
		}
	}
}

// The schema refuses other forms.
func TestJSONSchemaRefuses(t *testing.T) {
	schema := schemaOfVectors(t)
	const good = `{"$schema":"x","count":1,"tests":[{"id":"a","op":"decode","file":"f","line":1,"clauses":["BT-LIT-1"],` +
		`"word":64,"input":{"hex":"00100004"},"request":"decode ID 00100004 word=64","result":"accept","output":{"size":"0"}}]}`
	for _, c := range [][2]string{
		{"", ""}, // good as it is
		{`"op":"decode"`, `"op":"decipher"`}, {`"hex":"00100004"`, `"hex":"0010000"`}, {`"size":"0"`, `"size":0`},
		{`"accept","output":{"size":"0"}`, `"accept"`}, {`"accept"`, `"reject"`}, {`"word":64`, `"word":16`},
		{`"line":1`, `"line":1,"extra":2`}, {`"BT-LIT-1"`, `"LIT-1"`},
	} {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(good, c[0], c[1], 1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); (err == nil) != (c[0] == "") {
			t.Errorf("%s instead of %s: %v", c[1], c[0], err)
		}
	}
}

// Each element says what its vector says.
func TestJSONTests(t *testing.T) {
	set := builtinSet(t).Select("spec/readme-stack", "spec/length", "spec/salvage", "spec/name", "spec/scan", "spec/user-fields")
	var text bytes.Buffer
	if err := set.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"id":"spec/readme-stack","op":"decode"`, `"machine":"exact64","search":"lws","input":{"size":"7520","pcs":["406651","406852","406c1b","406294"]}`,
		`"output":{"hex":"205d0199442e80d0a48029e485d018a506bac00015"}`, `"word":64,"input":{"hex":"00100005"}`, `"result":"reject","reason":"length"`,
		`"output":{"depth":4,"pcs":["406651","406852"]}`, `"input":{"fields":{"list":["0:142/d1e/2d88"]}}`,
		`"output":{"fields":{"list":["af2f64e9"]}}`, `"output":{"fields":{"items":[{"kind":"m","length":"11","offset":"11"},{"kind":"m","length":"11","offset":"23"},{"kind":"b","length":"16","offset":"34"}]}}`, `"user":{"1":"20001000","3":"7"}`,
	} {
		var compact bytes.Buffer
		if err := json.Compact(&compact, text.Bytes()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(compact.String(), want) {
			t.Errorf("no %s in\n%s", want, compact.String())
		}
	}
}

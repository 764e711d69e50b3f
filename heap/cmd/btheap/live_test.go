package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// live --json writes an object per dump, each valid by the schema.
func TestLiveJSON(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/btheap.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	out, errs, code := command(device(t, 30, 0), "live", "--json", "--heap", "64K", "--fail-over", "1/h", "-")
	if code != 1 || !strings.Contains(errs, "1/h") && !strings.Contains(errs, "--fail-over") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	var last map[string]any
	for i, line := range lines {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
		last = value.(map[string]any)
		if n, err := last["kept"].(json.Number).Int64(); err != nil || n != int64(i+1) {
			t.Errorf("line %d: %d dumps", i+1, n)
		}
	}
	if len(lines) < 30 || last["alarm"] == nil || last["exhaustion"] == nil || len(last["leaks"].([]any)) != 1 {
		t.Errorf("%d lines, the last: %v", len(lines), last)
	}
	delete(last, "alarm")
	if schema.Validate(any(last)) == nil {
		t.Error("the schema takes a line without alarm")
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schema is a JSON schema; this knows the keywords that docs/btstats.schema.json uses
// and fails on any other.
type schema map[string]any

func (s schema) check(root schema, at string, v any) error {
	for key, arg := range s {
		if err := s.keyword(root, at, key, arg, v); err != nil {
			return err
		}
	}
	return nil
}

func (s schema) keyword(root schema, at, key string, arg, v any) error {
	bad := func(format string, args ...any) error { return fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)) }
	switch key {
	case "$schema", "$defs", "title", "description", "required", "additionalProperties":
	case "$ref":
		name := strings.TrimPrefix(arg.(string), "#/$defs/")
		def, ok := root["$defs"].(map[string]any)[name].(map[string]any)
		if !ok {
			return bad("no definition %q", name)
		}
		return schema(def).check(root, at, v)
	case "oneOf":
		var errs []error
		for _, one := range arg.([]any) {
			if err := schema(one.(map[string]any)).check(root, at, v); err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) != len(arg.([]any))-1 {
			return bad("fits not one of several: %v", errs)
		}
	case "const":
		if v != arg {
			return bad("is %v, want %v", v, arg)
		}
	case "enum":
		if !slices.Contains(arg.([]any), v) {
			return bad("is %v, want one of %v", v, arg)
		}
	case "minimum":
		if n, ok := v.(float64); ok && n < arg.(float64) {
			return bad("is %v, below %v", v, arg)
		}
	case "pattern":
		if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
			return bad("is %q, want %v", v, arg)
		}
	case "type":
		if got := typeOf(v); got != arg && !(got == "integer" && arg == "number") {
			return bad("is of type %s, want %v", got, arg)
		}
	case "items":
		all, _ := v.([]any)
		for i, item := range all {
			if err := schema(arg.(map[string]any)).check(root, fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
	case "properties":
		members, _ := v.(map[string]any)
		for name, member := range members {
			p, ok := arg.(map[string]any)[name].(map[string]any)
			if !ok && s["additionalProperties"] == false {
				return bad("has a member %q that is not in the schema", name)
			}
			if err := schema(p).check(root, at+"."+name, member); err != nil {
				return err
			}
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := members[name.(string)]; !ok {
				return bad("lacks %q", name)
			}
		}
	default:
		return bad("the schema's keyword %q is not known here", key)
	}
	return nil
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
	}
	return "number"
}

func readSchema(t *testing.T) schema {
	data, err := os.ReadFile("../../docs/btstats.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Every kind of JSON that btstats prints is of its schema, and nothing that lacks one
// of its members, or has one more, or one of another type.
func TestSchema(t *testing.T) {
	s := readSchema(t)
	for _, args := range [][]string{
		{"../../corpus/serial.log"},
		{"../../corpus/captures/perl.log.gz"},
		{"--machine", "wrap32", "../../corpus/captures/i386sql.log.gz"},
	} {
		var out, errs bytes.Buffer
		if code := run(append(args, "--format", "json"), nil, &out, &errs); code != 0 {
			t.Fatalf("%q: exit %d: %s", args, code, errs.String())
		}
		var v any
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if err := s.check(s, "$", v); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		broken := 0
		shorten(v)
		mutate(v, func(what string) {
			broken++
			if s.check(s, "$", v) == nil {
				t.Errorf("%q: %s is of the schema", args, what)
			}
		})
		if broken < 20 {
			t.Errorf("%q: only %d ways to break it", args, broken)
		}
	}
}

// shorten leaves two items in every array.
func shorten(v any) {
	members, _ := v.(map[string]any)
	for name, member := range members {
		if items, ok := member.([]any); ok {
			members[name] = items[:min(2, len(items))]
			for _, item := range items {
				shorten(item)
			}
		}
		shorten(member)
	}
}

// mutate breaks each object in v, and in the first item of each array, in three ways
// each, tells, and repairs it.
func mutate(v any, tell func(what string)) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			mutate(v[0], tell)
		}
	case map[string]any:
		v["more"] = 1.0
		tell("one with a member more")
		delete(v, "more")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			member := v[name]
			if name == "each" {
				continue // may be missing
			}
			mutate(member, tell)
			delete(v, name)
			tell("one without " + name)
			v[name] = nil
			tell("one whose " + name + " is null")
			v[name] = member
		}
	}
}

package render

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/conformance"
)

// hostile answers every request with text that tries to move the cursor, forge lines and break
// XML.
type hostile struct{}

const nasty = "\x1b[2J\x00\u009b31m\nok 1 - forged ]]> <&> \xff \u202e"

func (hostile) Hello() conformance.Hello {
	return conformance.Hello{Name: "evil" + nasty, Version: nasty, Ops: []conformance.Op{"decode", "format"}}
}

func (hostile) Close() error { return nil }

func (hostile) Ask(requests []conformance.Request) ([]conformance.Answer, error) {
	answers := make([]conformance.Answer, len(requests))
	for i, r := range requests {
		switch {
		case r.Op == "format":
			answers[i] = conformance.Answer{Outcome: conformance.OK, Data: []byte(nasty), Bit: -1}
		case len(r.Data) < 2:
			answers[i] = conformance.Answer{Outcome: conformance.Reject, Reason: nasty, Text: nasty, Bit: -1}
		case i%3 == 1:
			answers[i] = conformance.Answer{Outcome: conformance.Protocol, Text: nasty, Bit: -1}
		default:
			answers[i] = conformance.Answer{Outcome: conformance.Crash, Signal: "SIGSEGV", Text: nasty, Bit: -1}
		}
	}
	return answers, nil
}

// Reports escape the text of a testee, and JUnit reports are valid XML.
func TestHostileText(t *testing.T) {
	set := builtinSet(t).Select("depth/0*", "delta/first*", "decoded/one-frame", "blob/one-byte", "blob/no-bytes")
	start := func(context.Context) (conformance.Testee, error) { return hostile{}, nil }
	report, err := conformance.Run(t.Context(), set, start, conformance.Options{Written: true})
	if err != nil {
		t.Fatal(err)
	}
	if report.Counts.Fail < 5 || report.Counts.Warnings == 0 {
		t.Fatalf("%+v, want failures and warnings", report.Counts)
	}
	for _, format := range Formats() {
		var out bytes.Buffer
		if err := Report(&out, report, format, false); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(out.String(), "\n") {
			if at := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' }); at >= 0 {
				t.Errorf("%s, line %d has a control character: %q", format, i+1, line)
				break
			}
			if strings.HasPrefix(line, "ok 1 - forged") {
				t.Errorf("%s, line %d was forged", format, i+1)
			}
		}
		switch format {
		case "junit":
			d := xml.NewDecoder(&out)
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Errorf("JUnit is not XML: %v", err)
					break
				}
			}
		case "json":
			if !json.Valid(out.Bytes()) {
				t.Error("JSON is not JSON")
			}
		}
	}
}

// wrong changes each answer of the codec, so that it is wrong.
type wrong struct {
	conformance.Testee
	reject bool
}

func (w wrong) Ask(requests []conformance.Request) ([]conformance.Answer, error) {
	answers, err := w.Testee.Ask(requests)
	for i, r := range requests {
		a := &answers[i]
		switch {
		case w.reject:
			*a = conformance.Answer{Outcome: conformance.Reject, Reason: "length", Bit: -1}
		case a.Outcome == conformance.OK && a.Words != "":
			a.Words += "0"
		case a.Outcome == conformance.OK && a.Data != nil:
			a.Data = append(bytes.Clone(a.Data), 'A')
		case a.Outcome == conformance.OK:
			a.Value.Size ^= 1
		default:
			*a = conformance.Answer{Outcome: conformance.OK, Bit: -1, Data: r.Data, Words: "-"}
		}
	}
	return answers, err
}

// Each vector's failure can be shown, whatever its operation.
func TestFailureOfEachVector(t *testing.T) {
	set := builtinSet(t)
	for _, reject := range []bool{false, true} {
		start := func(ctx context.Context) (conformance.Testee, error) {
			c, err := conformance.Codec(ctx)
			return wrong{c, reject}, err
		}
		report, err := conformance.Run(t.Context(), set, start, conformance.Options{Written: true})
		if err != nil {
			t.Fatal(err)
		}
		failed := map[conformance.Op]bool{}
		for _, r := range report.Results {
			if r.Failure == nil {
				continue
			}
			failed[r.Op] = true
			lines := Explain(&r)
			if len(lines) > 40 {
				t.Errorf("%s %s: %d lines, more than a screen", r.ID, r.Op, len(lines))
			}
			for _, line := range lines[1:] {
				if utf8.RuneCountInString(line) > Width && !strings.Contains(line, "again: ") && len(strings.Fields(line)) > 2 {
					t.Errorf("%s %s: more than 80 columns: %s", r.ID, r.Op, line)
				}
			}
		}
		for _, op := range conformance.Ops() {
			if !failed[op] {
				t.Errorf("reject %v: no failure of %s", reject, op)
			}
		}
		report.Results = slices.DeleteFunc(report.Results, func(r conformance.Result) bool { return len(r.ID)%8 != 0 }) // they are many
		for _, format := range Formats() {
			if err := Report(io.Discard, report, format, false); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
	}
}

package render

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

var update = flag.Bool("update", false, "write the golden files anew")

// faulty is a testee that answers like the codec, except for some vectors, each of which it
// answers wrongly in a different way.
type faulty struct{ t *testing.T }

func (faulty) Hello() conformance.Hello {
	return conformance.Hello{Name: "faulty", Version: "1", Ops: []conformance.Op{"decode", "encode", "mline", "bline", "format", "salvage", "end"},
		Machines: []codec.Machine{codec.MachineWrap64, codec.MachineExact64}}
}

func (faulty) Close() error { return nil }

func (f faulty) Ask(requests []conformance.Request) ([]conformance.Answer, error) {
	set := builtinSet(f.t)
	is := func(r conformance.Request, id string) bool {
		v := set.Find(id)
		if v == nil {
			f.t.Fatalf("no vector %s", id)
		}
		if r.Op == "encode" || r.Op == "format" {
			return v.In != nil && r.In != nil && r.In.Equal(*v.In) && r.Machine == v.Machine
		}
		return bytes.Equal(r.Data, v.Input())
	}
	codec, _ := conformance.Codec(f.t.Context())
	right, err := codec.Ask(requests)
	if err != nil {
		return nil, err
	}
	var answers []conformance.Answer
	for n, r := range requests {
		a := right[n]
		switch {
		case r.Op == "decode" && is(r, "delta/back-3"):
			a.Value.PCs = append([]uint64{}, a.Value.PCs...)
			a.Value.PCs[8] = 0x45
		case r.Op == "decode" && is(r, "delta/first"):
			a = conformance.Answer{Outcome: conformance.OK, Value: conformance.Value{Size: 1, PCs: []uint64{2}}}
		case r.Op == "decode" && is(r, "delta/wraps-up-64"):
			a = conformance.Answer{Outcome: conformance.Crash, Signal: "SIGSEGV", Bit: -1, Text: "stack smashed"}
		case r.Op == "decode" && is(r, "delta/wraps-down-64"):
			a = conformance.Answer{Outcome: conformance.Hang, Bit: -1, Text: "no answer in 2s"}
		case r.Op == "decode" && is(r, "blob/one-byte"):
			a.Reason = "length"
		case r.Op == "decode" && is(r, "depth/02"):
			a = conformance.Answer{Outcome: conformance.Protocol, Bit: -1, Text: `"ok": id "", expected 9`}
		case r.Op == "encode" && is(r, "machine/wrap64-bit-31"):
			a.Data = bytes.Clone(a.Data)
			bitstring.SetBit(a.Data, 47, 0) // the spill bit of the first literal
		case r.Op == "mline" && is(r, "text/strict-blank"):
			a = conformance.Answer{Outcome: conformance.OK, Value: set.Find("text/line").Want.Value}
		case r.Op == "format" && is(r, "decoded/one-frame"):
			a.Data = append(bytes.Clone(a.Data), ' ')
		case r.Op == "salvage":
			a = conformance.Answer{Outcome: conformance.Skip, Text: "unsupported", Bit: -1}
		}
		answers = append(answers, a)
	}
	return answers, nil
}

var builtin = sync.OnceValues(conformance.Builtin)

func builtinSet(t *testing.T) *conformance.Set {
	t.Helper()
	set, err := builtin()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func goldenReport(t *testing.T) *conformance.Report {
	t.Helper()
	set := builtinSet(t).Select("delta/back-3", "delta/first", "delta/wraps-*-64", "blob/one-byte", "depth/01",
		"depth/02", "machine/wrap64-bit-31", "machine/zero64-bit-31", "text/strict-blank", "decoded/one-frame",
		"salvage/readme-12-bytes", "end/exact")
	known, err := conformance.ParseKnown("known.txt", []byte("delta/wraps-up* crash https://example.org/1\nend/* reject https://example.org/2\n"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := conformance.Run(t.Context(), set, func(context.Context) (conformance.Testee, error) { return faulty{t}, nil }, conformance.Options{Seed: 42, Known: known,
		Again: conformance.Repeat{Flags: []string{"--strict-reasons"}, Vectors: []string{"./my vectors"}, Testee: []string{"./decoder", "--fast"}}})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestGolden compares the output of a run in each format: failures with their bits, caret,
// clause and command; warnings, known failures, stale entries and skips.
func TestGolden(t *testing.T) {
	report := goldenReport(t)
	if report.Counts.Fail < 7 || report.Counts.Known != 1 || report.Counts.Skip < 2 || report.Counts.Warnings != 1 || len(report.Stale) != 1 {
		t.Fatalf("counts %+v, stale %v", report.Counts, report.Stale)
	}
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			if err := Report(&out, report, format, false); err != nil {
				t.Fatal(err)
			}
			got := withoutClauseWords(t, out.String(), format)
			name := filepath.Join("testdata", "report."+format)
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("output is not that of %s (go test -run Golden -update writes it anew):\n%s", name, got)
			}
		})
	}
}

// withoutClauseWords replaces the sentences of clauses by "…", so that an edit of SPEC.md does
// not change golden files. All formats except JSON contain such sentences.
func withoutClauseWords(t *testing.T, out, format string) string {
	t.Helper()
	found := 0
	for _, c := range conformance.BuiltinSpec().Clauses {
		musts, err := c.Musts()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range append(musts, conformance.Must{ID: c.ID, Text: c.Sentences()[0]}) {
			words := strings.Join(indent("", m.ID+": "+m.Text), "\n")
			found += strings.Count(out, words+"\n")
			out = strings.ReplaceAll(out, words+"\n", "  "+m.ID+": …\n")
		}
	}
	if found < 5 && format != "json" && format != "clauses" {
		t.Errorf("the output has the words of %d clauses, want at least 5", found)
	}
	return out
}

// Explain quotes the requirement that the vector names. If it names several, Explain quotes the
// one for the side that was asked.
func TestQuotedRequirement(t *testing.T) {
	for _, c := range []struct {
		op      conformance.Op
		clauses string
		want    string // beginning of the joined lines
	}{
		{"bline", "BT-TEXT-2.2", "BT-TEXT-2.2: A reader MUST² accept spaces, tabs"},
		{"bline", "BT-TEXT-2.1 BT-TEXT-2.3", "BT-TEXT-2.3: A reader MUST³ accept upper-case"},
		{"format", "BT-TEXT-2.3 BT-TEXT-2.1", "BT-TEXT-2.1: A writer MUST¹ write exactly this"},
		{"mline", "BT-B64-2.3 BT-BLOB-4", "BT-B64-2.3: A strict reader MUST³ reject bits"},
		{"decode", "BT-DELTA-4 BT-REJ-1.2", "BT-DELTA-4: A decoder MUST reject a blob whose frame 0"},
		{"decode", "BT-LOSS-4 BT-DELTA-4", "BT-DELTA-4: A decoder MUST reject a blob whose frame 0"},
		{"decode", "BT-LIT-1", "BT-LIT-1: A literal is kind, count and value"},
		{"encode", "BT-SRCH-2", "BT-SRCH-2: Search `best` makes the shortest blob"},
	} {
		v := &conformance.Vector{}
		for _, word := range strings.Fields(c.clauses) {
			id, _, numbered := strings.Cut(word, ".")
			v.Clauses = append(v.Clauses, id)
			if numbered {
				v.Musts = append(v.Musts, word)
			}
		}
		v.Clauses = slices.Compact(v.Clauses)
		lines := quoteClauses(&conformance.Result{Op: c.op, Clauses: v.Clauses, Vector: v})
		words := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		if !strings.HasPrefix(words, c.want) {
			t.Errorf("%s of %s: %q, want %q", c.op, c.clauses, words, c.want)
		}
		for _, word := range strings.Fields(c.clauses)[1:] {
			if !strings.Contains(words, word) {
				t.Errorf("%s of %s: %q does not name %s", c.op, c.clauses, words, word)
			}
		}
	}
}

// Output for people fits the width; only the command to repeat a failure may be longer.
func TestRenderWidth(t *testing.T) {
	var out bytes.Buffer
	if err := Report(&out, goldenReport(t), "table", false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 100 {
		t.Fatalf("%d lines, want more", len(lines))
	}
	for i, line := range lines {
		if utf8.RuneCountInString(line) > Width && !strings.HasPrefix(line, "  again: ") {
			t.Errorf("line %d has %d columns: %s", i+1, utf8.RuneCountInString(line), line)
		}
	}
}

// The caret is under the right bit or character.
func TestCarets(t *testing.T) {
	var out bytes.Buffer
	report := goldenReport(t)
	if err := Report(&out, report, "table", false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	under := map[string]string{} // by ID and op: the text above the caret, to the right of it
	id := ""
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "FAIL "); ok {
			id, _, _ = strings.Cut(rest, ",")
		}
		if at := strings.IndexByte(line, '^'); at >= 0 && strings.TrimSpace(line) == "^" {
			above := lines[i-1]
			if strings.HasPrefix(strings.TrimLeft(above, " "), "got ") {
				above = lines[i-2]
			}
			under[id] = above[at:min(len(above), at+8)]
		}
	}
	for id, want := range map[string]string{
		"delta/back-3 decode":          "101.",     // the delta
		"delta/first decode":           "1.",       // the kind of frame 0
		"machine/wrap64-bit-31 encode": ":",        // a spill bit
		"text/strict-blank mline":      " nNCkgCn", // the space
		"decoded/one-frame format":     `"`,        // after the last character
	} {
		if id == "text/strict-blank mline" {
			v := builtinSet(t).Find("text/strict-blank")
			at := strings.IndexByte(*v.Text, ' ')
			want = (*v.Text)[at : at+8]
		}
		if under[id] != want {
			t.Errorf("%s: caret under %q, want %q", id, under[id], want)
		}
	}
}

// JSON and JUnit output is well-formed.
func TestFormatsAreWellFormed(t *testing.T) {
	report := goldenReport(t)
	var out bytes.Buffer
	if err := Report(&out, report, "json", false); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Counts  conformance.Counts
		Results []struct {
			ID, Status, Outcome string
			Failure             *conformance.Failure
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Counts != report.Counts || len(got.Results) != len(report.Results) {
		t.Errorf("JSON: %v, %+v", err, got.Counts)
	}
	out.Reset()
	if err := Report(&out, report, "junit", false); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil || suites.Failures != report.Counts.Fail+len(report.Stale) ||
		suites.Tests != len(report.Results)+len(report.Stale) {
		t.Errorf("JUnit: %v, %d tests, %d failures", err, suites.Tests, suites.Failures)
	}
	if err := Report(io.Discard, report, "yaml", false); err == nil || !strings.Contains(err.Error(), "expected table, json, junit") {
		t.Errorf("format yaml: %v", err)
	}
}

// If the reader closes the pipe, Report returns that error.
func TestRenderToClosedPipe(t *testing.T) {
	report := goldenReport(t)
	for _, format := range Formats() {
		r, w := io.Pipe()
		r.Close()
		if err := Report(w, report, format, false); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v, want a closed pipe", format, err)
		}
	}
}

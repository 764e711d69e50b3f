package render

import (
	"context"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
)

// altered is the codec of this module with other answers.
type altered struct {
	conformance.Testee
	change func(*conformance.Answer)
}

func (a altered) Ask(requests []conformance.Request) ([]conformance.Answer, error) {
	answers, err := a.Testee.Ask(requests)
	for i := range answers {
		a.change(&answers[i])
	}
	return answers, err
}

// explained returns the text of the failure of a vector.
func explained(t *testing.T, id string, change func(*conformance.Answer)) string {
	t.Helper()
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	report, err := conformance.Run(t.Context(), set.Select(id), func(ctx context.Context) (conformance.Testee, error) {
		codec, err := conformance.Codec(ctx)
		return altered{codec, change}, err
	}, conformance.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range report.Results {
		if report.Results[i].Status == conformance.Fail {
			return strings.Join(Explain(&report.Results[i]), "\n")
		}
	}
	t.Fatalf("%s did not fail", id)
	return ""
}

// A failure of dumps has a caret under the field that differs, whatever the order of paths, the sentence about
// this field, and the log.
func TestExplainDumps(t *testing.T) {
	text := explained(t, "pdumps/added-up", func(a *conformance.Answer) {
		words := strings.Split(strings.ReplaceAll(a.Words, "bytes=512", "bytes=511"), " ")
		words[1], words[2] = words[2], words[1]
		a.Words = strings.Join(words, " ")
	})
	want := `
  as written
  want  … bytes=110 0:142/d1e/2db1/8111;live=1;bytes=512
  got   … bytes=110 0:142/d1e/2db1/8111;live=1;bytes=511
                                                       ^ bytes
  why   in one line and in another
  BT-DUMP-2: A reader MUST¹ add up the values of all entries that are of the
  same path (BT-NAME-2).
`
	if _, rest, _ := strings.Cut(text, "\n"); !strings.HasPrefix("\n"+rest, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if !strings.Contains(text, "\n  text  \"~h#boot w=32\\n~h#begin 1\n") {
		t.Errorf("no log in\n%s", text)
	}
}

// A crash breaks no clause.
func TestExplainCrash(t *testing.T) {
	text := explained(t, "delta/back-3", func(a *conformance.Answer) {
		*a = conformance.Answer{Outcome: conformance.Crash, Signal: "SIGSEGV", Bit: -1}
	})
	if !strings.Contains(text, "\n  a vector of BT-DELTA-2, BT-DELTA-1\n") || strings.Contains(text, "MUST") {
		t.Errorf("a clause is quoted for a crash:\n%s", text)
	}
}

// Of 2,400 user bits, the first ones and those around the caret are shown.
func TestExplainLongRow(t *testing.T) {
	reject := func(a *conformance.Answer) {
		*a = conformance.Answer{Outcome: conformance.Reject, Reason: "count", Bit: 2000}
	}
	text := explained(t, "depth/32-only-at-word-64", reject)
	_, rows, _ := strings.Cut(text, "user bits\n")
	rows, _, _ = strings.Cut(rows, "  … ")
	rows, _, _ = strings.Cut(rows, "  bit ")
	if lines := strings.Split(rows, "\n"); len(lines) > 12 || !strings.Contains(rows, "^\n") || strings.Count(rows, "…\n") != 2 {
		t.Errorf("%d lines in\n%s", len(lines), text)
	}
}

// A wrong list of marks is at no bit of the blob; the caret is under the list.
func TestExplainMarks(t *testing.T) {
	text := explained(t, "marks-more/chain", func(a *conformance.Answer) { a.Words = "wide=0 wrap=0 zero=- lossy=0" })
	if strings.Count(text, "^") != 1 || !strings.Contains(text, "^ lossy\n  BT-LOSS-3: ") {
		t.Error(text)
	}
}

// Groups that are all right stand in the table only if all are asked for.
func TestSummaryGroups(t *testing.T) {
	report := goldenReport(t)
	for _, all := range []bool{false, true} {
		var out strings.Builder
		if err := Summary(&out, report, false, all); err != nil {
			t.Fatal(err)
		}
		for row, shown := range map[string]bool{"depth    decode ": true, "depth    encode ": all, "salvage  salvage": all} {
			if strings.Contains(out.String(), "\n"+row) != shown {
				t.Errorf("all=%v: row %q, expected shown=%v\n%s", all, row, shown, out.String())
			}
		}
	}
}

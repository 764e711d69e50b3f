package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// The same seed gives the same requests; all are BTP/1, and of every operation that is asked.
func TestGeneratorRepeats(t *testing.T) {
	hello := reference.Hello()
	var before []string
	ops := map[conformance.Op]int{}
	for range 2 {
		g, err := NewGenerator(rand.NewPCG(1, 1), hello)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for range 2000 {
			r, ok := g.Next()
			if !ok {
				t.Fatal("nothing to ask")
			}
			line := r.Line("1")
			_, again, _, err := conformance.ParseRequest(line)
			if err != nil || again.Line("1") != line {
				t.Fatalf("%s is read as %s (%v)", line, again.Line("1"), err)
			}
			lines, ops[r.Op] = append(lines, line), ops[r.Op]+1
		}
		if before != nil && !slices.Equal(lines, before) {
			t.Error("the same seed gives other requests")
		}
		before = lines
	}
	for _, op := range hello.Ops {
		if ops[op] == 0 {
			t.Errorf("%s is not asked", op)
		}
	}
}

// A testee that answers as the codec has no differences.
func TestCodecAnswersAlike(t *testing.T) {
	r, err := Run(t.Context(), conformance.Codec, Options{Seed: 3, Requests: 3000, Found: func(x *Finding) {
		t.Errorf("%s\nwant %.300s\ngot  %.300s", x.Request.Describe(), x.Want.Describe(x.Request.Op), x.Got.Describe(x.Request.Op))
	}})
	if err != nil || r.Asked < 3000 {
		t.Errorf("%d asked, %v", r.Asked, err)
	}
}

// wrong is the codec with a fault: ask changes a request, or answer an answer.
type wrong struct {
	conformance.Testee
	ask    func(*conformance.Request)
	answer func(*conformance.Request, *conformance.Answer)
}

func (w wrong) Ask(list []conformance.Request) ([]conformance.Answer, error) {
	list = slices.Clone(list)
	for i := range list {
		if w.ask != nil {
			w.ask(&list[i])
		}
	}
	answers, err := w.Testee.Ask(list)
	for i := range answers {
		if w.answer != nil {
			w.answer(&list[i], &answers[i])
		}
	}
	return answers, err
}

// Faults are found, with a short vector that they fail, and a clause about what differs.
func TestFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		fault, clauses string
		wrong
	}{
		{"a word is always one of 64 bits", "BT-COUNT BT-BASE BT-DELTA", wrong{ask: func(r *conformance.Request) {
			if r.Op == "decode" {
				r.Word = 64
			}
		}}},
		{"a line is always read leniently", "BT-LINE BT-B64 BT-REJ BT-TEXT", wrong{ask: func(r *conformance.Request) {
			r.Lenient = r.Lenient || r.Op == "mline"
		}}},
		{"a size has 32 bits", "BT-SIZE BT-COUNT BT-REJ", wrong{answer: func(r *conformance.Request, a *conformance.Answer) {
			if r.Op == "decode" && a.Outcome == conformance.OK {
				a.Value.Size &= 1<<32 - 1
			}
		}}},
		{"search best is that of lws", "BT-SRCH", wrong{ask: func(r *conformance.Request) {
			if r.Op == "encode" {
				r.Search = codec.SearchLws
			}
		}}},
	} {
		start := func(context.Context) (conformance.Testee, error) {
			c.wrong.Testee = reference
			return c.wrong, nil
		}
		var first *Finding
		if _, err := Run(t.Context(), start, Options{Seed: 7, Requests: 6000, First: true, Found: func(x *Finding) { first = x }}); err != nil || first == nil {
			t.Errorf("%s: %v, %v", c.fault, first, err)
			continue
		}
		text, v, err := first.Vector("found/x-1")
		if err != nil {
			t.Errorf("%s: %v in\n%s", c.fault, err, text)
			continue
		}
		family := first.Clause[:strings.LastIndex(first.Clause, "-")]
		if clause, _, _ := strings.Cut(first.Clause, "."); conformance.BuiltinSpec().Clause(clause) == nil || !slices.Contains(strings.Fields(c.clauses), family) {
			t.Errorf("%s: clause %q", c.fault, first.Clause)
		}
		set := &conformance.Set{}
		if err := set.Add(v); err != nil {
			t.Fatal(err)
		}
		report, err := conformance.Run(t.Context(), set, start, conformance.Options{Written: true})
		if err != nil || report.Counts.Fail != 1 {
			t.Errorf("%s: passes its vector (%v):\n%s", c.fault, err, text)
		}
		if report, err := conformance.Run(t.Context(), set, conformance.Codec, conformance.Options{Written: true}); err != nil || report.Counts.Pass != 1 {
			t.Errorf("%s: the codec fails its vector (%v):\n%s", c.fault, err, text)
		}
	}
}

// hanging answers nothing to one operation, and counts what it is asked.
type hanging struct {
	conformance.Testee
	op    conformance.Op
	hangs *int
}

func (h hanging) Ask(list []conformance.Request) ([]conformance.Answer, error) {
	for i, r := range list {
		if r.Op == h.op {
			*h.hangs++
			answers, err := h.Testee.Ask(list[:i])
			return append(answers, conformance.Answer{Outcome: conformance.Hang, Bit: -1}), err
		}
	}
	return h.Testee.Ask(list)
}

// An operation that hangs is asked twice, reported once, and then left out.
func TestHangCostsTwoTimeouts(t *testing.T) {
	hangs, found := 0, ""
	start := func(ctx context.Context) (conformance.Testee, error) {
		return hanging{reference, "dumps", &hangs}, nil
	}
	r, err := Run(t.Context(), start, Options{Seed: 1, Requests: 2000, Found: func(x *Finding) { found += fmt.Sprint(x.Request.Op, x.Field) }})
	if err != nil || hangs != 2 || found != "dumpshang" || len(r.Hung) != 1 || r.Asked < 2000 {
		t.Errorf("%d hangs, found %q, %+v, %v", hangs, found, r, err)
	}
}

// A run whose time is over before the first answer ends.
func TestEndsInTime(t *testing.T) {
	if r, err := Run(t.Context(), conformance.Codec, Options{Seed: 1, For: 1}); err != nil || r.Asked != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/internal/naive"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
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
			r, _, ok := g.Next()
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

// The two codecs of this module answer alike.
func TestSecondAnswersAlike(t *testing.T) {
	n := 3000
	if cmdtest.Full() {
		n = 100000
	}
	r, err := Run(t.Context(), Second, Options{Seed: 3, Requests: n, Found: func(x *Finding) {
		t.Errorf("%s\nwant %.300s\ngot  %.300s", x.Request.Describe(), x.Want.Describe(x.Request.Op), x.Got.Describe(x.Request.Op))
	}})
	if err != nil || r.Asked < n {
		t.Errorf("%d asked, %v", r.Asked, err)
	}
}

// Mutants are found, with a short vector that they fail, and a clause of SPEC.md.
func TestMutantsAreFound(t *testing.T) {
	mutants := naive.Mutants()
	step := len(mutants) / 4
	if cmdtest.Full() {
		step = len(mutants) / 40
	}
	tried, found := 0, 0
	for i := 7; i < len(mutants); i += step {
		m := mutants[i]
		tried++
		var first *Finding
		_, err := Run(t.Context(), m.Start, Options{Seed: uint64(i), Requests: 6000, First: true, Found: func(x *Finding) { first = x }})
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if first == nil {
			t.Logf("%s is not found", m.Name)
			continue
		}
		found++
		text, v, err := first.Vector("found/x-1")
		if err != nil {
			t.Errorf("%s: %v in\n%s", m.Name, err, text)
			continue
		}
		clause, _, _ := strings.Cut(first.Clause, ".")
		if conformance.BuiltinSpec().Clause(clause) == nil {
			t.Errorf("%s: clause %q", m.Name, first.Clause)
		}
		set := &conformance.Set{}
		if err := set.Add(v); err != nil {
			t.Fatal(err)
		}
		report, err := conformance.Run(t.Context(), set, m.Start, conformance.Options{Written: true})
		if err != nil || report.Counts.Fail != 1 {
			t.Errorf("%s passes its vector (%v):\n%s", m.Name, err, text)
		}
		if report, err := conformance.Run(t.Context(), set, conformance.Codec, conformance.Options{Written: true}); err != nil || report.Counts.Pass != 1 {
			t.Errorf("%s: the codec fails its vector (%v):\n%s", m.Name, err, text)
		}
		t.Logf("%s: %s, %s, after %d requests, shrunk in %d", m.Name, first.Form(), first.Clause, first.Asked, first.Steps)
	}
	if found < tried*3/4 {
		t.Errorf("%d of %d found", found, tried)
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
		return hanging{reference, conformance.OpDumps, &hangs}, nil
	}
	r, err := Run(t.Context(), start, Options{Seed: 1, Requests: 2000, Found: func(x *Finding) { found += fmt.Sprint(x.Request.Op, x.Field) }})
	if err != nil || hangs != 2 || found != "dumpshang" || len(r.Hung) != 1 || r.Asked < 2000 {
		t.Errorf("%d hangs, found %q, %+v, %v", hangs, found, r, err)
	}
}

package conformance

import (
	"slices"
	"strings"
	"testing"
)

func builtinSet(t *testing.T) *Set {
	t.Helper()
	set, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// byHand returns the vectors in conformance/vectors.
func byHand(t *testing.T) []*Vector {
	var hand []*Vector
	for _, v := range builtinSet(t).Vectors {
		if strings.HasPrefix(v.File, builtinDir) {
			hand = append(hand, v)
		}
	}
	if len(hand) < 150 {
		t.Fatalf("%d vectors by hand, want at least 150", len(hand))
	}
	return hand
}

// Every vector that must be rejected names a control vector, which must be accepted. The two
// differ in one declared place, so nothing else is wrong with the rejected vector. (Set.Check
// proves the difference.)
func TestRejectsHaveControls(t *testing.T) {
	set := builtinSet(t)
	rejects := 0
	for _, v := range byHand(t) {
		if !v.Rejects() {
			if v.Control != "" {
				t.Errorf("%s: accepted, yet has a control vector", v.ID)
			}
			continue
		}
		rejects++
		control := set.controlOf(v)
		if control == nil && v.Group() == "spec" { // an example that once stood in a document
			continue
		}
		if control == nil {
			t.Errorf("%s: rejected, without a control vector", v.ID)
			continue
		}
		if err := v.checkControl(control); err != nil {
			t.Errorf("%s: %v", v.ID, err)
		}
	}
	if rejects < 50 {
		t.Errorf("%d rejected vectors, want at least 50", rejects)
	}
}

// A rejected vector first names the clause that it violates, which is the clause of its
// reason.
func TestRejectsBreakTheClauseOfTheirReason(t *testing.T) {
	clauses := map[string][]string{
		"lead-in":      {"BT-TEXT-1", "BT-TEXT-2", "BT-EVT-1", "BT-HEAD-1", "BT-PLINE-1", "BT-VLINE-1"},
		"base64":       {"BT-B64-2", "BT-B64-3", "BT-DIGIT-1"},
		"decoded-line": {"BT-TEXT-2"},
		"short":        {"BT-BLOB-2", "BT-BLOB-3", "BT-SALV-2", "BT-PLINE-1", "BT-VLINE-1"},
		"empty":        {"BT-BLOB-4", "BT-SALV-2"},
		"length":       {"BT-BLOB-2", "BT-BLOB-3", "BT-SALV-2"},
		"truncated":    {"BT-FIELD-4", "BT-SALV-2", "BT-UF-2", "BT-PLINE-1", "BT-VLINE-1", "BT-PREJ-1"},
		"delta-first":  {"BT-DELTA-4", "BT-DEPTH-2", "BT-SALV-2"},
		"back":         {"BT-DELTA-5", "BT-SALV-2"},
		"count":        {"BT-COUNT-4", "BT-DEPTH-2"},
		"event":        {"BT-EVT-3", "BT-EVT-4"},
		"header-line":  {"BT-HEAD-1", "BT-HEAD-2", "BT-HEAD-3", "BT-HEAD-6"},
		"crc":          {"BT-PLINE-2", "BT-VLINE-2"},
		"unit":         {"BT-PLINE-1", "BT-VLINE-1", "BT-PREJ-2"},
		"number":       {"BT-DIGIT-2", "BT-DIGIT-3", "BT-PREJ-1", "BT-PREJ-2"},
		"hash":         {"BT-ENTRY-1", "BT-VLINE-4", "BT-PREJ-1", "BT-NAME-4"},
		"drop":         {"BT-ENTRY-1", "BT-PREJ-1"},
		"depth":        {"BT-ENTRY-3", "BT-PREJ-2"},
		"frame":        {"BT-CODE-2", "BT-PREJ-1", "BT-PREJ-2"},
		"index":        {"BT-VLINE-4"},
		"age":          {"BT-VLINE-4", "BT-PREJ-2"},
		"frames":       {"BT-REJ-2"},
		"word":         {"BT-MACH-1"},
	}
	for _, v := range byHand(t) {
		if v.Rejects() && !slices.Contains(clauses[v.Want.Reason], v.Clauses[0]) {
			t.Errorf("%s: rejected for %s under %s, want one of %v first", v.ID, v.Want.Reason, v.Clauses[0],
				clauses[v.Want.Reason])
		}
	}
}

// Each clause that an input can violate has a vector that violates it, and accepted vectors.
func TestClausesHaveBothKinds(t *testing.T) {
	accepted, rejected := map[string]int{}, map[string]int{}
	for _, v := range byHand(t) {
		for _, c := range v.Clauses {
			if v.Rejects() {
				rejected[c]++
			} else {
				accepted[c]++
			}
		}
	}
	musts := 0
	for _, c := range BuiltinSpec().Clauses {
		if !needsVectors(&c) {
			continue
		}
		musts++
		// These clauses only concern rejections, or fields that no accepted blob has. Their
		// accepted vectors are the control vectors.
		onlyRejects := []string{"BT-REJ-1", "BT-BLOB-4", "BT-FIELD-4", "BT-SALV-2", "BT-EVT-4", "BT-PREJ-1"}
		if accepted[c.ID] == 0 && !slices.Contains(onlyRejects, c.ID) {
			t.Errorf("%s has a MUST and no accepted vector by hand", c.ID)
		}
	}
	if musts < 30 {
		t.Errorf("%d clauses with a MUST in SPEC.md, want at least 30", musts)
	}
	for _, c := range []string{"BT-TEXT-1", "BT-TEXT-2", "BT-B64-2", "BT-B64-3", "BT-BLOB-2", "BT-BLOB-3", "BT-BLOB-4",
		"BT-FIELD-4", "BT-COUNT-4", "BT-DELTA-4", "BT-DELTA-5", "BT-DEPTH-2", "BT-REJ-1", "BT-SALV-2",
		"BT-HEAD-6", "BT-DIGIT-1", "BT-DIGIT-2", "BT-DIGIT-3", "BT-CODE-2", "BT-PLINE-1", "BT-PLINE-2", "BT-ENTRY-1", "BT-ENTRY-3",
		"BT-PREJ-1", "BT-PREJ-2", "BT-VLINE-1", "BT-VLINE-2", "BT-VLINE-4"} {
		if rejected[c] == 0 {
			t.Errorf("no handwritten vector violates %s", c)
		}
	}
}

// The codec passes the built-in vectors, with the right reasons.
func TestCodecPasses(t *testing.T) {
	set := builtinSet(t)
	report, err := Run(t.Context(), set, Codec, Options{Seed: 1, Workers: 2, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	if report.Counts.Pass < len(set.Vectors) || report.Counts.Skip > 0 {
		t.Errorf("%+v of %d vectors", report.Counts, len(set.Vectors))
	}
	for i, r := range report.Results {
		if r.Status == Fail {
			t.Errorf("%s %s: %+v", r.ID, r.Op, report.Results[i].Failure)
		}
	}
	if report.Cases < 5*len(set.Vectors) {
		t.Errorf("%d cases of %d vectors, want more variants", report.Cases, len(set.Vectors))
	}
}

// Each kind of gap is noticed.
func TestCoverageFaults(t *testing.T) {
	const clause = "**BT-LIT-1** A literal MUST be.\n\n"
	example := func(text string) string { return "```btv\n" + text + "```\n" }
	good := "id: a\nclause: BT-LIT-1\nop: decode\nhex: 00100004\nwant: ok size=0 pcs=-\n"
	for _, c := range []struct{ name, spec, want string }{
		{"clause without vector", clause + "**BT-LIT-2** It\nMUST, too.\n" + example(good), "SPEC.md:3: BT-LIT-2 has no vector: It MUST, too."},
		{"MUST without vector", "**BT-LIT-1** It MUST¹ be, and MUST NOT² not be.\n\n" + example(strings.Replace(good, "LIT-1", "LIT-1.1", 1)),
			"SPEC.md:1: BT-LIT-1.2 has no vector: It MUST¹ be, and MUST NOT² not be."},
		{"clause of several MUSTs alone", "**BT-LIT-1** It MUST¹ be, and MUST NOT² not be.\n\n" + example(good), "SPEC.md:1: BT-LIT-1.1 has no vector"},
		{"unknown MUST", clause + example(strings.Replace(good, "LIT-1", "LIT-1.2", 1)), "SPEC.md:4: a names BT-LIT-1.2"},
		{"no clause named", clause + example(strings.Replace(good, "clause: BT-LIT-1\n", "", 1)), "SPEC.md:4: a names no clause"},
		{"unknown clause", clause + example(strings.Replace(good, "LIT-1", "LIT-9", 1)), "SPEC.md:4: a names clause BT-LIT-9"},
		{"wrong example", clause + example(strings.Replace(good, "size=0", "size=1", 1)), "SPEC.md:4: example a decode does not pass"},
		{"no examples", clause, "SPEC.md has no examples"},
		{"no reason", clause + example(good), "no vector is to be rejected for lead-in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := parseSpec("SPEC.md", c.spec)
			if err != nil {
				t.Fatal(err)
			}
			found, err := cover(spec, &Set{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(found.faults, func(f string) bool { return strings.HasPrefix(f, c.want) }) {
				t.Errorf("faults %q, want %q", found.faults, c.want)
			}
		})
	}
	for _, c := range []struct{ name, spec, want string }{
		{"other fence", clause + "```go\nx\n```\n", `SPEC.md:3: a fenced block of "go", expected btv or text`},
		{"plain fence", clause + "```\nx\n```\n", `SPEC.md:3: a fenced block of "", expected btv or text`},
		{"no end", clause + "```btv\nid: a\n", "SPEC.md:3: a fenced block without its end"},
		{"bad example", clause + example("id: a\nhue: red\n"), `SPEC.md:5: key "hue"`},
		{"empty example", clause + example("# nothing\n"), "SPEC.md:3: an example without records"},
		{"clause twice", clause + clause, "SPEC.md:3: clause BT-LIT-1 again"},
		{"no clauses", "# Title\n", "SPEC.md:1: no clauses"},
		{"MUST without a number", "**BT-LIT-1** It MUST¹ be, and MUST be.\n", "SPEC.md:1: BT-LIT-1 has 2 MUST"},
		{"a number twice", "**BT-LIT-1** It MUST¹ be, and MUST¹ be.\n", "SPEC.md:1: BT-LIT-1 has 2 MUST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseSpec("SPEC.md", c.spec); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	spec, err := parseSpec("SPEC.md", "**BT-LIT-1** A\nliteral MUST.\n\nMore words.\n\n## Next\nNot this.\n\n"+
		"**BT-LIT-2** It MUST (not by vector: none can).\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := spec.Clause("BT-LIT-1").Text; got != "A literal MUST. More words." {
		t.Errorf("clause text %q", got)
	}
	if !needsVectors(spec.Clause("BT-LIT-1")) || needsVectors(spec.Clause("BT-LIT-2")) {
		t.Error("which clauses need vectors is wrong")
	}
}

// Each vector says what it is for.
func TestVectorsSayWhy(t *testing.T) {
	for _, v := range builtinSet(t).Vectors {
		if v.Why == "" && !strings.HasSuffix(v.File, ".md") { // the text around an example says it
			t.Errorf("%s has no why:", v.ID)
		}
	}
}

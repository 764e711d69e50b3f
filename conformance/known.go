package conformance

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/btv"
)

// KnownFile lists expected failures, one per line:
//
//	GLOB[:OP] OUTCOME LINK
//
// GLOB matches IDs (* matches any characters). OP restricts it to an operation. OUTCOME is
// what the implementation does instead. LINK is the URL of the issue. An entry is stale if
// it matches no failure with its outcome, or matches a vector that passes; a stale entry is
// a failure, too.
type KnownFile struct {
	entries []knownEntry
}

type knownEntry struct {
	glob    string
	match   *regexp.Regexp // of glob
	op      Op             // "" matches any operation
	outcome Outcome
	link    string
	place   string
}

// ParseKnown reads a file of known failures.
func ParseKnown(name string, text []byte) (*KnownFile, error) {
	k := &KnownFile{}
	for i, line := range strings.Split(string(text), "\n") {
		line = btv.CutComment(strings.TrimSpace(line))
		if line == "" {
			continue
		}
		fault := func(format string, args ...any) error {
			return faultAt(name, i+1, format, args...)
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fault("%q, expected GLOB[:OP] OUTCOME LINK", clip(line))
		}
		e := knownEntry{glob: words[0], outcome: Outcome(words[1]), link: words[2],
			place: fmt.Sprintf("%s:%d", name, i+1)}
		if glob, op, ok := strings.Cut(e.glob, ":"); ok {
			var err error
			if e.op, err = parseOp(op); err != nil {
				return nil, fault("%v", err)
			}
			e.glob = glob
		}
		switch e.outcome {
		case OK, Reject, Crash, Hang, Protocol:
		default:
			return nil, fault("outcome %q, expected ok, reject, crash, hang or protocol", clip(words[1]))
		}
		if !strings.Contains(e.link, "://") {
			return nil, fault("link %q, expected the URL of an issue", clip(e.link))
		}
		e.match = compileGlob(e.glob)
		k.entries = append(k.entries, e)
	}
	if len(k.entries) == 0 {
		return nil, faultAt(name, 1, "no entries, expected lines of GLOB[:OP] OUTCOME LINK")
	}
	return k, nil
}

func (e *knownEntry) fits(r *Result) bool {
	return (e.op == "" || e.op == r.Op) && e.match.MatchString(r.ID)
}

// expects reports whether an entry matches this failure; a nil KnownFile has no entries.
func (k *KnownFile) expects(id string, op Op, outcome Outcome) bool {
	if k == nil {
		return false
	}
	for i := range k.entries {
		if e := &k.entries[i]; e.outcome == outcome && e.fits(&Result{ID: id, Op: op}) {
			return true
		}
	}
	return false
}

// apply marks failures as known if all their wrong outcomes are expected, and returns the stale
// entries. If the results are partial, apply ignores entries for vectors that were not asked.
func (k *KnownFile) apply(results []Result, partial bool) (stale []string) {
	used := make([]bool, len(k.entries))
	asked := make([]bool, len(k.entries))
	passed := make([]string, len(k.entries))
	for i := range results {
		r := &results[i]
		expected := map[Outcome]bool{}
		for n := range k.entries {
			e := &k.entries[n]
			if !e.fits(r) {
				continue
			}
			asked[n] = true
			if r.Status == Pass {
				passed[n] = r.ID + " " + string(r.Op)
			}
			for _, c := range r.Outcomes {
				if c.Outcome == e.outcome {
					expected[c.Outcome], used[n] = true, true
					r.Link = e.link
				}
			}
		}
		if r.Status == Fail && len(expected) == len(r.Outcomes) {
			r.Status = Known
		}
	}
	for n, e := range k.entries {
		what := e.glob
		if e.op != "" {
			what += ":" + string(e.op)
		}
		switch {
		case passed[n] != "":
			stale = append(stale, fmt.Sprintf("%s: %s should fail with %s, but %s passes", e.place, what, e.outcome, passed[n]))
		case !used[n] && (asked[n] || !partial):
			stale = append(stale, fmt.Sprintf("%s: %s does not fail with %s anywhere", e.place, what, e.outcome))
		}
	}
	return stale
}

package conformance

import (
	"fmt"
	"regexp"
	"strings"
)

// KnownFile lists failures that are expected, a line each:
//
//	GLOB[:OP] OUTCOME LINK
//
// GLOB fits IDs (* is any characters), OP narrows it to an operation, OUTCOME is
// what the implementation does instead, LINK where the matter is tracked. An entry that
// fits no failure with its outcome, or fits something that passes, is stale, and
// that is a failure, too.
type KnownFile struct {
	entries []knownEntry
}

type knownEntry struct {
	glob    string
	match   *regexp.Regexp // of glob
	op      Op             // "" is any
	outcome Outcome
	link    string
	place   string
}

// ParseKnown reads a file of known failures.
func ParseKnown(name string, text []byte) (*KnownFile, error) {
	k := &KnownFile{}
	for i, line := range strings.Split(string(text), "\n") {
		line = cutComment(strings.TrimSpace(line))
		if line == "" {
			continue
		}
		fault := func(format string, args ...any) error {
			return &ParseError{name, i + 1, fmt.Sprintf(format, args...)}
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
		return nil, &ParseError{name, 1, "no entries, expected lines of GLOB[:OP] OUTCOME LINK"}
	}
	return k, nil
}

func (e *knownEntry) fits(r *Result) bool {
	return (e.op == "" || e.op == r.Op) && e.match.MatchString(r.ID)
}

// expects reports whether an entry allows this outcome; none does of a nil file.
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

// apply marks failures whose every wrong outcome is expected, and returns the entries of the
// file that are out of date. If the results are partial, it ignores entries for vectors that
// were not asked.
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

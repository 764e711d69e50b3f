package conformance

import (
	"reflect"
	"strings"
	"testing"
)

func TestKnown(t *testing.T) {
	results := func() []Result {
		fail := func(id string, op Op, o ...Outcome) Result {
			r := Result{ID: id, Op: op, Status: Fail}
			for _, x := range o {
				r.Outcomes = append(r.Outcomes, Count{x, 1})
			}
			return r
		}
		return []Result{
			fail("a/one", opDecode, Crash),
			fail("a/two", opDecode, Crash, Hang),
			{ID: "a/two", Op: opEncode, Status: Pass},
			{ID: "b/pass", Op: opDecode, Status: Pass},
			{ID: "b/skip", Op: opDecode, Status: Skipped},
		}
	}
	const link = " https://example.org/1"
	for _, c := range []struct {
		name, file string
		partial    bool
		status     string // of the results
		stale      []string
	}{
		{"one crash", "a/one crash" + link, false, "known fail pass pass skip", nil},
		{"one of two outcomes", "a/two:decode crash" + link, false, "fail fail pass pass skip", nil},
		{"both outcomes", "a/two:decode crash" + link + "\na/two:decode hang" + link, false, "fail known pass pass skip", nil},
		{"another outcome", "a/one hang" + link, false, "fail fail pass pass skip", []string{"k:1: a/one does not fail with hang anywhere"}},
		{"passes in another operation", "a/two crash" + link, false, "fail fail pass pass skip",
			[]string{"k:1: a/two should fail with crash, but a/two encode passes"}},
		{"passes", "b/pass ok" + link, false, "fail fail pass pass skip", []string{"k:1: b/pass should fail with ok, but b/pass decode passes"}},
		{"glob over a pass", "* crash" + link, false, "known fail pass pass skip", []string{"k:1: * should fail with crash, but b/pass decode passes"}},
		{"nothing of the name", "c/* crash" + link, false, "fail fail pass pass skip", []string{"k:1: c/* does not fail with crash anywhere"}},
		{"nothing of the name in a selection", "c/* crash" + link, true, "fail fail pass pass skip", nil},
		{"another outcome in a selection", "a/one hang" + link, true, "fail fail pass pass skip", []string{"k:1: a/one does not fail with hang anywhere"}},
		{"skipped", "b/skip crash" + link, false, "fail fail pass pass skip", []string{"k:1: b/skip does not fail with crash anywhere"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, err := ParseKnown("k", []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			rs := results()
			stale := k.apply(rs, c.partial)
			var status []string
			for _, r := range rs {
				status = append(status, string(r.Status))
			}
			if got := strings.Join(status, " "); got != c.status {
				t.Errorf("results %s, want %s", got, c.status)
			}
			if !reflect.DeepEqual(stale, c.stale) {
				t.Errorf("stale %q, want %q", stale, c.stale)
			}
		})
	}
	for _, c := range []struct{ file, want string }{
		{"", "k:1: no entries"},
		{"# a comment\n", "k:1: no entries"},
		{"a crash\n", `k:1: "a crash", expected GLOB[:OP] OUTCOME LINK`},
		{"\na explode https://x\n", `k:2: outcome "explode"`},
		{"a skip https://x\n", `k:1: outcome "skip"`},
		{"a crash here\n", `k:1: link "here"`},
		{"a:guess crash https://x\n", `k:1: op "guess"`},
	} {
		if _, err := ParseKnown("k", []byte(c.file)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.file, err, c.want)
		}
	}
}

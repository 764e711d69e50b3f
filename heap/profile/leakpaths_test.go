package profile_test

import (
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// One path after the other gets the evidence that all get at once; in reverse order, a path that
// shrinks grows.
func TestLeakTest(t *testing.T) {
	dumps := build(line(1, 10, 10, 3))
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	rows := p.Leaks(profile.LeakOptions{}).Rows
	if len(rows) != 1 {
		t.Fatalf("%d leaks, want 1", len(rows))
	}
	want := rows[0].Evidence
	test := profile.NewLeakTest(dumps)
	up, down := make([]profile.Value, len(dumps)), make([]profile.Value, len(dumps))
	for i := range dumps {
		n := uint64(10 + 3*i)
		up[i], down[len(dumps)-1-i] = profile.Value{Bytes: 16 * n, Count: n}, profile.Value{Bytes: 16 * n, Count: n}
	}
	if got := test.Examine(up); !test.Timed() || got.Verdict != want.Verdict || got.Rate != 48 || got.Gain != want.Gain || got.Backward != profile.NoEvidence {
		t.Errorf("timed %t, %+v, want %+v, and nothing backward", test.Timed(), got, want)
	}
	if got := test.Examine(down); got.Verdict != profile.NoEvidence || got.Backward != want.Verdict {
		t.Errorf("%+v, want %v backward", got, want.Verdict)
	}
}

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

// The scale is the size of the blocks that come, and not that of those that stay.
func TestLeakTestScale(t *testing.T) {
	dumps := build(line(1, 10, 10, 3))
	values := make([]profile.Value, len(dumps))
	for i := range values { // 100 blocks of 1,000 bytes stay, 3 of 16 bytes come
		values[i] = profile.Value{Bytes: 100_000 + 16*3*uint64(i), Count: 100 + 3*uint64(i)}
	}
	if got := profile.NewLeakTest(dumps).Examine(values); got.ByBytes || got.Scale != 16 || got.Rate != 48 {
		t.Errorf("by bytes %t, scale %v, rate %v, want blocks of 16 bytes, 48 bytes per hour", got.ByBytes, got.Scale, got.Rate)
	}
}

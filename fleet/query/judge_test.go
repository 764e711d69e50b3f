package query

import (
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// A path of one block, of which the log lacks all in each dump of a boot, has no growth in it: a fleet of 100,000 devices
// has such a path.
func TestJudgeLostPath(t *testing.T) {
	const hour = 3600_000_000
	var dumps []moment
	for i := range 14 {
		dumps = append(dumps, moment{Device: "d1", Boot: int64(1 + i/7), Dump: int64(i % 7), Uptime: int64(1+i%7) * hour, Count: 100, Bytes: 6400, Lost: 0.02, Complete: true, Free: -1})
	}
	for _, boot := range []int{0, 7} { // the boot that has the path
		values := make([]profile.Value, len(dumps))
		for i := range 7 {
			values[boot+i] = profile.Value{Count: 1, Bytes: uint64(64 + 8*i)}
		}
		if got := newDevice(dumps).judge(1, values); got.Seen != 1 {
			t.Errorf("seen in %d boots, want 1", got.Seen)
		}
	}
	if got := newDevice(dumps).judge(1, make([]profile.Value, len(dumps))); got.Seen != 0 || got.Since != 0 {
		t.Errorf("of a path without blocks: seen in %d boots, since %d", got.Seen, got.Since)
	}
}

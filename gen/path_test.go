package gen

import (
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Generated lines are accepted.
func TestPathLines(t *testing.T) {
	var line callpath.Line
	var events callpath.Events
	var entries, shared, kinds int
	for seed := range uint64(2000) {
		if err := line.Parse(PathLine(seed)); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, PathLine(seed), err)
		}
		entries += line.Len
		for e := (callpath.Entry{}); line.Next(&e); {
			if len(e.Frames) > 5 {
				shared++
			}
		}
		if err := events.Parse(EventLine(seed)); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, EventLine(seed), err)
		}
		kinds += len(events.List)
	}
	if entries < 2000 || shared < 100 || kinds < 2000 {
		t.Errorf("%d entries, %d with frames shared, %d events", entries, shared, kinds)
	}
}

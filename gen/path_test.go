package gen

import (
	"errors"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Generated lines are accepted, and each faulty line is rejected for its reason.
func TestPathLines(t *testing.T) {
	var line callpath.Line
	var events callpath.Events
	var entries, shared, kinds int
	seen := map[codec.Reason]bool{}
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
		kinds += events.Len
		for _, f := range PathFaults(seed) {
			seen[f.Reason] = true
			err := line.Parse(f.Line)
			if f.Events {
				err = events.Parse(f.Line)
			}
			var e *codec.Error
			if !errors.As(err, &e) || e.Reason != f.Reason {
				t.Errorf("seed %d: %s: %v, want %s", seed, f.Line, err, f.Reason)
			}
		}
	}
	for _, reason := range codec.PathReasons() {
		if !seen[reason] {
			t.Errorf("no fault for %s", reason)
		}
	}
	if entries < 2000 || shared < 100 || kinds < 2000 {
		t.Errorf("%d entries, %d with frames shared, %d events", entries, shared, kinds)
	}
}

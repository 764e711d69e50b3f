package conformance

import (
	"path/filepath"
	"testing"
)

// recordedDir is the directory of the vectors recorded from the real library.
const recordedDir = "../ref-c/vectors"

// The codec reads and writes the blobs that the real library wrote, for every machine.
func TestRecordedVectors(t *testing.T) {
	set, err := Load([]string{recordedDir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), set, Codec, Options{Seed: 11, Workers: 2, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	machines, builds := map[string]bool{}, map[string]int{}
	for _, v := range set.Vectors {
		machines[v.Head.Machine] = true
		builds[filepath.Base(v.File)]++
	}
	if len(machines) < 4 {
		t.Errorf("recorded on %d machines %v, want at least 4", len(machines), machines)
	}
	full := 0
	for _, n := range builds {
		if n >= 200 {
			full++
		}
	}
	if full < 12 {
		t.Errorf("%d builds with 200 vectors or more, want at least 12", full)
	}
	for i, r := range report.Results {
		if r.Status != Pass {
			t.Errorf("%s %s: %s (%+v)", r.ID, r.Op, r.Status, report.Results[i].Failure)
		}
	}
}

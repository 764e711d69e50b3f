package mutant

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
)

func handVectors(t *testing.T) *conformance.Set {
	t.Helper()
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	return set
}

// The codec that mutants are made of passes all vectors. A bug of its own would be in every mutant.
func TestMutantWithoutBugPasses(t *testing.T) {
	report, err := conformance.Run(t.Context(), handVectors(t), Mutant{}.Start, conformance.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Status != conformance.Pass {
			t.Errorf("%s, %s: %s: %+v", r.ID, r.Op, r.Status, r.Failure)
		}
	}
}

// The vectors by hand kill every mutant.
func TestVectorsKill(t *testing.T) {
	killed, err := Kill(t.Context(), handVectors(t))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	decoders, encoders := 0, 0
	for _, k := range killed {
		if names[k.Name] || k.Bug == "" {
			t.Errorf("%s: twice, or without a description", k.Name)
		}
		names[k.Name] = true
		if k.Encoder {
			encoders++
		} else {
			decoders++
		}
		if len(k.By) == 0 {
			t.Errorf("%s survives: %s", k.Name, k.Bug)
			continue
		}
		t.Logf("%-30s killed by %d: %s", k.Name, len(k.By), strings.Join(k.By[:min(3, len(k.By))], " "))
	}
	if decoders < 30 || encoders < 15 {
		t.Errorf("%d decoders and %d encoders, want at least 30 and 15", decoders, encoders)
	}
}

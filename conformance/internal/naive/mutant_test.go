package naive

import (
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
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

// The implementation without a bug passes all vectors. A bug in it would be in every mutant.
func TestWithoutBugPasses(t *testing.T) {
	report, err := conformance.Run(t.Context(), handVectors(t), Codec, conformance.Options{Seed: 1, StrictReasons: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Status != conformance.Pass {
			t.Errorf("%s, %s: %s: %+v", r.ID, r.Op, r.Status, r.Failure)
		}
	}
}

// The handwritten vectors kill every mutant. Without LWSBT_FULL, every 8th is tried.
func TestVectorsKill(t *testing.T) {
	set := handVectors(t)
	encoders := 0
	for i, m := range mutants {
		if m.Encoder {
			encoders++
		}
		if i%8 != 0 && !cmdtest.Full() {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			id, err := m.Killer(t.Context(), set)
			if err != nil || id == "" {
				t.Errorf("survives: %s (%v)", m.Bug, err)
			}
		})
	}
	if encoders < 100 || len(mutants)-encoders < 400 {
		t.Errorf("%d mutants, %d of them encoders", len(mutants), encoders)
	}
}

func TestMutantsHaveNamesAndDescriptions(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Mutants() {
		if names[m.Name] || m.Bug == "" {
			t.Errorf("%s: twice, or without a description", m.Name)
		}
		names[m.Name] = true
	}
}

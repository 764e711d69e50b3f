package mutant

import (
	"strings"
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

// The codec that mutants derive from passes all vectors. A bug in it would be in every mutant.
func TestMutantWithoutBugPasses(t *testing.T) {
	report, err := conformance.Run(t.Context(), handVectors(t), Mutant{}.Start, conformance.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		pending := strings.Contains("spec/names-kept spec/dump-sums-of-64-bits spec/events-age-of-62-bits", r.ID)
		if r.Status != conformance.Pass && !pending {
			t.Errorf("%s, %s: %s: %+v", r.ID, r.Op, r.Status, r.Failure)
		}
	}
}

// The handwritten vectors kill every mutant. This test runs every 101st or 27th mutant. btconform
// mutants runs all of them, and so does a test of that command if LWSBT_FULL is set.
func TestVectorsKill(t *testing.T) {
	stride := 101
	if cmdtest.Full() {
		stride = 27
	}
	var tested []Mutant
	for i := 0; i < len(mutants); i += stride {
		tested = append(tested, mutants[i])
	}
	killed, err := kill(t.Context(), handVectors(t), tested)
	if err != nil {
		t.Fatal(err)
	}
	decoders, encoders := 0, 0
	for _, k := range killed {
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
	if decoders == 0 || encoders == 0 {
		t.Errorf("%d decoders and %d encoders were tested, want some of both", decoders, encoders)
	}
}

func TestMutantsHaveNamesAndDescriptions(t *testing.T) {
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] || m.Bug == "" {
			t.Errorf("%s: twice, or without a description", m.Name)
		}
		names[m.Name] = true
	}
}

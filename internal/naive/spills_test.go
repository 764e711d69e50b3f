package naive

import (
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
)

// The dots in `bits:` are where this package finds spill bits, up to the fault if the vector is
// rejected, and so are the spill bits that the runner varies.
func TestSpillsOfVectors(t *testing.T) {
	withBits := 0
	for _, v := range handVectors(t).Vectors {
		if !v.Has(conformance.OpDecode) {
			continue
		}
		want := Spills(v.Blob, v.Word)
		if v.Bits == nil {
			if got := v.Spills(conformance.OpDecode); got != nil && !slices.Equal(got, want) {
				t.Errorf("%s: spill bits at %v, want %v", v.ID, got, want)
			}
			continue
		}
		withBits++
		got := v.Bits.Spills
		if v.Rejects() || strings.HasPrefix(v.ID, "user/") || v.ID == "spec/user-bits" { // user fields may be written with theirs
			got = got[:min(len(got), len(want))]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: dots at bits %v, want %v", v.ID, got, want)
		}
	}
	if withBits < 100 {
		t.Errorf("%d vectors with bits, want at least 100", withBits)
	}
}

// The vectors recorded from the real library pass, too.
func TestRecordedVectors(t *testing.T) {
	set, err := conformance.Load([]string{"../../ref-c/vectors"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := conformance.Run(t.Context(), set, Codec, conformance.Options{Written: true})
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed() || report.Counts.Pass < 2000 {
		t.Errorf("%+v", report.Counts)
	}
}

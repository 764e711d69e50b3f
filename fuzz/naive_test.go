package fuzz

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/internal/naive"
)

// The stack of the README, whose blob SPEC.md draws bit by bit.
var readmePCs = []uint64{0x406651, 0x406852, 0x406c1b, 0x406294}

func TestReadmeStack(t *testing.T) {
	const want = "205d0199442e80d0a48029e485d018a506bac00015"
	blob := naiveEncode(readmePCs, 7520, "exact64", "lws")
	if got := hex.EncodeToString(blob); got != want {
		t.Errorf("blob %s, want %s", got, want)
	}
	const line = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV"
	if got := naiveLine(blob); got != line {
		t.Errorf("line %s, want %s", got, line)
	}
	parsed, reason := naive.ParseLine(line, false)
	if reason != "" {
		t.Fatal(reason)
	}
	s, rejected := naive.Decode(parsed, 64)
	if rejected != nil || !slices.Equal(s.PCs, readmePCs) || s.Size != 7520 {
		t.Errorf("decoded to %x, %d, %v", s.PCs, s.Size, rejected)
	}
}

// The examples of SPEC.md clause 8.
func TestMachines(t *testing.T) {
	for machine, want := range map[string]uint64{
		"wrap64": 0x567892345678, "zero64": 0x92345678, "exact64": 0x55d412345678,
	} {
		s, rejected := naive.Decode(naiveEncode([]uint64{0x55d412345678}, 1, machine, "lws"), 64)
		if rejected != nil || len(s.PCs) != 1 || s.PCs[0] != want {
			t.Errorf("%s: %x, %v, want %x", machine, s.PCs, rejected, want)
		} else if lossy := machine != "exact64"; s.Lossy[0] != lossy || !s.Wide[0] {
			t.Errorf("%s: lossy %v, wide %v", machine, s.Lossy[0], s.Wide[0])
		}
	}
}

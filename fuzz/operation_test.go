package fuzz

import (
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/mutant"
)

// reading lists the operations that read bytes or text, some of them at both word sizes.
var reading = []conformance.Request{
	{Op: conformance.OpDecode, Word: 64}, {Op: conformance.OpDecode, Word: 32}, {Op: conformance.OpEnd, Word: 64},
	{Op: conformance.OpSalvage}, {Op: conformance.OpMline, Word: 64}, {Op: conformance.OpMline, Word: 64, Lenient: true},
	{Op: conformance.OpBline}, {Op: conformance.OpBare}, {Op: conformance.OpMarks},
	{Op: conformance.OpUser, Word: 64}, {Op: conformance.OpUser, Word: 32}, {Op: conformance.OpEline, Word: 64},
	{Op: conformance.OpHline}, {Op: conformance.OpPline}, {Op: conformance.OpVline},
}

// FuzzOperation sends any bytes to a reading operation, which the first byte selects. The codec
// and the independent codec of package mutant must give the same answer. Scanning is
// excluded: the log reader also recovers records that overlap, which BT-TEXT-3 does not
// specify.
func FuzzOperation(f *testing.F) {
	seed(f, operationSeeds(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 4000 {
			return // the codec of package mutant is slow
		}
		r := reading[int(data[0])%len(reading)]
		r.Data = data[1:]
		r.Machine = codec.MachineExact64
		ours := answer(t, conformance.Codec, r)
		other := answer(t, mutant.Mutant{}.Start, r)
		if ours.Outcome != other.Outcome || ours.Reason != other.Reason || !ours.Value.Equal(other.Value) ||
			ours.Depth != other.Depth || ours.Sized != other.Sized || ours.Words != other.Words {
			t.Fatalf("%s:\n the codec: %s\n the other: %s", r.Describe(), ours.Describe(r.Op), other.Describe(r.Op))
		}
	})
}

func answer(t *testing.T, start conformance.Starter, r conformance.Request) conformance.Answer {
	testee, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers, err := testee.Ask([]conformance.Request{r})
	if err != nil || len(answers) != 1 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	return answers[0]
}

// operationSeeds returns the inputs of operations in the handwritten vectors.
func operationSeeds(t testing.TB) [][]byte {
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var seeds [][]byte
	for i, r := range reading {
		n := len(seeds)
		for _, v := range set.Vectors {
			if slices.Contains(v.Ops, r.Op) && len(v.Input()) < 4000 {
				seeds = append(seeds, append([]byte{byte(i)}, v.Input()...))
			}
		}
		if len(seeds) == n {
			t.Fatalf("no vector for %s", r.Op)
		}
	}
	return seeds
}

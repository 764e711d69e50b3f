package fuzz

import (
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/mutant"
)

// reading are the operations that read bytes or text, with both words.
var reading = []conformance.Request{
	{Op: conformance.OpDecode, Word: 64}, {Op: conformance.OpDecode, Word: 32}, {Op: conformance.OpEnd, Word: 64},
	{Op: conformance.OpSalvage}, {Op: conformance.OpMline, Word: 64}, {Op: conformance.OpMline, Word: 64, Lenient: true},
	{Op: conformance.OpBline}, {Op: conformance.OpBare}, {Op: conformance.OpMarks},
	{Op: conformance.OpUser, Word: 64}, {Op: conformance.OpUser, Word: 32}, {Op: conformance.OpEline, Word: 64},
	{Op: conformance.OpHline}, {Op: conformance.OpPline}, {Op: conformance.OpVline},
}

// Any bytes, to any operation that reads, which the first byte selects: the codec and what mutants are made of, a
// codec of its own, give one answer. Scanning is not among them: the log reader
// recovers records that ran into each other, which BT-TEXT-3 leaves open.
func FuzzOperation(f *testing.F) {
	seed(f, operationSeeds(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 4000 {
			return // the other one is slow
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

// operationSeeds are what the vectors by hand give to operations.
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

package fuzz

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
	second "github.com/lwsbt/lwsbt/conformance/fuzz"
)

// reading lists the operations that read bytes or text, some of them at both word sizes.
var reading = []conformance.Request{
	{Op: conformance.OpDecode, Word: 64}, {Op: conformance.OpDecode, Word: 32}, {Op: conformance.OpEnd, Word: 64},
	{Op: conformance.OpSalvage, Word: 64}, {Op: conformance.OpSalvage, Word: 32}, {Op: conformance.OpMline, Word: 64}, {Op: conformance.OpMline, Word: 64, Lenient: true},
	{Op: conformance.OpBline}, {Op: conformance.OpBare}, {Op: conformance.OpMarks},
	{Op: conformance.OpUser, Word: 64}, {Op: conformance.OpUser, Word: 32}, {Op: conformance.OpEline, Word: 64},
	{Op: conformance.OpHline}, {Op: conformance.OpPline}, {Op: conformance.OpVline},
}

// FuzzOperation sends any bytes to a reading operation, which the first byte selects; blobs also with
// a right length, and lines of digits with a right CRC. The codec and the naive codec must give the
// same answer. Scanning is excluded: the log reader also recovers records that overlap, which BT-TEXT-3
// does not specify.
func FuzzOperation(f *testing.F) {
	seed(f, operationSeeds(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 4000 {
			return // the naive codec is slow
		}
		r := reading[int(data[0])%len(reading)]
		for _, r.Data = range inputs(r.Op, data[1:]) {
			compareOperation(t, r)
		}
	})
}

// inputs returns data, and data as a reader does not reject it at once.
func inputs(op conformance.Op, data []byte) [][]byte {
	switch op {
	case conformance.OpPline:
		return [][]byte{data, withCRC(callpath.LeadIn, data)}
	case conformance.OpVline:
		return [][]byte{data, withCRC(callpath.LeadInEvents, data)}
	case conformance.OpDecode, conformance.OpSalvage, conformance.OpMarks, conformance.OpUser:
		return bothWays(data)
	}
	return [][]byte{data}
}

// withCRC returns a line with its lead-in, digits alone, and their CRC.
func withCRC(leadIn string, line []byte) []byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	body := bytes.Clone(line[min(3, len(line)):])
	for i, c := range body {
		if strings.IndexByte(digits, c) < 0 {
			body[i] = digits[c&63]
		}
	}
	return callpath.AppendCRC(append([]byte(leadIn), body...))
}

// compareOperation compares the answers of the codec and the naive codec, and returns them.
func compareOperation(t *testing.T, r conformance.Request) conformance.Answer {
	ours, other := answer(t, conformance.Codec, r), answer(t, second.Second, r)
	placed := r.Op == conformance.OpDecode && ours.Outcome == conformance.Reject
	if ours.Outcome != other.Outcome || ours.Reason != other.Reason || !ours.Value.Equal(other.Value) ||
		ours.Depth != other.Depth || ours.Sized != other.Sized || ours.Words != other.Words ||
		!bytes.Equal(ours.Data, other.Data) || placed && ours.Bit != other.Bit {
		t.Fatalf("%s:\n the codec: %s, bit %d\n the naive codec: %s, bit %d", r.Describe(),
			ours.Describe(r.Op), ours.Bit, other.Describe(r.Op), other.Bit)
	}
	return ours
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

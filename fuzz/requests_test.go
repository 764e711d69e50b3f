package fuzz

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/fuzz"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// source makes random numbers of the bytes of a fuzzer, and of their sum when they are used up.
type source struct {
	data []byte
	rest *rand.PCG
}

func newSource(data []byte) *source {
	sum := uint64(len(data))
	for _, b := range data {
		sum = sum*0x100000001b3 ^ uint64(b)
	}
	return &source{data, rand.NewPCG(sum, 1)}
}

func (s *source) Uint64() uint64 {
	if len(s.data) < 2 {
		return s.rest.Uint64()
	}
	v := uint64(binary.LittleEndian.Uint16(s.data)) * 0x0001000100010001 // for the upper and the lower bits
	s.data = s.data[2:]
	return v
}

// generator is that of btconform fuzz, for all operations.
var generator = sync.OnceValues(func() (*fuzz.Generator, error) {
	codec, err := conformance.Codec(context.Background())
	if err != nil {
		return nil, err
	}
	return fuzz.NewGenerator(newSource(nil), codec.Hello())
})

// checkRequests compares the codecs on requests that data makes up.
func checkRequests(t testing.TB, data []byte) {
	g, err := generator()
	if err != nil {
		t.Fatal(err)
	}
	g.Use(newSource(data))
	for range 4 {
		r, _, ok := g.Next()
		if !ok {
			t.Fatal("no request")
		}
		compareOperation(t, r)
	}
}

// FuzzRequests makes up requests as btconform fuzz does, from any bytes: the codec and the second codec must give the
// same answer.
func FuzzRequests(f *testing.F) {
	seed(f, [][]byte{{}, []byte("requests"), make([]byte, 200), {255, 1, 254, 2, 253, 3, 252, 4, 251, 5, 250, 6, 249, 7}})
	f.Fuzz(func(t *testing.T, data []byte) { checkRequests(t, data) })
}

// The same holds for bytes of package rapid, which shrinks them.
func TestRequestsAlike(t *testing.T) {
	n := 30
	if cmdtest.Full() {
		n = 2000
	}
	for range n {
		data := rapid.SliceOfN(rapid.Byte(), 0, 400).Example()
		checkRequests(t, data)
	}
}

// compareOperation compares the answers of the codec and of the second codec, the reasons of rejections included, and
// returns them.
func compareOperation(t testing.TB, r conformance.Request) conformance.Answer {
	ours, other := answer(t, conformance.Codec, r), answer(t, fuzz.Second, r)
	placed := r.Op == conformance.OpDecode && ours.Outcome == conformance.Reject
	if field := r.Compare(ours, other); field != "" || ours.Reason != other.Reason || placed && ours.Bit != other.Bit {
		t.Fatalf("%s: %s\n the codec: %s, bit %d\n the second codec: %s, bit %d", r.Describe(), field,
			ours.Describe(r.Op), ours.Bit, other.Describe(r.Op), other.Bit)
	}
	return ours
}

func answer(t testing.TB, start conformance.Starter, r conformance.Request) conformance.Answer {
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

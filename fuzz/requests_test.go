package fuzz

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

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
	var list []conformance.Request
	for range 4 {
		r, ok := g.Next()
		if !ok {
			t.Fatal("no request")
		}
		list = append(list, r)
	}
	compareAll(t, list)
}

// FuzzRequests makes up requests as btconform fuzz does, from any bytes: the codec and testee.py must give the same
// answer.
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

// second starts testee.py, the second implementation, written from SPEC.md alone; nil without Python.
var second = sync.OnceValues(func() (conformance.Testee, error) {
	if _, err := exec.LookPath("python3"); err != nil {
		return nil, nil
	}
	return conformance.Process([]string{"python3", "../conformance/example/testee.py"}, time.Minute)(context.Background())
})

// compareOperation compares the codec's answer with that of testee.py, and returns it.
func compareOperation(t testing.TB, r conformance.Request) conformance.Answer {
	return compareAll(t, []conformance.Request{r})[0]
}

// compareAll compares the answers of the codec and of testee.py, the reasons of rejections included, and returns them.
// Without Python, the codec is asked alone.
func compareAll(t testing.TB, list []conformance.Request) []conformance.Answer {
	codec, err := conformance.Codec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers, err := codec.Ask(list)
	if err != nil || len(answers) != len(list) {
		t.Fatalf("%d answers of the codec, %v", len(answers), err)
	}
	testee, err := second()
	if err != nil || testee == nil {
		if err != nil {
			t.Fatal(err)
		}
		return answers
	}
	others, err := testee.Ask(list)
	if err != nil || len(others) != len(list) {
		t.Fatalf("%d answers of testee.py, %v", len(others), err)
	}
	for i, r := range list {
		ours, other := answers[i], others[i]
		placed := r.Op == "decode" && ours.Outcome == conformance.Reject
		if field := r.Compare(ours, other); field != "" || ours.Reason != other.Reason || placed && ours.Bit != other.Bit {
			t.Fatalf("%s: %s\n the codec: %s, bit %d\n testee.py: %s, bit %d", r.Describe(), field,
				ours.Describe(r.Op), ours.Bit, other.Describe(r.Op), other.Bit)
		}
	}
	return answers
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

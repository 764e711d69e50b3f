package device

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/gen"
)

// The library passes every vector on every machine, for the right reasons.
func TestConformance(t *testing.T) {
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, b build) {
		program := b.make(t, "testee")
		report, err := conformance.Run(t.Context(), set, conformance.Process(b.argv(program), time.Minute),
			conformance.Options{Seed: 7, Workers: 1, StrictReasons: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Results {
			if r.Status != conformance.Pass && r.Status != conformance.Skipped {
				t.Errorf("%s %s: %s (%+v)", r.ID, r.Op, r.Status, r.Failure)
			}
		}
		least := 550
		if b.word == "32" || b.word == "" && narrow(b.cc) {
			least = 400 // those that words of 32 bits can hold
		}
		if report.Counts.Pass < least {
			t.Errorf("%d passed, want at least %d", report.Counts.Pass, least)
		}
	})
}

// narrow reports whether a compiler's machine has words of 32 bits.
func narrow(cc string) bool {
	return slices.Contains([]string{"i686-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "mips-linux-gnu-gcc",
		"mipsel-linux-gnu-gcc", "powerpc-linux-gnu-gcc"}, cc)
}

// Of stacks that no vector has, the library and the Go codec make the same blobs;
// of blobs with some bits changed, they make the same stacks, or reject for the
// same reason.
func TestSameAsGoCodec(t *testing.T) {
	each(t, func(t *testing.T, b build) {
		testee, err := conformance.Process(b.argv(b.make(t, "testee")), time.Minute)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer testee.Close()
		codecs, err := conformance.Codec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		word := 64
		if !slices.Contains(testee.Hello().Machines, codec.MachineExact64) {
			word = 32
		}
		requests := randomRequests(rand.New(rand.NewPCG(1, 2)), testee.Hello().Machines, word, 4000)
		want, err := codecs.Ask(requests)
		if err != nil {
			t.Fatal(err)
		}
		got, err := testee.Ask(requests)
		if err != nil {
			t.Fatal(err)
		}
		values, rejections := 0, 0
		for i := range requests {
			if !same(got[i], want[i]) {
				t.Fatalf("%s\n got %+v\nwant %+v", requests[i].Describe(), got[i], want[i])
			}
			if want[i].Outcome == conformance.OK {
				values++
			} else {
				rejections++
			}
		}
		if values < 4000 || rejections < 500 {
			t.Errorf("%d values and %d rejections, want more of both", values, rejections)
		}
	})
}

// same reports whether two answers say the same; the place of a fault counts where
// both give it.
func same(a, b conformance.Answer) bool {
	return a.Outcome == b.Outcome && a.Reason == b.Reason && a.Depth == b.Depth &&
		a.Value.Size == b.Value.Size && slices.Equal(a.Value.PCs, b.Value.PCs) && bytes.Equal(a.Data, b.Data) &&
		(a.Bit < 0 || b.Bit < 0 || a.Bit == b.Bit)
}

// randomRequests returns n requests to encode stacks, of programs and of random
// addresses, and with each one to decode its blob, one to decode the blob with up
// to three bits changed, and one to salvage a cut of it.
func randomRequests(r *rand.Rand, machines []codec.Machine, word, n int) []conformance.Request {
	var requests []conformance.Request
	var programs []*gen.Program
	for _, m := range gen.Models() {
		if m.Word <= word {
			programs = append(programs, m.Program(r.Uint64()))
		}
	}
	var s codec.Stack
	for i := range n {
		machine := machines[r.IntN(len(machines))]
		switch program := programs[r.IntN(len(programs))]; i % 4 {
		case 0:
			program.Next(&s)
		case 1:
			program.Scatter(&s, r.IntN(codec.MaxDepth+1))
		default:
			randomStack(r, &s)
		}
		if machine.Word() == 32 {
			s.Size &= 1<<32 - 1
			for n := range s.PCs {
				s.PCs[n] &= 1<<32 - 1
			}
		}
		search := codec.SearchLws
		if r.IntN(2) == 1 {
			search = codec.SearchBest
		}
		blob, err := codec.Encoder{Machine: machine, Search: search}.AppendBlob(nil, &s, nil)
		if err != nil {
			panic(err)
		}
		requests = append(requests,
			conformance.Request{Op: "encode", Machine: machine, Search: search,
				In: &conformance.Value{Size: s.Size, PCs: slices.Clone(s.PCs)}},
			conformance.Request{Op: "decode", Data: blob, Word: word})
		changed := bytes.Clone(blob)
		for range 1 + r.IntN(3) {
			changed[r.IntN(len(changed)-2)] ^= 1 << r.IntN(8)
		}
		requests = append(requests, conformance.Request{Op: "decode", Data: changed, Word: word})
		if word == 64 { // a cut blob is read at word 64
			requests = append(requests, conformance.Request{Op: "salvage", Data: changed[:r.IntN(len(changed))]})
		}
	}
	return requests
}

// randomStack fills s with addresses of random widths, some near earlier ones.
func randomStack(r *rand.Rand, s *codec.Stack) {
	s.PCs = s.PCs[:0]
	for range r.IntN(codec.MaxDepth + 1) {
		pc := r.Uint64() >> r.IntN(64)
		if n := len(s.PCs); n > 0 && r.IntN(3) > 0 {
			pc = s.PCs[r.IntN(n)] + r.Uint64()>>r.IntN(64)*uint64(1-2*r.IntN(2))
		}
		s.PCs = append(s.PCs, pc)
	}
	s.Size = r.Uint64() >> r.IntN(64)
}

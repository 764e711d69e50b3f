package fuzz

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/gen/gentest"
	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// lws is the real library, a testee that speaks BTP/1.
type lws struct {
	conformance.Testee
	machine codec.Machine
}

// btref starts the testee once per process. A fuzzer has one process per worker.
var btref = sync.OnceValues(func() (*lws, error) {
	start := conformance.Process([]string{os.Getenv("LWSBT_BTREF"), "serve"}, time.Minute)
	testee, err := start(context.Background())
	if err != nil {
		return nil, err
	}
	machines := testee.Hello().Machines
	if len(machines) != 1 {
		return nil, fmt.Errorf("btref encodes for %v, expected one machine", machines)
	}
	return &lws{testee, machines[0]}, nil
})

func startLws(t testing.TB) *lws {
	t.Helper()
	if os.Getenv("LWSBT_BTREF") == "" {
		t.Skip("LWSBT_BTREF is not set: no real libwebsockets to compare with (make -C ref-c, then set it to the path of btref)")
	}
	l, err := btref()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lws) ask(t testing.TB, r conformance.Request) conformance.Answer {
	answers, err := l.Ask([]conformance.Request{r})
	if err != nil {
		t.Fatal(err)
	}
	return answers[0]
}

// FuzzLws checks that the real library decodes plain blobs as the codec does, and encodes
// the same bits, except for spill bits. For a blob that is not plain, or that the codec rejects,
// lws may return anything; TestLwsByClass counts the outcomes.
func FuzzLws(f *testing.F) {
	startLws(f)
	seed(f, blobSeeds(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := startLws(t)
		for _, blob := range bothWays(data) {
			if class, bad := l.classOf(t, blob); bad {
				t.Fatalf("%x: %s", blob, class)
			}
		}
		var s codec.Stack
		gentest.Fill(data, &s)
		gentest.FitTo(&s, l.machine)
		l.compareEncode(t, &s)
	})
}

// classOf decodes a blob with the codec and with lws, and returns the class of the outcome.
// bad reports whether the results differ for no known reason.
func (l *lws) classOf(t testing.TB, blob []byte) (class string, bad bool) {
	word := l.machine.Word()
	var s codec.Stack
	err := codec.Decoder{Word: word}.Decode(&s, nil, blob)
	a := l.ask(t, conformance.Request{Op: "decode", Data: blob, Word: word})
	theirs := string(a.Outcome)
	if a.Outcome == conformance.Crash {
		theirs += " " + a.Signal
	}
	if e, ok := err.(*codec.Error); ok {
		return fmt.Sprintf("we reject (%s), lws: %s", e.Reason, theirs), false
	}
	same := a.Outcome == conformance.OK && a.Value.Size == s.Size && slices.Equal(a.Value.PCs, s.PCs)
	odd := oddities(t, blob, word)
	switch {
	case same:
		return "the same", false
	case odd != "":
		if theirs == "ok" {
			theirs = "other values"
		}
		return fmt.Sprintf("we accept (%s), lws: %s", odd, theirs), false
	}
	return fmt.Sprintf("plain, we read %d %x, lws: %s", s.Size, s.PCs, a.Describe("decode")), true
}

// oddities returns the properties of a blob that the decoder of lws is known to misread.
func oddities(t testing.TB, blob []byte, word int) string {
	fields, err := codec.Decoder{}.AppendFields(nil, blob)
	if err != nil {
		t.Fatalf("%x: %v", blob, err)
	}
	found := map[string]bool{}
	for i, f := range fields {
		if f.Spill {
			found["spill bit set"] = true
		}
		switch f.Kind {
		case "depth":
			if f.Value == 0 && fields[i+1].Kind == "kind" {
				found["depth 32"] = true
			}
		case "count", "size count":
			switch {
			case f.Value == 0:
				found["count 64"] = true
			case word == 64 && f.Value > 31:
				found["count over 31"] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

func (l *lws) compareEncode(t testing.TB, s *codec.Stack) {
	want, err := codec.Encoder{Machine: l.machine}.AppendBlob(nil, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := &conformance.Value{Size: s.Size, PCs: s.PCs}
	a := l.ask(t, conformance.Request{Op: "encode", Machine: l.machine, Search: codec.SearchLws, In: in})
	if a.Outcome != conformance.OK {
		t.Fatalf("%v: lws: %s", in, a.Describe("encode"))
	}
	ours, theirs := bytes.Clone(want), bytes.Clone(a.Data)
	clearSpills(t, ours)
	clearSpills(t, theirs)
	if !bytes.Equal(ours, theirs) {
		t.Fatalf("%v: we write %x, lws %x", in, want, a.Data)
	}
}

func clearSpills(t testing.TB, blob []byte) {
	fields, err := codec.Decoder{}.AppendFields(nil, blob)
	if err != nil {
		t.Fatalf("%x: %v", blob, err)
	}
	for _, f := range fields {
		if f.Kind != "user bits" && f.Kind != "length" {
			bitstring.Clear(blob, []int{f.End() - 1})
		}
	}
}

// TestLwsByClass counts, by class, the results of lws for damaged and unusual blobs. go test
// -v prints the table.
func TestLwsByClass(t *testing.T) {
	l := startLws(t)
	classes := map[string]int{}
	example := map[string][]byte{}
	rng := rand.New(rand.NewChaCha8([32]byte{7}))
	seeds := blobSeeds(t)
	for range 4000 {
		blob := slices.Clone(seeds[rng.IntN(len(seeds))])
		for range rng.IntN(3) {
			if len(blob) > 0 {
				blob[rng.IntN(len(blob))] ^= 1 << rng.IntN(8)
			}
		}
		all := bothWays(blob)
		blob = all[len(all)-1]
		class, bad := l.classOf(t, blob)
		if bad {
			t.Errorf("%x: %s", blob, class)
		}
		if classes[class]++; classes[class] == 1 || len(blob) < len(example[class]) {
			example[class] = blob
		}
	}
	var table bytes.Buffer
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		fmt.Fprintf(&table, "%6d  %-60s e.g. %x\n", classes[class], class, example[class])
	}
	t.Logf("%s on %v:\n%s", l.Hello().Name, l.machine, table.String())
	if classes["the same"] == 0 {
		t.Error("no blob was read alike: nothing was compared")
	}
}

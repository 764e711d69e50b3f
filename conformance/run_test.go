package conformance

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// The same seed gives the same requests, another seed a different order.
func TestSeeds(t *testing.T) {
	asked := func(seed uint64) string {
		var log bytes.Buffer
		set := builtinSet(t).Select("delta/back-*")
		if _, err := Run(t.Context(), set, func(context.Context) (Testee, error) { return &logged{log: &log}, nil }, Options{Seed: seed}); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	one := asked(1)
	if one != asked(1) {
		t.Error("seed 1 gives other requests the second time")
	}
	if one == asked(2) {
		t.Error("seed 2 gives the requests of seed 1 in the same order")
	}
	times := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(one), "\n") {
		times[line]++
	}
	for line, n := range times {
		if n < 2 {
			t.Errorf("%s: asked %d times, want each case twice", line, n)
		}
	}
}

type logged struct {
	codecTestee
	log *bytes.Buffer
}

func (l *logged) Ask(requests []Request) ([]Answer, error) {
	for _, r := range requests {
		l.log.WriteString(r.Describe() + "\n")
	}
	return l.codecTestee.Ask(requests)
}

// Variants set all spill bits, clear them, flip single ones and set random ones; other bits
// do not change.
func TestVariants(t *testing.T) {
	v := builtinSet(t).Find("field/spill-bits-clear")
	c := newCheck(v, opDecode, Hello{})
	// depth; kind, count and value of each of three literals; kind, back, sign,
	// count and value of a delta; count and value of the size
	if want := 1 + 3*3 + 5 + 2; len(c.spills) != want {
		t.Fatalf("%d spill bits, want %d", len(c.spills), want)
	}
	seen := map[string]int{}
	for _, how := range c.variants() {
		data := c.request(how, 9).Data
		masked := bytes.Clone(data)
		set := 0
		for _, at := range c.spills {
			set += int(bitstring.Bit(data, at))
		}
		bitstring.Clear(masked, c.spills)
		if !bytes.Equal(masked, v.Blob) {
			t.Errorf("%v: other bits than spill bits changed, at %d", how, bitstring.FirstDifference(masked, v.Blob))
		}
		want := map[variantKind]int{asWritten: 0, allClear: 0, allSet: len(c.spills), flipped: 1}
		if n, ok := want[how.kind]; ok && set != n {
			t.Errorf("%v: %d spill bits set, want %d", how, set, n)
		}
		seen[how.String()]++
	}
	if len(seen) != 3+len(c.spills)+randomVariants {
		t.Errorf("%d variants: %v", len(seen), seen)
	}
}

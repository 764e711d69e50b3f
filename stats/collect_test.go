package stats

import (
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// A blob that cannot be decoded counts with its path, and does not panic.
func TestUndecodableBlob(t *testing.T) {
	c := NewCollector(64)
	s := codec.Stack{PCs: []uint64{0x401000, 0x402000}, Size: 32}
	good, err := codec.Encoder{}.AppendBlob(nil, &s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range [][]byte{{0, 2}, good[:len(good)/2], good} {
		c.Add(&s, blob)
	}
	if c.Records() != 3 || c.paths.all.n != 1 {
		t.Fatalf("%d records of %d paths, want 3 of 1", c.Records(), c.paths.all.n)
	}
	var got codec.Stack
	if c.paths.decode(&got, c.paths.all.at(0)); !slices.Equal(got.PCs, s.PCs) {
		t.Errorf("%#x, want %#x", got.PCs, s.PCs)
	}
}

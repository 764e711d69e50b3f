//go:build linux

package record

import (
	"math/rand/v2"
	"testing"
)

// TestLiveTable holds the table against a map, with addresses that collide.
func TestLiveTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var table liveTable
	want := map[uint64]block{}
	check := func(addr uint64, got block, ok bool) {
		t.Helper()
		if w, has := want[addr]; ok != has || got != w {
			t.Fatalf("%#x: got %+v, %v, want %+v, %v", addr, got, ok, w, has)
		}
	}
	for i := range 200_000 {
		addr := 8 * (1 + r.Uint64N(3000))
		if i%7 == 0 {
			addr <<= 40
		}
		switch {
		case r.Uint64N(100) < 48:
			got, ok := table.take(addr)
			check(addr, got, ok)
			delete(want, addr)
		default:
			b := block{addr, r.Uint64N(1 << sizeBits), pathID(r.Uint32()), r.Uint64N(1 << 48)}
			got, ok := table.put(b)
			check(addr, got, ok)
			want[addr] = b
		}
		if table.n != len(want) {
			t.Fatalf("%d blocks, want %d", table.n, len(want))
		}
	}
	n := 0
	for b := range table.all {
		check(b.addr, b, true)
		n++
	}
	if n != len(want) || n == 0 {
		t.Errorf("all yields %d blocks, want %d", n, len(want))
	}
	if _, ok := table.take(0); ok {
		t.Error("a block at address 0")
	}
}

//go:build linux

package profile

import (
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol"
)

// Ten million call paths of 16 frames, as a dump, take less than 2.5 GB, and with the
// rows of a profile less than 4 GB, with LWSBT_FULL=all; with LWSBT_FULL=1, two million 1.0 and 1.4 GB.
func TestMemory(t *testing.T) {
	cmdtest.Long(t)
	paths, most, mostWithRows := 2_000_000, 1.0, 1.4
	if cmdtest.All() {
		paths, most, mostWithRows = 10_000_000, 2.5, 4
	}
	debug.SetMemoryLimit(2 << 30) // as the commands do
	defer debug.SetMemoryLimit(-1)
	resident := func() float64 {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			t.Fatal(err)
		}
		return float64(used.Maxrss) * 1024 / 1e9
	}
	before := resident()
	rng := rand.New(rand.NewPCG(1, 2))
	b := NewBuilder(0)
	addrs := make([]symbol.Addr, 16)
	for range paths {
		for i := range addrs {
			addrs[i] = bare(0x400000 + rng.Uint64N(3_000_000))
		}
		b.Add(b.Path(addrs), Value{rng.Uint64N(5000), 1})
	}
	d := b.End(DumpInfo{})
	b = nil
	t.Logf("%d call paths, %d addresses: %.2f GB", d.Len(), d.addrs, resident()-before)
	if used := resident() - before; used > most || d.Len() < paths-1 {
		t.Errorf("%d call paths: %.2f GB, expected at most %v", d.Len(), used, most)
	}
	p := newProfile(t, d)
	if r := p.Sites(Bytes, false, 20); r.Paths != d.Len() {
		t.Errorf("%d call paths, want %d", r.Paths, d.Len())
	}
	t.Logf("with the sums of call sites: %.2f GB", resident()-before)
	if rows := p.Top(Bytes, 20); len(rows) != 20 || p.Len() != d.Len() {
		t.Errorf("%d rows, want %d", p.Len(), d.Len())
	}
	t.Logf("with rows: %.2f GB", resident()-before)
	if used := resident() - before; used > mostWithRows {
		t.Errorf("with rows: %.2f GB, expected at most %v", used, mostWithRows)
	}
}

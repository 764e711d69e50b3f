package alloc

import (
	"runtime"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A core file of 1.6 GB with 9 arenas of several heaps: each block is found, and the leaks.
func TestLargeCore(t *testing.T) {
	if !cmdtest.All() {
		t.Skip("the longest tests: LWSBT_FULL is not all")
	}
	s := nativeOf(t, "gcc", "threads.c", "-pthread", "-DKEPT=80000", "-DSCALE=2")
	s.readTruth(t)
	heaps := s.compare(t, 40, Glibc)
	m, p := s.open(t)
	start := time.Now()
	if _, err := Find(m, p, Glibc); err != nil {
		t.Fatal(err)
	}
	found := time.Since(start)
	start = time.Now()
	h := Core(m, heaps)
	m.FindLeaks(h, core.Roots{Data: p.Data})
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("%d blocks in %v, leaks in %v; %d MB of heap", len(h.Blocks), found, time.Since(start), mem.HeapSys>>20)
	s.leaks(t, heaps)
}

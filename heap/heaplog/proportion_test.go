package heaplog

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/export"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Call paths of 1,000 frames each, of which the log has one: memory is in proportion to the log,
// not to the frames. A frame of its own for each path would take 500 bytes per byte of log.
func TestMemoryInProportion(t *testing.T) {
	const depth = 1000
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	work := func(f func()) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	reports := []struct {
		name string
		run  func(p *profile.Profile)
	}{
		{"sites", func(p *profile.Profile) { p.Sites(profile.Bytes, true, 20) }},
		{"top", func(p *profile.Profile) { p.Top(profile.Bytes, 20) }},
		{"leaks", func(p *profile.Profile) { growth.Judge(p, growth.Options{}) }},
		{"folded", func(p *profile.Profile) { export.Write(io.Discard, p, "folded", profile.Bytes) }},
		{"pprof", func(p *profile.Profile) { export.Write(io.Discard, p, "pprof", profile.Bytes) }},
	}
	measured := map[string][]float64{} // bytes allocated per path, by size of the log
	for _, paths := range []int{2000, 4000} {
		log := cmdtest.DeepLog(t, 1, paths, depth)
		before := heap()
		r, err := Open(t.Context(), Stream(bytes.NewReader(log), "x"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var p *profile.Profile
		used := work(func() {
			if p, err = profile.Collect(r.Dumps()); err != nil {
				t.Fatal(err)
			}
		})
		measured["read"] = append(measured["read"], used/float64(paths))
		d := p.Dumps()[0]
		if d.Len() != paths || d.Loss.NoOuter > 0 {
			t.Fatalf("%d call paths, want %d; %d without outer frames", d.Len(), paths, d.Loss.NoOuter)
		}
		for a := range d.Allocations() {
			if n := len(a.Append(nil)); n != depth {
				t.Fatalf("a path has %d frames, want %d", n, depth)
			}
			break
		}
		p.Len()
		const fixed = 500e3
		live := heap() - before // the Reader is still open, and has only its Summary
		t.Logf("%d bytes of log: %.1f bytes of memory per byte", len(log), live/float64(len(log)))
		if live > fixed+25*float64(len(log)) {
			t.Errorf("%d bytes of log: %.0f bytes of memory, want at most 25 per byte and %.0f", len(log), live, fixed)
		}
		for _, r := range reports {
			measured[r.name] = append(measured[r.name], work(func() { r.run(p) })/float64(paths))
		}
		runtime.KeepAlive(p)
	}
	names := []string{"read"}
	for _, r := range reports {
		names = append(names, r.name)
	}
	for _, name := range names {
		few, many := measured[name][0], measured[name][1]
		t.Logf("%-20s %8.0f %8.0f bytes allocated per path", name, few, many)
		// A pointer for each of 1,000 frames would be 8,000 bytes.
		limit := 3000.0
		if name == "folded" || name == "pprof" { // files that repeat the frames of each path, at most 2^23 (profile.Dump.Heaviest)
			limit = 160 * depth
		}
		if many > limit || many > 1.5*few+100 {
			t.Errorf("%s: %s bytes allocated per path, want at most %.0f, whatever the number of paths", name, fmt.Sprint(slices.Clone(measured[name])), limit)
		}
	}
}

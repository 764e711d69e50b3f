//go:build linux

package record

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestPrune adds and frees blocks of many call paths. What is dropped holds nothing, and all
// else stays as a model without a tree has it: the frames of each live block and of what
// threads refer to, the sums by path, now and at the peak.
func TestPrune(t *testing.T) {
	cmdtest.Long(t)
	r := rand.New(rand.NewPCG(3, 4))
	p := &process{config: &Config{AtPeak: true}, owed: map[uint64]int{}}
	p.tree.reset()
	type model struct {
		path string
		size uint64
	}
	live := map[uint64]model{}
	sums, atPeak := map[string]uint64{}, map[string]uint64{}
	total, peak := uint64(0), uint64(0)
	text := func(id pathID) string {
		var path callpath.Path
		p.tree.path(&path, id)
		return fmt.Sprint(path.Base, path.Frames)
	}
	one := &thread{proc: p}
	threadPath := ""
	pruned := 0
	for i := range 700_000 {
		path := noFrames
		for range 1 + r.IntN(3) {
			path = p.tree.child(path, step{x: r.Uint64N(500)})
		}
		addr := 16 * (1 + r.Uint64N(400))
		if b, ok := p.live.take(addr); ok {
			p.account.remove(p.sum(b.path), b.size)
			m := live[addr]
			sums[m.path] -= m.size
			total -= m.size
			delete(live, addr)
		}
		if r.IntN(4) > 0 {
			m := model{text(path), 1 + r.Uint64N(100)}
			p.live.put(block{addr: addr, size: m.size, path: path})
			p.account.add(p.sum(path), m.size, 0)
			live[addr] = m
			sums[m.path] += m.size
			if total += m.size; total > peak {
				peak = total
				clear(atPeak)
				for path, n := range sums {
					if n > 0 {
						atPeak[path] = n
					}
				}
			}
		}
		if i%1000 == 0 {
			one.last, one.places[2] = path, path
			threadPath = text(path)
		}
		before := p.tree.n
		p.prune([]*thread{nil, one})
		if p.tree.n == before {
			continue
		}
		if pruned++; p.tree.n > 20_000 {
			t.Fatalf("%d paths are left of %d", p.tree.n, before)
		}
		for b := range p.live.all {
			if got := text(b.path); got != live[b.addr].path {
				t.Fatalf("block %#x has path %s, want %s", b.addr, got, live[b.addr].path)
			}
		}
		if text(one.last) != threadPath || text(one.places[2]) != threadPath {
			t.Fatalf("the thread has path %s, want %s", text(one.last), threadPath)
		}
		found, foundPeak := map[string]uint64{}, map[string]uint64{}
		for id := range p.tree.n {
			if n := p.sum(id).bytes; n > 0 {
				found[text(id)] = n
			}
			if _, n := p.account.then(p.sum(id)); n > 0 {
				foundPeak[text(id)] = n
			}
		}
		for path, n := range sums {
			if found[path] != n {
				t.Fatalf("%s has %d bytes, want %d", path, found[path], n)
			}
		}
		if len(foundPeak) != len(atPeak) {
			t.Fatalf("%d paths at the peak, want %d", len(foundPeak), len(atPeak))
		}
		for path, n := range atPeak {
			if foundPeak[path] != n {
				t.Fatalf("%s had %d bytes at the peak, want %d", path, foundPeak[path], n)
			}
		}
	}
	if pruned < 2 {
		t.Errorf("pruned %d times", pruned)
	}
}

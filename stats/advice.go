package stats

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Threads are distinguished by their outermost frame, if there are at most maxThreads
// of them and each has at least minThreadPaths call paths. Otherwise outermost frames
// do not identify threads, for example where a walk of the stack ended early.
const (
	maxThreads     = 16
	minThreadPaths = 8
)

// ends holds the frames that stacks have in common at their two ends.
type ends struct {
	paths  int
	stacks uint64
	depth  int // frames of the shallowest stack
	full   bool
	inner  [MaxSnip]common
	outer  [MaxSnip]common
}

// common is one level of stacks, counted from an end.
type common struct {
	pc    uint64
	lossy bool
	same  bool // every stack has pc at this level
}

// add adds a path with count allocations.
func (e *ends) add(pcs []uint64, lossy uint32, count uint64) {
	first := e.paths == 0
	e.paths++
	e.stacks += count
	if first || len(pcs) < e.depth {
		e.depth = len(pcs)
	}
	e.full = e.full || len(pcs) == codec.MaxDepth
	for n := range min(MaxSnip, len(pcs)) {
		last := len(pcs) - 1 - n
		e.inner[n].add(first, pcs[n], lossy>>n&1 == 1)
		e.outer[n].add(first, pcs[last], lossy>>last&1 == 1)
	}
}

func (c *common) add(first bool, pc uint64, lossy bool) {
	if first {
		*c = common{pc: pc, lossy: lossy, same: true}
		return
	}
	c.same = c.same && c.pc == pc
}

// removable returns the number of levels at an end that can be left out of every stack.
func (e *ends) removable(levels *[MaxSnip]common) int {
	n := 0
	for n < min(MaxSnip, e.depth) && levels[n].same {
		n++
	}
	return n
}

// advise returns the settings that leave out uninformative frames: those that are the
// same in every stack, or (at the outer end) in every stack of a thread. At least MinFrames frames of every stack remain.
func (v *view) advise(cells []SnipCell, full uint64, o *Options) SnipAdvice {
	var all ends
	threads := map[uint64]*ends{}
	v.eachPath(func(p *path, pcs []uint64) {
		var count uint64
		for s := range v.paths.sizes(p) {
			count += s.count
		}
		all.add(pcs, p.lossy, count)
		if len(pcs) == 0 || len(threads) > maxThreads {
			return
		}
		root := pcs[len(pcs)-1]
		if threads[root] == nil {
			threads[root] = &ends{}
		}
		threads[root].add(pcs, p.lossy, count)
	})
	spare := max(all.depth-MinFrames, 0)
	pre := min(all.removable(&all.inner), spare)
	outer := []*ends{&all}
	post := all.removable(&all.outer)
	if n := commonOfThreads(threads); n > post {
		post, outer = n, outer[:0]
		for _, e := range threads {
			outer = append(outer, e)
		}
	}
	if full > 0 {
		post = 0 // a full stack may be truncated: its outermost frames need not be the program's start
	}
	post = min(post, spare-pre)
	best := cells[pre*(MaxSnip+1)+post]
	if best.Saved <= 0 {
		pre, post, best = 0, 0, cells[0]
	}
	a := SnipAdvice{Pre: pre, Post: post, Saved: best.Saved, Paths: best.Paths, Merged: best.Merged, Frames: []SnipFrame{},
		CMake: []string{}, Fields: []string{}}
	if o.Log.Device {
		a.Fields = append(a.Fields, fmt.Sprintf("heap.skip = %d;", best.SetPre), fmt.Sprintf("heap.post = %d;", best.SetPost))
	} else {
		a.CMake = append(a.CMake, fmt.Sprintf("-DLWS_COMPRESSED_BACKTRACES_SNIP_PRE=%d", best.SetPre),
			fmt.Sprintf("-DLWS_COMPRESSED_BACKTRACES_SNIP_POST=%d", best.SetPost))
	}
	for n := range pre {
		a.Frames = append(a.Frames, all.inner[n].frame("innermost", n, "in every stack", all.stacks))
	}
	for n := range post {
		for _, e := range outer {
			where := "in every stack"
			if len(outer) > 1 {
				where += " of its thread"
			}
			a.Frames = append(a.Frames, e.outer[n].frame("outermost", n, where, e.stacks))
		}
	}
	slices.SortStableFunc(a.Frames, func(x, y SnipFrame) int { // map iteration gives threads in any order
		return cmp.Or(cmp.Compare(x.End, y.End), cmp.Compare(x.Level, y.Level), cmp.Compare(x.Address, y.Address))
	})
	a.Why = whyAdvised(pre+post, all, spare)
	return a
}

// commonOfThreads returns the number of outermost frames that the stacks of every
// thread have in common, 0 if threads cannot be distinguished.
func commonOfThreads(threads map[uint64]*ends) int {
	if len(threads) < 2 || len(threads) > maxThreads {
		return 0
	}
	n := MaxSnip
	for _, e := range threads {
		if e.paths < minThreadPaths || e.full {
			return 0
		}
		n = min(n, e.removable(&e.outer))
	}
	return n
}

// frame describes a level that is left out. where says in which stacks it is the same.
func (c common) frame(end string, level int, where string, stacks uint64) SnipFrame {
	return SnipFrame{End: end, Level: level, Stacks: stacks, Why: "the same " + where, Address: place(c.pc, c.lossy)}
}

func whyAdvised(dropped int, all ends, spare int) string {
	switch {
	case dropped > 0:
		return fmt.Sprintf("the frames left out distinguish no call paths, and at least %d frames of every stack remain", MinFrames)
	case spare == 0:
		return fmt.Sprintf("keep the settings: the shallowest stack has %s, and at least %d should remain",
			printable.Count(all.depth, "frame"), MinFrames)
	}
	return "keep the settings: no frame at either end is the same in every stack"
}

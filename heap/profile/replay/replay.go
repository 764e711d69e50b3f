// Package replay computes from allocations and frees which blocks were live at each moment, and the
// totals of each call path.
package replay

import (
	"iter"
	"math"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// EventKind is the kind of an [Event].
type EventKind uint8

const (
	Allocated EventKind = iota
	Freed
	Moved
)

// Event is an allocation, a free or a move (realloc) of one block.
type Event struct {
	Kind   EventKind
	Boot   int           // of the device
	Time   time.Duration // since the boot
	Thread uint64
	Addr   uint64       // address of the block
	Old    uint64       // for a moved block, its previous address (0 if the block is new) or number
	Path   profile.Path // of Allocated and Moved: the call path that allocated the block
	Bytes  uint64       // of Allocated and Moved: the size
	// Numbered reports that Addr and Old are not addresses, but the numbers of the blocks:
	// of the allocations since the boot, from 0. (BT-VLINE-4)
	Numbered bool
}

// Block is a live block: its address, its size, and the call path that allocated it.
type Block struct {
	Addr, Bytes uint64
	Path        profile.Path
}

// Replay computes from events the live blocks at each moment, and the totals of each call
// path. Events take effect in the order of Add, whatever their times. (BT-EVT-5, BT-REC-5,
// BT-REC-6) The memory of a Replay depends on the number of live blocks and call paths, and
// not on the number of events. The zero Replay is equivalent to NewReplay().
type Replay struct {
	totals   Totals
	boot     int
	blocks   blocks
	number   map[profile.Path]uint32 // index in paths
	paths    []pathState
	recent   [256]uint32 // indexes in paths
	peakSeen int64       // events when Totals.Peak was reached

	moments    moments
	latestTime time.Duration // of the event before
}

type pathState struct {
	path    profile.Path
	total   profile.Value // ever allocated
	live    profile.Value // now
	peak    profile.Value // live when the most bytes of all call paths were live
	changed int64         // number of the event that last changed live; before that of the peak, peak is out of date
}

// Totals holds the totals of all events.
type Totals struct {
	Events int64
	// DoubleFrees counts frees of an address or number that was freed and not allocated
	// since; only the last million freed addresses and 65,536 numbers are remembered, and
	// no numbers before more than 64 that no event has.
	// UnknownFrees counts frees of any other without a live block.
	DoubleFrees, UnknownFrees int64
	Lost                      int64         // allocations at an address that was still live, because its free was not recorded
	Live, Peak                profile.Value // now, and when the most bytes were live
	PeakTime, First, Last     time.Duration
}

// NewReplay returns a Replay without events.
func NewReplay() *Replay { return new(Replay) }

// Add processes the next event. It returns false for a free of an address without a live
// block. An event of another boot ends the life of all blocks.
func (r *Replay) Add(e Event) bool {
	t := &r.totals
	if r.moments.n > 0 {
		r.reach(&e)
		r.latestTime = e.Time
	}
	if t.Events > 0 && e.Boot != r.boot {
		r.restart()
	}
	r.boot = e.Boot
	if t.Events++; t.Events == 1 {
		t.First = e.Time
	}
	t.Last = max(t.Last, e.Time)
	switch e.Kind {
	case Freed:
		return r.free(key{e.Addr, e.Numbered})
	case Moved:
		return r.move(&e)
	}
	r.allocate(&e)
	return true
}

func (r *Replay) move(e *Event) bool {
	ok := true
	if e.Old != 0 || e.Numbered {
		// A block that stays at its address may be older than the recording.
		ok = r.free(key{e.Old, e.Numbered}) || e.Old == e.Addr
	}
	r.allocate(e)
	return ok
}

func (r *Replay) allocate(e *Event) {
	t := &r.totals
	k := key{e.Addr, e.Numbered}
	if old := r.blocks.get(k); old.state == live {
		t.Lost++
		r.release(old)
	}
	path := r.pathNumber(e.Path)
	r.blocks.put(k, block{path: path, size: e.Bytes})
	v := profile.Value{Bytes: e.Bytes, Count: 1}
	p := r.change(path)
	p.live.Add(v)
	p.total.Add(v)
	t.Live.Add(v)
	if t.Live.Bytes > t.Peak.Bytes {
		t.Peak, t.PeakTime, r.peakSeen = t.Live, e.Time, t.Events
	}
}

// pathNumber returns the index of a path in paths. A small cache is faster than the map.
func (r *Replay) pathNumber(p profile.Path) uint32 {
	last := &r.recent[p.Number()%uint32(len(r.recent))]
	if n := *last; int(n) < len(r.paths) && r.paths[n].path == p {
		return n
	}
	n, known := r.number[p]
	if !known {
		if r.number == nil {
			r.number = map[profile.Path]uint32{}
		}
		n = uint32(len(r.paths))
		r.number[p] = n
		r.paths = append(r.paths, pathState{path: p})
	}
	*last = n
	return n
}

// change returns the state of a path before its live changes. It saves the value of live at
// the peak.
func (r *Replay) change(path uint32) *pathState {
	p := &r.paths[path]
	if p.changed <= r.peakSeen {
		p.peak = p.live
	}
	p.changed = r.totals.Events
	return p
}

// release removes a block from the live blocks.
func (r *Replay) release(b block) {
	v := profile.Value{Bytes: b.size, Count: 1}
	subtract(&r.change(b.path).live, v)
	subtract(&r.totals.Live, v)
}

func (r *Replay) free(k key) bool {
	t := &r.totals
	b := r.blocks.get(k)
	switch b.state {
	case freed:
		t.DoubleFrees++
		return false
	case unknown:
		t.UnknownFrees++
		return false
	}
	r.release(b)
	r.blocks.free(k)
	return true
}

// restart discards all live blocks.
func (r *Replay) restart() {
	for _, b := range r.blocks.all() {
		subtract(&r.change(b.path).live, profile.Value{Bytes: b.size, Count: 1})
	}
	r.blocks.clear()
	r.totals.Live = profile.Value{}
}

// Totals returns the totals of all events.
func (r *Replay) Totals() Totals { return r.totals }

// dump returns a dump with a value for each path.
func (r *Replay) dump(info profile.DumpInfo, value func(*pathState) profile.Value) *profile.Dump {
	info.Number, info.Boot = 1, max(1, r.boot)
	d := profile.NewDump(info, func(yield func(profile.Path, profile.Value) bool) {
		for i := range r.paths {
			v := value(&r.paths[i])
			if !v.IsZero() && !yield(r.paths[i].path, v) {
				return
			}
		}
	})
	d.Records = int64(min(d.Total.Count, math.MaxInt64))
	return d
}

// Live returns the blocks that are live after the events so far, as a dump of a given time.
func (r *Replay) Live(at time.Duration) *profile.Dump {
	return r.dump(profile.DumpInfo{Name: "live", Time: at, Timed: true}, func(p *pathState) profile.Value { return p.live })
}

// End returns the blocks that are live after the last event.
func (r *Replay) End() *profile.Dump {
	d := r.Live(r.totals.Last)
	d.Name = "live at the end"
	return d
}

// Peak returns the blocks that were live when the most bytes were live.
func (r *Replay) Peak() *profile.Dump {
	return r.dump(profile.DumpInfo{Name: "live at the peak", Time: r.totals.PeakTime, Timed: true}, func(p *pathState) profile.Value { return r.atPeak(p) })
}

func (r *Replay) atPeak(p *pathState) profile.Value {
	if p.changed <= r.peakSeen {
		return p.live
	}
	return p.peak
}

// Blocks yields the live blocks that have addresses, in no order.
func (r *Replay) Blocks() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for k, b := range r.blocks.all() {
			if !k.numbered && !yield(Block{k.at, b.size, r.paths[b.path].path}) {
				return
			}
		}
	}
}

// Ever returns all allocations, including freed ones.
func (r *Replay) Ever() *profile.Dump {
	return r.dump(profile.DumpInfo{Name: "ever allocated"}, func(p *pathState) profile.Value { return p.total })
}

// subtract subtracts a value that is part of another one.
func subtract(v *profile.Value, o profile.Value) {
	v.Bytes -= min(v.Bytes, o.Bytes)
	v.Count -= min(v.Count, o.Count)
}

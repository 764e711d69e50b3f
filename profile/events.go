package profile

import (
	"math"
)

// Events replays allocations and frees: what is live at each moment, and what each
// call path did. Memory is by live block and call path, not by event. The order of events is
// that of their lines, whatever their times. (BT-EVT-5, BT-REC-5, BT-REC-6)
type Events struct {
	Allocations, Frees, Moves int64
	// DoubleFrees are of an address that was freed and not allocated since, as far as
	// the last of them are remembered; UnknownFrees of any other that is not live.
	DoubleFrees, UnknownFrees int64
	// Lost is how many blocks were allocated where one is live: a free is missing.
	Lost int64
	// Total is what was ever allocated, Temporary what of it was freed by the next
	// event of its thread.
	Total, Temporary Value
	Live, Peak       Value  // now, and when the most bytes were live
	PeakTime         uint64 // in microseconds, when that began
	First, Last      uint64 // times of the first and the last event

	prof     *Profile
	blocks   map[uint64]block
	freed    map[uint64]struct{}
	threads  map[uint64]uint64 // the address that a thread allocated with its last event
	paths    array[PathEvents]
	seen     uint64 // events
	peakSeen uint64 // of these, when Peak was reached
	atTime   uint64
	at       *Dump
	wantAt   bool
}

type block struct {
	path PathID
	size uint64
	time uint64
}

// PathEvents sums the events of a call path.
type PathEvents struct {
	Total     Value // ever allocated
	Temporary Value
	Freed     uint64  // allocations that were freed
	Lifetime  float64 // theirs, in microseconds, added up
	Live      Value   // now
	Max       Value   // Live when its bytes were the most
	peak      Value   // at the peak, if changed is after it
	changed   uint64  // event by which Live was changed last
}

// maxFreed is how many freed addresses are remembered.
const maxFreed = 1 << 20

// NewEvents begins a replay over the call paths of p.
func (p *Profile) NewEvents() *Events {
	return &Events{prof: p, blocks: map[uint64]block{}, freed: map[uint64]struct{}{}, threads: map[uint64]uint64{}}
}

// WatchAt asks for what is live at a time, in microseconds: see At.
func (e *Events) WatchAt(time uint64) { e.atTime, e.wantAt = time, true }

// event counts an event at a time.
func (e *Events) event(time uint64) {
	if e.wantAt && time > e.atTime {
		e.at, e.wantAt = e.dump("", func(p *PathEvents) Value { return p.Live }), false
	}
	if e.seen++; e.seen == 1 {
		e.First = time
	}
	e.Last = max(e.Last, time)
}

// change has the path's state at the peak kept before Live changes.
func (e *Events) change(id PathID) *PathEvents {
	for e.paths.n <= int(id) {
		e.paths.push(PathEvents{})
	}
	p := e.paths.at(int(id))
	if p.changed <= e.peakSeen {
		p.peak = p.Live
	}
	p.changed = e.seen
	return p
}

// Alloc takes an allocation of size bytes at addr.
func (e *Events) Alloc(id PathID, addr, size, time, thread uint64) {
	e.event(time)
	e.Allocations++
	e.alloc(id, addr, size, time, thread)
}

func (e *Events) alloc(id PathID, addr, size, time, thread uint64) {
	if old, ok := e.blocks[addr]; ok {
		e.Lost++
		e.release(old, time)
	}
	delete(e.freed, addr)
	e.blocks[addr] = block{id, size, time}
	e.threads[thread] = addr
	v := Value{size, 1}
	p := e.change(id)
	p.Live.Add(v)
	if p.Live.Bytes > p.Max.Bytes {
		p.Max = p.Live
	}
	p.Total.Add(v)
	if e.Total.Add(v) || e.Live.Add(v) {
		e.prof.Saturated = true
	}
	if e.Live.Bytes > e.Peak.Bytes {
		e.Peak, e.PeakTime, e.peakSeen = e.Live, time, e.seen
	}
}

// release takes a block out of what is live.
func (e *Events) release(b block, time uint64) *PathEvents {
	p := e.change(b.path)
	v := Value{b.size, 1}
	p.Live.sub(v)
	e.Live.sub(v)
	p.Freed++
	p.Lifetime += math.Max(0, float64(time)-float64(b.time))
	return p
}

// sub takes away what was added.
func (v *Value) sub(o Value) {
	v.Bytes -= min(o.Bytes, v.Bytes)
	v.Count -= min(o.Count, v.Count)
}

// Free takes a free of addr. It reports whether a block was live there.
func (e *Events) Free(addr, time, thread uint64) bool {
	e.event(time)
	e.Frees++
	return e.free(addr, time, thread)
}

func (e *Events) free(addr, time, thread uint64) bool {
	b, ok := e.blocks[addr]
	if !ok {
		if _, double := e.freed[addr]; double {
			e.DoubleFrees++
		} else {
			e.UnknownFrees++
		}
		return false
	}
	p := e.release(b, time)
	if last, ok := e.threads[thread]; ok && last == addr {
		v := Value{b.size, 1}
		p.Temporary.Add(v)
		e.Temporary.Add(v)
	}
	delete(e.threads, thread)
	delete(e.blocks, addr)
	if len(e.freed) >= maxFreed {
		clear(e.freed)
	}
	e.freed[addr] = struct{}{}
	return true
}

// Move takes a realloc from old to addr, which may be equal; old 0 is an
// allocation.
func (e *Events) Move(id PathID, old, addr, size, time, thread uint64) bool {
	e.event(time)
	e.Moves++
	ok := true
	if old != 0 {
		delete(e.threads, thread) // what is moved is not temporary
		if ok = e.free(old, time, thread); !ok && old == addr {
			ok = true // its allocation came before the recording
		}
	}
	e.alloc(id, addr, size, time, thread)
	return ok
}

// Boot forgets what is live: the device starts again.
func (e *Events) Boot() {
	for addr, b := range e.blocks {
		e.change(b.path).Live.sub(Value{b.size, 1})
		delete(e.blocks, addr)
	}
	e.Live = Value{}
	clear(e.freed)
	clear(e.threads)
}

// Seen returns how many events there were.
func (e *Events) Seen() int64 { return int64(e.seen) }

// Paths returns the number of call paths with events; their PathIDs are below it.
func (e *Events) Paths() int { return e.paths.n }

// Path returns what a call path did.
func (e *Events) Path(id PathID) PathEvents {
	if int(id) < e.paths.n {
		return *e.paths.at(int(id))
	}
	return PathEvents{}
}

// lifetimes returns for each call path how long its blocks lived, added up, in
// microseconds. What is still live counts up to the last event.
func (e *Events) lifetimes() []float64 {
	sums := make([]float64, e.paths.n)
	for i := range sums {
		sums[i] = e.paths.at(i).Lifetime
	}
	for _, b := range e.blocks {
		sums[b.path] += math.Max(0, float64(e.Last)-float64(b.time))
	}
	return sums
}

// dump makes a dump, which is not one of the profile's, of a value of each path.
func (e *Events) dump(name string, value func(*PathEvents) Value) *Dump {
	d := &Dump{Name: name, Number: 1, Boot: 1}
	for i := range e.paths.n {
		v := value(e.paths.at(i))
		d.dense.push(v)
		d.Total.Add(v)
		d.Records += int64(min(v.Count, math.MaxInt64))
	}
	return d
}

// AtEnd returns what is live after the last event.
func (e *Events) AtEnd() *Dump {
	d := e.dump("live at the end", func(p *PathEvents) Value { return p.Live })
	d.Time, d.Timed = e.Last, true
	return d
}

// AtPeak returns what was live when the most bytes were.
func (e *Events) AtPeak() *Dump {
	d := e.dump("live at the peak", func(p *PathEvents) Value {
		if p.changed <= e.peakSeen {
			return p.Live
		}
		return p.peak
	})
	d.Time, d.Timed = e.PeakTime, true
	return d
}

// At returns what was live at the time of WatchAt.
func (e *Events) At() *Dump {
	d := e.at
	if d == nil {
		d = e.AtEnd()
	}
	d.Name, d.Time, d.Timed = "live", e.atTime, true
	return d
}

// Ever returns what was ever allocated.
func (e *Events) Ever() *Dump {
	return e.dump("ever allocated", func(p *PathEvents) Value { return p.Total })
}

// Temporaries returns what was freed by the next event of its thread.
func (e *Events) Temporaries() *Dump {
	return e.dump("temporary", func(p *PathEvents) Value { return p.Temporary })
}

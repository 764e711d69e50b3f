//go:build linux

package recorder

// sum holds the totals of a call path.
type sum struct {
	live, bytes         uint64 // now
	peakLive, peakBytes uint64 // at the peak, if epoch equals account.epoch
	epoch               uint64
}

// totals holds the totals of a process since the boot.
type totals struct {
	allocs, frees uint64
	bytes         uint64 // of all allocations
	live, peak    uint64 // bytes: current and maximum
	foreign       uint64 // frees of unknown blocks
	conflicts     uint64 // allocations at an address that was live
	lost          uint64 // events that the program could not record
}

// account adds up a process's blocks by call path.
//
// The heap at its peak is not copied: the first change of a path after a new peak saves the
// values of the path at the peak.
type account struct {
	totals
	sums   []sum  // by pathID
	epoch  uint64 // counts the peaks
	peakAt uint64 // µs
}

// touch returns the sum of a path before a change.
func (a *account) touch(p pathID) *sum {
	if int(p) >= len(a.sums) {
		a.sums = append(a.sums, make([]sum, int(p)+1-len(a.sums))...)
	}
	s := &a.sums[p]
	if s.epoch != a.epoch {
		s.epoch, s.peakLive, s.peakBytes = a.epoch, s.live, s.bytes
	}
	return s
}

// add accounts for a new block.
func (a *account) add(p pathID, size, micros uint64) {
	s := a.touch(p)
	s.live++
	s.bytes += size
	a.allocs++
	a.bytes += size
	a.live += size
	if a.live > a.peak {
		a.peak, a.peakAt = a.live, micros
		a.epoch++
	}
}

// remove accounts for the end of a block.
func (a *account) remove(p pathID, size uint64) {
	s := a.touch(p)
	s.live--
	s.bytes -= size
	a.frees++
	a.live -= size
}

// now returns the current live blocks of a path.
func (a *account) now(p pathID) (blocks, bytes uint64) {
	if int(p) >= len(a.sums) {
		return 0, 0
	}
	return a.sums[p].live, a.sums[p].bytes
}

// then returns the live blocks of a path at the peak.
func (a *account) then(p pathID) (blocks, bytes uint64) {
	switch {
	case int(p) >= len(a.sums):
		return 0, 0
	case a.sums[p].epoch != a.epoch:
		return a.now(p)
	}
	return a.sums[p].peakLive, a.sums[p].peakBytes
}

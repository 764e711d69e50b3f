//go:build linux

package record

// sum holds the totals of a call path.
type sum struct {
	live, bytes         uint64 // now
	peakLive, peakBytes uint64 // at the peak, if epoch equals account.epoch
	epoch               uint64
}

// account holds the totals of a process since the boot.
//
// The heap at its peak is not copied: the first change of a path after a new peak saves the
// values of the path at the peak.
type account struct {
	allocs, frees uint64
	bytes         uint64 // of all allocations
	live, peak    uint64 // bytes: current and maximum
	peakAt        uint64 // µs
	epoch         uint64 // counts the peaks
	conflicts     uint64 // allocations at an address that was live
	lost          uint64 // events that the program could not record
}

// touch prepares the sum of a path for a change.
func (a *account) touch(s *sum) {
	if s.epoch != a.epoch {
		s.epoch, s.peakLive, s.peakBytes = a.epoch, s.live, s.bytes
	}
}

// add accounts for a new block of a path.
func (a *account) add(s *sum, size, micros uint64) {
	a.touch(s)
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

// remove accounts for the end of a block of a path.
func (a *account) remove(s *sum, size uint64) {
	a.touch(s)
	s.live--
	s.bytes -= size
	a.frees++
	a.live -= size
}

// then returns the live blocks of a path at the peak.
func (a *account) then(s *sum) (blocks, bytes uint64) {
	if s.epoch != a.epoch {
		return s.live, s.bytes
	}
	return s.peakLive, s.peakBytes
}

package oldrule

import (
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// LeakTest applies the rule of [Profile.Leaks] to one call path after the other, for callers that
// have the values of each path and no [Profile], such as a store of many devices.
type LeakTest struct {
	// Dumps has each dump, and whether it is used.
	Dumps []growth.LeakDump
	// Boots has the boots of the used dumps.
	Boots []LeakBoot

	forward, backward *leakTrend
	reversed          []profile.Value
}

// LeakBoot has the used dumps of a boot, three or more.
type LeakBoot struct {
	Dumps []int     // indexes in LeakTest.Dumps
	At    []float64 // hours since the boot, or number of the dump if not Timed
	// Value has the values of the call path that was examined last, corrected for lost blocks: bytes
	// if Evidence.ByBytes, else blocks.
	Value []float64
}

// PathEvidence is the result of [LeakTest.Examine].
type PathEvidence struct {
	Evidence
	// Backward is the verdict on the same dumps in reverse order. Noise gets a verdict as often in
	// this order as in the other one, and a path that shrinks gets it here.
	Backward Verdict
	// Scale is in bytes per unit of LeakBoot.Value: 1 if Evidence.ByBytes, else the size of the blocks
	// that come.
	Scale float64
}

// NewLeakTest returns a test for the call paths of dumps of one device, the oldest first. Of each
// dump it uses the DumpInfo, Total and Ended.
func NewLeakTest(dumps []*profile.Dump) *LeakTest {
	line := growth.NewTimeline(dumps)
	t := &LeakTest{Dumps: line.Dumps, reversed: make([]profile.Value, len(dumps))}
	t.forward, t.backward = newLeakTrend(line, false), newLeakTrend(line, true)
	for i := range t.forward.boots {
		b := &t.forward.boots[i]
		t.Boots = append(t.Boots, LeakBoot{b.dumps, b.at, b.value})
	}
	return t
}

// Timed reports whether rates are per hour, and not per dump.
func (t *LeakTest) Timed() bool { return t.forward.timed && t.forward.dumps > 0 }

// Examine applies the rule to the values of a call path in each dump. Several goroutines may not
// call it at the same time.
func (t *LeakTest) Examine(values []profile.Value) (e PathEvidence) {
	values = t.forward.line.Fill(values)
	e.Evidence = t.forward.examine(values)
	e.Scale = t.forward.scale
	for i, v := range values {
		t.reversed[len(values)-1-i] = v
	}
	e.Backward = t.backward.examine(t.reversed).Verdict
	return e
}

package growth

import (
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// Timeline has the dumps of a device that can be compared, for callers that have the values of call paths
// and no [profile.Profile], such as a store of many devices.
type Timeline struct {
	Dumps []LeakDump // each dump, and whether it is used
	Boots []TimelineBoot
	Per   Unit // of TimelineBoot.At: PerHour, or PerDump if there are no times

	timeline *timeline
}

// TimelineBoot has the used dumps of a boot, three or more.
type TimelineBoot struct {
	Dumps []int     // indexes in Timeline.Dumps
	At    []float64 // hours since the boot, or numbers of the dumps
	Kept  []float64 // fraction of the blocks that the log has
}

// NewTimeline returns the timeline of the dumps of one device, the oldest first. Of each dump it uses the
// DumpInfo, Total and Ended.
func NewTimeline(dumps []*profile.Dump) *Timeline {
	t := &Timeline{Dumps: useDumps(dumps)}
	t.timeline = newTimeline(t.Dumps)
	t.Per = t.timeline.per
	for _, b := range t.timeline.boots {
		t.Boots = append(t.Boots, TimelineBoot{b.dumps, b.at, b.kept})
	}
	return t
}

// Series returns the values of a call path, of which values has that in each dump, for [leak.Judge].
func (t *Timeline) Series(values []profile.Value) leak.Series { return t.timeline.series(values) }

// Dump returns the index of the dump nearest to a moment of a series.
func (t *Timeline) Dump(m leak.Moment) int { return t.timeline.dump(m) }

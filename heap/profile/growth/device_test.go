package growth_test

import (
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// A store that has the values of a path, and no profile, judges them by the dumps alone: here 640 bytes per hour in the
// second of two boots.
func TestTimeline(t *testing.T) {
	var dumps []*profile.Dump
	var values []profile.Value
	for i := range 40 {
		boot, hour := 1+i/20, i%20
		d := &profile.Dump{DumpInfo: profile.DumpInfo{Index: i, Boot: boot, Time: time.Duration(hour) * time.Hour, Timed: true, Paths: true}, Ended: true}
		d.Total = profile.Value{Count: 100, Bytes: 6400}
		dumps = append(dumps, d)
		n := uint64(10 + (boot-1)*10*hour)
		values = append(values, profile.Value{Count: n, Bytes: 64 * n})
	}
	line := growth.NewTimeline(dumps)
	if line.Per != growth.PerHour || len(line.Boots) != 2 || len(line.Boots[1].Dumps) != 20 || !line.Dumps[30].Used {
		t.Fatalf("%+v", line)
	}
	j := leak.Judge(line.Series(values))
	if j.Verdict != leak.Leak || j.Low > 640 || j.High < 640 {
		t.Errorf("%+v, want a leak of 640 bytes per hour", j)
	}
	if at := line.Dump(leak.Moment{Boot: 1, At: 5}); at != 25 {
		t.Errorf("dump %d is at 5 h of the second boot, want 25", at)
	}
}

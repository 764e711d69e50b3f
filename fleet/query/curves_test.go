package query

import (
	"testing"
	"time"
)

// Of five devices one leaks: the median stays, the upper end of the band rises, by uptime and by day. A dump without the path holds 0 bytes of it.
func TestCurves(t *testing.T) {
	var list []byHand
	for _, name := range []string{"a", "b", "c", "d", "leaks"} {
		d := byHand{device: name}
		for hour := range int64(48) {
			d.blocks = append(d.blocks, 10)
			if name == "leaks" {
				d.blocks[hour] += hour
			}
		}
		list = append(list, d)
	}
	db := hand(t, list...)
	for _, paths := range [][]int64{{7}, {7, 8}} {
		curves, err := db.Curves(t.Context(), Scope{Builds: []string{"b"}}, paths...)
		if err != nil || len(curves) != len(paths) {
			t.Fatalf("%+v, %v", curves, err)
		}
		c := curves[0]
		if len(c.Uptime) != 24 || len(c.Days) != 3 || c.Days[2].At != 2 || !c.First.Equal(time.Date(2026, 6, 1, 1, 0, 0, 0, time.UTC)) {
			t.Fatalf("%+v", c)
		}
		first, last := c.Uptime[0], c.Uptime[23]
		if first.At != 1 || last.At != 47 || first.Devices != 5 || last.Median != 160 || last.Low != 160 || last.High < 500 || first.High > 200 {
			t.Errorf("from %+v to %+v", first, last)
		}
		if len(paths) == 2 && curves[1].Uptime[23].High != 0 {
			t.Errorf("a path that is in no dump: %+v", curves[1].Uptime[23])
		}
	}
}

// A stage has the devices that got the build first, until the next is reached.
func TestStages(t *testing.T) {
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var first []Device
	for i, name := range []string{"j", "i", "h", "g", "f", "e", "d", "c", "b", "a", "z"} {
		first = append(first, Device{Device: name, First: at.Add(-time.Duration(i) * time.Hour)})
	}
	got := stages(100, first)
	if len(got) != 2 || got[0].Percent != 1 || got[0].Devices != 1 || !got[0].Reached.Equal(at.Add(-10*time.Hour)) || got[0].Until == nil || !got[0].Until.Equal(got[1].Reached) ||
		got[1].Percent != 10 || got[1].Devices != 10 || !got[1].Reached.Equal(at.Add(-time.Hour)) || got[1].Until != nil {
		t.Errorf("%+v", got)
	}
}

package query

import (
	"context"
)

// leaking is a device on which a path leaks.
type leaking struct {
	Device                 string
	Path                   int64
	Rate                   float64
	Free                   int64
	Ended, Longest, Uptime float64
	Heap                   string
	HeapFree               int64
	HeapRate               float64
	Heaps                  int64
}

// hours returns the time until the heap of the device is full, at the sum of its rates; ok is false if it is not known.
// Of several heaps, it is that of the first by its own growth; if none grows, heap has their names.
func (d *leaking) hours(rate float64) (hours float64, heap string, ok bool) {
	switch {
	case d.HeapRate > 0:
		return float64(d.HeapFree) / d.HeapRate, d.Heap, true
	case d.Heaps > 1 || d.Free < 0:
		return 0, d.Heap, false
	}
	return float64(d.Free) / rate, "", true
}

// reboots reports whether the boots of the device end before its heap is full: three or more ended, and from the begin of
// a boot it takes twice as long as the longest of them.
func (d *leaking) reboots(hours float64) bool {
	return d.Ended >= 0 && hours+d.Uptime > 2*d.Longest
}

// exhaust sets when the heaps of the devices that leak are full.
func (s *session) exhaust(ctx context.Context, l *Leaks) error {
	var said []values
	row := map[int64]int{}
	for i, r := range l.Rows {
		if r.Verdict.Sure() {
			said = append(said, values{r.Path, []float64{r.Share}})
			row[r.Path] = i
		}
	}
	if len(said) == 0 {
		return nil
	}
	if err := s.define(ctx, "shared", literal(said, "share")); err != nil {
		return err
	}
	list, err := rows[leaking](ctx, s, text("leaking"))
	if err != nil {
		return err
	}
	alone := map[int64][]float64{}
	x := &Exhaustion{}
	heaps, among := map[string]int{}, map[string]int{}
	var boots, reach []float64
	for begin := 0; begin < len(list); {
		d, rate := &list[begin], 0.0
		end := begin
		for ; end < len(list) && list[end].Device == d.Device; end++ {
			if d.Free >= 0 && d.Heaps <= 1 {
				alone[list[end].Path] = append(alone[list[end].Path], float64(d.Free)/list[end].Rate)
			}
			rate += list[end].Rate
		}
		begin = end
		hours, heap, ok := d.hours(rate)
		switch {
		case !ok && heap != "":
			x.Unknown++
			among[heap]++
		case !ok:
		case d.reboots(hours):
			x.Reboot++
			boots, reach = append(boots, d.Ended), append(reach, d.Ended*rate)
		default:
			x.Each = append(x.Each, hours)
			heaps[heap]++
		}
	}
	for path, hours := range alone {
		l.Rows[row[path]].Hours = new(quantile(hours, 0.5))
	}
	x.Heap, x.Among = most(heaps), most(among)
	if x.Devices = int64(len(x.Each)); x.Devices > 0 {
		x.Hours, x.Hours05 = new(quantile(x.Each, 0.5)), new(quantile(x.Each, 0.05))
	}
	if x.Reboot > 0 {
		x.Boot, x.Reach = new(quantile(boots, 0.5)), new(quantile(reach, 0.5))
	}
	if x.Devices+x.Reboot+x.Unknown > 0 {
		l.Exhaustion = x
	}
	return nil
}

// most returns the text that is counted most often, of several the first.
func most(counts map[string]int) (text string) {
	for t, n := range counts {
		if m := counts[text]; n > m || n == m && t < text {
			text = t
		}
	}
	return text
}

package query

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// moment is a dump of a device, as leaks need it.
type moment struct {
	Device       string
	Boot, Dump   int64
	Uptime       int64 // µs, -1 if not known
	Received     time.Time
	Count, Bytes int64
	Lost         float64
	Complete     bool
	Why          string
	Free         int64  // -1 if not known
	Heaps        string // store.Dump.Heaps
}

// device is a device whose call paths are examined.
type device struct {
	dumps []moment
	line  *growth.Timeline
	free  int64 // bytes after the last used dump, -1 if not known
}

// split returns the dumps of each device.
func split(list []moment) (byDevice [][]moment) {
	for begin := 0; begin < len(list); {
		end := begin
		for end < len(list) && list[end].Device == list[begin].Device {
			list[end].Device = list[begin].Device // one copy in memory
			end++
		}
		byDevice = append(byDevice, list[begin:end])
		begin = end
	}
	return byDevice
}

// newDevice prepares the test of a device.
func newDevice(dumps []moment) *device {
	d := &device{dumps: dumps, free: -1}
	list := make([]*profile.Dump, len(dumps))
	boot := 0
	for i := range dumps {
		m := &dumps[i]
		if i == 0 || m.Boot != dumps[i-1].Boot {
			boot++
		}
		p := &profile.Dump{Ended: true, Total: profile.Value{Count: uint64(m.Count), Bytes: uint64(m.Bytes)}}
		p.Index, p.Boot, p.Why = i, boot, m.Why
		p.Time, p.Timed = time.Duration(m.Uptime)*time.Microsecond, m.Uptime >= 0
		p.Cut = !m.Complete && m.Lost == 0 // an unknown part is missing
		if m.Lost < 1 && !p.Cut {
			p.Announced = profile.Announced{Records: uint64(math.Round(float64(m.Count) / (1 - m.Lost))), HasRecords: true}
		}
		list[i] = p
	}
	d.line = growth.NewTimeline(list)
	for i := range d.line.Dumps {
		if d.line.Dumps[i].Used {
			d.free = dumps[i].Free
		}
	}
	return d
}

// timed reports whether rates of the device are per hour.
func (d *device) timed() bool { return d.line.Per == growth.PerHour && len(d.line.Boots) > 0 }

// time returns the Unix time of a dump in µs, by the server's clock: a boot began at the latest at the uptime of one of
// its dumps before this was received.
func (d *device) time(dump int) int64 {
	m := &d.dumps[dump]
	at := m.Received.UnixMicro()
	for i := range d.dumps {
		if o := &d.dumps[i]; o.Boot == m.Boot && o.Uptime >= 0 && m.Uptime >= 0 {
			at = min(at, o.Received.UnixMicro()-o.Uptime+m.Uptime)
		}
	}
	return at
}

// byPath yields the call paths in the facts of a device, sorted, with the value of each in each dump. It leaves out facts of other
// dumps. The values are valid until the next path: those of all paths may take thousands of times the memory of the facts.
func byPath(dumps []moment, facts []store.Fact) iter.Seq2[int64, []profile.Value] {
	slices.SortStableFunc(facts, func(a, b store.Fact) int { return cmp.Compare(a.Path, b.Path) })
	return func(yield func(int64, []profile.Value) bool) {
		values := make([]profile.Value, len(dumps))
		n := 0
		for i := range facts {
			f := &facts[i]
			if dumps[n].Boot != f.Boot || dumps[n].Dump != f.Dump { // most files have one dump of a device
				at, ok := slices.BinarySearchFunc(dumps, f, func(m moment, f *store.Fact) int {
					return cmp.Or(cmp.Compare(m.Boot, f.Boot), cmp.Compare(m.Dump, f.Dump))
				})
				if ok {
					n = at
				}
			}
			if dumps[n].Boot == f.Boot && dumps[n].Dump == f.Dump {
				values[n] = profile.Value{Count: uint64(f.Count), Bytes: uint64(f.Bytes)}
			}
			if i+1 == len(facts) || facts[i+1].Path != f.Path {
				if !yield(f.Path, values) {
					return
				}
				clear(values)
			}
		}
	}
}

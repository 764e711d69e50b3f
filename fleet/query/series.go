package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/fleet/query/oldrule"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/profile"
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
	Free         int64 // -1 if not known
}

// device is a device whose call paths are examined.
type device struct {
	dumps []moment
	test  *oldrule.LeakTest
	free  int64 // bytes after the last used dump, -1 if not known
}

// moments returns the dumps of each device, the devices in the order of their names.
func (s *session) moments(ctx context.Context) (byDevice [][]moment, err error) {
	list, err := rows[moment](ctx, s, text("moments"))
	if err != nil {
		return nil, fmt.Errorf("query moments: %w", err)
	}
	return split(list), nil
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
	d.test = oldrule.NewLeakTest(list)
	for i := range d.test.Dumps {
		if d.test.Dumps[i].Used {
			d.free = dumps[i].Free
		}
	}
	return d
}

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

// eachSeries calls begin with each device, and then do with the values of each of its paths that
// vary, by dump. do may not keep the values.
func (s *session) eachSeries(ctx context.Context, byDevice [][]moment, begin func(*device), do func(d *device, path int64, values []profile.Value)) error {
	g := grid{rows: map[int64]int{}}
	for facts, err := range s.facts(ctx, byDevice) {
		if err != nil {
			return fmt.Errorf("query series: %w", err)
		}
		for len(byDevice) > 0 && byDevice[0][0].Device < facts[0].Device {
			begin(newDevice(byDevice[0]))
			byDevice = byDevice[1:]
		}
		if len(byDevice) == 0 || byDevice[0][0].Device != facts[0].Device {
			continue // none of its dumps is in the scope
		}
		d := newDevice(byDevice[0])
		byDevice = byDevice[1:]
		begin(d)
		g.fill(d.dumps, facts)
		for i, path := range g.paths {
			values := g.values[i*len(d.dumps):][:len(d.dumps)]
			if slices.ContainsFunc(values, func(v profile.Value) bool { return v != values[0] }) {
				do(d, path, values)
			}
		}
	}
	for _, dumps := range byDevice {
		begin(newDevice(dumps))
	}
	return ctx.Err()
}

// grid holds the values of the call paths of a device: a row for each path, a column for each dump.
type grid struct {
	rows   map[int64]int // by path
	paths  []int64       // by row
	values []profile.Value
}

// fill sets the values to those of facts. It leaves out facts of other dumps.
func (g *grid) fill(dumps []moment, facts []store.Fact) {
	clear(g.rows)
	g.paths, g.values = g.paths[:0], g.values[:0]
	none := make([]profile.Value, len(dumps))
	n := 0
	for i := range facts {
		f := &facts[i]
		if dumps[n].Boot != f.Boot || dumps[n].Dump != f.Dump { // most files have one dump of a device
			at, ok := slices.BinarySearchFunc(dumps, f, func(m moment, f *store.Fact) int {
				return cmp.Or(cmp.Compare(m.Boot, f.Boot), cmp.Compare(m.Dump, f.Dump))
			})
			if !ok {
				continue
			}
			n = at
		}
		row, ok := g.rows[f.Path]
		if !ok {
			row = len(g.paths)
			g.rows[f.Path], g.paths, g.values = row, append(g.paths, f.Path), append(g.values, none...)
		}
		g.values[row*len(dumps)+n] = profile.Value{Count: uint64(f.Count), Bytes: uint64(f.Bytes)}
	}
}

package query

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// moment is a dump of a device, as leaks need it.
type moment struct {
	Device       int64 // number
	Boot         int64
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
	test  *profile.LeakTest
	free  int64 // bytes after the last used dump, -1 if not known
}

// moments returns the dumps of the devices, by number of the device, which begins at 1.
func (s *session) moments(ctx context.Context) (byDevice [][]moment, err error) {
	list, err := rows[moment](ctx, s, text("moments"))
	if err != nil {
		return nil, fmt.Errorf("query moments: %w", err)
	}
	for begin := 0; begin < len(list); {
		end := begin
		for end < len(list) && list[end].Device == list[begin].Device {
			end++
		}
		byDevice = append(byDevice, list[begin:end])
		begin = end
	}
	return byDevice, nil
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
	d.test = profile.NewLeakTest(list)
	for i := range d.test.Dumps {
		if d.test.Dumps[i].Used {
			d.free = dumps[i].Free
		}
	}
	return d
}

// eachSeries calls begin with each device, and then do with the values of each of its paths that
// vary, by dump. do may not keep the values.
func (s *session) eachSeries(ctx context.Context, byDevice [][]moment, begin func(*device), do func(d *device, path int64, values []profile.Value)) error {
	parts, err := s.parts(ctx)
	if err != nil {
		return fmt.Errorf("query series: %w", err)
	}
	var d *device
	var values []profile.Value
	devices := 0 // begun
	advance := func(number int) {
		for ; devices < number; devices++ {
			d = newDevice(byDevice[devices])
			begin(d)
			values = make([]profile.Value, len(d.dumps))
		}
	}
	read := func(p part) error {
		r, err := p.query(ctx, text("series"))
		if err != nil {
			return err
		}
		defer r.Close()
		for r.Next() {
			var number, path int64
			var lists [3]any
			if err := r.Scan(&number, &path, &lists[0], &lists[1], &lists[2]); err != nil {
				return err
			}
			advance(p.first + int(number))
			clear(values)
			if err := place(values, lists[0], lists[1], lists[2]); err != nil {
				return err
			}
			do(d, path, values)
		}
		return r.Err()
	}
	for _, p := range parts {
		if err := read(p); err != nil {
			return fmt.Errorf("query series: %w", err)
		}
	}
	advance(len(byDevice))
	return nil
}

// place sets values from lists of the numbers of dumps, of blocks and of bytes, as the driver returns them.
func place(values []profile.Value, at, blocks, held any) error {
	switch at := at.(type) {
	case []any: // DuckDB
		blocks, held := blocks.([]any), held.([]any)
		for i := range at {
			values[at[i].(int64)] = profile.Value{Count: uint64(blocks[i].(int64)), Bytes: uint64(held[i].(int64))}
		}
	case []int64:
		blocks, held := blocks.([]int64), held.([]int64)
		for i := range at {
			values[at[i]] = profile.Value{Count: uint64(blocks[i]), Bytes: uint64(held[i])}
		}
	default:
		return fmt.Errorf("a list of type %T", at)
	}
	return nil
}

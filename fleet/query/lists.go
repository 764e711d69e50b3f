package query

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// Build is a build of the firmware, with sums over its devices.
type Build struct {
	Build    string    `json:"build"`
	Firmware string    `json:"fw"` // that most devices report
	Devices  int64     `json:"devices"`
	Dumps    int64     `json:"dumps"`
	First    time.Time `json:"first"` // when the server received it
	Last     time.Time `json:"last"`
	Bytes    float64   `json:"bytes"`     // median of the devices' last dumps
	HeapFree float64   `json:"heap_free"` // median; -1 if no device reports it
	Lost     float64   `json:"lost"`      // mean fraction of the blocks that are missing
}

// Builds returns the builds of the scope, the newest first.
func (d *DB) Builds(ctx context.Context, o Scope) ([]Build, error) {
	list, err := ask[Build](ctx, d, o, onlyDumps, text("builds"), "steady", "versions")
	for i := range list { // the engines add up in any order
		list[i].Lost = math.Round(list[i].Lost*1e6) / 1e6
	}
	return list, err
}

// Day is what the devices of a build sent on a day.
type Day struct {
	Day   time.Time
	Build string
	Bytes float64 // median of the complete dumps, -1 if there is none
	Ran   int64   // devices
}

// Days returns the days of the builds of the scope, in order.
func (d *DB) Days(ctx context.Context, o Scope) ([]Day, error) {
	return ask[Day](ctx, d, o, onlyDumps, text("days"))
}

// Device is a device, with the values of its last dump.
type Device struct {
	Device   string    `json:"device"`
	Build    string    `json:"build"`
	Firmware string    `json:"fw"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Dumps    int64     `json:"dumps"`
	Boots    int64     `json:"boots"`
	Bytes    int64     `json:"bytes"`
	HeapFree int64     `json:"heap_free"` // -1 if it is not known
}

// Devices returns the devices of the scope, those with the least free memory first. It returns
// up to limit devices, or all if limit is 0.
func (d *DB) Devices(ctx context.Context, o Scope, limit int) ([]Device, error) {
	return ask[Device](ctx, d, o, onlyDumps, limited(text("devices"), limit))
}

// limited returns a query with a limit of rows, if that is not 0.
func limited(q string, limit int) string {
	if limit > 0 {
		q += fmt.Sprintf("\nlimit %d", limit)
	}
	return q
}

// Holder is a call path, with its live bytes and blocks on the devices of a build.
type Holder struct {
	Path     int64   `json:"path,string"`
	Examined int64   `json:"examined"` // devices
	Devices  int64   `json:"devices"`  // that hold it
	Mean     float64 `json:"mean"`     // bytes per device
	Median   float64 `json:"median"`   // of the devices that hold it
	P95      float64 `json:"p95"`
	Blocks   float64 `json:"blocks"` // mean per device
	Stack    []Frame `json:"stack"`  // innermost first
}

// Top returns the call paths of a build, those with the most bytes first. It returns up to limit
// paths, or all if limit is 0. The scope must have exactly one build.
func (d *DB) Top(ctx context.Context, o Scope, limit int) (list []Holder, err error) {
	if len(o.Builds) != 1 {
		return nil, fmt.Errorf("query: top of %d builds, expected one", len(o.Builds))
	}
	err = d.with(ctx, o, allTables, func(s *session) error {
		if err := s.tables(ctx, "steady"); err != nil {
			return err
		}
		if list, err = rows[Holder](ctx, s, limited(text("top"), limit)); err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("build %s: %w", o.Builds[0], ErrNoDump)
		}
		return s.stacks(ctx, len(list), func(i int) (pathOf, *[]Frame) { return pathOf{o.Builds[0], list[i].Path}, &list[i].Stack })
	})
	return list, err
}

// Moment is a dump of a device.
type Moment struct {
	Build    string    `json:"build"`
	Firmware string    `json:"fw"`
	Boot     int64     `json:"boot"`
	Dump     int64     `json:"dump"`
	Received time.Time `json:"received"`
	Uptime   int64     `json:"uptime_us"` // -1 if it is not known
	Bytes    int64     `json:"bytes"`
	Blocks   int64     `json:"blocks"`
	Complete bool      `json:"complete"`
	Lost     float64   `json:"lost"`
	Why      string    `json:"why"`
	HeapSize int64     `json:"heap_size"` // -1 if it is not known
	HeapFree int64     `json:"heap_free"`
}

// Growth holds the bytes of a call path in the first and in the last whole dump of the last build of a device.
type Growth struct {
	Path   int64   `json:"path,string"`
	Build  string  `json:"build"`
	Before float64 `json:"before"` // bytes
	After  float64 `json:"after"`
	Stack  []Frame `json:"stack"`
}

// Timeline holds the dumps of a device, and the growth of its call paths.
type Timeline struct {
	Device string   `json:"device"`
	Dumps  []Moment `json:"dumps"` // oldest first
	Paths  []Growth `json:"paths"` // sorted by growth, the largest first
}

// Timeline returns the dumps of a device.
func (d *DB) Timeline(ctx context.Context, device string, o Scope) (*Timeline, error) {
	if strings.Contains(device, "\x00") { // which no text in SQL has
		return nil, fmt.Errorf("device %q: %w", device, ErrNoDump)
	}
	o.Device = device
	l := &Timeline{Device: device}
	err := d.with(ctx, o, allTables, func(s *session) (err error) {
		if err := s.tables(ctx, "steady"); err != nil {
			return err
		}
		if l.Dumps, err = rows[Moment](ctx, s, text("timeline")); err != nil {
			return err
		}
		if len(l.Dumps) == 0 {
			return fmt.Errorf("device %s: %w", device, ErrNoDump)
		}
		if l.Paths, err = rows[Growth](ctx, s, text("growth")); err != nil {
			return err
		}
		return s.stacks(ctx, len(l.Paths), func(i int) (pathOf, *[]Frame) {
			return pathOf{l.Paths[i].Build, l.Paths[i].Path}, &l.Paths[i].Stack
		})
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Package simulate generates the heap dumps of a fleet of devices, some of which leak. Equal
// values of [Fleet] give equal dumps.
package simulate

import (
	"context"
	"crypto/sha1"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Fleet describes the devices, each of which sends one dump a day.
type Fleet struct {
	Devices int
	Builds  int       // device i runs build i modulo Builds
	Days    int       // days with dumps
	Paths   int       // call paths of a build, at least 10
	Start   time.Time // of the first day, UTC
	Leak    Leak
}

// Leak is a path that grows with the time since the boot.
type Leak struct {
	Build int     // build whose devices leak, from 0
	Share float64 // fraction of the build's devices that leak
	Rate  float64 // bytes per hour
	Path  int     // index of the path, below Paths
}

// Default is a small fleet whose fourth build leaks on a twentieth of its devices.
func Default() Fleet {
	return Fleet{Devices: 1000, Builds: 5, Days: 7, Paths: 150, Start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Leak: Leak{Build: 3, Share: 0.05, Rate: 200, Path: 17}}
}

// Check returns an error if the number of devices or paths, or the share that leaks, is out of range.
func (f *Fleet) Check() error {
	switch {
	case f.Devices < 1 || f.Devices > 10_000_000:
		return fmt.Errorf("%d devices, expected 1 to 10,000,000", f.Devices)
	case f.Paths < 10 || f.Paths > 100_000 || f.Leak.Path >= f.Paths:
		return fmt.Errorf("%d call paths, expected %d to 100,000", f.Paths, max(10, f.Leak.Path+1))
	case !(f.Leak.Share >= 0 && f.Leak.Share <= 1):
		return fmt.Errorf("a leak on a share of %g, expected 0 to 1", f.Leak.Share)
	}
	return nil
}

// BuildID returns the build ID of a build.
func (f *Fleet) BuildID(build int) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(f.Firmware(build))))
}

// Firmware returns the version of a build.
func (f *Fleet) Firmware(build int) string { return fmt.Sprintf("1.4.%d", build) }

// leaks reports whether a device leaks. The share is exact to one device.
func (f *Fleet) leaks(device int) bool {
	i := float64(device / f.Builds)
	return device%f.Builds == f.Leak.Build && math.Floor((i+1)*f.Leak.Share+1e-9) > math.Floor(i*f.Leak.Share+1e-9)
}

const (
	heapSize       = 1 << 20 // bytes
	devicesPerFile = 1000    // the rows of their dumps are held in memory
	reboots        = 0.02    // per day
	loss           = 0.02    // fraction of the lines of a dump that are lost
	pathsPerLine   = 4       // are lost together
)

// Store writes the rows of the fleet to a store, like a server after compaction. It returns the numbers of dumps and facts.
func (f *Fleet) Store(ctx context.Context, s store.Putter) (dumps, facts int, err error) {
	if err := f.Check(); err != nil {
		return 0, 0, err
	}
	for build := range f.Builds {
		paths := f.paths(build)
		for part, first := 0, build; first < f.Devices; part, first = part+1, first+devicesPerFile*f.Builds {
			days := make([]store.Batch, f.Days)
			for d := first; d < min(f.Devices, first+devicesPerFile*f.Builds); d += f.Builds {
				f.device(d, paths, days)
			}
			for i := range days {
				b := &days[i]
				b.Name, b.Day = fmt.Sprintf("simulated-%d-%d", build, part), f.Start.AddDate(0, 0, i)
				for _, p := range paths {
					b.Paths = append(b.Paths, p.Path)
				}
				dumps, facts = dumps+len(b.Dumps), facts+len(b.Facts)
				if err := s.Put(ctx, b); err != nil {
					return dumps, facts, err
				}
			}
		}
	}
	return dumps, facts, nil
}

// path is a call path, and how many blocks a device has of it.
type path struct {
	store.Path
	kind  int
	level float64 // typical number of blocks
	size  float64 // bytes per block
}

// paths returns the call paths of a build. All builds have the same; they share outer frames, as in a real program.
func (f *Fleet) paths(build int) []path {
	r := rand.New(rand.NewPCG(1, 0))
	list := make([]path, f.Paths)
	for i := range list {
		p := &list[i]
		p.Build, p.kind, p.level, p.size = f.BuildID(build), r.IntN(7), 2*math.Pow(60, r.Float64()), float64(int(16)<<r.IntN(5))
		if i == f.Leak.Path {
			p.kind, p.size = 0, 32
		}
		p.Addresses = []string{fmt.Sprintf("code+%#x", i*37+0x4000)}
		for n := i; n > 0; n /= 5 {
			p.Addresses = append(p.Addresses, fmt.Sprintf("code+%#x", n/5*53+0x1000))
		}
		p.Addresses = append(p.Addresses, "code+0x142")
		p.Path.Path = store.PathID(p.Addresses)
	}
	return list
}

// blocks returns the number of live blocks relative to the level, hours after the boot. No kind is a leak.
func (p *path) blocks(r *rand.Rand, at time.Time, hours float64) float64 {
	noise := r.NormFloat64()
	switch p.kind {
	case 0: // independent at each dump
		return 1 + 0.25*noise
	case 1: // by the time of day
		return 1 + 0.3*math.Sin(math.Pi/12*at.Sub(at.Truncate(24*time.Hour)).Hours()) + 0.05*noise
	case 2: // fills within hours of the boot
		return 1 - math.Exp(-hours/6) + 0.05*noise
	case 3: // fills, then is emptied
		return math.Mod(hours, 20) / 20
	case 4: // varies by much
		return math.Exp(0.3 * noise)
	}
	return 1
}

// device appends the rows of a device to those of each day.
func (f *Fleet) device(device int, paths []path, days []store.Batch) {
	r := rand.New(rand.NewPCG(1, uint64(device)+1))
	hours := func(most float64) time.Duration {
		return time.Duration(r.Float64() * most * float64(time.Hour)).Truncate(time.Microsecond)
	}
	boot, daily, skew := f.Start.Add(-hours(48)), hours(23), hours(12)-6*time.Hour // of its clock
	own := make([]float64, len(paths))                                             // blocks of this device, for one that is typical
	for i := range own {
		own[i] = math.Exp(0.2 * r.NormFloat64())
	}
	row := store.Dump{Build: paths[0].Build, FW: f.Firmware(device % f.Builds), Device: fmt.Sprintf("sim-%06d", device), Why: "interval",
		HeapSize: heapSize, HeapLargest: -1, HeapMinimum: -1}
	for day := range days {
		b := &days[day]
		at := f.Start.AddDate(0, 0, day).Add(daily + hours(0.5))
		if row.Dump++; day == 0 || r.Float64() < reboots {
			row.Boot, row.Dump = at.UnixMicro(), 0
			if day > 0 {
				boot = at.Add(-hours(20))
			}
		}
		up := at.Sub(boot)
		row.Time, row.Uptime, row.Received, row.Upload = at.Add(skew).UnixMicro(), up.Microseconds(), at.UnixMicro(), fmt.Sprintf("%032x", device*1000+day)
		row.Bytes, row.Count = 0, 0
		var lost, lostBytes int64
		first, arrived := len(b.Facts), true
		for i := range paths {
			p := &paths[i]
			blocks := own[i] * p.level * p.blocks(r, at, up.Hours())
			if i == f.Leak.Path && f.leaks(device) {
				blocks += f.Leak.Rate * up.Hours() / p.size
			}
			if i%pathsPerLine == 0 {
				arrived = r.Float64() >= loss
			}
			switch n := int64(math.Round(blocks)); {
			case n <= 0:
			case !arrived:
				lost, lostBytes = lost+n, lostBytes+n*int64(p.size)
			default:
				row.Count, row.Bytes = row.Count+n, row.Bytes+n*int64(p.size)
				b.Facts = append(b.Facts, store.Fact{Build: row.Build, Device: row.Device, Path: p.Path.Path, Boot: row.Boot, Dump: row.Dump, Time: row.Time, Count: n, Bytes: n * int64(p.size)})
			}
		}
		row.HeapFree, row.Complete, row.Lost = max(0, heapSize-row.Bytes-lostBytes), lost == 0, float64(lost)/float64(max(1, lost+row.Count))
		for i := range b.Facts[first:] {
			b.Facts[first+i].Complete, b.Facts[first+i].Lost = row.Complete, row.Lost
		}
		b.Dumps = append(b.Dumps, row)
	}
}

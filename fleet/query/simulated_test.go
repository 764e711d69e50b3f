package query

import (
	"fmt"
	"iter"
	"math"
	"time"
)

// fleet describes the simulated devices and their heaps; equal values give equal dumps. Unlike that of package simulate, it can have
// what misleads a rule: caches, load, wrong clocks, uploads that are stored twice, addresses that move.
type fleet struct {
	Devices int
	Builds  int           // device i runs build i modulo Builds
	Days    int           // days with dumps
	PerDay  int           // dumps per day and device
	Paths   int           // call paths of a build, at least 10
	Seed    uint64        //
	Loss    float64       // fraction of the lines of a dump that are lost, below 0.5
	Reboots float64       // mean reboots per device and day
	Skew    time.Duration // clocks of devices are wrong by up to this
	Start   time.Time     // of the first day, UTC
	Leak    planted

	Every   time.Duration // devices reboot after this time; 0 is at random, by Reboots
	Load    float64       // during the days, the load grows by this fraction, and with it most paths
	Wrap    time.Duration // the counter of the uptime begins again at 0 after this time, once on each device; 0 is never
	Outages float64       // fraction of the days of a device without a dump
	Twice   float64       // fraction of the uploads that two servers store
	Spread  float64       // of the sizes and rates of the devices: standard deviation of their logarithms
	Caches  Caches        // what a third of the paths do
	Bases   Bases         // what addresses change with
}

// Caches are paths that grow and do not leak.
type Caches int

const (
	NoCaches Caches = iota
	Fill            // they fill evenly for nine tenths of the time
	Refill          // they fill within hours after each boot
	Root            // they grow with the square root of the uptime
)

// Bases selects when the addresses of the functions change.
type Bases int

const (
	Fixed    Bases = iota
	PerBuild       // functions are elsewhere in each build
	PerBoot        // the program is loaded at a random address, and no map says where
)

// Leak is a path that grows with the time since the boot.
type planted struct {
	Build int     // build whose devices leak, from 0; -1 for none
	Share float64 // fraction of the build's devices that leak
	Rate  float64 // bytes per hour
	Path  int     // index of the path, below Paths

	From, To float64 // the leak begins on a day between, from 0; if To is 0, before the first
	Faster   bool    // the rate grows with the uptime; it is Rate after half of the days
}

// defaultFleet is a small fleet whose fourth build leaks on a twentieth of its devices.
func defaultFleet() fleet {
	return fleet{Devices: 1000, Builds: 5, Days: 7, PerDay: 1, Paths: 150, Seed: 1, Loss: 0.02, Reboots: 0.02, Skew: 6 * time.Hour, Spread: 0.2,
		Start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Leak: planted{Build: 3, Share: 0.05, Rate: 200, Path: 17}}
}

// BuildID returns the build ID of a build.
func (f *fleet) BuildID(build int) string {
	return fmt.Sprintf("%016x%016x%08x", hash(1, uint64(build)), hash(2, uint64(build)), uint32(hash(3, uint64(build))))
}

// Firmware returns the version of a build.
func (f *fleet) Firmware(build int) string { return fmt.Sprintf("1.4.%d", build) }

// DeviceID returns the name of a device.
func (f *fleet) DeviceID(device int) string { return fmt.Sprintf("sim-%06d", device) }

// Leaks reports whether a device leaks. The share is exact to one device.
func (f *fleet) Leaks(device int) bool {
	if device%f.Builds != f.Leak.Build {
		return false
	}
	i := float64(device / f.Builds)
	return math.Floor((i+1)*f.Leak.Share+1e-9) > math.Floor(i*f.Leak.Share+1e-9)
}

// simMoment is a dump of a device.
type simMoment struct {
	day      int
	n        int // of the device's dumps
	boot     int // of the device's boots
	index    int // in the boot
	received time.Time
	started  time.Time     // time of the boot
	heard    time.Time     // time at which the server received the first dump of the boot
	uptime   time.Duration // since the boot
}

// moments returns the dumps of a device. Boots begin at random times, the first up to
// two days before the first dump.
func (f *fleet) moments(device int) []simMoment {
	rate := f.Reboots / float64(24*time.Hour)
	wait := func(i int) time.Duration {
		if rate == 0 {
			return 1 << 62
		}
		return time.Duration(math.Min(-math.Log(1-f.uniform(4, device, i))/rate, 1<<61))
	}
	step := 24 * time.Hour / time.Duration(f.PerDay)
	phase := time.Duration(f.uniform(5, device, 0) * float64(step))
	days := time.Duration(f.Days) * 24 * time.Hour
	m := simMoment{started: f.Start.Add(-time.Duration(f.uniform(6, device, 0) * float64(48*time.Hour)))}
	next := f.Start.Add(min(wait(0), 1<<61))
	switch {
	case f.Every > 0:
		wait = func(int) time.Duration { return f.Every }
		next = m.started
		for next.Before(f.Start) {
			m.started, next = next, next.Add(f.Every)
		}
	case f.Wrap > 0:
		m.started = f.Start.Add(time.Duration(f.uniform(6, device, 0)*float64(days)) - f.Wrap)
	}
	list := make([]simMoment, 0, f.Days*f.PerDay)
	for n := range f.Days * f.PerDay {
		if f.uniform(13, device, n/f.PerDay) < f.Outages {
			continue
		}
		late := time.Duration(f.uniform(11, device, n) * float64(step) / 50) // no clock is exact
		m.day, m.n, m.received = n/f.PerDay, n, f.Start.Add(phase*49/50+time.Duration(n)*step+late)
		for next.Before(m.received) {
			m.boot, m.index, m.started = m.boot+1, 0, next
			next = next.Add(wait(m.boot) + time.Minute)
		}
		m.received, m.started = m.received.Truncate(time.Microsecond), m.started.Truncate(time.Microsecond)
		if m.index == 0 {
			m.heard = m.received
		}
		m.uptime = m.received.Sub(m.started)
		list = append(list, m)
		m.index++
	}
	return list
}

// simHeld holds the blocks and bytes of a path in a dump, and whether its line arrived.
type simHeld struct {
	path         int
	count, bytes int64
	arrived      bool
}

// heap yields the blocks and bytes of the paths of a device at a simMoment.
func (f *fleet) heap(device int, m *simMoment, paths []source) iter.Seq[simHeld] {
	return func(yield func(simHeld) bool) {
		leaks := f.Leaks(device)
		for i := range paths {
			s := &paths[i]
			count, size := f.blocks(s, device, i, m)
			if leaks && i == f.Leak.Path {
				bytes, _ := f.leaked(device, m)
				count += int64(bytes / float64(s.size))
			}
			if count <= 0 {
				continue
			}
			line := i / entriesPerLine
			h := simHeld{i, count, count * size, f.uniform(7, device, m.n*(1+f.Paths)+line) >= f.Loss}
			if !yield(h) {
				return
			}
		}
	}
}

// reported returns an uptime as devices report it.
func (f *fleet) reported(uptime time.Duration) time.Duration {
	if f.Wrap > 0 {
		return uptime % f.Wrap
	}
	return uptime
}

// leaked returns the bytes that a device has leaked since its boot, and the present rate in bytes
// per hour.
func (f *fleet) leaked(device int, m *simMoment) (bytes, rate float64) {
	rate = f.Leak.Rate
	if f.Spread > 0.2 {
		rate *= math.Exp(f.Spread * gauss(hash(f.Seed, 14, uint64(device))))
	}
	since := m.started
	if f.Leak.To > 0 {
		day := f.Leak.From + f.uniform(15, device, 0)*(f.Leak.To-f.Leak.From)
		if begin := f.Start.Add(time.Duration(day * float64(24*time.Hour))); begin.After(since) {
			since = begin
		}
	}
	hours := m.received.Sub(since).Hours()
	switch {
	case hours <= 0:
		return 0, 0
	case f.Leak.Faster:
		half := float64(f.Days) * 12
		return rate / half * hours * hours / 2, rate / half * hours
	}
	return rate * hours, rate
}

// Leaking returns the present rate of each leaking device in bytes per hour, by its name. A device
// whose leak begins after its last dump is left out.
func (f *fleet) Leaking() map[string]float64 {
	list := map[string]float64{}
	for d := range f.Devices {
		if !f.Leaks(d) {
			continue
		}
		if m := f.moments(d); len(m) > 0 {
			if _, rate := f.leaked(d, &m[len(m)-1]); rate > 0 {
				list[f.DeviceID(d)] = rate
			}
		}
	}
	return list
}

// entriesPerLine is the number of paths in a line of a log. They are lost together.
const entriesPerLine = 4

// hash mixes numbers (splitmix64).
func hash(list ...uint64) (h uint64) {
	for _, v := range list {
		h += v + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// uniform returns a number from 0 to below 1 that depends only on its arguments and the seed.
func (f *fleet) uniform(what uint64, device, n int) float64 {
	return float64(hash(f.Seed, what, uint64(device), uint64(n))>>11) / (1 << 53)
}

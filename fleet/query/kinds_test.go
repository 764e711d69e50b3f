package query

import (
	"time"

	"github.com/lwsbt/lwsbt/fleet/simulate"
)

// world is a fleet whose devices or leaks are of a special kind. (fleet/docs/fleet-leaks.md)
type world struct {
	Name  string
	About string
	Fleet simulate.Fleet
}

// kinds are the changes that make a world of the fleet that worlds begins with.
var kinds = []struct {
	name, about string
	change      func(*simulate.Fleet)
}{
	{"steady", "leaks from the boot on", func(*simulate.Fleet) {}},
	{"begins", "the leak begins on day 3 to 10 of the device", func(f *simulate.Fleet) { f.Leak.From, f.Leak.To = 3, 10 }},
	{"config", "the leak begins at day 7 on all devices", func(f *simulate.Fleet) { f.Leak.From, f.Leak.To, f.Leak.Share = 7, 7, 1 }},
	{"faster", "the rate grows with the uptime", func(f *simulate.Fleet) { f.Leak.Faster = true }},
	{"few", "2 of 150 devices leak", func(f *simulate.Fleet) { f.Devices, f.Leak.Share = 300, 2.0/150 }},
	{"reboots", "reboots every 8 hours, caches that fill after each", func(f *simulate.Fleet) { f.Every, f.PerDay, f.Days, f.Caches = 8*time.Hour, 24, 5, simulate.Refill }},
	{"caches", "caches that fill for nine tenths of the time", func(f *simulate.Fleet) { f.Caches = simulate.Fill }},
	{"tables", "tables that grow with the root of the uptime", func(f *simulate.Fleet) { f.Caches = simulate.Root }},
	{"load", "the load grows by half", func(f *simulate.Fleet) { f.Load = 0.5 }},
	{"wraps", "the uptime wraps, as 32 bits of milliseconds do", func(f *simulate.Fleet) { f.Wrap, f.Reboots = 1<<32*time.Millisecond, 0 }},
	{"outages", "no dump on a fifth of the days", func(f *simulate.Fleet) { f.Outages = 0.2 }},
	{"clocks", "clocks that are wrong by up to 10 days", func(f *simulate.Fleet) { f.Skew = 240 * time.Hour }},
	{"loss", "a tenth of the lines is lost", func(f *simulate.Fleet) { f.Loss = 0.1 }},
	{"twice", "a tenth of the uploads is stored twice", func(f *simulate.Fleet) { f.Twice = 0.1 }},
	{"tails", "sizes and rates from a twentieth to twenty times", func(f *simulate.Fleet) { f.Spread = 1 }},
	{"daily", "one dump a day", func(f *simulate.Fleet) { f.PerDay = 1 }},
	{"week", "one dump a day, and the leak begins at day 7 on all devices", func(f *simulate.Fleet) { f.PerDay, f.Leak.From, f.Leak.To, f.Leak.Share = 1, 7, 7, 1 }},
	{"moved", "each build has its functions at other addresses", func(f *simulate.Fleet) { f.Bases = simulate.PerBuild }},
	{"bases", "another address of the program in each boot, and no map", func(f *simulate.Fleet) { f.Bases, f.Devices, f.PerDay = simulate.PerBoot, 60, 4 }},
}

// worlds returns all worlds: two builds of 120 devices each, 10 days with 6 dumps, 50 call paths; the second
// build leaks 200 bytes per hour on a fifth of its devices.
func worlds(seed uint64) (list []world) {
	for _, w := range kinds {
		f := simulate.Default()
		f.Devices, f.Builds, f.Days, f.PerDay, f.Paths, f.Seed = 240, 2, 10, 6, 50, seed
		f.Leak = simulate.Leak{Build: 1, Share: 0.2, Rate: 200, Path: int((7*seed + 17) % 50)}
		w.change(&f)
		list = append(list, world{w.name, w.about, f})
	}
	return list
}

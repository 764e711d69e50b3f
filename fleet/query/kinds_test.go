package query

import (
	"time"
)

// world is a fleet whose devices or leaks are of a special kind. (fleet/docs/fleet-leaks.md)
type world struct {
	Name  string
	About string
	Fleet fleet
}

// kinds are the changes that make a world of the fleet that worlds begins with.
var kinds = []struct {
	name, about string
	change      func(*fleet)
}{
	{"steady", "leaks from the boot on", func(*fleet) {}},
	{"begins", "the leak begins on day 3 to 10 of the device", func(f *fleet) { f.Leak.From, f.Leak.To = 3, 10 }},
	{"config", "the leak begins at day 7 on all devices", func(f *fleet) { f.Leak.From, f.Leak.To, f.Leak.Share = 7, 7, 1 }},
	{"faster", "the rate grows with the uptime", func(f *fleet) { f.Leak.Faster = true }},
	{"few", "2 of 150 devices leak", func(f *fleet) { f.Devices, f.Leak.Share = 300, 2.0/150 }},
	{"reboots", "reboots every 8 hours, caches that fill after each", func(f *fleet) { f.Every, f.PerDay, f.Days, f.Caches = 8*time.Hour, 24, 5, Refill }},
	{"caches", "caches that fill for nine tenths of the time", func(f *fleet) { f.Caches = Fill }},
	{"tables", "tables that grow with the root of the uptime", func(f *fleet) { f.Caches = Root }},
	{"load", "the load grows by half", func(f *fleet) { f.Load = 0.5 }},
	{"wraps", "the uptime wraps, as 32 bits of milliseconds do", func(f *fleet) { f.Wrap, f.Reboots = 1<<32*time.Millisecond, 0 }},
	{"outages", "no dump on a fifth of the days", func(f *fleet) { f.Outages = 0.2 }},
	{"clocks", "clocks that are wrong by up to 10 days", func(f *fleet) { f.Skew = 240 * time.Hour }},
	{"loss", "a tenth of the lines is lost", func(f *fleet) { f.Loss = 0.1 }},
	{"twice", "a tenth of the uploads is stored twice", func(f *fleet) { f.Twice = 0.1 }},
	{"tails", "sizes and rates from a twentieth to twenty times", func(f *fleet) { f.Spread = 1 }},
	{"daily", "one dump a day", func(f *fleet) { f.PerDay = 1 }},
	{"week", "one dump a day, and the leak begins at day 7 on all devices", func(f *fleet) { f.PerDay, f.Leak.From, f.Leak.To, f.Leak.Share = 1, 7, 7, 1 }},
	{"moved", "each build has its functions at other addresses", func(f *fleet) { f.Bases = PerBuild }},
	{"bases", "another address of the program in each boot, and no map", func(f *fleet) { f.Bases, f.Devices, f.PerDay = PerBoot, 60, 4 }},
}

// worlds returns all worlds: two builds of 120 devices each, 10 days with 6 dumps, 50 call paths; the second
// build leaks 200 bytes per hour on a fifth of its devices.
func worlds(seed uint64) (list []world) {
	for _, w := range kinds {
		f := defaultFleet()
		f.Devices, f.Builds, f.Days, f.PerDay, f.Paths, f.Seed = 240, 2, 10, 6, 50, seed
		f.Leak = planted{Build: 1, Share: 0.2, Rate: 200, Path: int((7*seed + 17) % 50)}
		w.change(&f)
		list = append(list, world{w.name, w.about, f})
	}
	return list
}

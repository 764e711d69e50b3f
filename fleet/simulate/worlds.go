package simulate

import (
	"fmt"
	"strings"
	"time"
)

// World is a fleet whose devices or leaks are of a special kind. (fleet/docs/fleet-leaks.md)
type World struct {
	Name  string
	About string
	Fleet Fleet
}

// worlds are the changes that make a world of the fleet that Worlds begins with.
var worlds = []struct {
	name, about string
	change      func(*Fleet)
}{
	{"steady", "leaks from the boot on", func(*Fleet) {}},
	{"begins", "the leak begins on day 3 to 10 of the device", func(f *Fleet) { f.Leak.From, f.Leak.To = 3, 10 }},
	{"config", "the leak begins at day 7 on all devices", func(f *Fleet) { f.Leak.From, f.Leak.To, f.Leak.Share = 7, 7, 1 }},
	{"faster", "the rate grows with the uptime", func(f *Fleet) { f.Leak.Faster = true }},
	{"few", "2 of 150 devices leak", func(f *Fleet) { f.Devices, f.Leak.Share = 300, 2.0/150 }},
	{"reboots", "reboots every 8 hours, caches that fill after each", func(f *Fleet) { f.Every, f.PerDay, f.Days, f.Caches = 8*time.Hour, 24, 5, Refill }},
	{"caches", "caches that fill for nine tenths of the time", func(f *Fleet) { f.Caches = Fill }},
	{"tables", "tables that grow with the root of the uptime", func(f *Fleet) { f.Caches = Root }},
	{"load", "the load grows by half", func(f *Fleet) { f.Load = 0.5 }},
	{"wraps", "the uptime wraps, as 32 bits of milliseconds do", func(f *Fleet) { f.Wrap, f.Reboots = 1<<32*time.Millisecond, 0 }},
	{"outages", "no dump on a fifth of the days", func(f *Fleet) { f.Outages = 0.2 }},
	{"clocks", "clocks that are wrong by up to 10 days", func(f *Fleet) { f.Skew = 240 * time.Hour }},
	{"loss", "a tenth of the lines is lost", func(f *Fleet) { f.Loss = 0.1 }},
	{"twice", "a tenth of the uploads is stored twice", func(f *Fleet) { f.Twice = 0.1 }},
	{"tails", "sizes and rates from a twentieth to twenty times", func(f *Fleet) { f.Spread = 1 }},
	{"daily", "one dump a day", func(f *Fleet) { f.PerDay = 1 }},
	{"week", "one dump a day, and the leak begins at day 7 on all devices", func(f *Fleet) { f.PerDay, f.Leak.From, f.Leak.To, f.Leak.Share = 1, 7, 7, 1 }},
	{"moved", "each build has its functions at other addresses", func(f *Fleet) { f.Bases = PerBuild }},
	{"bases", "another address of the program in each boot, and no map", func(f *Fleet) { f.Bases, f.Devices, f.PerDay = PerBoot, 60, 4 }},
}

// Worlds returns all worlds: two builds of 120 devices each, 10 days with 6 dumps, 50 call paths; the second
// build leaks 200 bytes per hour on a fifth of its devices.
func Worlds(seed uint64) (list []World) {
	for _, w := range worlds {
		f := Default()
		f.Devices, f.Builds, f.Days, f.PerDay, f.Paths, f.Seed = 240, 2, 10, 6, 50, seed
		f.Leak = Leak{Build: 1, Share: 0.2, Rate: 200, Path: int((7*seed + 17) % 50)}
		w.change(&f)
		list = append(list, World{w.name, w.about, f})
	}
	return list
}

// WorldNamed returns the fleet of a world.
func WorldNamed(name string, seed uint64) (Fleet, error) {
	var names []string
	for _, w := range Worlds(seed) {
		if w.Name == name {
			return w.Fleet, nil
		}
		names = append(names, w.Name)
	}
	return Fleet{}, fmt.Errorf("world %q: expected one of %s", name, strings.Join(names, ", "))
}

// PathID returns the identifier of the path that leaks, in a build.
func (f *Fleet) PathID(build int) int64 {
	return f.path(build, &f.sources()[f.Leak.Path], &moment{}).Path
}

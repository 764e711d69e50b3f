package worldtest

import (
	"math"
	"slices"
)

// All returns every world: those without a leak, those with one, and those that are about the
// reports themselves.
func All() []World { return slices.Concat(quiet, leaking, mended, special, mixed) }

// Quiet returns the worlds without a leak that every log of call paths has.
func Quiet() []World {
	return slices.DeleteFunc(slices.Clone(quiet), func(w World) bool { return w.days > 0 || w.boots > 0 || w.HeapOnly() })
}

// Find returns the world of a name, which must exist.
func Find(name string) World {
	all := All()
	return all[slices.IndexFunc(all, func(w World) bool { return w.Name == name })]
}

var quiet = []World{
	{Name: "flat", Doc: "noise alone", make: func(d *draw) {}},
	{Name: "start-exponential", Doc: "a start-up that slows: WiFi, TLS, certificates", make: func(d *draw) { start(d, 0) }},
	{Name: "start-step", Doc: "a start-up in one step", make: func(d *draw) { start(d, 1) }},
	{Name: "start-steps", Doc: "a start-up in several steps: espressif/esp-idf#7995 logs 158,788, 126,412, 134,932, 117,…", make: func(d *draw) { start(d, 2) }},
	{Name: "start-peak", Doc: "a start-up with a peak that falls back: handshake buffers, an OTA check", make: func(d *draw) { start(d, 3) }},
	{Name: "start-first-report", Doc: "the first report is from before the network starts", make: func(d *draw) { start(d, 4) }},
	{Name: "settle", Doc: "an hour or a day until it settles, as after an OTA", make: func(d *draw) {
		d.ready = true
		slow(d, d.logUniform(0.1, 0.35))
	}},
	{Name: "cache-linear", Doc: "one entry after the other until the cache is full", make: func(d *draw) { cache(d, d.uniform(0.1, 0.75)) }},
	{Name: "cache-exponential", Doc: "hits become more frequent while it fills", make: func(d *draw) { slow(d, d.logUniform(0.05, 0.3)) }},
	{Name: "cache-root", Doc: "distinct keys of a growing set: √t, without an end in sight", make: func(d *draw) {
		size := d.scale * d.logUniform(0.3, 3)
		d.fill(func(t float64) float64 { return size * math.Sqrt(t/d.last) })
	}},
	{Name: "cache-log", Doc: "distinct keys of popular and rare ones: log t", make: func(d *draw) {
		size, early := d.scale*d.logUniform(0.3, 3), d.last*d.logUniform(0.003, 0.1)
		d.fill(func(t float64) float64 { return size * math.Log1p(t/early) / math.Log1p(d.last/early) })
	}},
	{Name: "cache-lru-late", Doc: "an LRU cache that reaches its bound late", make: func(d *draw) { cache(d, d.uniform(0.6, 0.9)) }},
	{Name: "cache-dns", Doc: "DNS answers that expire: netty/netty#3349, toitlang/toit#295", make: dns},
	{Name: "cache-tls", Doc: "TLS sessions kept for resumption, with a bound: SmingHub/Sming#1464", make: func(d *draw) {
		life := d.last * d.uniform(0.05, 0.3)
		most := 4 + d.IntN(30)
		d.entries(d.scale/float64(most), life/d.logUniform(5, 50), life, most)
	}},
	{Name: "sockets", Doc: "fields of sockets, never freed but reused: espressif/esp-idf#3494", make: func(d *draw) {
		slots, used := float64(4+d.IntN(12)), 0.0
		apart := d.last / slots / d.logUniform(3, 20)
		d.walk(d.held, func(hours float64) float64 {
			if hours < 0 {
				used, hours = 0, 0
			}
			for range int(d.poisson(hours / apart)) {
				used += past(d.Float64(), used/slots)
			}
			return d.scale * used / slots
		})
		d.fillsHeld()
	}},
	{Name: "pool-maximum", Doc: "a pool keeps the most that was ever in use: a table of timers in nodemcu/nodemcu-firmware#2061", make: pool},
	{Name: "ring-log", Doc: "lines of a log kept in memory until the ring is full: arendst/Tasmota#63", make: func(d *draw) { cache(d, d.uniform(0.2, 0.7)) }},
	{Name: "teeth", Doc: "garbage until the collector runs: micropython/micropython#1877, adafruit/circuitpython#9159", make: func(d *draw) {
		d.teeth(d.scale*d.logUniform(0.1, 5), d.last/d.uniform(5, 60), nil)
	}},
	{Name: "teeth-slow", Doc: "few collections in the whole log", make: func(d *draw) {
		d.teeth(d.scale*d.logUniform(0.1, 3), d.last/d.uniform(2.5, 6), nil)
	}},
	{Name: "teeth-growing", Doc: "the collector waits for more after each collection, up to a limit: prometheus-operator#900", make: func(d *draw) {
		d.teeth(d.scale*d.logUniform(0.2, 3), d.last/d.uniform(12, 40), func(n int) float64 { return math.Min(1, 0.3+0.15*float64(n)) })
	}},
	{Name: "purge", Doc: "what is lost each day is freed at night by a purge or a reconnect", days: 5, make: func(d *draw) { d.teeth(d.scale*d.logUniform(0.2, 3), 24, nil) }},
	{Name: "levels", Doc: "each second report sees a request in flight", make: levels},
	{Name: "levels-long", Doc: "two states that last: a client is connected, or not", make: func(d *draw) {
		size, apart, on := d.scale*d.logUniform(0.2, 5), d.last/d.uniform(8, 40), false
		d.walk(d.held, func(hours float64) float64 {
			if hours < 0 {
				on = false
			}
			if d.Float64() < hours/apart {
				on = !on
			}
			if on {
				return size
			}
			return 0
		})
	}},
	{Name: "step", Doc: "once more memory, for good: a second connection", make: step},
	{Name: "steps-both", Doc: "steps down and up: configurations come and go", make: func(d *draw) {
		x, apart := 0.0, d.last/d.uniform(4, 12)
		d.walk(d.held, func(hours float64) float64 {
			if hours < 0 || d.Float64() < hours/apart {
				x = d.scale * 2 * d.Float64()
			}
			return x
		})
	}},
	{Name: "requests", Doc: "a few reports are made while a request is served", make: requests},
	{Name: "timewait", Doc: "sockets in TIME_WAIT after bursts: SuperHouse/esp-open-rtos#101", make: func(d *draw) {
		x, wait := 0.0, d.last/d.uniform(20, 100)
		d.walk(d.held, func(hours float64) float64 {
			x *= math.Exp(-math.Max(0, hours) / wait)
			if d.Float64() < 0.04 {
				x += d.scale * d.uniform(0.1, 2)
			}
			return x
		})
	}},
	{Name: "daily", Doc: "load by day", days: 4, make: func(d *draw) { cycle(d, 24, 1) }},
	{Name: "weekly", Doc: "load by day, and less on two days of seven", days: 21, boots: 1, make: week},
	{Name: "walk-short", Doc: "a stationary process that is correlated over a hundredth of the log", make: func(d *draw) {
		d.ar1(d.scale*d.logUniform(0.05, 0.5), d.last*d.logUniform(0.005, 0.02))
	}},
	{Name: "walk", Doc: "a stationary process that is correlated over a twentieth of the log", make: walk},
	{Name: "walk-long", Doc: "a stationary process that is correlated over a third of the log: within it, it grows", make: func(d *draw) {
		d.ar1(d.scale*d.logUniform(0.05, 0.5), d.last*d.uniform(0.2, 0.5))
		d.Open = true
	}},
	{Name: "customers", Doc: "customers are added until all are there", make: func(d *draw) {
		most, end := d.scale*d.logUniform(0.5, 4), d.last*d.uniform(0.3, 0.7)
		d.fill(func(t float64) float64 { return most * math.Floor(20*math.Min(1, t/end)) / 20 })
	}},
	{Name: "minimum-ever", heap: true, Doc: "the lowest value since the boot, which can only fall", make: minimum},
	{Name: "largest-block", heap: true, Doc: "the largest free block comes down in steps to a plateau: BlueAndi/Pixelix#240", make: func(d *draw) {
		level, of := 1.0, d.scale*d.logUniform(0.5, 5)
		d.walk(d.held, func(hours float64) float64 {
			if hours < 0 {
				level = 1
			}
			if d.Float64() < hours/d.last*12 && level > 0.3 {
				level = math.Max(0.3, level*d.uniform(0.6, 1))
			}
			return of*(1-level) + of*0.1*past(d.Float64(), 0.8)
		})
		d.fillsHeld()
	}},
	{Name: "multiples", heap: true, Doc: "noise in multiples of 8, 16 or 64 bytes", make: func(d *draw) {
		d.step = []float64{8, 16, 64}[d.IntN(3)]
		d.noises(1, d.step*d.uniform(0.3, 2))
		d.quiet = true
	}},
}

var leaking = []World{
	{Name: "steady", Doc: "the same loss in every hour, whatever the start-up and noise", make: (*draw).steady},
	{Name: "steady-exact", Doc: "the same bytes per report, and no noise: micropython/micropython#1877 loses 64", make: func(d *draw) { d.quiet = true; d.steady() }},
	{Name: "leak-start-exponential", Doc: "a start-up of 0.3 to 20 times the leak, which slows", make: func(d *draw) { start(d, 0); d.steady() }},
	{Name: "leak-start-step", Doc: "a start-up in one step, then a leak", make: func(d *draw) { start(d, 1); d.steady() }},
	{Name: "leak-start-steps", Doc: "a start-up in several steps, then a leak", make: func(d *draw) { start(d, 2); d.steady() }},
	{Name: "leak-start-peak", Doc: "a start-up that falls back hides the first hours of a leak", make: func(d *draw) { start(d, 3); d.steady() }},
	{Name: "leak-start-first-report", Doc: "one report from before the start-up, then a leak", make: func(d *draw) { start(d, 4); d.steady() }},
	{Name: "leak-settle", Doc: "settles slowly, and leaks", make: func(d *draw) { d.ready = true; slow(d, d.logUniform(0.1, 0.2)); d.steady() }},
	{Name: "bursts", Doc: "nothing for hours, then some: 256dpi/arduino-mqtt#191, each failed connect", make: func(d *draw) {
		n := d.uniform(8, 40)
		d.events(d.scale/n, d.last/n, 0.6)
	}},
	{Name: "reconnects", Doc: "a block per reconnect, at random moments: esp8266/Arduino#9061, 232 bytes each", make: func(d *draw) {
		n := d.uniform(30, 400)
		d.events(d.scale/n, d.last/n, 2)
	}},
	{Name: "office-hours", Doc: "leaks while clients are connected, 8 of 24 hours: espressif/arduino-esp32#5990", days: 5, boots: 1, make: func(d *draw) { duty(d, 9, 17) }},
	{Name: "night", Doc: "leaks while the router is off at night", days: 5, boots: 1, make: func(d *draw) { duty(d, 23, 30) }},
	{Name: "late", Doc: "begins after a third to two thirds of the log: a new configuration", boots: 1, make: func(d *draw) {
		begin := d.last * d.uniform(0.3, 0.65)
		d.leakWall(func(wall float64) float64 { return d.scale * math.Max(0, wall-begin) / d.last })
		d.Leak, d.Rate, d.Since = true, d.scale/d.last, begin
	}},
	{Name: "late-boot", Doc: "begins with a boot: new firmware", make: func(d *draw) {
		from := 0
		if len(d.boots) > 1 {
			from = 1 + d.IntN(len(d.boots)-1)
		}
		begin := d.boots[from].Start
		d.leakWall(func(wall float64) float64 { return d.scale / d.last * math.Max(0, wall-begin) })
		d.Leak, d.Rate, d.Since = true, d.scale/d.last, begin
	}},
	{Name: "slower", Doc: "a configuration takes away two thirds of the leak", boots: 1, make: func(d *draw) { bend(d, 3) }},
	{Name: "faster", Doc: "a second leak begins", boots: 1, make: func(d *draw) { bend(d, 1.0/3) }},
	{Name: "quantised", heap: true, Doc: "falls by 8, 16 or 64 bytes at some reports: tass-belgium/picotcp#31, 8 per connection", make: func(d *draw) {
		d.step, d.quiet, d.ready = []float64{8, 16, 64}[d.IntN(3)], true, d.Float64() < 0.5
		n := float64(len(d.boots[len(d.boots)-1].Hours))
		d.leak(d.step * d.uniform(0.3, 1.5) * n / d.last)
	}},
	{Name: "leak-teeth", Doc: "a leak below a collected heap", make: func(d *draw) { leakTeeth(d, 8, 60) }},
	{Name: "leak-teeth-slow", Doc: "the same, with few collections", make: func(d *draw) { leakTeeth(d, 4, 8) }},
	{Name: "leak-levels", Doc: "a request in flight at each second report, and a leak", make: func(d *draw) { both(d, levels) }},
	{Name: "leak-step", Doc: "one step of up to ten times the leak, and a leak", make: func(d *draw) { both(d, step) }},
	{Name: "leak-requests", Doc: "requests served, and a leak", make: func(d *draw) { both(d, requests) }},
	{Name: "leak-daily", Doc: "load by day, and a leak", days: 5, make: func(d *draw) { cycle(d, 24, 0.6); d.steady() }},
	{Name: "leak-weekly", Doc: "a week's rhythm, and a leak", days: 28, boots: 1, make: func(d *draw) { both(d, week) }},
	{Name: "leak-walk", Doc: "a correlated process, and a leak", make: func(d *draw) { both(d, walk) }},
	{Name: "leak-cache", Doc: "a cache that ends, and a leak", make: func(d *draw) { cache(d, d.uniform(0.1, 0.4)); d.steady() }},
	{Name: "leak-ring", Doc: "a ring of log lines fills, and a leak", make: func(d *draw) { cache(d, d.uniform(0.2, 0.5)); d.steady() }},
	{Name: "leak-pool", Doc: "a pool that keeps its maximum, and a leak", make: func(d *draw) { both(d, pool) }},
	{Name: "leak-dns", Doc: "a cache with expiry, and a leak", make: func(d *draw) { both(d, dns) }},
}

var mended = []World{
	{Name: "ended", Doc: "a leak that a configuration mended", boots: 1, make: func(d *draw) { end(d, d.uniform(0.3, 0.75)) }},
	{Name: "ended-early", Doc: "a leak that ended soon", boots: 1, make: func(d *draw) { end(d, d.uniform(0.12, 0.3)) }},
	{Name: "ended-ota", Doc: "a leak that a later boot's firmware does not have", make: func(d *draw) {
		if len(d.boots) == 1 {
			end(d, d.uniform(0.4, 0.7))
			return
		}
		b := 1 + d.IntN(len(d.boots)-1)
		at := d.boots[b].Start
		d.leakWall(func(wall float64) float64 { return d.scale / d.last * math.Min(wall, at) })
		d.Ended, d.Until, d.Former = true, at, d.scale/d.last
	}},
}

var special = []World{
	{Name: "half-day", Doc: "part of a daily cycle is all there is", clock: flank, boots: 1, make: func(d *draw) {
		phase, size := d.uniform(0, 24), d.scale*d.logUniform(0.3, 4)
		d.hold(func(t float64) float64 { return size * day(t+phase, 24) })
		d.Open = true
	}},
	{Name: "teeth-one", Doc: "one collection in the whole log", boots: 1, clock: func(d *draw) {}, make: func(d *draw) {
		period := d.last / d.uniform(1.2, 1.9)
		d.hold(func(t float64) float64 { return d.scale * math.Mod(t/period, 1) })
		d.Open = true
	}},
	{Name: "customers-still", Doc: "customers are added until the end", boots: 1, clock: func(d *draw) {}, make: func(d *draw) {
		d.hold(func(t float64) float64 { return d.scale * math.Floor(40*t/d.last) / 40 })
		d.Open, d.Blind = true, true
	}},
	{Name: "cache-still", Doc: "a cache that fills in a straight line until the end", boots: 1, clock: func(d *draw) {}, make: func(d *draw) {
		d.fill(func(t float64) float64 { return d.scale * t / d.last })
		d.Open, d.Blind = true, true
	}},
	{Name: "crash-loop", Doc: "boots too short to be more than start-ups", clock: crashes, make: func(d *draw) {
		d.ready = true
		d.startup(d.IntN(4), d.scale*d.logUniform(0.5, 5), d.last)
		d.Open = true
	}},
	{Name: "leak-crash-loop", Doc: "a leak that ends each boot soon", clock: crashes, make: func(d *draw) {
		d.ready = true
		d.startup(d.IntN(startups), d.scale*d.logUniform(0.1, 2), d.last/4)
		d.leak(3 * d.scale / d.last)
	}},
	{Name: "irregular", Doc: "reports at irregular intervals: on events, over a bad link", clock: irregular, make: func(d *draw) {}},
	{Name: "leak-irregular", Doc: "the same, with a leak", clock: irregular, make: (*draw).steady},
	{Name: "pauses", Doc: "nobody listens for hours", clock: pauses, make: func(d *draw) {}},
	{Name: "leak-pauses", Doc: "nobody listens for hours, and it leaks", clock: pauses, make: (*draw).steady},
	{Name: "damaged", Doc: "0.5 to 2 % of the values have lost or changed digits", make: func(d *draw) {}, damage: digits},
	{Name: "leak-damaged", Doc: "the same, with a leak", make: (*draw).steady, damage: digits},
	{Name: "lossy", Doc: "5 to 30 % of the lines are lost", make: func(d *draw) {}, damage: lose},
	{Name: "leak-lossy", Doc: "the same, with a leak", make: (*draw).steady, damage: lose},
	{Name: "clock-jump", Doc: "the clock is set, by up to a fifth of the log", boots: 1, make: func(d *draw) {}, damage: jump},
	{Name: "leak-clock-jump", Doc: "the same, with a leak", boots: 1, make: (*draw).steady, damage: jump},
	{Name: "untimed", Doc: "lines without times", make: func(d *draw) {}, damage: untime},
	{Name: "leak-untimed", Doc: "lines without times, and a leak", make: (*draw).steady, damage: untime},
}

// both adds parts and a steady leak.
func both(d *draw, parts func(d *draw)) {
	parts(d)
	d.steady()
}

func start(d *draw, kind int) {
	d.ready = true
	d.startup(kind, d.scale*d.logUniform(0.3, 20), math.Min(3, d.last/20))
}

func slow(d *draw, share float64) {
	size, hours := d.scale*d.logUniform(0.3, 3), d.last*share
	d.fill(func(t float64) float64 { return size * (1 - math.Exp(-t/hours)) })
}

func cache(d *draw, share float64) {
	size, full := d.scale*d.logUniform(0.3, 3), d.last*share
	d.fill(func(t float64) float64 { return size * math.Min(1, t/full) })
}

func levels(d *draw) {
	size, i := d.scale*d.logUniform(0.2, 5), 0
	d.walk(d.held, func(float64) float64 { i++; return size * float64(i%2) })
}

func dns(d *draw) {
	size, life := d.scale/d.logUniform(10, 200), d.last*d.logUniform(0.005, 0.2)
	d.entries(size, life/d.logUniform(5, 50), life, 0)
}

func pool(d *draw) {
	most := 0.0
	d.walk(d.held, func(hours float64) float64 {
		if hours < 0 {
			most = 0
		}
		most = math.Max(most, d.poisson(5))
		return d.scale * most / 5
	})
}

func step(d *draw) {
	size, at := d.scale*d.logUniform(0.3, 10), d.last*d.uniform(0.1, 0.8)
	d.hold(func(t float64) float64 { return size * past(t, at) })
}

func requests(d *draw) {
	size, share := d.scale*d.logUniform(0.3, 5), d.uniform(0.02, 0.3)
	d.walk(d.held, func(float64) float64 { return size * past(share, d.Float64()) * d.uniform(0.5, 1) })
}

func walk(d *draw) { d.ar1(d.scale*d.logUniform(0.05, 0.5), d.last*d.logUniform(0.03, 0.07)) }

func cycle(d *draw, hours, most float64) {
	phase, size := d.uniform(0, hours), d.scale*most*d.logUniform(0.1, 2)
	d.holdWall(func(wall float64) float64 { return size * day(wall+phase, hours) })
}

func week(d *draw) {
	phase, size := d.uniform(0, 168), d.scale*d.logUniform(0.1, 1.5)
	d.holdWall(func(wall float64) float64 {
		load := day(wall+phase, 24)
		if math.Mod(wall+phase, 168) >= 120 {
			load *= 0.3
		}
		return size * load
	})
}

// duty leaks between two hours of each day, d.scale bytes in the whole log.
func duty(d *draw, from, to float64) {
	phase := d.uniform(0, 24)
	on := func(wall float64) float64 { // hours on duty until then
		days, of := math.Modf((wall + phase) / 24)
		hours := math.Max(0, math.Min(of*24, to)-from)
		if to > 24 { // into the next day
			hours += math.Min(of*24, to-24)
		}
		return days*(to-from) + hours
	}
	d.Leak, d.Rate = true, d.scale/d.last
	d.leakWall(func(wall float64) float64 { return d.Rate * 24 / (to - from) * on(wall) })
}

// bend changes the rate of a leak at about the middle, to a part of what it was.
func bend(d *draw, part float64) {
	at := d.last * d.uniform(0.35, 0.6)
	rate := d.scale / d.last
	d.leakWall(func(wall float64) float64 { return rate*math.Max(0, wall-at) + part*rate*math.Min(wall, at) })
	d.Leak, d.Rate = true, rate
}

func leakTeeth(d *draw, few, many float64) {
	d.teeth(d.scale*d.logUniform(0.1, 2), d.last/d.uniform(few, many), nil)
	d.steady()
}

// end is a leak that ends at a share of the log.
func end(d *draw, share float64) {
	at := d.last * share
	d.leakWall(func(wall float64) float64 { return d.scale / at * math.Min(wall, at) })
	d.Ended, d.Until, d.Former = true, at, d.scale/at
}

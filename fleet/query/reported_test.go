package query

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// reported is a fleet with a leak of a kind that users have reported. Times are in hours from begin.
type reported struct {
	rand  *rand.Rand
	batch store.Batch
	ids   map[string]int64 // of the paths in batch, by build and name
	leaks []plantedLeak
	calm  [][2]string // pairs of builds between which no path changed but for leaks
	// stages are what an update from A to B tells at the end of each stage.
	stages []told
}

// told is what is known at the end of a stage.
type told struct {
	answer      string
	new, mended int // devices, and call paths
}

// begin is the time from which a reported fleet counts its hours.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// plantedLeak is what is true of a leak.
type plantedLeak struct {
	build, path string
	devices     map[string]float64 // bytes per hour
	rate        float64            // error that is allowed, as a fraction: bytes that leak in events tell less
	since       float64            // hours; 0 if it leaks from the boot on, -1 if it does on half of the devices
	hours       float64            // until the heaps are full, median; 0 if it is not asked
	heap        string             // that is full first
}

// unit is a device of a reported fleet.
type unit struct {
	*reported
	name, build string
	scale       float64 // of the sizes of its usual paths
	booted      float64 // hours
	heard       float64 // hours; first dump of the boot, -1 before
	dumps       int     // of the boot
	walk        int64
	free        int64
}

func (f *reported) unit(i int, build string, at float64) *unit {
	u := &unit{reported: f, name: fmt.Sprintf("d%04d", i), scale: math.Exp(0.3 * f.rand.NormFloat64()), walk: 5}
	u.boot(build, at)
	return u
}

func (u *unit) boot(build string, at float64) {
	u.build, u.booted, u.heard, u.dumps = build, at, -1, 0
}

func micros(hours float64) int64 { return begin.UnixMicro() + int64(hours*3.6e9) }

// stageDay returns the day on which a device of 200 is updated: 1, 10, 50 and 100 % of them on days 2, 5, 8 and 11.
func stageDay(device int) float64 {
	switch {
	case device < 2:
		return 2
	case device < 20:
		return 5
	case device < 100:
		return 8
	}
	return 11
}

// usual returns the bytes of the paths that each device has: constants, loads, caches, pools, by day and at random.
func (u *unit) usual(at float64) map[string]int64 {
	up, held := at-u.booted, map[string]int64{}
	u.walk = max(0, min(10, u.walk+int64(u.rand.IntN(3))-1))
	day := math.Sin(2 * math.Pi * at / 24)
	for i := range 3 {
		for name, blocks := range map[string]float64{
			"task":    4,
			"packet":  5 * u.rand.Float64(),
			"cache":   20*(1-math.Exp(-up/float64(2+3*i))) + u.rand.Float64(),
			"session": 8 + 3*day + u.rand.Float64(),
			"pool":    float64(u.walk),
			"request": 10 + 1.5*u.rand.NormFloat64(),
			"flush":   float64(int(up/(5+2*float64(i)))%5) + 1, // a buffer that is written to flash when it is full
		} {
			size := int64(u.scale*float64(48*(i+1))) &^ 7
			held[fmt.Sprint(name, i)] = size * int64(max(0, blocks))
		}
	}
	return held
}

// dump adds a dump. Of several heaps, the first holds all paths but those in other.
func (u *unit) dump(at float64, clock float64, held map[string]int64, other []string, heaps ...store.Heap) {
	if u.heard < 0 {
		u.heard = at
	}
	d := store.Dump{Build: u.build, FW: u.build, Device: u.name, Boot: micros(u.heard), Dump: int64(u.dumps), Time: micros(at + clock),
		Uptime: int64((at - u.booted) * 3.6e9), Received: micros(at), Complete: true, Why: "interval", HeapLargest: -1, HeapMinimum: -1,
		Upload: fmt.Sprintf("%032x", len(u.batch.Dumps))}
	names := make([]string, 0, len(held))
	for name, bytes := range held {
		if bytes > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		id, ok := u.ids[u.build+name]
		if !ok {
			p := store.Path{Build: u.build, Addresses: []string{innermost(name), "code+0x100", "code+0x40"}}
			p.Path = store.PathID(p.Addresses)
			id, u.ids[u.build+name] = p.Path, p.Path
			u.batch.Paths = append(u.batch.Paths, p)
		}
		count := max(1, held[name]/64)
		d.Bytes, d.Count = d.Bytes+held[name], d.Count+count
		u.batch.Facts = append(u.batch.Facts, store.Fact{Build: u.build, Device: u.name, Path: id, Boot: d.Boot, Dump: d.Dump, Time: d.Time, Count: count, Bytes: held[name], Complete: true})
	}
	main := d.Bytes
	for _, name := range other {
		main -= held[name]
	}
	heaps[0].Free = heaps[0].Size - main
	for i := range heaps {
		d.HeapSize, d.HeapFree = d.HeapSize+heaps[i].Size, d.HeapFree+heaps[i].Free
	}
	if len(heaps) > 1 {
		text, _ := json.Marshal(heaps)
		d.Heaps = string(text)
	}
	u.free = heaps[0].Free
	u.batch.Dumps = append(u.batch.Dumps, d)
	u.dumps++
}

// deadline sets the hours of a leak: the median of free memory, divided by rate.
func (p *plantedLeak) deadline(free map[string]int64) {
	var list []float64
	for device, rate := range p.devices {
		list = append(list, float64(free[device])/rate)
	}
	p.hours = quantile(list, 0.5)
}

const small = 512 << 10

// reports are the fleets. What is true of each was decided before it was judged.
var reports = []struct {
	name, about string
	make        func(*reported)
}{
	// esp-mqtt issue 25, nodemcu-firmware issue 2364
	{"reconnect", "each connection to the broker leaks; it fails for all devices at the same times, and messages wait meanwhile", func(f *reported) {
		storms := []float64{}
		for at := 5.0; at < 240; at += 12 + 24*f.rand.Float64() {
			storms = append(storms, at)
		}
		p, free := plantedLeak{build: "B", path: "tls session", devices: map[string]float64{}, rate: 0.25}, map[string]int64{}
		for i := range 120 {
			u, leaked, lone := f.unit(i, string("AB"[i%2]), f.rand.Float64()), 0.0, 72*f.rand.Float64()
			for at, storm := 1+5*f.rand.Float64(), 0; at < 240; at += 6 {
				held := u.usual(at)
				for ; storm < len(storms) && storms[storm] < at; storm++ {
					leaked += 1500 * float64(1+f.rand.IntN(3))
				}
				for ; lone < at; lone += 36 + 72*f.rand.Float64() {
					leaked += 1500
				}
				if storm > 0 {
					held["outbox"] = int64(9000 - 700*(at-storms[storm-1])) // sent within 13 hours
				}
				if u.build == "B" {
					held[p.path] = int64(leaked)
				}
				u.dump(at, 0, held, nil, store.Heap{Size: small})
			}
			if u.build == "B" {
				p.devices[u.name], free[u.name] = leaked/240, u.free
			}
		}
		p.deadline(free)
		f.leaks, f.calm = []plantedLeak{p}, [][2]string{{"A", "B"}}
	}},
	// kamailio issue 3823, huginn-proxy pull request 187
	{"renewal", "a certificate is leaked at each renewal, every five days; a table of neighbours doubles; logs rotate", func(f *reported) {
		p, free := plantedLeak{build: "B", path: "certificate", devices: map[string]float64{}, rate: 0.25}, map[string]int64{}
		for i := range 120 {
			u, phase, hour := f.unit(i, string("AB"[i%2]), 0), 120*f.rand.Float64(), 24*f.rand.Float64()
			for day := range 42 {
				at := 24*float64(day) + hour + f.rand.Float64()
				held := u.usual(at)
				neighbours := 200 * (1 - math.Exp(-at/96)) // all are known after two weeks
				held["neighbours"] = 24 << max(4, int(math.Ceil(math.Log2(1+neighbours))))
				held["log"] = int64(512 * f.rand.IntN(64)) // rotated at 32 kB, a few times a day
				if u.build == "B" {
					held[p.path] = 6144 * int64((at+phase)/120)
				}
				u.dump(at, 0, held, nil, store.Heap{Size: small})
			}
			if u.build == "B" {
				p.devices[u.name], free[u.name] = 6144./120, u.free
			}
		}
		p.deadline(free)
		f.leaks, f.calm = []plantedLeak{p}, [][2]string{{"A", "B"}}
	}},
	// esphome issue 6916, ruuvi.gateway_esp.c pull request 1291
	{"ota", "a download of an update that fails leaks; on days 4 to 6 most devices load C and boot, a twelfth fails every 8 hours", func(f *reported) {
		p, free := plantedLeak{build: "A", path: "download failed", devices: map[string]float64{}, rate: 0.2, since: 96}, map[string]int64{}
		for i := range 144 {
			u, fails, updated := f.unit(i, "A", f.rand.Float64()), i%12 == 0, 96+48*f.rand.Float64()
			for at := 1 + 5*f.rand.Float64(); at < 264; at += 6 {
				if at > updated && u.build == "A" && !fails {
					u.boot("C", updated)
				}
				held := u.usual(at)
				if u.build == "A" && at > 96 && (fails || at > updated-6) {
					held["download"] = 1024 * int64(f.rand.IntN(33))
				}
				if fails && at > 96 {
					held[p.path] = 8192 * int64((at-96)/8)
				}
				u.dump(at, 0, held, nil, store.Heap{Size: small})
			}
			if fails {
				p.devices[u.name], free[u.name] = 1024, u.free
			}
		}
		p.deadline(free)
		f.leaks = []plantedLeak{p}
	}},
	// chrony's and ntpd's steps; devices without a battery boot in 1970
	{"clocks", "clocks say 1970 until the first answer of NTP, or jump back by an hour in autumn; alarms wait for the time", func(f *reported) {
		p, free := plantedLeak{build: "B", path: "timer", devices: map[string]float64{}, rate: 0.1}, map[string]int64{}
		for i := range 120 {
			u := f.unit(i, string("AB"[i%2]), f.rand.Float64())
			leaks := u.build == "B" && i%10 < 4
			for at := 1 + 5*f.rand.Float64(); at < 240; at += 6 {
				if f.rand.Float64() < 0.01 {
					u.boot(u.build, at-0.5)
				}
				held, clock := u.usual(at), 0.0
				switch {
				case i%3 == 0 && u.dumps == 0:
					clock = -begin.Sub(time.Unix(0, 0)).Hours() - at + 0.5
					held["alarm"] = 4096
				case i%3 == 1 && at > 123:
					clock = -1
				}
				held["alarm"] += 1024
				if leaks {
					held[p.path] = int64(150 * (at - u.booted))
				}
				u.dump(at, clock, held, nil, store.Heap{Size: small})
			}
			if leaks {
				p.devices[u.name], free[u.name] = 150, u.free
			}
		}
		p.deadline(free)
		f.leaks, f.calm = []plantedLeak{p}, [][2]string{{"A", "B"}}
	}},
	// Pixelix issue 240, EnergyMe-Home issue 191
	{"fragments", "two heaps: that for DMA is in fragments, but as full as ever, and the leak is in the other", func(f *reported) {
		p, free := plantedLeak{build: "B", path: "json", devices: map[string]float64{}, rate: 0.1, heap: "main"}, map[string]int64{}
		for i := range 120 {
			u := f.unit(i, string("AB"[i%2]), f.rand.Float64())
			leaks := u.build == "B" && i%4 == 1
			for at := 1 + 5*f.rand.Float64(); at < 240; at += 6 {
				held := u.usual(at)
				held["dma"] = 30000 + 512*int64(f.rand.IntN(8))
				if leaks {
					held[p.path] = int64(300 * (at - u.booted))
				}
				u.dump(at, 0, held, []string{"dma"}, store.Heap{Name: "main", Size: 256 << 10}, store.Heap{Name: "dma", Size: 48 << 10, Free: 48<<10 - held["dma"]})
				u.batch.Dumps[len(u.batch.Dumps)-1].HeapLargest = int64(16000 - 50*(at-u.booted))
			}
			if leaks {
				p.devices[u.name], free[u.name] = 300, u.free
			}
		}
		p.deadline(free)
		f.leaks, f.calm = []plantedLeak{p}, [][2]string{{"A", "B"}}
	}},
	// opentelemetry-demo pull request 3260: a leak behind a flag
	{"flags", "B goes to 1, 10, 50 and 100 % on days 2, 5, 8 and 11; a flag, set on half of all devices on day 9, leaks in B alone, and holds 4 kB in A and B", func(f *reported) {
		p, free := plantedLeak{build: "B", path: "telemetry", devices: map[string]float64{}, rate: 0.1, since: -1}, map[string]int64{}
		for i := range 200 {
			u, updated := f.unit(i, "A", f.rand.Float64()), 24*stageDay(i)+6*f.rand.Float64()
			for at := 1 + 5*f.rand.Float64(); at < 360; at += 6 {
				if at > updated && u.build == "A" {
					u.boot("B", updated)
				}
				held := u.usual(at)
				if i%2 == 0 && at > 216 {
					held["flagged"] = 4096
					if u.build == "B" {
						held[p.path] = int64(400 * (at - max(216, u.booted)))
					}
				}
				u.dump(at, 0, held, nil, store.Heap{Size: small})
			}
			if i%2 == 0 {
				p.devices[u.name], free[u.name] = 400, u.free
			}
		}
		p.deadline(free)
		f.leaks, f.calm = []plantedLeak{p}, [][2]string{{"A", "B"}}
		f.stages = []told{{"go", 0, 0}, {"go", 0, 0}, {"stop", 50, 0}, {"stop", 100, 0}}
	}},
	{"stages", "B goes to 1, 10, 50 and 100 % on days 2, 5, 8 and 11; it leaks on a fifth of the devices, none of the first two, and mends a leak that a third have with A", func(f *reported) {
		p, old := plantedLeak{build: "B", path: "new", devices: map[string]float64{}, rate: 0.1}, plantedLeak{build: "A", path: "old", devices: map[string]float64{}, rate: 0.1}
		free := map[string]int64{}
		for i := range 200 {
			u, updated := f.unit(i, "A", f.rand.Float64()), 24*stageDay(i)+6*f.rand.Float64()
			for at := 1 + 5*f.rand.Float64(); at < 360; at += 6 {
				if at > updated && u.build == "A" {
					u.boot("B", updated)
				}
				held := u.usual(at)
				switch {
				case u.build == "A" && i%3 == 0:
					held[old.path] = int64(200 * (at - u.booted))
				case u.build == "B" && i%5 == 4:
					held[p.path] = int64(400 * (at - u.booted))
				}
				u.dump(at, 0, held, nil, store.Heap{Size: small})
			}
			if i%3 == 0 {
				old.devices[u.name] = 200
			}
			if i%5 == 4 {
				p.devices[u.name], free[u.name] = 400, u.free
			}
		}
		p.deadline(free)
		f.leaks = []plantedLeak{p, old}
		f.stages = []told{{"go", 0, 0}, {"stop", 4, 1}, {"stop", 20, 1}, {"stop", 40, 1}}
	}},
}

// Leaks of the kinds that users report are found, with rate, devices, begin and deadline, and nothing else is. LWSBT_FULL=all has ten fleets
// of each, of which one may miss a leak: connections that fail for all devices at once may do so more often at first, as a cache fills.
func TestReported(t *testing.T) {
	seeds := uint64(1)
	if cmdtest.All() {
		seeds = 10
	}
	for _, c := range reports {
		t.Run(c.name, func(t *testing.T) {
			if seeds == 1 && slices.Contains([]string{"renewal", "ota", "clocks", "fragments"}, c.name) {
				t.Skip("LWSBT_FULL is not all")
			}
			t.Parallel()
			missed := 0
			for seed := range seeds {
				f := &reported{rand: rand.New(rand.NewPCG(seed, 56)), ids: map[string]int64{}}
				c.make(f)
				missed += f.check(t, c.about, seed)
			}
			if missed*10 > int(seeds) {
				t.Errorf("%d leaks of %d fleets are missed: %s", missed, seeds, c.about)
			}
		})
	}
}

// check judges a fleet. It returns the number of leaks that are missed.
func (f *reported) check(t *testing.T, about string, seed uint64) (missing int) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f.batch.Name, f.batch.Day = "reported", begin
	if err := s.Put(t.Context(), &f.batch); err != nil {
		t.Fatal(err)
	}
	d := open(t, s)
	defer d.Close()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("seed %d: %s\n\t%s", seed, fmt.Sprintf(format, args...), about)
	}
	builds := map[string]bool{}
	for _, x := range f.batch.Dumps {
		builds[x.Build] = true
	}
	for build := range builds {
		l, err := d.Leaks(t.Context(), Scope{Builds: []string{build}})
		if err != nil {
			t.Fatal(err)
		}
		found := map[int64]bool{}
		for i := range l.Rows {
			r := &l.Rows[i]
			at := slices.IndexFunc(f.leaks, func(p plantedLeak) bool { return p.build == build && f.ids[build+p.path] == r.Path })
			if !r.Verdict.Sure() {
				continue
			}
			if at < 0 {
				wrong("build %s: accused: %s (%s)", build, describe(r), f.name(r.Stack[0].Address))
				continue
			}
			p := &f.leaks[at]
			found[r.Path] = true
			var rates []float64
			for _, rate := range p.devices {
				rates = append(rates, rate)
			}
			if want := quantile(rates, 0.5); r.Rate == nil || math.Abs(*r.Rate/want-1) > p.rate {
				wrong("%s: want %.0f bytes per hour", describe(r), want)
			}
			if n := float64(len(p.devices)); float64(r.Grew) < 0.8*n || float64(r.Grew) > 1.1*n {
				wrong("%s: want %.0f devices", describe(r), n)
			}
			if want := begin.Add(time.Duration(p.since) * time.Hour); p.since == 0 && r.Since != nil || p.since > 0 && (r.Since == nil || r.Since.Sub(want).Abs() > 24*time.Hour) {
				wrong("%s: want since %v", describe(r), want)
			}
			if x := l.Exhaustion; p.hours > 0 && (x == nil || x.Hours == nil || math.Abs(*x.Hours/p.hours-1) > p.rate || x.Heap != p.heap) {
				wrong("exhaustion %+v, want %.0f hours of heap %q", x, p.hours, p.heap)
			}
		}
		for _, p := range f.leaks {
			if p.build == build && !found[f.ids[build+p.path]] {
				t.Logf("seed %d: build %s: %s is missed", seed, build, p.path)
				missing++
			}
		}
	}
	if f.stages != nil {
		r, err := d.Rollout(t.Context(), "A", "B", Scope{})
		if err != nil {
			t.Fatal(err)
		}
		var got []told
		for _, s := range r.Stages {
			n := told{s.Answer, 0, len(s.Mended)}
			for _, l := range s.New {
				n.new += int(l.Grew)
			}
			got = append(got, n)
		}
		if len(got) != len(f.stages) {
			t.Fatalf("%+v", r.Stages)
		}
		for i, want := range f.stages {
			if g := got[i]; g.answer != want.answer || g.mended != want.mended || math.Abs(float64(g.new-want.new)) > 0.1*float64(want.new) {
				wrong("rollout: %+v, want %+v", got, f.stages)
			}
		}
	}
	for _, pair := range f.calm {
		x, err := d.Diff(t.Context(), pair[0], pair[1], Scope{})
		if err != nil {
			t.Fatal(err)
		}
		missed := slices.Clone(f.leaks)
		for _, r := range x.Rows {
			at := slices.IndexFunc(missed, func(p plantedLeak) bool { return innermost(p.path) == r.Stack[0].Address })
			switch {
			case r.Evidence != Changed && (at >= 0 || r.Evidence != Perhaps):
			case at < 0:
				wrong("diff accuses %s: %+v", f.name(r.Stack[0].Address), r)
			default:
				missed = slices.Delete(missed, at, at+1)
			}
		}
		for _, p := range missed {
			wrong("diff %s %s misses %s", pair[0], pair[1], p.path)
		}
	}
	return missing
}

// Devices that wait for their update are controls for what is seen until then: not for what the new build does after a day, if all get it
// within one.
func TestControlsTooShort(t *testing.T) {
	f := &reported{rand: rand.New(rand.NewPCG(1, 57)), ids: map[string]int64{}}
	for i := range 60 {
		u, updated := f.unit(i, "A", 0), 96+0.4*float64(i)
		for at := 1 + 5*f.rand.Float64(); at < 240; at += 6 {
			if at > updated && u.build == "A" {
				u.boot("B", updated)
			}
			held := u.usual(at)
			if u.build == "B" && at-u.booted > 24 {
				held["index"] = 8192
			}
			u.dump(at, 0, held, nil, store.Heap{Size: small})
		}
	}
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f.batch.Name, f.batch.Day = "reported", begin
	if err := s.Put(t.Context(), &f.batch); err != nil {
		t.Fatal(err)
	}
	x, err := open(t, s).Diff(t.Context(), "A", "B", Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if x.Controls < minControls || x.Updated < minControls {
		t.Errorf("%d devices updated, %d waiting: expected controls", x.Updated, x.Controls)
	}
	for _, r := range x.Rows {
		if late := r.Stack[0].Address == innermost("index"); late && (r.Evidence != Changed || r.PControls != nil) || !late && r.Evidence == Changed {
			t.Errorf("%s: %+v", f.name(r.Stack[0].Address), r)
		}
	}
}

// name returns the name of a path, by the address of its innermost frame.
func (f *reported) name(address string) string {
	for id := range f.ids {
		if innermost(id[1:]) == address {
			return id[1:]
		}
	}
	return "?"
}

// innermost returns the address of the innermost frame of a path.
func innermost(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	return fmt.Sprintf("code+%#x", h.Sum32()>>8)
}

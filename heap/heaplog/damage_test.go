package heaplog_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// fleetLog describes a simulated log of a device.
type fleetLog struct {
	form  string // "records", "paths" or "differences"
	dumps int
	boots int
	host  bool // each line begins with the time of the host
	lines bool // times are in the lines only
	from  int  // number of the first dump in the log, which began late
	leaks float64
}

// path is a call path of a simulated log.
type devicePath struct {
	size  uint64
	count func(rng *rand.Rand, boot, dump int) float64
}

// devicePaths returns some paths that do not leak, and one that leaks by a number of blocks per
// dump. Its last frame is the first address.
func devicePaths(rng *rand.Rand, leaks float64) []devicePath {
	leaked, boot := 0.0, 0
	list := []devicePath{{24, func(rng *rand.Rand, b, dump int) float64 {
		if b != boot {
			leaked, boot = 4, b
		}
		leaked += leaks + 0.5*leaks*(2*rng.Float64()-1)
		return leaked
	}}}
	for i := range 12 {
		level, size := float64(2+3*i), uint64(8*(1+rng.IntN(40)))
		switch i % 4 {
		case 0:
			list = append(list, devicePath{size, func(*rand.Rand, int, int) float64 { return level }})
		case 1:
			list = append(list, devicePath{size, func(rng *rand.Rand, _, _ int) float64 { return level * (0.5 + rng.Float64()) }})
		case 2:
			list = append(list, devicePath{size, func(_ *rand.Rand, _, dump int) float64 { return level * math.Min(1, float64(dump+1)/5) }})
		case 3:
			list = append(list, devicePath{size, func(rng *rand.Rand, _, dump int) float64 {
				return level * float64(1+(dump+rng.IntN(2))%3)
			}})
		}
	}
	return list
}

// write writes the log, with other lines between its records.
func (l fleetLog) write(t testing.TB, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 38))
	var b strings.Builder
	host := 30000.0 // seconds
	prefix := func() {
		if l.host {
			host += 0.003
			fmt.Fprintf(&b, "[2026-11-20 %02d:%02d:%06.3f] ", int(host)/3600, int(host)/60%60, math.Mod(host, 60))
		}
	}
	line := func(format string, args ...any) { prefix(); fmt.Fprintf(&b, format+"\n", args...) }
	paths := devicePaths(rng, l.leaks)
	for boot := range l.boots {
		if l.from == 0 {
			line("~h#boot prog=fw w=32 fw=1.0 code=1000+10000")
		}
		seq, before := 0, map[int]uint64{}
		uptime := 600 * float64(l.from)
		for dump := range l.dumps {
			step := 600 + 5*rng.Float64()
			uptime, host = uptime+step, host+step
			for range 1 + rng.IntN(3) {
				line("I (%d) wifi: rssi -%d dBm", int64(uptime*1000)-int64(rng.IntN(90000)), 30+rng.IntN(60))
			}
			number := l.from + dump
			head := fmt.Sprintf("~h#begin %d", number)
			if !l.lines {
				head += fmt.Sprintf(" t=%d", int64(uptime*1e6))
			}
			kind := ""
			if l.form != "records" {
				kind = fmt.Sprintf(" k=paths l=%d", seq)
				if l.form == "differences" && dump%16 > 0 {
					kind = fmt.Sprintf(" k=diff base=%d l=%d", number-1, seq)
				}
			}
			line("%s%s why=interval", head, kind)
			var n, bytes uint64
			var records []string
			var entries []callpath.Entry
			for i, p := range paths {
				count := uint64(math.Max(0, math.Round(p.count(rng, boot+1, dump))))
				offset := 0x100 * uint64(i+1)
				if l.form == "records" {
					for range count {
						records = append(records, fmt.Sprintf("~b#size: %d, %#x 0x5000", p.size, 0x1000+offset))
					}
				} else if before[i] != count || !strings.Contains(kind, "diff") {
					entries = append(entries, wholePath(count, count*p.size, 0x4000, offset))
				} else {
					continue
				}
				before[i] = count
				n, bytes = n+count, bytes+count*p.size
			}
			rng.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
			for _, r := range records {
				line("%s", r)
			}
			for part := range slices.Chunk(entries, 3) {
				line("%s", strings.TrimSpace(pathLine(t, callpath.Head{Dump: uint8(number % 64), Seq: uint16(seq)}, part...)))
				seq++
			}
			if kind != "" {
				kind = fmt.Sprintf(" l=%d", seq)
			}
			line("~h#end %d n=%d b=%d%s", number, n, bytes, kind)
		}
	}
	return b.String()
}

// answer is what is said about a log.
type answer struct {
	verdicts []string // of what most likely leaks, with its innermost frame
	timed    bool
	rate     float64
	margin   float64
	boots    int
	used     int
}

// answerTo returns what Leaks says about a log.
func answerTo(t testing.TB, log []byte) (a answer) {
	var list []*profile.Dump
	for d, err := range open(t, bytes.NewReader(log)).Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	p, err := profile.New(list...)
	if err != nil {
		t.Fatal(err)
	}
	l := growth.Judge(p, growth.Options{})
	a.timed, a.boots, a.used = l.Per == growth.PerHour, l.Boots, l.Used
	if len(l.Rows) > 0 && l.Rows[0].Verdict != leak.None { // near one half, a line decides between two words
		r := l.Rows[0]
		a.verdicts, a.rate, a.margin = []string{"leak " + r.Stack()[0].Func}, r.Rate, (r.High-r.Low)/2
	}
	return a
}

// same reports whether an answer differs at most by the interval of the rate.
func (a answer) same(o answer) bool {
	return slices.Equal(a.verdicts, o.verdicts) && a.timed == o.timed && math.Abs(a.rate-o.rate) <= a.margin+1e-9
}

// damages are what happens to a line of a log. next is the line after it.
var damages = []struct {
	name string
	to   func(rng *rand.Rand, line, next string) string
}{
	{"removed", func(*rand.Rand, string, string) string { return "" }},
	{"cut", func(rng *rand.Rand, line, _ string) string { return line[:rng.IntN(len(line))] + "\n" }},
	{"cut with its end", func(rng *rand.Rand, line, _ string) string { return line[:rng.IntN(len(line))] }},
	{"its beginning lost", func(rng *rand.Rand, line, _ string) string { return line[rng.IntN(len(line)):] }},
	{"doubled", func(_ *rand.Rand, line, _ string) string { return line + line }},
	{"interleaved", func(rng *rand.Rand, line, next string) string {
		at := rng.IntN(len(line))
		return line[:at] + strings.TrimSuffix(next, "\n") + line[at:]
	}},
}

// fleetLogs are kinds of logs.
var fleetLogs = []fleetLog{
	{form: "records", dumps: 14, boots: 1, leaks: 2},
	{form: "records", dumps: 14, boots: 2, leaks: 2, host: true},
	{form: "records", dumps: 14, boots: 1, leaks: 2, from: 120},
	{form: "paths", dumps: 20, boots: 2, leaks: 2},
	{form: "differences", dumps: 40, boots: 1, leaks: 2},
	{form: "differences", dumps: 40, boots: 2, leaks: 3, host: true},
	{form: "differences", dumps: 40, boots: 2},
	{form: "records", dumps: 14, boots: 1, leaks: 2, lines: true},
	{form: "paths", dumps: 20, boots: 2, leaks: 2, lines: true, host: true},
}

// One damaged line changes neither what leaks nor the unit of the rate, and the rate at most by
// its margin. LWSBT_FULL=1 damages more of the lines: then one in 500 may change it, such as the
// first ~h#boot, without which the code ranges of a boot are not known.
func TestOneLine(t *testing.T) {
	tries, allowed := 60, 0
	if cmdtest.Full() {
		tries = 120
		if cmdtest.All() {
			tries = 1000
		}
		allowed = tries * len(fleetLogs) / 500
	}
	var changed []string
	for k, l := range fleetLogs {
		log := l.write(t, uint64(k))
		want := answerTo(t, []byte(log))
		if l.leaks > 0 && !slices.Equal(want.verdicts, []string{"leak 0x10ff"}) && !slices.Equal(want.verdicts, []string{"leak 0x1100"}) || l.leaks == 0 && want.verdicts != nil || !want.timed {
			t.Errorf("%+v: %+v", l, want)
			continue
		}
		lines := strings.SplitAfter(log, "\n")
		lines = lines[:len(lines)-1]
		rng := rand.New(rand.NewPCG(uint64(k), 1))
		for range tries {
			n := rng.IntN(len(lines))
			if rng.IntN(2) == 0 { // headers are few, and matter
				for !strings.Contains(lines[n], "~h#") {
					n = rng.IntN(len(lines))
				}
			}
			d := damages[rng.IntN(len(damages))]
			damaged := slices.Clone(lines)
			damaged[n] = d.to(rng, lines[n], lines[(n+1)%len(lines)])
			if got := answerTo(t, []byte(strings.Join(damaged, ""))); !want.same(got) {
				changed = append(changed, fmt.Sprintf("%+v: line %d %s: %q: %+v, want %+v", l, n+1, d.name, damaged[n], got, want))
			}
		}
	}
	report(t, changed, allowed)
}

// A log whose first ~h#boot is damaged has the same answer, but for names of code ranges that no other boot tells.
func TestFirstBootLine(t *testing.T) {
	var changed []string
	for k, l := range fleetLogs {
		if l.from > 0 {
			continue
		}
		log := l.write(t, uint64(k))
		want := answerTo(t, []byte(log))
		first, rest, _ := strings.Cut(log, "\n")
		next, _, _ := strings.Cut(rest, "\n")
		for _, d := range damages {
			for seed := range uint64(6) {
				damaged := d.to(rand.New(rand.NewPCG(seed, uint64(k))), first+"\n", next+"\n")
				got := answerTo(t, []byte(damaged+rest))
				if l.boots == 1 && l.form != "records" && len(got.verdicts) == len(want.verdicts) {
					for i := range got.verdicts {
						got.verdicts[i] = strings.Replace(got.verdicts[i], "code+0x", "0x1", 1)
					}
				}
				if !want.same(got) {
					changed = append(changed, fmt.Sprintf("%+v: %s: %q: %+v, want %+v", l, d.name, damaged, got, want))
				}
			}
		}
	}
	report(t, changed, 0)
}

// report fails a test of which more than the allowed number of answers changed.
func report(t *testing.T, changed []string, allowed int) {
	t.Helper()
	for _, text := range changed {
		t.Log(text)
	}
	if len(changed) > allowed {
		t.Errorf("%d answers changed, want at most %d", len(changed), allowed)
	}
}

// Of a log that lost 2 % of its lines, or the ends of 2 %, the answer is the same, and nearly all dumps are used. With
// LWSBT_FULL=1, one in 50 may be another: with 14 dumps, a leak may become a probable one.
func TestLostLines(t *testing.T) {
	seeds, allowed := uint64(2), 0
	if cmdtest.Full() {
		seeds = 8
		allowed = 2 * int(seeds) * len(fleetLogs) / 50
	}
	var changed []string
	used, of := 0, 0
	for k, l := range fleetLogs {
		log := l.write(t, uint64(k))
		want := answerTo(t, []byte(log))
		for seed := range seeds {
			for _, d := range damages[:2] {
				rng := rand.New(rand.NewPCG(seed, uint64(k)))
				lines := strings.SplitAfter(log, "\n")
				for i := range lines[:len(lines)-1] {
					if rng.IntN(50) == 0 {
						lines[i] = d.to(rng, lines[i], "")
					}
				}
				got := answerTo(t, []byte(strings.Join(lines, "")))
				used, of = used+got.used, of+want.used
				if !want.same(got) {
					changed = append(changed, fmt.Sprintf("%+v, seed %d, 2 %% %s: %+v, want %+v", l, seed, d.name, got, want))
				}
			}
		}
	}
	report(t, changed, allowed)
	if used < of*99/100 {
		t.Errorf("%d of %d dumps are used, want 99 %%", used, of)
	}
}

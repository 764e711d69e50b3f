package query

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// found is the evidence for a path on a device, computed by SQL or by package profile.
type found struct {
	word                       int64
	z, d, h2, rate, gain, rose float64
	changed, load              bool // by package profile only: the rate changed during the log, the load grew
	boots                      int
}

type place struct {
	device string
	path   int64
	dir    int
}

// For each device, the SQL finds the same paths with the same numbers as package profile finds
// in the dumps of the device, in both directions of time. It has no present rate and no load: where
// package profile found that the rate changed, or that the load grew, the words and rates may differ.
// The SQL adds up the distances from a straight line over the boots, and package profile the floors: of
// several boots, D is at least as large in SQL.
func TestEvidenceIsTheRule(t *testing.T) {
	f := simulate.Default()
	f.Devices, f.Builds, f.PerDay, f.Paths, f.Reboots, f.Loss = 100, 1, 4, 60, 0.15, 0
	f.Leak = simulate.Leak{Build: 0, Share: 0.5, Rate: 400, Path: 5}
	d := simulated(t, &f)
	var got map[place]found
	var want map[place]found
	err := d.with(t.Context(), Scope{Builds: []string{f.BuildID(0)}}, func(s *session) error {
		if err := s.evidence(t.Context()); err != nil {
			return err
		}
		type row struct {
			Device                     string
			Path                       int64
			Dir                        int
			Word                       int64
			Z, D, H2, Rate, Gain, Rose float64
		}
		list, err := rows[row](t.Context(), s, "select device, path, dir, word, z, d, h2, rate, gain, rose from evidence")
		got = map[place]found{}
		for _, r := range list {
			got[place{r.Device, r.Path, r.Dir}] = found{r.Word, r.Z, r.D, r.H2, r.Rate, r.Gain, r.Rose, false, false, 0}
		}
		if err == nil {
			want, err = byProfile(t, s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	words := map[int64]int{}
	for k, w := range want {
		g, ok := got[k]
		if w.changed {
			continue
		}
		several := w.boots > 1
		if !ok && several { // d is over 0.40
			continue
		}
		if !ok {
			t.Errorf("%v: profile has %+v, SQL has nothing", k, w)
			continue
		}
		words[w.word]++
		for i, pair := range [][2]float64{{g.z, w.z}, {g.d, w.d}, {g.h2, w.h2}, {g.rate, w.rate}, {g.gain, w.gain}, {g.rose, w.rose}} {
			if less := pair[0] < pair[1]-1e-9*(1+math.Abs(pair[1])); less || pair[0] > pair[1]+1e-9*(1+math.Abs(pair[1])) && !(several && i == 1) {
				t.Errorf("%v: number %d is %v in SQL, %v in profile", k, i, pair[0], pair[1])
			}
		}
		if g.word > w.word && !w.load || g.word < w.word && !w.load && !several {
			t.Errorf("%v: word %d in SQL, %d in profile", k, g.word, w.word)
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%v: SQL has %+v, profile has nothing", k, g)
		}
	}
	if words[1] < 20 || words[2] < 5 || words[3] < 20 {
		t.Errorf("words %v: too few to compare", words)
	}
}

// byProfile applies the leak rule of package profile to the dumps of each device.
func byProfile(t *testing.T, s *session) (map[place]found, error) {
	dumps, err := rows[struct {
		Device     string
		Boot, Dump int64
		Uptime     int64
		Count      int64
		Lost       float64
		Why        string
	}](t.Context(), s, "select device, boot, dump, uptime_us, count, lost, why from dumps order by device, boot, dump")
	if err != nil {
		return nil, err
	}
	facts, err := rows[struct {
		Device             string
		Boot, Dump         int64
		Path, Count, Bytes int64
	}](t.Context(), s, "select device, boot, dump, path, count, bytes from facts")
	if err != nil {
		return nil, err
	}
	held := map[string]map[int64]profile.Value{} // by dump and path
	for _, f := range facts {
		k := fmt.Sprint(f.Device, f.Boot, f.Dump)
		if held[k] == nil {
			held[k] = map[int64]profile.Value{}
		}
		held[k][f.Path] = profile.Value{Bytes: uint64(f.Bytes), Count: uint64(f.Count)}
	}
	want := map[place]found{}
	for len(dumps) > 0 {
		n := 1
		for n < len(dumps) && dumps[n].Device == dumps[0].Device {
			n++
		}
		device := dumps[:n]
		dumps = dumps[n:]
		for _, dir := range []int{1, -1} {
			b := profile.NewBuilder(0)
			var list []*profile.Dump
			if dir < 0 {
				device = slices.Clone(device)
				slices.Reverse(device)
			}
			for _, d := range device {
				for path, v := range held[fmt.Sprint(d.Device, d.Boot, d.Dump)] {
					b.Add(b.Path([]symbol.Addr{{PC: uint64(path)}}), v)
				}
				at := time.Duration(d.Uptime) * time.Microsecond
				if dir < 0 {
					at = 1000*time.Hour - at
				}
				list = append(list, b.End(profile.DumpInfo{Boot: int(d.Boot), Time: at, Timed: true, Why: d.Why,
					Announced: profile.Announced{Records: uint64(math.Round(float64(d.Count) / (1 - d.Lost))), HasRecords: true}}))
			}
			p, err := profile.New(list...)
			if err != nil {
				return nil, err
			}
			l := p.Leaks(profile.LeakOptions{})
			for _, r := range l.Rows {
				if r.Verdict == profile.NoEvidence && !r.Changed {
					continue
				}
				var path int64
				fmt.Sscanf(r.Stack()[0].String(), "0x%x", &path)
				want[place{device[0].Device, path, dir}] = found{int64(r.Verdict), r.Z, r.Bend, r.Evenness, r.Rate, r.Gain, float64(r.Rose), r.Changed, l.Load > 0, r.Boots}
			}
		}
	}
	return want, nil
}

// byHand describes a device: the number of blocks of a path, 16 bytes each, in dumps an hour apart.
type byHand struct {
	device string
	blocks []int64
	bytes  []int64 // instead of 16 per block
	why    string  // of the last dump
	noTime bool
}

// hand returns a database with these devices, which run build "b".
func hand(t *testing.T, list ...byHand) *DB {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	b := &store.Batch{Name: "hand", Day: at, Paths: []store.Path{{Build: "b", Path: 7, Addresses: []string{"0x10", "0x20"}}}}
	for _, d := range list {
		for i, n := range d.blocks {
			received := at.Add(time.Duration(i+1) * time.Hour)
			row := store.Dump{Build: "b", FW: "1.0", Device: d.device, Boot: 1, Dump: int64(i), Uptime: int64(i+1) * 3600e6, Received: received.UnixMicro(),
				Time: received.UnixMicro(), Bytes: 16 * n, Count: n, Complete: true, HeapSize: 4096, HeapFree: 480, HeapLargest: -1, HeapMinimum: -1, Upload: fmt.Sprint(d.device, i)}
			if d.bytes != nil {
				row.Bytes = d.bytes[i]
			}
			if d.noTime {
				row.Uptime = -1
			}
			if i == len(d.blocks)-1 {
				row.Why = d.why
			}
			b.Dumps = append(b.Dumps, row)
			b.Facts = append(b.Facts, store.Fact{Build: "b", Device: d.device, Path: 7, Boot: 1, Dump: int64(i), Time: row.Time, Count: n, Bytes: row.Bytes, Complete: true})
		}
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return open(t, s)
}

// For a single device, Leaks gives the words that package profile gives for its log.
func TestLeaksOfOneDevice(t *testing.T) {
	line := []int64{10, 13, 16, 19, 22, 25, 28, 31}
	buffer := []int64{1000, 1064, 1128, 1192, 1256, 1320, 1384, 1448}
	for _, c := range []struct {
		name string
		byHand
		want profile.Verdict
		rate float64 // bytes per hour
	}{
		{"straight", byHand{blocks: line}, profile.Leaking, 48},
		{"an exit by name", byHand{blocks: append(slices.Clone(line), 30), why: "exit"}, profile.Leaking, 48},
		{"an exit by its bytes", byHand{blocks: append(slices.Clone(line), 3)}, profile.Leaking, 48},
		{"a growing buffer", byHand{blocks: []int64{1, 1, 1, 1, 1, 1, 1, 1}, bytes: buffer}, profile.Leaking, 64},
		{"six dumps", byHand{blocks: line[:6]}, profile.Probably, 48},
		{"four dumps", byHand{blocks: line[:4]}, profile.Grows, 48},
		{"two dumps", byHand{blocks: line[:2]}, profile.NoEvidence, 0},
		{"no uptime", byHand{blocks: line, noTime: true}, profile.Leaking, 0},
		{"a step", byHand{blocks: []int64{10, 10, 10, 10, 40, 40, 40, 40}}, profile.NoEvidence, 0},
		{"warm-up", byHand{blocks: []int64{10, 60, 80, 90, 95, 97, 98, 99}}, profile.NoEvidence, 0},
		{"shrinks", byHand{blocks: []int64{80, 70, 60, 50, 40, 35, 30, 20}}, profile.NoEvidence, 0},
	} {
		c.device = "d"
		l, err := hand(t, c.byHand).Leaks(t.Context(), Scope{Builds: []string{"b"}})
		if err != nil {
			t.Fatal(err)
		}
		if c.want == profile.NoEvidence {
			if len(l.Rows) > 0 {
				t.Errorf("%s: %s", c.name, describe(&l.Rows[0]))
			}
			continue
		}
		if len(l.Rows) != 1 || l.Rows[0].Verdict != c.want {
			t.Errorf("%s: %d rows, want %v: %+v", c.name, len(l.Rows), c.want, l.Rows)
			continue
		}
		r := l.Rows[0]
		switch {
		case c.rate == 0 && r.Rate != nil:
			t.Errorf("%s: %g bytes per hour, without times", c.name, *r.Rate)
		case c.rate > 0 && (r.Rate == nil || math.Abs(*r.Rate-c.rate) > 1e-9):
			t.Errorf("%s: rate %v, want %g", c.name, r.Rate, c.rate)
		}
		if x := l.Exhaustion; c.want >= profile.Probably && c.rate > 0 && (x == nil || x.Devices != 1 || math.Abs(*x.Hours-480/c.rate) > 1e-9) {
			t.Errorf("%s: exhaustion %+v, want 480 bytes at %g", c.name, x, c.rate)
		}
		if len(r.Stack) != 2 || r.Stack[0].Address != "0x10" || r.Stack[1].Address != "0x20" {
			t.Errorf("%s: stack %v", c.name, r.Stack)
		}
	}
}

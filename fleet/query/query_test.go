package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// An upload that two servers stored counts once, although the boots of the two copies differ.
func TestUploadOfTwoServers(t *testing.T) {
	d := hand(t, byHand{device: "d", blocks: []int64{10, 13, 16, 19, 22, 25, 28, 31}})
	again := &store.Batch{Name: "other", Day: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for i := range 4 {
		received := at.Add(time.Duration(i+1)*time.Hour + time.Minute).UnixMicro()
		again.Dumps = append(again.Dumps, store.Dump{Build: "b", FW: "1.0", Device: "d", Boot: 2, Dump: int64(i), Uptime: int64(i+1) * 3600e6, Received: received, Time: received,
			Bytes: 100, Count: 10, Complete: true, HeapFree: 480, HeapSize: 4096, Upload: "d" + string(rune('0'+i))})
		again.Facts = append(again.Facts, store.Fact{Build: "b", Device: "d", Path: 7, Boot: 2, Dump: int64(i), Count: 10, Bytes: 100, Complete: true})
	}
	if err := d.store.Put(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	list, err := d.Builds(t.Context(), Scope{})
	if err != nil || len(list) != 1 || list[0].Dumps != 8 || list[0].Devices != 1 || list[0].Bytes != 31*16 {
		t.Errorf("%+v, %v: want 8 dumps", list, err)
	}
	l, err := d.Leaks(t.Context(), Scope{Builds: []string{"b"}})
	if err != nil || len(l.Rows) != 1 || *l.Rows[0].Rate != 48 {
		t.Errorf("%+v, %v", l, err)
	}
	r, err := asked(t, d, "select count(*), sum(facts.count)::bigint from facts join dumps using (device, boot, dump)")
	if err != nil || len(r) != 1 || fmt.Sprint(r[0]) != "[8 164]" {
		t.Errorf("%+v, %v: want 8 facts of 164 blocks", r, err)
	}
}

// The lists have the numbers that follow from the generated logs.
func TestLists(t *testing.T) {
	d := hand(t, byHand{device: "a", blocks: []int64{10, 20, 30}}, byHand{device: "z", blocks: []int64{5, 5}})
	top, err := d.Top(t.Context(), Scope{Builds: []string{"b"}}, 0)
	if err != nil || len(top) != 1 || top[0].Mean != (30*16+5*16)/2 || top[0].Blocks != 17.5 || top[0].Devices != 2 || top[0].Examined != 2 {
		t.Errorf("top: %+v, %v", top, err)
	}
	list, err := d.Devices(t.Context(), Scope{}, 0)
	if err != nil || len(list) != 2 || list[0].Device != "a" || list[0].Dumps != 3 || list[0].Bytes != 480 || list[1].Bytes != 80 {
		t.Errorf("devices: %+v, %v", list, err)
	}
	l, err := d.Timeline(t.Context(), "a", Scope{})
	if err != nil || len(l.Dumps) != 3 || l.Dumps[2].Uptime != 3*3600e6 || len(l.Paths) != 1 || l.Paths[0].Before != 160 || l.Paths[0].After != 480 || len(l.Paths[0].Stack) != 2 {
		t.Errorf("timeline: %+v, %v", l, err)
	}
	since := Scope{Since: time.Date(2026, 6, 1, 2, 30, 0, 0, time.UTC)}
	builds, err := d.Builds(t.Context(), since)
	if err != nil || len(builds) != 1 || builds[0].Dumps != 1 || builds[0].Devices != 1 {
		t.Errorf("builds since the third dump: %+v, %v", builds, err)
	}
	for _, device := range []string{"none", "a' or true --"} {
		if l, err := d.Timeline(t.Context(), device, Scope{}); err == nil {
			t.Errorf("timeline of %q: %+v", device, l)
		}
	}
	for _, build := range []string{"none", "b' or true --"} {
		if l, err := d.Leaks(t.Context(), Scope{Builds: []string{build}}); err == nil {
			t.Errorf("leaks of %q: %+v", build, l)
		}
	}
	for name, want := range map[string]string{"b": "b", "1.0": "b", "c": "", "": ""} {
		if got, err := d.Find(t.Context(), name); got != want && name != "" || (err == nil) != (got != "") {
			t.Errorf("find %q: %q, %v", name, got, err)
		}
	}
}

// The version of a build is that of most of its devices: one with another version changes no name.
func TestVersion(t *testing.T) {
	d := hand(t, byHand{device: "a", blocks: []int64{10}}, byHand{device: "z", blocks: []int64{5}})
	other := &store.Batch{Name: "other", Day: time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)}
	for i, fw := range []string{"zzz", "zzz", "zzz", ""} { // more dumps, of one device
		other.Dumps = append(other.Dumps, store.Dump{Build: "b", FW: fw, Device: "x", Boot: 1, Dump: int64(i), Uptime: -1, Bytes: 5, Count: 1, Complete: true, HeapFree: -1, Upload: fmt.Sprint(i)})
	}
	if err := d.store.Put(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Builds(t.Context(), Scope{}); err != nil || len(list) != 1 || list[0].Firmware != "1.0" || list[0].Dumps != 6 {
		t.Errorf("%+v, %v", list, err)
	}
	if got, err := d.Find(t.Context(), "1.0"); got != "b" {
		t.Errorf("find 1.0: %q, %v", got, err)
	}
}

// Queries on an empty store do not fail.
func TestEmptyStore(t *testing.T) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, s)
	if list, err := d.Builds(t.Context(), Scope{}); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := d.Devices(t.Context(), Scope{}, 0); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := d.Diff(t.Context(), "a", "b", Scope{}); err == nil {
		t.Error("a diff of an empty store")
	}
}

// byHandStore returns an empty store, and a batch to fill and to put into it.
func byHandStore(t testing.TB) (*store.Store, *store.Batch) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s, &store.Batch{Name: "hand", Day: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
}

// Paths of two builds whose addresses differ are matched by the names of their functions.
func TestDiffByName(t *testing.T) {
	s, b := byHandStore(t)
	at := b.Day
	for i, build := range []string{"old", "new"} {
		address := []string{"0x10", "0x500"}[i]
		b.Paths = append(b.Paths, store.Path{Build: build, Path: int64(i), Addresses: []string{address, "0x20"}},
			store.Path{Build: build, Path: int64(10 + i), Addresses: []string{address + "1", "0x20"}})
		if err := s.PutFrames(t.Context(), at, []store.Frame{{Build: build, Address: address, Function: "inner", File: "a.c", Line: 3},
			{Build: build, Address: address, Index: 1, Function: "outer", File: "a.c", Line: 9},
			{Build: build, Address: address + "1", Function: []string{"before", "after"}[i], File: "b.c", Line: 1}}); err != nil {
			t.Fatal(err)
		}
		for n := range 40 {
			device := build + string(rune('A'+n))
			b.Dumps = append(b.Dumps, store.Dump{Build: build, Device: device, Boot: 1, Uptime: 3600e6, Received: at.UnixMicro(), Bytes: 1000, Count: 3, Complete: true, HeapFree: -1, Upload: device})
			b.Facts = append(b.Facts, store.Fact{Build: build, Device: device, Path: int64(i), Boot: 1, Count: 1, Bytes: int64(100 + 50*i + n%3), Complete: true},
				store.Fact{Build: build, Device: device, Path: int64(10 + i), Boot: 1, Count: 1, Bytes: 64, Complete: true})
		}
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	x, err := open(t, s).Diff(t.Context(), "old", "new", Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range x.Rows {
		got = append(got, r.Kind+" "+r.Evidence+" "+r.Stack[0].String())
	}
	slices.Sort(got)
	if want := []string{"gone changed before b.c:1", "grown changed inner a.c:3", "new changed after b.c:1"}; !slices.Equal(got, want) || !x.ByName {
		t.Errorf("%q, by name %t, want %q", got, x.ByName, want)
	}
	for _, r := range x.Rows {
		if r.Kind == "grown" && (r.Delta() != 50 || len(r.Stack) != 3 || r.Stack[1].Function != "outer" || r.Chain != "inner\nouter\n0x20") {
			t.Errorf("%+v, want 50 bytes more in inner, outer, 0x20", r)
		}
	}
}

// Paths are matched by address if one of the builds has no names, and not at all if addresses differ.
func TestDiffByAddress(t *testing.T) {
	for name, shift := range map[string]int64{"equal addresses": 0, "other addresses": 1000} {
		t.Run(name, func(t *testing.T) {
			s, b := byHandStore(t)
			at := b.Day
			for i, build := range []string{"old", "new"} {
				for path := range int64(10) {
					address := fmt.Sprintf("%#x", 0x1000+path+shift*int64(i))
					b.Paths = append(b.Paths, store.Path{Build: build, Path: path + shift*int64(i), Addresses: []string{address}})
					if build == "new" {
						if err := s.PutFrames(t.Context(), at, []store.Frame{{Build: build, Address: address, Function: fmt.Sprint("f", path)}}); err != nil {
							t.Fatal(err)
						}
					}
				}
				for n := range 40 {
					device := build + string(rune('A'+n))
					b.Dumps = append(b.Dumps, store.Dump{Build: build, Device: device, Boot: 1, Uptime: 3600e6, Received: at.UnixMicro(), Bytes: 1000, Count: 3, Complete: true, HeapFree: -1, Upload: device})
					for path := range int64(10) {
						if path == 9 && (build == "old" || n >= 14) { // on 14 devices of the new build only
							continue
						}
						b.Facts = append(b.Facts, store.Fact{Build: build, Device: device, Path: path + shift*int64(i), Boot: 1, Count: 1, Bytes: 64, Complete: true})
					}
				}
			}
			if err := s.Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			x, err := open(t, s).Diff(t.Context(), "old", "new", Scope{})
			if err != nil || x.ByName {
				t.Fatalf("%+v, %v", x, err)
			}
			var got []string
			for _, r := range x.Rows {
				if r.Evidence != NoEvidence {
					got = append(got, fmt.Sprint(r.Kind, " ", r.Have))
				}
			}
			if want := []string{"new 14"}; shift == 0 && (!x.Comparable || !slices.Equal(got, want)) {
				t.Errorf("comparable %t, %q, want %q", x.Comparable, got, want)
			}
			if shift != 0 && (x.Comparable || len(x.Rows) > 0) {
				t.Errorf("comparable %t, %q, want no comparison", x.Comparable, got)
			}
		})
	}
}

// A path of a fifth of the dumps is not gone if the devices of the build before have twenty dumps each, and those of
// the build after one.
func TestDiffLikeNumber(t *testing.T) {
	s, b := byHandStore(t)
	at := b.Day
	r := rand.New(rand.NewPCG(1, 2))
	for build, boots := range map[string]int{"old": 20, "new": 1} {
		b.Paths = append(b.Paths, store.Path{Build: build, Path: 1, Addresses: []string{"0x10"}}, store.Path{Build: build, Path: 2, Addresses: []string{"0x20"}})
		for i := range 40 {
			for boot := range int64(boots) {
				device := fmt.Sprint(build, i)
				b.Dumps = append(b.Dumps, store.Dump{Build: build, Device: device, Boot: boot, Uptime: 3600e6, Received: at.UnixMicro() + boot, Bytes: 1000, Count: 3, Complete: true, HeapFree: -1, Upload: fmt.Sprint(device, boot)})
				b.Facts = append(b.Facts, store.Fact{Build: build, Device: device, Path: 1, Boot: boot, Count: 1, Bytes: 1000, Complete: true})
				if r.IntN(5) == 0 {
					b.Facts = append(b.Facts, store.Fact{Build: build, Device: device, Path: 2, Boot: boot, Count: 1, Bytes: 640, Complete: true})
				}
			}
		}
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	x, err := open(t, s).Diff(t.Context(), "old", "new", Scope{})
	if err != nil || x.Paths != 2 || x.DevicesBefore != 40 || x.DevicesAfter != 40 {
		t.Fatalf("%+v, %v", x, err)
	}
	for _, r := range x.Rows {
		if r.Evidence != NoEvidence {
			t.Errorf("%+v", r)
		}
	}
}

// With names for the functions of one build, and for a few of the other, paths are matched by address; if the addresses differ,
// there is no comparison.
func TestDiffFewNames(t *testing.T) {
	for shift, comparable := range map[int64]bool{0: true, 1000: false} {
		s, b := byHandStore(t)
		at := b.Day
		for i, build := range []string{"old", "new"} {
			b.Dumps = append(b.Dumps, store.Dump{Build: build, Device: build, Boot: 1, Uptime: 3600e6, Received: at.UnixMicro(), Bytes: 1000, Count: 3, Complete: true, HeapFree: -1, Upload: build})
			for path := range int64(10) {
				address := fmt.Sprintf("%#x", 0x1000+path+shift*int64(i))
				b.Paths = append(b.Paths, store.Path{Build: build, Path: path + shift*int64(i), Addresses: []string{address}})
				b.Facts = append(b.Facts, store.Fact{Build: build, Device: build, Path: path + shift*int64(i), Boot: 1, Count: 1, Bytes: 64, Complete: true})
				if build == "new" || path < 2 {
					if err := s.PutFrames(t.Context(), at, []store.Frame{{Build: build, Address: address, Function: fmt.Sprint("f", path)}}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := s.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		x, err := open(t, s).Diff(t.Context(), "old", "new", Scope{})
		if err != nil || comparable && x.ByName || x.Comparable != comparable || len(x.Rows) != map[bool]int{true: 10}[comparable] {
			t.Errorf("shift %d: %+v, %v: want comparable %t", shift, x, err, comparable)
		}
	}
}

// Fisher's exact test, against values that R's fisher.test prints for one side, doubled.
func TestFisher(t *testing.T) {
	for _, c := range []struct {
		a, n, b, m int64
		want       float64
	}{
		{0, 10, 10, 10, 2.0 / 184756}, // 2 / C(20,10)
		{3, 4, 1, 4, 2 * 17.0 / 70},   // the lady tasting tea
		{5, 10, 5, 10, 1}, {0, 10, 0, 10, 1}, {10, 10, 10, 10, 1}, {0, 0, 3, 10, 1},
		{0, 5, 1, 5, 1}, // 2 · 1/2
		{0, 2000, 25, 2000, 2 * choose(2000, 25) / choose(4000, 25)},
	} {
		for _, s := range [][2][2]int64{{{c.n, c.m}, {c.a, c.b}}, {{c.m, c.n}, {c.b, c.a}}} {
			x := newTests(s[0])
			x.add(s[1])
			if got := x.alone(s[1]); math.Abs(got-c.want) > 1e-9*c.want {
				t.Errorf("%d of %d: %g, want %g", s[1], s[0], got, c.want)
			}
		}
	}
}

// choose returns a binomial coefficient.
func choose(n, k int) float64 {
	x := 1.0
	for i := range k {
		x *= float64(n-i) / float64(k-i)
	}
	return x
}

// Queries may run at the same time.
func TestConcurrent(t *testing.T) {
	f := defaultFleet()
	f.Devices, f.Builds, f.Paths, f.Leak.Build, f.Leak.Share = 120, 3, 20, 2, 0.5
	d := simulated(t, &f)
	ask := func(build int) (n int, err error) {
		o := Scope{Builds: []string{f.BuildID(build)}}
		l, err := d.Leaks(t.Context(), o)
		if err != nil {
			return 0, err
		}
		top, err := d.Top(t.Context(), o, 0)
		if err != nil {
			return 0, err
		}
		x, err := d.Diff(t.Context(), f.BuildID(build), f.BuildID((build+1)%f.Builds), Scope{})
		if err != nil {
			return 0, err
		}
		return len(l.Rows) + 100*len(top) + 10000*len(x.Rows), nil
	}
	want := make([]int, f.Builds)
	for b := range want {
		n, err := ask(b)
		if err != nil {
			t.Fatal(err)
		}
		want[b] = n
	}
	var all sync.WaitGroup
	for range 3 {
		for b := range want {
			all.Go(func() {
				if n, err := ask(b); n != want[b] || err != nil {
					t.Errorf("build %d: %d, %v, want %d", b, n, err, want[b])
				}
			})
		}
	}
	all.Wait()
}

// A file or upload with several boots and dumps, which were all received at once, is in the
// order in which they were written.
func TestOneUpload(t *testing.T) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const paths = 5
	var batch store.Batch
	var state ingest.State
	u := ingest.Upload{Device: "d1", Received: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
		Text: append(fleettest.Log("d1", "old", 7, paths), fleettest.Log("d1", "new", 4, paths)...)}
	if _, err := u.Read(t.Context(), &state, ingest.DefaultLimits, func(d *ingest.Dump) error { d.Append(&batch); return nil }); err != nil {
		t.Fatal(err)
	}
	batch.Name, batch.Day = "one", u.Received
	if err := s.Put(t.Context(), &batch); err != nil {
		t.Fatal(err)
	}
	d := open(t, s)
	_, last := fleettest.Held(3, paths) // of the second boot
	devices, err := d.Devices(t.Context(), Scope{}, 0)
	if err != nil || len(devices) != 1 || devices[0].Build != "new" || devices[0].Bytes != last || devices[0].HeapFree != 16777216-last || devices[0].Boots != 2 {
		t.Errorf("devices %+v, %v: want %d bytes of build new", devices, err, last)
	}
	builds, err := d.Builds(t.Context(), Scope{Builds: []string{"old"}})
	_, old := fleettest.Held(6, paths)
	if err != nil || len(builds) != 1 || builds[0].Bytes != float64(old) {
		t.Errorf("builds %+v, %v: want %d bytes", builds, err, old)
	}
	top, err := d.Top(t.Context(), Scope{Builds: []string{"old"}}, 0)
	sum := 0.0
	for _, row := range top {
		sum += row.Mean
	}
	if err != nil || len(top) != paths || sum != float64(old) {
		t.Errorf("top has %v bytes in %d paths, %v: want %d in %d", sum, len(top), err, old, paths)
	}
	l, err := d.Timeline(t.Context(), "d1", Scope{Builds: []string{"old"}})
	grew := 0.0
	if err == nil {
		for _, row := range l.Paths {
			grew += row.After - row.Before
		}
	}
	if _, first := fleettest.Held(0, paths); err != nil || len(l.Dumps) != 7 || grew != float64(old-first) {
		t.Errorf("the timeline grows by %v bytes, %v: want %d", grew, err, old-first)
	}
}

// What grew on a device that was updated is what grew in the last build: an address of another build is another function.
func TestGrowthAfterUpdate(t *testing.T) {
	d := hand(t, byHand{device: "a", blocks: []int64{10, 20, 30}})
	update := &store.Batch{Name: "update", Day: time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC), Paths: []store.Path{{Build: "c", Path: 7, Addresses: []string{"0x10", "0x20"}}, {Build: "c", Path: 8, Addresses: []string{"0x30"}}}}
	for i := range int64(3) {
		update.Dumps = append(update.Dumps, store.Dump{Build: "c", Device: "a", Boot: 2, Dump: i, Uptime: -1, Bytes: 100 + i, Count: 2, Complete: true, HeapFree: -1, Upload: fmt.Sprint("c", i)})
		update.Facts = append(update.Facts, store.Fact{Build: "c", Device: "a", Path: 7, Boot: 2, Dump: i, Count: 1, Bytes: 90, Complete: true},
			store.Fact{Build: "c", Device: "a", Path: 8, Boot: 2, Dump: i, Count: 1, Bytes: 10 + i, Complete: true})
	}
	if err := d.store.Put(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	l, err := d.Timeline(t.Context(), "a", Scope{})
	if err != nil || len(l.Dumps) != 6 || len(l.Paths) != 2 || l.Paths[0].Path != 8 || l.Paths[0].Before != 10 || l.Paths[0].After != 12 || l.Paths[1].Before != 90 || l.Paths[1].After != 90 {
		t.Errorf("%+v, %v", l, err)
	}
}

// A large buffer that is freed is not the end of the program, unless the boot is over.
func TestLastDumpIsMuchSmaller(t *testing.T) {
	for boots, want := range map[int]float64{1: 4, 2: 5} {
		d := hand(t, byHand{device: "a", blocks: []int64{10, 20, 30, 4}})
		if boots == 2 {
			next := &store.Batch{Name: "next", Day: time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)}
			next.Dumps = append(next.Dumps, store.Dump{Build: "b", Device: "a", Boot: 2, Uptime: -1, Received: next.Day.UnixMicro(), Bytes: 80, Count: 5, Complete: true, HeapFree: -1, Upload: "next"})
			next.Facts = append(next.Facts, store.Fact{Build: "b", Device: "a", Path: 7, Boot: 2, Count: 5, Bytes: 80, Complete: true})
			if err := d.store.Put(t.Context(), next); err != nil {
				t.Fatal(err)
			}
		}
		builds, err := d.Builds(t.Context(), Scope{})
		if err != nil || len(builds) != 1 || builds[0].Bytes != 16*want {
			t.Errorf("%d boots: builds %+v, %v: want %v bytes", boots, builds, err, 16*want)
		}
		top, err := d.Top(t.Context(), Scope{Builds: []string{"b"}}, 0)
		if err != nil || len(top) != 1 || top[0].Mean != 16*want {
			t.Errorf("%d boots: top %+v, %v: want %v bytes", boots, top, err, 16*want)
		}
		l, err := d.Timeline(t.Context(), "a", Scope{})
		if err != nil || len(l.Paths) != 1 || l.Paths[0].After != 16*want {
			t.Errorf("%d boots: %+v, %v: want %v bytes", boots, l, err, 16*want)
		}
	}
}

// One device that reports absurd numbers does not change what a build is said to hold.
func TestBuildOfMostDevices(t *testing.T) {
	list := []byHand{{device: "absurd", blocks: []int64{1}, bytes: []int64{1 << 45}}}
	for i := range 10 {
		list = append(list, byHand{device: fmt.Sprint("d", i), blocks: []int64{10}})
	}
	builds, err := hand(t, list...).Builds(t.Context(), Scope{})
	if err != nil || len(builds) != 1 || builds[0].Bytes != 160 || builds[0].HeapFree != 480 {
		t.Errorf("%+v, %v: want 160 bytes", builds, err)
	}
}

// A damaged file is left out, with the other files of its batch, and is named.
func TestDamagedFile(t *testing.T) {
	d := hand(t, byHand{device: "a", blocks: []int64{10, 20, 30}})
	other := &store.Batch{Name: "other", Day: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	other.Dumps = append(other.Dumps, store.Dump{Build: "b", Device: "z", Boot: 1, Uptime: -1, Bytes: 5, Count: 1, Complete: true, HeapFree: -1, Upload: "z"})
	other.Facts = append(other.Facts, store.Fact{Build: "b", Device: "z", Path: 7, Boot: 1, Count: 1, Bytes: 5, Complete: true})
	if err := d.store.Put(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	const facts = "facts/day=2026-06-01/other.parquet"
	path := filepath.Join(d.store.Dir(), facts)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string][]byte{"cut": text[:len(text)/2], "empty": nil, "overwritten": append(make([]byte, len(text)-200), text[len(text)-200:]...)} {
		if err := os.WriteFile(path, damage, 0o600); err != nil {
			t.Fatal(err)
		}
		d := open(t, d.store)
		top, err := d.Top(t.Context(), Scope{Builds: []string{"b"}}, 0)
		if err != nil || len(top) != 1 || top[0].Mean != 480 || top[0].Examined != 1 {
			t.Errorf("%s: %+v, %v: want the path of device a alone", name, top, err)
		}
		if got := d.Damaged(); !slices.Equal(got, []string{facts}) {
			t.Errorf("%s: damaged files %q, want %q", name, got, facts)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	d = open(t, d.store)
	top, err := d.Top(t.Context(), Scope{Builds: []string{"b"}}, 0)
	if err != nil || len(top) != 1 || top[0].Mean != 480 || !slices.Equal(d.Damaged(), []string{facts}) {
		t.Errorf("missing: %+v, %v, damaged %q: want the path of device a alone", top, err, d.Damaged())
	}
	if l, err := d.Leaks(t.Context(), Scope{Builds: []string{"b"}}); err != nil || l.Devices != 1 {
		t.Errorf("missing: %+v, %v: want one device", l, err)
	}
}

// A bit that changed in a file is reported, with the name of the file, or changes no answer.
func TestFlippedBits(t *testing.T) {
	d := hand(t, byHand{device: "a", blocks: []int64{10, 20, 30, 40}}, byHand{device: "b", blocks: []int64{5, 5, 6, 5}})
	ask := func() (string, []string) {
		db := open(t, d.store)
		defer db.Close()
		top, err := db.Top(t.Context(), Scope{}, 0)
		builds, err2 := db.Builds(t.Context(), Scope{})
		sums, err3 := asked(t, db, "select sum(count), sum(bytes), sum(uptime_us), count(distinct device) from dumps")
		text, err4 := json.Marshal([]any{top, builds, sums})
		if err := errors.Join(err3, err4); err != nil && len(db.Damaged()) == 0 {
			t.Fatal(err)
		}
		return fmt.Sprint(string(text), err, err2), db.Damaged()
	}
	want, damaged := ask()
	if len(damaged) > 0 {
		t.Fatal(damaged)
	}
	list, err := d.store.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	named := 0
	for i := range 24 {
		name := []string{list[store.Dumps][0], list[store.Facts][0], list[store.Paths][0]}[i%3]
		file := filepath.Join(d.store.Dir(), filepath.FromSlash(name))
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bit := r.IntN(8 * len(whole))
		bad := bytes.Clone(whole)
		bad[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, damaged := ask()
		switch {
		case slices.Equal(damaged, []string{name}):
			named++
		case got != want || len(damaged) > 0:
			t.Errorf("%s, bit %d: damaged %q, answers\n%s\nwant\n%s", name, bit, damaged, got, want)
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if named < 23 {
		t.Errorf("%d of 24 changed files are named", named)
	}
}

// Dumps of a newer schema are no answer with columns that this program does not know, but an error.
func TestNewerSchema(t *testing.T) {
	d := hand(t, byHand{device: "a", blocks: []int64{10, 20, 30}})
	dir := filepath.Join(d.store.Dir(), "dumps", "day=2026-06-02")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[store.Dump](&b, parquet.KeyValueMetadata("lwsbt.schema", "3"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "newer.parquet"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := d.Builds(t.Context(), Scope{})
	if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), `newer.parquet has schema "3", expected "2": another version of btfleet is needed`) {
		t.Errorf("%v", err)
	}
	if list := d.Damaged(); len(list) > 0 {
		t.Errorf("damaged: %q", list)
	}
}

package query

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// rowsOf returns the rows that Store writes for some devices.
func rowsOf(f *fleet) *store.Batch {
	var b store.Batch
	paths := f.sources()
	for d := range f.Devices {
		for _, m := range f.moments(d) {
			f.rows(&b, d, &m, paths, f.ids(d%f.Builds, paths))
		}
	}
	return &b
}

// plainRows returns rows as text, without the columns that depend on when and how they were received.
func plainRows(b *store.Batch) (list []string) {
	boots := map[string]int{}
	boot := func(device string, n int64) int {
		k := fmt.Sprint(device, n)
		if _, ok := boots[k]; !ok {
			boots[k] = len(boots)
		}
		return boots[k]
	}
	for _, d := range b.Dumps {
		list = append(list, fmt.Sprintf("%s %s %s boot %d dump %d at %d up %d: %d bytes %d blocks %t %.9f %s %d %d", d.Device, d.Build, d.FW, boot(d.Device, d.Boot), d.Dump,
			d.Time, d.Uptime, d.Bytes, d.Count, d.Complete, d.Lost, d.Why, d.HeapSize, d.HeapFree))
	}
	var facts []string
	for _, f := range b.Facts {
		facts = append(facts, fmt.Sprintf("%s %s boot %d dump %d path %d: %d blocks %d bytes %t %.9f", f.Device, f.Build, boot(f.Device, f.Boot), f.Dump, f.Path, f.Count, f.Bytes, f.Complete, f.Lost))
	}
	slices.Sort(facts)
	return append(list, facts...)
}

// Reading the logs of a fleet with package ingest gives the rows that Store writes.
func TestLogsAreTheRows(t *testing.T) {
	f := defaultFleet()
	f.Devices, f.Reboots, f.Loss, f.Days, f.Leak.Share = 20, 0.3, 0.03, 10, 0.5
	dir := t.TempDir()
	if n, err := f.Logs(dir); n != 20 || err != nil {
		t.Fatal(n, err)
	}
	var got store.Batch
	for d := range f.Devices {
		text, err := os.ReadFile(filepath.Join(dir, f.DeviceID(d)+".log"))
		if err != nil {
			t.Fatal(err)
		}
		u := ingest.Upload{Device: f.DeviceID(d), Received: f.Start, Text: text}
		if _, err := u.Read(t.Context(), &ingest.State{}, ingest.DefaultLimits, func(d *ingest.Dump) error { d.Append(&got); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	rows := rowsOf(&f)
	g, w := plainRows(&got), plainRows(rows)
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("row %d:\n got %s\nwant %s", i, g[i], w[i])
		}
	}
	if len(g) != len(w) || len(w) < 20*10*100 {
		t.Errorf("%d rows, want %d", len(g), len(w))
	}
	lossy := 0
	for _, d := range rows.Dumps {
		if d.Lost > 0 {
			lossy++
		}
	}
	if lossy < 20 {
		t.Errorf("only %d of %d dumps lost lines", lossy, len(rows.Dumps))
	}
}

// The planted leak has the requested rate, on the requested share of the devices of its build.
func TestPlantedLeak(t *testing.T) {
	f := defaultFleet()
	f.Loss, f.Reboots = 0, 0
	leaking := 0
	for d := range f.Devices {
		if !f.Leaks(d) {
			continue
		}
		leaking++
		if d%f.Builds != f.Leak.Build {
			t.Errorf("device %d of another build leaks", d)
		}
	}
	if leaking != 10 { // a twentieth of 1000/5
		t.Errorf("%d devices leak, want 10", leaking)
	}
	without := f
	without.Leak.Share = 0
	with, none := rowsOf(&f), rowsOf(&without)
	size := float64(f.sources()[f.Leak.Path].size)
	for i, d := range with.Dumps {
		var device int
		fmt.Sscanf(d.Device, "sim-%d", &device)
		want := 0.0
		if f.Leaks(device) {
			want = 200 * time.Duration(d.Uptime*1000).Hours()
		}
		if got := float64(d.Bytes - none.Dumps[i].Bytes); math.Abs(got-want) > size {
			t.Fatalf("%s, dump %d: %g bytes more, want %g", d.Device, d.Dump, got, want)
		}
	}
}

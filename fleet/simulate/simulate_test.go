package simulate

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// rows keeps what is stored.
type rows struct{ store.Batch }

func (r *rows) Put(_ context.Context, b *store.Batch) error {
	r.Dumps, r.Facts = append(r.Dumps, b.Dumps...), append(r.Facts, b.Facts...)
	return nil
}

func rowsOf(t *testing.T, f *Fleet) *rows {
	t.Helper()
	var r rows
	if dumps, facts, err := f.Store(t.Context(), &r); err != nil || dumps != len(r.Dumps) || facts != len(r.Facts) {
		t.Fatalf("%d dumps, %d facts, %v: stored %d and %d", dumps, facts, err, len(r.Dumps), len(r.Facts))
	}
	return &r
}

// The planted leak has the requested rate, on the requested share of the devices of its build; the sums of a dump are those of its facts.
func TestPlantedLeak(t *testing.T) {
	f := Default()
	f.Devices, f.Paths = 6000, 20 // two parts of each build
	without := f
	without.Leak.Share = 0
	with, none := rowsOf(t, &f), rowsOf(t, &without)
	type dump struct {
		device string
		boot   int64
		dump   int64
	}
	bytes, leaks := map[dump]int64{}, map[dump]int64{}
	for _, r := range with.Facts {
		bytes[dump{r.Device, r.Boot, r.Dump}] += r.Bytes
	}
	for _, r := range none.Facts {
		leaks[dump{r.Device, r.Boot, r.Dump}] -= r.Bytes
	}
	leaking, incomplete := map[string]bool{}, 0
	for _, d := range with.Dumps {
		k := dump{d.Device, d.Boot, d.Dump}
		if d.Bytes != bytes[k] {
			t.Fatalf("%+v: %d bytes, facts of %d", k, d.Bytes, bytes[k])
		}
		if !d.Complete {
			incomplete++
			continue
		}
		grown, hours := bytes[k]+leaks[k], float64(d.Uptime)/3.6e9
		if grown > 0 {
			leaking[d.Device] = true
		}
		if grown != 0 && math.Abs(float64(grown)-200*hours) > 32 || grown != 0 && d.Build != f.BuildID(3) {
			t.Fatalf("%+v: %d bytes more after %g hours, want 200 per hour in build 3 alone", k, grown, hours)
		}
	}
	if len(leaking) != 60 || len(with.Dumps) != 42_000 {
		t.Errorf("%d of %d dumps: %d devices leak, want a twentieth of 6,000/5", len(with.Dumps), 42_000, len(leaking))
	}
	if share := float64(incomplete) / 42_000; share < 0.08 || share > 0.11 { // one of 5 lines, each lost with 2 %: 10 %
		t.Errorf("%g of the dumps are incomplete", share)
	}
	if again := rowsOf(t, &f); fmt.Sprint(again.Dumps) != fmt.Sprint(with.Dumps) {
		t.Error("the same fleet has other dumps")
	}
}

func TestCheck(t *testing.T) {
	for _, change := range []func(*Fleet){
		func(f *Fleet) { f.Devices = 0 }, func(f *Fleet) { f.Paths = 3 }, func(f *Fleet) { f.Leak.Share = math.NaN() }, func(f *Fleet) { f.Leak.Path = 150 }, func(f *Fleet) { f.Leak.Share = 2 },
	} {
		f := Default()
		change(&f)
		if f.Check() == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
	f := Default()
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}

package query

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestClickHouseSize measures questions about a build of many devices: 2,000 simulated ones and copies of them, MILLIONS of facts in
// total. The planted leak must be first, on the same share of the devices.
func TestClickHouseSize(t *testing.T) {
	if !cmdtest.All() {
		t.Skip("it takes minutes: LWSBT_FULL is not all")
	}
	millions, err := strconv.Atoi(cmp.Or(os.Getenv("MILLIONS"), "10"))
	if err != nil {
		t.Fatal(err)
	}
	f := simulate.Default()
	f.Devices, f.Builds, f.Leak.Build, f.Leak.Share = 2000, 1, 0, 0.1
	ch := tables(t, clickhouse.Schema{}, "")
	_, facts, err := f.Store(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	number := func(q string) (n float64) {
		t.Helper()
		r, err := ch.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Next() {
			if err := r.Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	copies := millions * 1_000_000 / facts
	for _, table := range []string{"facts", "dumps"} {
		for i := 1; i < copies; i++ {
			number(fmt.Sprintf("insert into %s select * replace (concat(device, '-', '%d') as device) from (select * from %s where length(device) = %d)", table, i, table, len(f.DeviceID(0))))
		}
	}
	rows := number("select toFloat64(count()) from facts")
	t.Logf("%.0f facts of %.0f devices, %.1f bytes each", rows, number("select toFloat64(uniqExact(device)) from dumps"),
		number("select sum(bytes_on_disk) / sum(rows) from system.parts where table = 'facts' and active"))
	d := OpenClickHouse(ch)
	o := Scope{Builds: []string{f.BuildID(0)}}
	measure := func(name string, ask func() error) {
		t.Helper()
		cpu := func() (here, there float64) {
			var u syscall.Rusage
			syscall.Getrusage(syscall.RUSAGE_SELF, &u)
			return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, number("select sum(value) / 1e6 from system.events where event in ('OSCPUVirtualTimeMicroseconds')")
		}
		here, there := cpu()
		begin := time.Now()
		if err := ask(); err != nil {
			t.Error(name, err)
		}
		took := time.Since(begin)
		here2, there2 := cpu()
		t.Logf("%s: %.1f s; processor time %.1f s in btfleet, %.1f s in ClickHouse", name, took.Seconds(), here2-here, there2-there)
	}
	measure("leaks", func() error {
		l, err := d.Leaks(t.Context(), o)
		if err == nil && (l.Rows[0].Stack[0].Address != leaf(&f) || l.Rows[0].Share < 0.08 || l.Devices != int64(2000*copies)) {
			t.Errorf("%d devices, path %v on %.3f of them", l.Devices, l.Rows[0].Stack, l.Rows[0].Share)
		}
		return err
	})
	measure("top", func() error { _, err := d.Top(t.Context(), o, 10); return err })
	measure("builds", func() error { _, err := d.Builds(t.Context(), o); return err })
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	t.Logf("at most %d MB in btfleet", u.Maxrss>>10)
}

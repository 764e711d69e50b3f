//go:build unix

package query

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// BenchmarkGrowth measures questions about fleets of several sizes, each beside plain SQL for a similar
// question in DuckDB on the same files (plain), and compaction. A fleet has two builds and 165 call paths;
// the devices send a dump per day. SIZES has the numbers of devices (1000,3000,10000), DAYS the days (7). The fleets
// are simulated in $FLEETS, or in a temporary directory. cpu-s is the time of all processors, MB the peak memory of
// the process.
func BenchmarkGrowth(b *testing.B) {
	days, err := strconv.Atoi(cmp.Or(os.Getenv("DAYS"), "7"))
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range strings.Split(cmp.Or(os.Getenv("SIZES"), "1000,3000,10000"), ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		f := defaultFleet()
		f.Devices, f.Builds, f.Paths, f.Days, f.Leak.Build = n, 2, 165, days, 0
		where := os.Getenv("FLEETS")
		if where == "" {
			where = b.TempDir()
		}
		name := fmt.Sprintf("devices=%d", n)
		benchmarkQuestions(b, name, fmt.Sprintf("%s/%d-%d", where, n, days), &f)
		benchmarkCompaction(b, name, b.TempDir(), &f)
	}
}

// benchmarkQuestions measures questions.
func benchmarkQuestions(b *testing.B, name, dir string, f *fleet) {
	ctx := context.Background()
	s, err := store.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	if list, err := s.Snapshot(ctx, ""); err != nil || len(list[store.Dumps]) == 0 {
		if _, _, err := f.Store(ctx, s); err != nil {
			b.Fatal(err)
		}
	}
	d := open(b, s)
	plain, err := sql.Open("duckdb", "")
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	plain.SetMaxOpenConns(1)
	one, all := Scope{Builds: []string{f.BuildID(0)}}, Scope{}
	for _, q := range []struct {
		name string
		ask  func() error
		sql  string
	}{
		{"leaks", func() error { _, err := d.Leaks(ctx, one); return err }, `select path, count(*), sum(slope) / sqrt(sum(slope * slope) + 1)
from (select device, path, regr_slope(f.bytes, uptime_us) as slope from BUILD0.facts f join BUILD0.dumps d using (device, boot, dump) group by device, path) s group by path`},
		{"diff", func() error { _, err := d.Diff(ctx, f.BuildID(0), f.BuildID(1), all); return err }, `select path, avg(case when build = 0 then bytes end), avg(case when build = 1 then bytes end)
from (select 0 as build, device, path, avg(bytes) as bytes from BUILD0.facts group by device, path union all select 1, device, path, avg(bytes) from BUILD1.facts group by device, path) f group by path`},
		{"top", func() error { _, err := d.Top(ctx, one, 20); return err }, `select path, count(*), sum(f.bytes), quantile_cont(f.bytes, 0.95)
from BUILD0.facts f join (select device, max(boot) as boot, max_by(dump, boot) as dump from BUILD0.dumps group by device) d using (device, boot, dump) group by path`},
		{"builds", func() error { _, err := d.Builds(ctx, all); return err }, "select build, count(distinct device), count(*), avg(bytes) from ALL.dumps group by build"},
		{"devices", func() error { _, err := d.Devices(ctx, one, 0); return err }, "select device, max(received), count(*), max_by(bytes, received) from BUILD0.dumps group by device"},
		{"device", func() error { _, err := d.Timeline(ctx, f.DeviceID(0), all); return err }, "select * from ALL.facts where device = '" + f.DeviceID(0) + "'"},
	} {
		measure(b, name+"/"+q.name, q.ask)
		text := q.sql
		for from, where := range map[string]string{"BUILD0": " where build = '" + f.BuildID(0) + "'", "BUILD1": " where build = '" + f.BuildID(1) + "'", "ALL": ""} {
			for _, table := range []string{store.Facts, store.Dumps} {
				text = strings.ReplaceAll(text, from+"."+table, "(from read_parquet('"+dir+"/"+table+"/*/*.parquet', hive_partitioning = false)"+where+")")
			}
		}
		measure(b, name+"/"+q.name+"/plain", func() error {
			rows, err := plain.Query(text)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		})
	}
}

// batches cuts batches into those of a server that writes often.
type batches struct{ store *store.Store }

func (p batches) Put(ctx context.Context, b *store.Batch) error {
	facts := b.Facts
	for part := range slices.Chunk(b.Dumps, min(500, len(b.Dumps)/24+1)) {
		n := 0 // they are sorted alike
		for last := part[len(part)-1]; n < len(facts) && facts[n].Device <= last.Device; n++ {
		}
		small := &store.Batch{Name: b.Name + "-" + part[0].Device, Day: b.Day, Dumps: part, Facts: facts[:n], Paths: slices.Clone(b.Paths)}
		if err := p.store.Put(ctx, small); err != nil {
			return err
		}
		facts = facts[n:]
	}
	return nil
}

// benchmarkCompaction measures passes over a store that was never compacted, again when nothing is new, and with a new day.
func benchmarkCompaction(b *testing.B, name, dir string, f *fleet) {
	ctx := context.Background()
	s, err := store.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	more := *f
	more.Start, more.Days = f.Start.AddDate(0, 0, f.Days), 1
	for _, pass := range []struct {
		name string
		new  *fleet
	}{{"first", f}, {"nothing new", nil}, {"a new day", &more}} {
		if pass.new != nil {
			if _, _, err := pass.new.Store(ctx, batches{s}); err != nil {
				b.Fatal(err)
			}
		}
		done := false
		measure(b, name+"/compaction/"+pass.name, func() error {
			if done {
				return nil
			}
			done = true
			return s.Compact(ctx, 0)
		})
	}
}

// measure measures a function.
func measure(b *testing.B, name string, do func() error) {
	b.Run(name, func(b *testing.B) {
		runtime.GC()
		debug.FreeOSMemory()
		os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak memory is that of what follows
		before, n := processor(), 0
		for b.Loop() {
			if err := do(); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.ReportMetric((processor()-before)/float64(n), "cpu-s/op")
		b.ReportMetric(peak(), "MB")
	})
}

// peak returns the peak memory of the process in MB, or 0 if it is not known.
func peak() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kb); n == 1 {
			return kb / 1000
		}
	}
	return 0
}

// processor returns the processor time of the process in seconds.
func processor() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

//go:build unix

package query

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// BenchmarkFleet measures queries about 10,000 devices × 7 days × 150 paths. SIZES=1000,100000
// sets other numbers of devices. The devices run 5 builds, or all run one. MB is the peak memory
// of the process so far, cpu-s the time of all processors. The fleets are simulated in $FLEETS,
// or in a temporary directory.
func BenchmarkFleet(b *testing.B) {
	sizes := "10000"
	if s := os.Getenv("SIZES"); s != "" {
		sizes = s
	}
	for _, size := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		for _, builds := range []int{5, 2} {
			f := simulate.Default()
			f.Devices, f.Builds, f.Paths, f.Leak.Build = n, builds, 165, builds-2
			dir := b.TempDir()
			if where := os.Getenv("FLEETS"); where != "" {
				dir = fmt.Sprintf("%s/%d-%d", where, n, builds)
			}
			benchmark(b, fmt.Sprintf("devices=%d/builds=%d", n, builds), dir, &f)
		}
	}
}

func benchmark(b *testing.B, name, dir string, f *simulate.Fleet) {
	s, err := store.Open(context.Background(), dir)
	if err != nil {
		b.Fatal(err)
	}
	if list, err := s.Builds(context.Background()); err != nil || len(list) == 0 {
		dumps, facts, err := f.Store(context.Background(), s)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%s: %d dumps, %d facts", name, dumps, facts)
		runtime.GC()
	}
	d := open(b, s)
	one := Scope{Builds: []string{f.BuildID(f.Leak.Build)}}
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"leaks", func() error { _, err := d.Leaks(context.Background(), one); return err }},
		{"diff", func() error {
			_, err := d.Diff(context.Background(), f.BuildID(f.Leak.Build+1), f.BuildID(f.Leak.Build), Scope{})
			return err
		}},
		{"top", func() error { _, err := d.Top(context.Background(), one, 20); return err }},
		{"builds", func() error { _, err := d.Builds(context.Background(), Scope{}); return err }},
		{"timeline", func() error {
			_, err := d.Timeline(context.Background(), f.DeviceID(f.Leak.Build), Scope{})
			return err
		}},
	} {
		b.Run(name+"/"+q.name, func(b *testing.B) {
			before, n := processor(), 0
			for b.Loop() {
				if err := q.ask(); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric((processor()-before)/float64(n), "cpu-s/op")
			b.ReportMetric(peak(), "MB")
		})
	}
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

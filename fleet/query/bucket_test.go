package query

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// Over a bucket, a question reads only the tables, builds and days that it is about.
func TestBucketReads(t *testing.T) {
	var mu sync.Mutex
	read := map[string]int{} // GETs of Parquet files
	url := fleettest.Bucket(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".parquet") {
				mu.Lock()
				read[strings.TrimPrefix(r.URL.Path, "/fleet/")]++
				mu.Unlock()
			}
			h.ServeHTTP(w, r)
		})
	})
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	f := simulate.Default()
	f.Devices, f.Builds, f.Paths, f.Days, f.Leak = 30, 3, 10, 4, simulate.Leak{Build: -1}
	if _, _, err := f.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	all, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	builds := []string{f.BuildID(0), f.BuildID(1)}
	last := f.Start.AddDate(0, 0, f.Days-1)
	since := func(day string, files []string) (list []string) {
		for _, name := range files {
			if _, of, _ := strings.Cut(name, "/day="); of >= day {
				list = append(list, name)
			}
		}
		return list
	}
	find := func(name string) func(*DB) error {
		return func(d *DB) error {
			if got, err := d.Find(t.Context(), name); got != f.BuildID(0) {
				return fmt.Errorf("found %q, %v", got, err)
			}
			return nil
		}
	}
	three := slices.Concat(all[store.Dumps], all[store.Facts], all[store.Paths])
	for _, c := range []struct {
		name string
		ask  func(*DB) error
		want []string
	}{
		{"builds", func(d *DB) error { _, err := d.Builds(t.Context(), Scope{}); return err }, all[store.Dumps]},
		{"builds of one day", func(d *DB) error { _, err := d.Builds(t.Context(), Scope{Builds: builds, Since: last}); return err },
			since(last.Format(time.DateOnly), all[store.Dumps])},
		{"devices", func(d *DB) error { _, err := d.Devices(t.Context(), Scope{Builds: builds[:1]}, 0); return err }, all[store.Dumps]},
		{"timeline", func(d *DB) error { _, err := d.Timeline(t.Context(), f.DeviceID(1), Scope{}); return err },
			three},
		{"find a build ID", find(builds[0]), all[store.Dumps]},
		{"find the beginning of one", find(builds[0][:8]), all[store.Dumps]},
		{"find a version", find(f.Firmware(0)), all[store.Dumps]},
		{"find what is not there", func(d *DB) error {
			if got, err := d.Find(t.Context(), "9.9"); !errors.Is(err, ErrBuild) {
				return fmt.Errorf("found %q, %v", got, err)
			}
			return nil
		}, all[store.Dumps]},
		{"leaks", func(d *DB) error { _, err := d.Leaks(t.Context(), Scope{Builds: builds[:1]}); return err }, three},
		{"top", func(d *DB) error { _, err := d.Top(t.Context(), Scope{Builds: builds[:1], Since: last}, 0); return err },
			since(last.Format(time.DateOnly), three)},
		{"diff", func(d *DB) error { _, err := d.Diff(t.Context(), builds[0], builds[1], Scope{}); return err }, three},
	} {
		t.Run(c.name, func(t *testing.T) {
			clear(read)
			if err := c.ask(open(t, s)); err != nil {
				t.Fatal(err)
			}
			for _, name := range three {
				want := 0
				if slices.Contains(c.want, name) {
					want = 1
				}
				if read[name] != want {
					t.Errorf("%s: read %d times, want %d", name, read[name], want)
				}
			}
			t.Logf("%d of %d files", len(read), len(three))
		})
	}
}

// The files of a bucket are read several at a time: a question needs hundreds, and each request takes as long as
// the network.
func TestBucketReadsAtOnce(t *testing.T) {
	const wait = 20 * time.Millisecond
	s, err := store.Open(t.Context(), fleettest.Bucket(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".parquet") {
				time.Sleep(wait)
			}
			h.ServeHTTP(w, r)
		})
	}))
	if err != nil {
		t.Fatal(err)
	}
	f := simulate.Default()
	f.Devices, f.Builds, f.Paths, f.Days, f.Leak = 4, 4, 10, 25, simulate.Leak{Build: -1}
	if _, _, err := f.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	d := open(t, s)
	begin := time.Now()
	list, err := s.Snapshot(t.Context(), "")
	if err != nil || len(list[store.Dumps]) != 100 {
		t.Fatal(len(list[store.Dumps]), err)
	}
	if err := d.copy(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 300*wait/2 {
		t.Errorf("300 files took %v, one after another at least %v", took, 300*wait)
	}
}

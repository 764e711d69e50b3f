package query

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// The answers are the same whether each build has files of its own or all builds are in the same files.
func TestBuildsInOneFile(t *testing.T) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := defaultFleet()
	f.Devices, f.Builds, f.Paths, f.Days, f.Leak = 150, 5, 20, 5, planted{Build: 3, Path: 4, Share: 0.5, Rate: 500}
	if _, _, err := f.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	ask := func() (text string, files int) {
		d := open(t, s)
		diff, err := d.Diff(t.Context(), f.BuildID(2), f.BuildID(3), Scope{})
		if err != nil || len(diff.Rows) < 10 || diff.Before == 0 {
			t.Fatalf("%+v %v", diff, err)
		}
		leaks, err := d.Leaks(t.Context(), Scope{Builds: []string{f.BuildID(3)}})
		if err != nil {
			t.Fatal(err)
		}
		builds, err := d.Builds(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal([]any{diff, leaks, builds})
		if err != nil {
			t.Fatal(err)
		}
		return string(b), len(list[store.Dumps])
	}
	want, files := ask()
	if err := s.Compact(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	got, fewer := ask()
	if files != 25 || fewer != 5 {
		t.Fatalf("%d and %d files", files, fewer)
	}
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/export"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// dhatSite is what a DHAT file has of a call path: total, most, at the peak, at the end.
type dhatSite struct {
	Total  uint64 `json:"tb"`
	Blocks uint64 `json:"tbk"`
	Most   uint64 `json:"mb"`
	MostN  uint64 `json:"mbk"`
	Peak   uint64 `json:"gb"`
	PeakN  uint64 `json:"gbk"`
	End    uint64 `json:"eb"`
	EndN   uint64 `json:"ebk"`
}

// dhatSites reads the call paths of a DHAT file that go through each of functions. Each
// must live for some time.
func dhatSites(t *testing.T, text []byte, functions []string) map[string]dhatSite {
	t.Helper()
	var file struct {
		Sites []struct {
			dhatSite
			Lifetime *uint64 `json:"tl"`
			Frames   []int   `json:"fs"`
		} `json:"pps"`
		Frames []string `json:"ftbl"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatalf("%v\n%.300s", err, text)
	}
	found := map[string]dhatSite{}
	for _, s := range file.Sites {
		for _, i := range s.Frames {
			for _, f := range functions {
				if !regexp.MustCompile(`: ` + f + ` \((.*/)?lifetimes\.c:`).MatchString(file.Frames[i]) {
					continue
				}
				if _, twice := found[f]; twice {
					t.Errorf("two call paths through %s", f)
				}
				if s.Lifetime == nil {
					t.Errorf("%s: no lifetime", f)
				}
				found[f] = s.dhatSite
			}
		}
	}
	return found
}

// The DHAT export of a recording with events has the numbers of valgrind's own file:
// what each call path allocated, its most, what it held at the peak and at the end.
func TestDHATOfEvents(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "valgrind")
	functions := []string{"keep", "peak", "churn"}
	program := compile(t, "gcc", "lifetimes.c", "-O1")
	dir := t.TempDir()
	file := filepath.Join(dir, "dhat.json")
	if out, err := exec.Command("valgrind", "--tool=dhat", "--dhat-out-file="+file, program).CombinedOutput(); err != nil {
		t.Skipf("valgrind does not run here: %v\n%.200s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := dhatSites(t, text, functions)

	recording := recorded(t, "--events", "--", program).file
	r, err := heaplog.Open(t.Context(), heaplog.Files(recording))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	prof, err := profile.Collect(r.Dumps())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := export.Write(&out, prof, "dhat", export.Options{Replay: r.Replay()}); err != nil {
		t.Fatal(err)
	}
	got := dhatSites(t, out.Bytes(), functions)
	for _, f := range functions {
		if want[f] == (dhatSite{}) || got[f] != want[f] {
			t.Errorf("%s: %+v, valgrind has %+v", f, got[f], want[f])
		}
	}
}

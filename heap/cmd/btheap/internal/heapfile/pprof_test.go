package heapfile

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// A small file that is a large profile once it is decompressed is not read whole.
func TestLargeProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("a race detector takes memory of its own, and the race run is -short")
	}
	path := filepath.Join(t.TempDir(), "x.pb.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	z.Write([]byte{0x0a, 4, 8, 1, 16, 2})
	zeros := make([]byte, 1<<20)
	for range 2 * maxWhole >> 20 {
		z.Write(zeros)
	}
	z.Close()
	f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "x.pb.gz: profile of pprof: over 128 MB") {
		t.Errorf("%v, expected that it is too large", err)
	}
	runtime.ReadMemStats(&after)
	if used := after.Sys - before.Sys; used > 4*maxWhole {
		t.Errorf("took %d MB", used>>20)
	}
}

// Locations are written once, and can be called very often: a profile of 250 KB stood
// for 900 million frames.
func TestFramesOfAProfile(t *testing.T) {
	for _, c := range []struct {
		lines, depth, samples int
		want                  string
	}{
		{64, 64, 10, ""},
		{64, 65, 10, "x.pb: profile of pprof: sample 1 has over 4096 frames"},
		{64, 64, 2000, "frames in"},
	} {
		f := &profile.Function{ID: 1, Name: "f"}
		l := &profile.Location{ID: 1, Line: slices.Repeat([]profile.Line{{Function: f, Line: 3}}, c.lines)}
		p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
			Function: []*profile.Function{f}, Location: []*profile.Location{l}}
		for range c.samples {
			p.Sample = append(p.Sample, &profile.Sample{Location: slices.Repeat(p.Location, c.depth), Value: []int64{1, 5}})
		}
		var b bytes.Buffer
		if err := p.WriteUncompressed(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x.pb")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if err == nil && c.want == "" {
			continue
		}
		if err == nil || c.want == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d lines, %d calls, %d samples: %v, want %q", c.lines, c.depth, c.samples, err, c.want)
		}
	}
}

package main

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

// The names in a profile of pprof are anybody's: they move no cursor and end no line.
func TestNamesOfAProfile(t *testing.T) {
	f := &profile.Function{ID: 1, Name: "evil\x1b]0;owned\x07\n~b#size: 1, 0x1", SystemName: "s\r", Filename: "a\x1b[2J.c"}
	m := &profile.Mapping{ID: 1, File: "/bin/\x1b[31mx"}
	l := &profile.Location{ID: 1, Mapping: m, Line: []profile.Line{{Function: f, Line: 3}}}
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_space", Unit: "bytes"}}, Function: []*profile.Function{f},
		Mapping: []*profile.Mapping{m}, Location: []*profile.Location{l}, Sample: []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{5}}}}
	path := filepath.Join(t.TempDir(), "x.pb.gz")
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"top"}, {"tree"}, {"top", "--stacks"}, {"top", "--by=module"}, {"peek", "evil"}, {"export", "-F", "folded"},
		{"export", "-F", "heaptrack"}, {"export", "-F", "csv"}} {
		out, errs, code := command("", append(args, path)...)
		if code != 0 || strings.ContainsAny(out+errs, "\x1b\x07\r") || strings.Contains(out, "\n~b#") {
			t.Errorf("%v: exit code %d\n%q\n%q", args, code, out, errs)
		}
		if !strings.Contains(out, "evil") && args[len(args)-1] != "--by=module" {
			t.Errorf("%v: %q", args, out)
		}
	}
}

// A damaged profile is an error of its own, and not of a log without records.
func TestDamagedProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pb")
	if err := os.WriteFile(path, []byte{0x0a, 4, 8, 1, 16, 2, 0x0a, 0xff, 1, 0}, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := command("", "top", path); code != 2 || out != "" || !strings.Contains(errs, "x.pb: profile of pprof: ") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}

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
	for range 2 * maxProfile >> 20 {
		z.Write(zeros)
	}
	z.Close()
	f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readProfile(path); err == nil || !strings.Contains(err.Error(), "x.pb.gz: profile of pprof: over 128 MB") {
		t.Errorf("%v, expected that it is too large", err)
	}
	runtime.ReadMemStats(&after)
	if used := after.Sys - before.Sys; used > 4*maxProfile {
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
		_, err := readProfile(path)
		if err == nil && c.want == "" {
			continue
		}
		if err == nil || c.want == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d lines, %d calls, %d samples: %v, want %q", c.lines, c.depth, c.samples, err, c.want)
		}
	}
}

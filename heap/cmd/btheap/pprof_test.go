package main

import (
	"bytes"
	"os"
	"path/filepath"
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
	for _, args := range [][]string{{"top"}, {"tree"}, {"top", "--stacks"}, {"top", "--by=module"}, {"export", "-F", "folded"}} {
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

// A profile without names does not ask for -e, which is refused with it.
func TestProfileWithoutNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.heap")
	if err := os.WriteFile(path, []byte("heap profile: 1: 100 [1: 100] @ heapprofile\n1: 100 [1: 100] @ 0x1000 0x2000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := command("", path); code != 0 || !strings.Contains(out, "0xfff < 0x1fff") || strings.Contains(out, "-e FILE") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if _, errs, code := command("", "-e", path, path); code != 2 || !strings.Contains(errs, "has no effect here") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The facts of each device are those that were written, whatever the number of files, of row groups, and of
// values in a dictionary.
func TestByDevice(t *testing.T) {
	s := open(t)
	r := rand.New(rand.NewPCG(1, 1))
	type key struct {
		device           string
		path, boot, dump int64
	}
	want := map[key][2]int64{}
	for i, n := range []int{1, 2000, 3, 140_000} {
		b := &Batch{Name: fmt.Sprint(i), Day: day, Dumps: []Dump{{Build: "b"}}}
		for j := range n { // of other builds
			b.Facts = append(b.Facts, Fact{Build: []string{"a", "c"}[j%2], Device: fmt.Sprint("d", j%1000)})
		}
		for j := range n {
			f := Fact{Build: "b", Device: fmt.Sprint("d", r.IntN(1000)), Path: int64(j % 160), Boot: int64(i), Dump: int64(j), Count: int64(j), Bytes: r.Int64()}
			want[key{f.Device, f.Path, f.Boot, f.Dump}] = [2]int64{f.Count, f.Bytes}
			b.Facts = append(b.Facts, f)
		}
		put(t, s, b)
	}
	list, err := s.Snapshot(t.Context(), "")
	if err != nil || len(list.Facts) != 4 {
		t.Fatal(list, err)
	}
	var files, devices []string
	for _, name := range list.Facts {
		files = append(files, filepath.Join(s.Dir(), name))
	}
	for facts, err := range ByDevice([]string{"b"}, files) {
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, facts[0].Device)
		for _, f := range facts {
			k := key{f.Device, f.Path, f.Boot, f.Dump}
			if w, ok := want[k]; !ok || f.Device != facts[0].Device || w != [2]int64{f.Count, f.Bytes} {
				t.Fatalf("%+v, want %v", f, w)
			}
			delete(want, k)
		}
	}
	if len(want) > 0 || len(devices) != 1000 || !slices.IsSorted(devices) {
		t.Errorf("%d facts are missing; %d devices", len(want), len(devices))
	}
	n, last := 0, ""
	for facts, err := range ByDevice([]string{"a", "c"}, files) {
		if err != nil || facts[0].Device <= last {
			t.Fatal(facts[0].Device, last, err)
		}
		n, last = n+len(facts), facts[0].Device
	}
	if n != 1+2000+3+140_000 {
		t.Errorf("%d facts of two builds", n)
	}
}

// A damaged file is an error that names it, never a panic or other facts.
func TestByDeviceDamaged(t *testing.T) {
	s := open(t)
	b := batch("x", "d", "u", 1)
	for p := range int64(50) {
		b.Facts = append(b.Facts, Fact{Build: "b1", Device: fmt.Sprint("d", p%7), Path: p, Count: p, Bytes: 1000 + p})
	}
	put(t, s, b)
	name := filepath.Join(s.Dir(), dayPart(day).name(Facts, "x", ".parquet"))
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	read := func() (text string, err error) {
		for facts, err := range ByDevice([]string{"b1"}, []string{name}) {
			if err != nil {
				return "", err
			}
			text += fmt.Sprintf("%+v", facts)
		}
		return text, nil
	}
	want, err := read()
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	damaged := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := read()
		switch {
		case err != nil:
			if failed++; !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v does not name the file", what, err)
			}
		case got != want:
			t.Errorf("%s: other facts\n%s", what, got)
		}
	}
	step := 7
	if cmdtest.Full() {
		step = 1
	}
	for i := 0; i < len(whole); i += step {
		data := slices.Clone(whole)
		data[i] ^= byte(1 << (i % 8))
		damaged(fmt.Sprint("byte ", i, " changed"), data)
		damaged(fmt.Sprint("cut at ", i), whole[:i])
	}
	t.Logf("%d of %d are errors", failed, 2*len(whole)/step)
	if failed < len(whole)/step {
		t.Error("too few errors: the test shows nothing")
	}
}

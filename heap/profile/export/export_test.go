package export

import (
	"bytes"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// export writes the first dump of the fixture.
func export(t *testing.T, format string, v profile.View, weight profile.Weight) string {
	t.Helper()
	var out bytes.Buffer
	notes, err := Write(&out, first(t, v), format, weight)
	if err != nil || len(notes) > 0 {
		t.Fatalf("%s: %v, notes %q", format, err, notes)
	}
	return out.String()
}

// pprof's own package finds the file valid.
func TestPprof(t *testing.T) {
	hidden := map[string][2]int64{"work main ": {3, 155}, "idle main ": {3, 30}}
	all := map[string][2]int64{"xmalloc work main ": {2, 150}, "idle main ": {3, 30}, "- xmalloc work main ": {1, 5}}
	for hide, want := range map[*regexp.Regexp]map[string][2]int64{nil: all, regexp.MustCompile("^(xmalloc|0x9000)$"): hidden} {
		prof, err := pprof.ParseData([]byte(export(t, "pprof", profile.View{Filter: profile.Filter{Hide: hide}}, profile.Bytes)))
		if err != nil {
			t.Fatal(err)
		}
		if err := prof.CheckValid(); err != nil {
			t.Error(err)
		}
		if prof.DefaultSampleType != "inuse_space" || prof.SampleType[0].Type != "inuse_objects" || prof.SampleType[1].Unit != "bytes" || prof.PeriodType.Type != "space" {
			t.Errorf("types %v %v", prof.SampleType, prof.DefaultSampleType)
		}
		if got := pprofSums(prof); !maps.Equal(got, want) {
			t.Errorf("samples %v, want %v", got, want)
		}
		m := prof.Mapping[0]
		if m.File != "/bin/app" || m.BuildID != "abcd" || m.Start != 0x400000 || !m.HasLineNumbers || !m.HasInlineFrames {
			t.Errorf("mapping %+v", m)
		}
	}
}

// pprofSums adds up samples by the names of their functions.
func pprofSums(prof *pprof.Profile) map[string][2]int64 {
	sums := map[string][2]int64{}
	for _, s := range prof.Sample {
		key := ""
		for _, l := range s.Location {
			if len(l.Line) == 0 {
				key += "- "
			}
			for _, ln := range l.Line {
				key += ln.Function.Name + " "
			}
		}
		sum := sums[key]
		sums[key] = [2]int64{sum[0] + s.Value[0], sum[1] + s.Value[1]}
	}
	return sums
}

func TestFolded(t *testing.T) {
	if got, want := export(t, "folded", profile.View{}, profile.Bytes), "main;work;xmalloc 150\nmain;idle 30\nmain;work;xmalloc;0x9000 5\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := export(t, "folded", profile.View{Filter: profile.Filter{Hide: regexp.MustCompile("xmalloc|0x9000|idle")}}, profile.Count), "main;work 3\nmain 3\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := Write(&bytes.Buffer{}, first(t, profile.View{}), "xml", profile.Bytes); err == nil || !strings.Contains(err.Error(), "expected pprof, folded") {
		t.Error(err)
	}
}

// A sampled dump with totals since the boot keeps its rate, labels and totals in a pprof
// profile; pprof's own package accepts it.
func TestPprofOfCallPaths(t *testing.T) {
	b := profile.NewBuilder(0)
	live, freed := b.Path([]symbol.Addr{{PC: 0x10}, {PC: 0x20}}), b.Path([]symbol.Addr{{PC: 0x30}})
	b.AddAllocation(profile.Allocation{Path: live, Value: profile.Value{Bytes: 4096, Count: 4}, Ever: profile.Value{Bytes: 9000, Count: 9}, BytesErr: 30, CountErr: 2})
	b.AddAllocation(profile.Allocation{Path: live, Value: profile.Value{Bytes: 4, Count: 1}, Ever: profile.Value{Bytes: 10, Count: 1}, BytesErr: 40})
	b.AddAllocation(profile.Allocation{Path: freed, Ever: profile.Value{Bytes: 77, Count: 7}})
	d := b.End(profile.DumpInfo{Name: "dump 1", Sample: 512 << 10, Build: "5ca1ab1e", Device: "kitchen", Firmware: "1.2"})
	if bytes, count := d.TotalStdErr(); bytes != 50 || count != 2 {
		t.Errorf("errors %v, %v", bytes, count)
	}
	p, err := profile.New(d)
	if err != nil {
		t.Fatal(err)
	}
	prof, _ := parsed(t, p)
	if err := prof.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if prof.Period != 512<<10 || len(prof.SampleType) != 4 || len(prof.Sample) != 2 {
		t.Fatalf("%v", prof)
	}
	for i, want := range [][]int64{{10, 9010, 5, 4100}, {7, 77, 0, 0}} {
		s := prof.Sample[i]
		if !slices.Equal(s.Value, want) || s.Label["device"][0] != "kitchen" || s.Label["firmware"][0] != "1.2" || s.Label["build"][0] != "5ca1ab1e" {
			t.Errorf("sample %d: %v %v", i, s.Value, s.Label)
		}
	}
	// the sum of two dumps keeps them, too
	sum := profile.Sum(d, d)
	if bytes, _ := sum.TotalStdErr(); math.Abs(bytes-50*math.Sqrt2) > 1e-9 || sum.Device != "kitchen" || sum.Sample != d.Sample || len(slices.Collect(sum.Freed())) != 1 {
		t.Errorf("sum %+v", sum)
	}
}

// Sums that a format cannot hold are noted.
func TestSumsOverLimits(t *testing.T) {
	var b profile.Builder
	b.Add(b.Path([]symbol.Addr{addr(0x400100, frame("main", "a.c", 3))}), profile.Value{Bytes: 1 << 63, Count: 1})
	p := newProfile(t, b.End(profile.DumpInfo{}))
	for format, want := range map[string]string{"pprof": "2^63-1"} {
		notes, err := Write(io.Discard, p, format, profile.Bytes)
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], want) {
			t.Errorf("%s: %v, notes %q", format, err, notes)
		}
	}
}

// No function panics on nothing.
func TestNothing(t *testing.T) {
	for i, p := range []*profile.Profile{nil, {}, newProfile(t, &profile.Dump{}), newProfile(t, new(profile.Builder).End(profile.DumpInfo{}), profile.Sum())} {
		for _, f := range Formats() {
			if _, err := Write(io.Discard, p, f, profile.Bytes); err != nil {
				t.Errorf("%d, %s: %v", i, f, err)
			}
		}
	}
}

package export

import (
	"bytes"
	"fmt"
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

// What is written for pprof is read back: two locations without address are two, and
// those of two profiles are never one by their address.
func TestFromPprof(t *testing.T) {
	both := func(names ...string) *profile.Profile {
		var b profile.Builder
		var dumps []*profile.Dump
		for i, name := range names {
			f := &pprof.Function{ID: 1, Name: name, Filename: "a.c"}
			g := &pprof.Function{ID: 2, Name: "main"}
			l := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: f, Line: 3}}}
			m := &pprof.Location{ID: 2, Line: []pprof.Line{{Function: g, Line: 9}}}
			prof := &pprof.Profile{SampleType: []*pprof.ValueType{{Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"}},
				Sample: []*pprof.Sample{{Location: []*pprof.Location{l, m}, Value: []int64{99, int64(5 + i)}}}}
			d, err := FromPprof(&b, prof, name+".pb.gz")
			if err != nil {
				t.Fatal(err)
			}
			dumps = append(dumps, d)
		}
		return newProfile(t, dumps...)
	}
	var got []string
	for row := range both("f", "g", "f").Rows() {
		got = append(got, fmt.Sprint(row.Stack(), row.Points()))
	}
	if want := []string{"[f a.c:3 main] [{5 1} {0 0} {7 1}]", "[g a.c:3 main] [{0 0} {6 1} {0 0}]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var data bytes.Buffer
	if _, err := Write(&data, first(t, profile.View{}), "pprof", profile.Bytes); err != nil {
		t.Fatal(err)
	}
	prof, err := pprof.Parse(&data)
	if err != nil {
		t.Fatal(err)
	}
	d, err := FromPprof(new(profile.Builder), prof, "x")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := siteRows(newProfile(t, d).Sites(profile.Bytes, false, 0).Rows), siteRows(first(t, profile.View{}).Sites(profile.Bytes, false, 0).Rows); got != want {
		t.Errorf("read back:\n%swant\n%s", got, want)
	}
	for _, bad := range []*pprof.Profile{
		{SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}}},
		{SampleType: []*pprof.ValueType{{Type: "inuse_space", Unit: "bytes"}}, Sample: []*pprof.Sample{{Value: []int64{-1}}}},
		{SampleType: []*pprof.ValueType{{Type: "inuse_space", Unit: "bytes"}}, Sample: []*pprof.Sample{{}}},
	} {
		if _, err := FromPprof(new(profile.Builder), bad, "bad"); err == nil || !strings.HasPrefix(err.Error(), "bad: ") {
			t.Errorf("%v: %v", bad, err)
		}
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
	// what was read back is live values
	back, err := FromPprof(profile.NewBuilder(0), prof, "back")
	if err != nil || back.Total != (profile.Value{Bytes: 4100, Count: 5}) {
		t.Errorf("read back: %v, %v", back.Total, err)
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
	if _, err := FromPprof(nil, nil, "x"); err == nil {
		t.Error("FromPprof of nothing is no error")
	}
	for i, p := range []*profile.Profile{nil, {}, newProfile(t, &profile.Dump{}), newProfile(t, new(profile.Builder).End(profile.DumpInfo{}), profile.Sum())} {
		for _, f := range Formats() {
			if _, err := Write(io.Discard, p, f, profile.Bytes); err != nil {
				t.Errorf("%d, %s: %v", i, f, err)
			}
		}
	}
}

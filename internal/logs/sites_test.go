package logs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/profile"
)

// topOf is what is reported of logs: notes, dumps, and the call sites of those selected. It
// returns whether they were added up without call paths.
func topOf(t *testing.T, f *Flags, paths []string, maxPaths int, of string, sites bool) (out []string, added bool) {
	r := opened(t, f, paths, &out)
	sel, err := ParseSelection(of)
	if err != nil {
		t.Fatal(err)
	}
	var p *profile.Profile
	var sums *SiteSums
	if sites {
		if p, sums, err = r.Sites(maxPaths, sel); err != nil {
			t.Fatal(err)
		}
	}
	if sums == nil {
		if p, err = r.Profile(maxPaths, nil); err != nil {
			t.Fatal(err)
		}
	}
	from, to, err := sel.Of(len(p.Dumps))
	if err != nil {
		t.Fatal(err)
	}
	d := p.Sum(p.Dumps[from:to])
	out = append(out, fmt.Sprint(d.Name, d.File == paths[0], d.Line, d.Records, d.NoSize))
	for _, o := range []profile.TopOptions{{}, {N: 5, Cum: true, Weight: profile.Count}} {
		var top *profile.TopReport
		if sums != nil {
			top = sums.Top(o)
		} else {
			top = (&profile.View{}).Names(p).Top(d, o)
		}
		out = append(out, fmt.Sprint(top.Total, top.Stacks, top.Sites))
		for _, row := range top.Rows {
			out = append(out, fmt.Sprint(row))
		}
	}
	for _, d := range p.Dumps {
		out = append(out, fmt.Sprint(d.Name, d.Boot, d.Number, d.File == paths[0], d.Line, d.Timed, d.Cut, d.Records, d.NoSize, d.Total))
	}
	out = append(out, fmt.Sprint(p.OtherRecords, p.Saturated))
	r.Notes()
	r.NoteDumps(p, p.Dumps)
	return append(out, ending(r)), sums != nil
}

// Call sites that are added up without call paths are those of a profile.
func TestSitesAreThoseOfAProfile(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	perl, modules := capture(t, "perl.log.gz"), "{{{module:0:app:elf:00}}}\n{{{mmap:0x55d400000000:0x20000000:load:0:rx:0}}}\n"
	some := perl[:strings.LastIndexByte(perl[:9000], '\n')+1]
	cases := append(logCases(t, rng),
		logCase{"events", strings.Repeat(perl, 2) + "~h#boot pid=7\n~h#lost n=3\n" + event(t) + perl, Flags{}},
		logCase{"modules at the end", strings.Repeat(perl, 3) + modules + perl, Flags{}},
		logCase{"modules far before records", some + modules + strings.Repeat("other text\n", 60_000) + perl, Flags{}},
		logCase{"dumps by how they begin", strings.Repeat("heap:\n"+some, 100), Flags{}},
		logCase{"many dumps", strings.Repeat("~h#begin 1 n=3\n"+perl[:2000]+"~h#end 1\n", 300), Flags{}},
		logCase{"bad markup", perl + "{{{mmap:nonsense}}}\n" + perl, Flags{}},
		logCase{"large sizes", large(t), Flags{}},
		logCase{"lossless", perl, Flags{Machine: "exact64"}})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	processors := []int{1, 4}
	if testing.Short() {
		processors, cases = processors[1:], cases[len(cases)/2:]
	}
	added := 0
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, run := range []struct {
			of       string
			maxPaths int
			logs     int
		}{{"last", 0, 1}, {"last", 0, 2}, {"last", 300, 1}, {"all", 0, 2}, {"all", 20, 2}, {"1", 0, 2}, {"1..2", 300, 2}} {
			paths := []string{path, path}[:run.logs]
			flags := c.flags
			want, _ := topOf(t, &flags, paths, run.maxPaths, run.of, false)
			for _, n := range processors {
				t.Run(fmt.Sprintf("%s/%+v/%d", c.name, run, n), func(t *testing.T) {
					runtime.GOMAXPROCS(n)
					flags := c.flags
					got, ok := topOf(t, &flags, paths, run.maxPaths, run.of, true)
					if ok {
						added++
					}
					if len(got) != len(want) {
						t.Errorf("%d lines, want %d", len(got), len(want))
					}
					for i := range min(len(got), len(want)) {
						if got[i] != want[i] {
							t.Fatalf("line %d:\n%s\nwant\n%s", i, got[i], want[i])
						}
					}
				})
			}
		}
	}
	if added < 4*len(cases)*len(processors) {
		t.Errorf("only %d of %d cases were added up without call paths", added, 7*len(cases)*len(processors))
	}
}

// event is an allocation event.
func event(t *testing.T) string {
	t.Helper()
	var u codec.User
	u.Set(codec.TagEvent, codec.EventAllocated)
	u.Set(codec.TagAddress, 0x1000)
	blob, err := codec.AppendBlobUser(nil, &codec.Stack{PCs: []uint64{0x401000}, Size: 24}, &u, codec.MachineExact64, codec.SearchLws)
	if err != nil {
		t.Fatal(err)
	}
	return string(codec.AppendEventLine(nil, blob)) + "\n"
}

// large is a log whose sum is over 64 bits, with a record that comes often.
func large(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 6000 {
		s := codec.Stack{PCs: []uint64{0x401000, uint64(0x402000 + i%3), 0x401000}, Size: 1 << 51}
		blob, err := codec.AppendBlob(nil, &s, codec.MachineExact64, codec.SearchLws)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(codec.AppendLine(nil, blob), '\n'))
	}
	for range 5000 {
		s := codec.Stack{Size: 1 << 50}
		blob, _ := codec.AppendBlob(nil, &s, codec.MachineExact64, codec.SearchLws)
		b.Write(append(codec.AppendLine(nil, blob), '\n'))
	}
	return b.String()
}

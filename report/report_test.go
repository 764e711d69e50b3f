package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/report"
	"github.com/lwsbt/lwsbt/symbol"
)

// hostile are names that would do harm as markup, script, text of a terminal, or to a
// reader's eyes.
var hostile = []string{
	`</script><script>document.title="owned"</script>`,
	`<img src=x onerror="document.title='owned'">`,
	`"quoted" & 'single'`,
	"line one\nline two",
	"\x1b[31mred\x1b[0m\x07",
	"right\u202eto left",
}

// stack is a call path, innermost first, and what it holds in each dump.
type stack struct {
	funcs  []string
	values []profile.Value
}

func v(bytes, count uint64) profile.Value { return profile.Value{Bytes: bytes, Count: count} }

// leak is four dumps: one call path grows in each, one comes and goes, one stays.
var leak = []stack{
	{[]string{"strdup_url", "parse", "main"}, []profile.Value{v(100, 1), v(200, 2), v(300, 3), v(400, 4)}},
	{[]string{"read_file", "load", "main"}, []profile.Value{v(5000, 1), v(0, 0), v(5000, 1), v(0, 0)}},
	{[]string{"ring_init", "main"}, []profile.Value{v(1024, 1), v(1024, 1), v(1024, 1), v(1024, 1)}},
}

// profileOf returns the profile of stacks. Dumps with these indexes have no end.
func profileOf(t *testing.T, stacks []stack, cut ...int) *profile.Profile {
	t.Helper()
	var b profile.Builder
	addrs := map[string]symbol.Addr{}
	var paths []profile.Path
	for _, s := range stacks {
		var frames []symbol.Addr
		for _, f := range s.funcs {
			if _, ok := addrs[f]; !ok {
				pc := uint64(0x1000 + 16*len(addrs))
				addrs[f] = symbol.Addr{PC: pc, Location: &symbol.Location{Own: pc, Call: pc, Frames: []symbol.Frame{{Name: f, File: "src/a.c", Line: 10 + len(addrs)}}}}
			}
			frames = append(frames, addrs[f])
		}
		paths = append(paths, b.Path(frames))
	}
	var dumps []*profile.Dump
	for i := range stacks[0].values {
		for n, s := range stacks {
			if !s.values[i].IsZero() {
				b.Add(paths[n], s.values[i])
			}
		}
		dumps = append(dumps, b.End(profile.Dump{Name: fmt.Sprint("dump ", i+1), Number: int64(i + 1), Cut: slices.Contains(cut, i)}))
	}
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	return p.View(profile.View{FullNames: true})
}

func pageOf(t *testing.T, stacks []stack, o report.Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := report.Write(&out, profileOf(t, stacks), o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// writePage writes a page where a browser can open it.
func writePage(t *testing.T, page []byte) (url string) {
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

var dataBlock = regexp.MustCompile(`(?s)<script id="data" type="application/json">(.*?)</script>`)

// The data is what the profile says, and nothing in it ends the block it is in.
func TestData(t *testing.T) {
	names := append([]string{"main"}, hostile...)
	stacks := []stack{{names, []profile.Value{v(1<<53, 2), v(7, 1)}}, {[]string{"other", "main"}, []profile.Value{v(0, 0), v(9, 3)}}}
	page := pageOf(t, stacks, report.Options{Title: hostile[0], Subtitle: hostile[1], Notes: hostile})
	m := dataBlock.FindSubmatch(page)
	if m == nil {
		t.Fatal("no data in the page")
	}
	var d struct {
		Dumps []struct {
			Bytes, Count uint64
			Values       []uint64
		}
		Sites        [][]any
		Parent, Site []int
		Notes        []string
	}
	if err := json.Unmarshal(m[1], &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Dumps) != 2 || d.Dumps[0].Bytes != 1<<53 || d.Dumps[1].Bytes != 16 || d.Dumps[1].Count != 4 {
		t.Errorf("dumps: %+v", d.Dumps)
	}
	for i, want := range []uint64{1 << 53, 16} {
		var sum uint64
		for n := 0; n < len(d.Dumps[i].Values); n += 3 {
			sum += d.Dumps[i].Values[n+1]
		}
		if sum != want {
			t.Errorf("dump %d: the call paths hold %d bytes, want %d", i, sum, want)
		}
	}
	for n, p := range d.Parent[1:] {
		if p > n {
			t.Errorf("node %d has parent %d, which is not before it", n+1, p)
		}
	}
	if len(d.Notes) != len(hostile)+1 || !strings.Contains(d.Notes[len(hostile)], "2^53") {
		t.Errorf("notes: %q", d.Notes)
	}
	for _, text := range []string{"\x1b", "\u202e", `<img`} {
		if bytes.Contains(page, []byte(text)) {
			t.Errorf("the page holds %q as it is", text)
		}
	}
	if n := bytes.Count(page, []byte("</script>")); n != 2 {
		t.Errorf("%d script ends, want 2", n)
	}
}

// Growth uses complete dumps: the third of the leak's four dumps lost its end.
func TestGrowthOfCompleteDumps(t *testing.T) {
	var page bytes.Buffer
	if err := report.Write(&page, profileOf(t, leak, 2), report.Options{}); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Dumps  []struct{}
		Growth [2][]struct {
			Points []uint64
			Slope  float64
		}
		GrowthTotal [2]struct{ Points []uint64 }
	}
	if err := json.Unmarshal(dataBlock.FindSubmatch(page.Bytes())[1], &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Dumps) != 4 || len(d.Growth[0]) != 1 {
		t.Fatalf("%d dumps, of which %d call paths grow; want 4, 1", len(d.Dumps), len(d.Growth[0]))
	}
	if g := d.Growth[0][0]; !slices.Equal(g.Points, []uint64{100, 200, 400}) || g.Slope != 150 {
		t.Errorf("the leak: %v, slope %v; want [100 200 400], 150", g.Points, g.Slope)
	}
	if got := d.GrowthTotal[0].Points; !slices.Equal(got, []uint64{6124, 1224, 1424}) {
		t.Errorf("the total: %v, want [6124 1224 1424]", got)
	}
	page.Reset()
	if err := report.Write(&page, profileOf(t, leak, 0, 1, 2), report.Options{}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(page.Bytes(), []byte(`"growth":`)) {
		t.Error("one complete dump has growth")
	}
}

// Without data a page takes at most 150 KB.
func TestSize(t *testing.T) {
	page := pageOf(t, leak, report.Options{})
	m := dataBlock.FindSubmatch(page)
	if n := len(page) - len(m[1]); n > 150_000 || n < 1000 {
		t.Errorf("%d bytes beside the data, expected at most 150,000", n)
	}
}

// Of more call paths than a page holds, those that hold least are one.
func TestManyPaths(t *testing.T) {
	const extra = 10
	var stacks []stack
	for n := range report.MaxPaths + extra {
		stacks = append(stacks, stack{[]string{fmt.Sprint("f", n)}, []profile.Value{v(uint64(n+1), 1)}})
	}
	page := pageOf(t, stacks, report.Options{})
	var d struct {
		Sites [][]any
		Site  []int
		Dumps []struct{ Values []uint64 }
		Notes []string
	}
	if err := json.Unmarshal(dataBlock.FindSubmatch(page)[1], &d); err != nil {
		t.Fatal(err)
	}
	values := d.Dumps[0].Values
	if n := len(values) / 3; n != report.MaxPaths+1 {
		t.Errorf("%d call paths, want %d and one more", n, report.MaxPaths)
	}
	last := values[len(values)-3:]
	if name := d.Sites[d.Site[last[0]]][0]; name != profile.Other || last[1] != extra*(extra+1)/2 || last[2] != extra {
		t.Errorf("the last is %v with %d bytes, %d allocations", name, last[1], last[2])
	}
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "the other 10 are shown as one") {
		t.Errorf("notes: %q", d.Notes)
	}
}

func TestNoDump(t *testing.T) {
	if err := report.Write(&bytes.Buffer{}, &profile.Profile{}, report.Options{}); err == nil {
		t.Error("a profile without dumps makes a page")
	}
}

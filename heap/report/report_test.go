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

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/report"
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

// stack is a call path, innermost first, and its value in each dump.
type stack struct {
	funcs  []string
	values []profile.Value
}

func v(bytes, count uint64) profile.Value { return profile.Value{Bytes: bytes, Count: count} }

// leak is four dumps: one call path grows in each, one comes and goes, one stays.
var leak = []stack{
	{[]string{"strdup_url", "parse", "main"}, []profile.Value{v(100, 1), v(200, 2), v(300, 3), v(400, 4)}},
	{[]string{"read_file", "load", "main"}, []profile.Value{v(1400, 1), v(0, 0), v(1400, 1), v(0, 0)}},
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
		dumps = append(dumps, b.End(profile.DumpInfo{Name: fmt.Sprint("dump ", i+1), Number: int64(i + 1), Cut: slices.Contains(cut, i)}))
	}
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	return p.View(profile.View{})
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

// The data equals the profile, and no name in it ends the enclosing script element.
func TestData(t *testing.T) {
	names := append([]string{"main"}, hostile...)
	stacks := []stack{{names, []profile.Value{v(1<<53, 2), v(7, 1)}}, {[]string{"other", "main"}, []profile.Value{v(0, 0), v(9, 3)}}}
	page := pageOf(t, stacks, report.Options{Title: hostile[0], Subtitle: hostile[1], Notes: hostile})
	m := dataBlock.FindSubmatch(page)
	if m == nil {
		t.Fatal("no data in the page")
	}
	var d struct {
		Dumps        []struct{ Bytes, Count uint64 }
		Values       []uint64
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
		if sum := bytesIn(d.Values, uint64(i)); sum != want {
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

// bytesIn adds up what the nodes hold in a dump, from the changes of each.
func bytesIn(values []uint64, dump uint64) (sum uint64) {
	for len(values) > 0 {
		var now uint64
		changes := values[2 : 2+3*values[1]]
		values = values[2+len(changes):]
		for ; len(changes) > 0 && changes[0] <= dump; changes = changes[3:] {
			now = changes[1]
		}
		sum += now
	}
	return sum
}

// A page has each value once for as long as it stays the same.
func TestChanges(t *testing.T) {
	stacks := []stack{{[]string{"a", "main"}, []profile.Value{v(1, 1), v(1, 1), v(0, 0), v(1, 1), v(1, 1)}}, {[]string{"main"}, []profile.Value{v(0, 0), v(0, 0), v(7, 2), v(7, 2), v(7, 2)}}}
	var d struct{ Values []uint64 }
	if err := json.Unmarshal(dataBlock.FindSubmatch(pageOf(t, stacks, report.Options{}))[1], &d); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{1, 1, 2, 7, 2, 2, 3, 0, 1, 1, 2, 0, 0, 3, 1, 1}; !slices.Equal(d.Values, want) {
		t.Errorf("values %v, want %v", d.Values, want)
	}
}

// Costs are on the page, call paths included that no dump has.
func TestCosts(t *testing.T) {
	ever := profileOf(t, []stack{{[]string{"strdup_url", "parse", "main"}, []profile.Value{v(4000, 40)}}, {[]string{"scratch", "main"}, []profile.Value{v(512, 2)}}})
	page := pageOf(t, leak, report.Options{Costs: []report.Cost{{Name: "allocated", About: "ever"}}, CostValues: ever})
	var d struct {
		Sites        [][]any
		Parent, Site []int
		Costs        []struct {
			Name   string
			Values []uint64
		}
	}
	if err := json.Unmarshal(dataBlock.FindSubmatch(page)[1], &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Costs) != 1 || d.Costs[0].Name != "allocated" || len(d.Costs[0].Values) != 6 {
		t.Fatalf("costs: %+v", d.Costs)
	}
	got := map[any][]uint64{}
	for list := d.Costs[0].Values; len(list) > 0; list = list[3:] {
		got[d.Sites[d.Site[list[0]]][0]] = list[1:3]
	}
	if !slices.Equal(got["strdup_url"], []uint64{4000, 40}) || !slices.Equal(got["scratch"], []uint64{512, 2}) {
		t.Errorf("allocated: %v", got)
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
		Sites  [][]any
		Site   []int
		Values []uint64
		Notes  []string
	}
	if err := json.Unmarshal(dataBlock.FindSubmatch(page)[1], &d); err != nil {
		t.Fatal(err)
	}
	if n := len(d.Values) / 5; n != report.MaxPaths+1 {
		t.Errorf("%d call paths, want %d and one more", n, report.MaxPaths)
	}
	last := d.Values[len(d.Values)-5:] // node, 1 change, dump 0, bytes, count
	if name := d.Sites[d.Site[last[0]]][0]; name != profile.OtherName || last[3] != extra*(extra+1)/2 || last[4] != extra {
		t.Errorf("the last is %v with %d bytes, %d allocations", name, last[3], last[4])
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

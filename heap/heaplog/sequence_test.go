package heaplog_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// sequence returns the dumps of a log, and the note that there may be more; "" without one.
func sequence(t testing.TB, log string, options ...heaplog.Option) (dumps []*profile.Dump, undecided string) {
	t.Helper()
	r := open(t, strings.NewReader(log), options...)
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		dumps = append(dumps, d)
	}
	for _, n := range r.Summary().Notes {
		if strings.HasPrefix(n.Text, "looks like ") {
			undecided = n.Text
		}
	}
	return dumps, undecided
}

// records returns lines of n distinct records, numbered from first on.
func records(t testing.TB, first, n int) []string {
	var list []string
	for i := first; i < first+n; i++ {
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{Size: uint64(8 + i%40), PCs: []uint64{0x400000 + uint64(i)*12, 0x410000}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(codec.AppendLine(nil, blob)))
	}
	return list
}

func TestSequence(t *testing.T) {
	r := records(t, 0, 20)
	lines := func(parts ...string) string { return strings.Join(parts, "\n") + "\n" }
	a, b := strings.Join(r[:5], "\n"), strings.Join(r[5:10], "\n")
	for _, c := range []struct {
		name, log string
		split     string
		counts    string
		starts    string // boot/number
	}{
		{"one dump", lines("boot", a, "text", b), "", "[10]", "1/1"},
		{"marked", lines("~h#begin 3 t=5 n=5", a, "~h#end 3 n=5", "~h#begin 4 n=5", b, "~h#end 4"), "", "[5 5]", "1/3 1/4"},
		{"marked and empty", lines("~h#begin 1 n=0", "~h#end 1", "~h#begin 2", a), "", "[0 5]", "1/1 1/2"},
		{"records outside the dumps", lines("~h#begin 1", a, "~h#end 1", b), "", "[5 5]", "1/1 1/1"},
		{"boots", lines("~h#boot prog=x", "~h#begin 1", a, "~h#end 1", "~h#boot", "~h#begin 1", b, "~h#end 1"), "", "[5 5]", "1/1 2/1"},
		{"numbers go back", lines("~h#begin 2", a, "~h#end 2", "~h#begin 3", a, "~h#begin 0", b, "~h#end 0", "~h#begin 1", b), "", "[5 5 5 5]", "1/2 1/3 2/0 2/1"},
		{"numbers wrap", lines("~h#begin 4294967295", a, "~h#end 4294967295", "~h#begin 0", b, "~h#end 0"), "", "[5 5]", "1/4294967295 1/0"},
		{"a lost dump", lines("~h#begin 1", a, "~h#end 1", "~h#begin 3", b, "~h#end 3"), "", "[5 5]", "1/1 1/3"},
		{"a map is no boot", lines("~h#boot", "~h#map t=1", "{{{reset}}}", "{{{module:0:a:elf:00}}}", a, "~h#map t=9", "{{{reset}}}", b), "", "[10]", "1/1"},
		{"resets", lines("{{{reset}}}", a, "{{{reset}}}{{{module:0:a:elf:00}}}", b), "", "[5 5]", "1/1 2/1"},
		{"a reset below a header is no boot", lines("~h#begin 1", a, "{{{reset}}}", "{{{module:0:a:elf:00}}}", b, "~h#end 1"), "", "[10]", "1/1"},
		{"banners", lines("ets Jul 29 2019 12:21:46", "", "rst:0x1 (POWERON_RESET),boot:0x13", a, "rst:0x3 (SW_RESET)", "*** Booting Zephyr OS build v3", b), "", "[5 5]", "1/1 2/1"},
		{"split", lines("== heap", a, "other", b, "== heap", b), "^== heap", "[10 5]", "1/1 1/2"},
		{"split in the record's line", lines("first "+a, b, "first "+b), "^first", "[10 5]", "1/1 1/2"},
		{"the same again", lines(a, b, "idle", a, b, "idle", "idle", a, b), "", "[10 10 10]", "1/1 1/2 1/3"},
		{"grown and shrunk", lines(a, b, "x", strings.Join(append(append([]string{}, r[1:10]...), r[12]), "\n"), "x", strings.Join(r[1:10], "\n"), r[12], r[13]), "", "[10 10 11]",
			"1/1 1/2 1/3"},
		{"small dumps", lines(r[0], r[1], r[2], "x", r[0], r[1], r[2], r[3], "x", r[0], r[1], r[2]), "", "[3 4 3]", "1/1 1/2 1/3"},
		{"one allocation over and over", strings.Repeat(r[0]+"\ntext\n", 50), "", "[50]", "1/1"},
		{"a loop of three, text between all", strings.Repeat(r[0]+"\ntext\n"+r[1]+"\ntext\n"+r[2]+"\ntext\n", 12), "", "[36]", "1/1"},
		{"a beginning that goes on otherwise", lines(a, b, "x", r[0], r[1], r[12], r[13], r[14], r[15]), "", "[16]", "1/1"},
		{"a boot in what looks like a beginning", lines(a, b, "x", r[0], r[1], "*** Booting Zephyr OS", r[12], r[13]), "", "[12 2]", "1/1 2/1"},
		{"an end without a beginning", lines("~h#end 3", a), "", "[5]", "1/1"},
		{"cut in what looks like a beginning", lines(a, b, "x", r[0], r[1]), "", "[12]", "1/1"},
	} {
		var options []heaplog.Option
		if c.split != "" {
			options = append(options, heaplog.Split(regexp.MustCompile(c.split)))
		}
		dumps, _ := sequence(t, c.log, options...)
		var starts []string
		var counts []int64
		for i, d := range dumps {
			starts = append(starts, fmt.Sprintf("%d/%d", d.Boot, d.Number))
			counts = append(counts, d.Records)
			if name := fmt.Sprintf("dump %d", i+1); d.Index != i || !d.Ended || d.Name != name && (len(dumps) > 1 || d.Name != "log") {
				t.Errorf("%s: %s has index %d, ended %v, want %s, %d", c.name, d.Name, d.Index, d.Ended, name, i)
			}
		}
		if fmt.Sprint(counts) != c.counts || strings.Join(starts, " ") != c.starts {
			t.Errorf("%s: %v %v, want %v %v", c.name, counts, starts, c.counts, c.starts)
		}
	}
	dumps, _ := sequence(t, lines("~h#begin 7 t=81 n=84 b=6 u=0", a, "~h#end 7 n=5 b=60"))
	d := dumps[0]
	if d.Number != 7 || !d.Timed || d.Time != 81*time.Microsecond || d.Announced != (profile.Announced{Records: 5, Bytes: 60, HasRecords: true, HasBytes: true}) || d.Line != 1 || d.File != "log" {
		t.Errorf("%+v", d)
	}
}

// Dumps that are printed newest first end with the same records.
func TestSequenceNewestFirst(t *testing.T) {
	r := records(t, 0, 20)
	marked := "~h#begin 1\n" + strings.Join(r[:5], "\n") + "\n~h#end 1\n"
	newestFirst := ""
	for n := 10; n <= 16; n += 2 {
		newestFirst += "dump\n"
		for i := n - 1; i >= 0; i-- {
			newestFirst += r[i] + "\n"
		}
	}
	recordsOf := func(dumps []*profile.Dump) (list []int64) {
		for _, d := range dumps {
			list = append(list, d.Records)
		}
		return list
	}
	for _, c := range []struct{ name, log, counts, undecided string }{
		{"newest first", newestFirst, "[10 12 14 16]", ""},
		{"newest first, twice", newestFirst + "*** Booting Zephyr OS\n" + newestFirst, "[10 12 14 16 10 12 14 16]", ""},
		{"behind dumps with marks", marked + "*** Booting Zephyr OS\n" + newestFirst, "[5 10 12 14 16]", ""},
		{"the oldest record of one dump is lost", strings.Replace(newestFirst, r[0]+"\n", "", 1), "[51]", "looks like 3 dumps, but they are added up as one: 3 of 4 groups"},
	} {
		if dumps, undecided := sequence(t, c.log); fmt.Sprint(recordsOf(dumps)) != c.counts || !strings.HasPrefix(undecided, c.undecided) || undecided != "" && c.undecided == "" {
			t.Errorf("%s: %v, want %v; %q", c.name, recordsOf(dumps), c.counts, undecided)
		}
	}
	// A pipe cannot be read again.
	pipe := open(t, struct{ io.Reader }{strings.NewReader(newestFirst)})
	n := 0
	for _, err := range pipe.Dumps() {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if u := pipe.Summary().Undecided; n != 1 || !strings.Contains(u, "looks like 4 dumps") {
		t.Errorf("newest first, in a pipe: %d dumps, %q", n, u)
	}
}

// On random logs of one dump or several without marks: how often the heuristic
// finds all dumps and no others.
func TestHeuristicMeasured(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	type tally struct{ right, wrong, undecided, total int }
	results := map[string]*tally{}
	for i := range 400 {
		count := 1 + rng.IntN(6)
		churn := []float64{0, 0.02, 0.1}[rng.IntN(3)]
		interleaved := rng.IntN(4) == 0
		live := records(t, 1000*i, 12+rng.IntN(80))
		next := 1000*i + 500
		var b strings.Builder
		for range count {
			for range 1 + rng.IntN(12) {
				b.WriteString("I (1234) wifi: state\n")
			}
			for _, r := range live {
				b.WriteString("[  1.5] " + r + "\n")
				if interleaved && rng.IntN(6) == 0 {
					b.WriteString("I (1234) wifi: beacon\n")
				}
			}
			kept := live[:0:0]
			for _, r := range live { // what was allocated early stays; of the rest some goes
				if rng.Float64() >= churn {
					kept = append(kept, r)
				}
			}
			live = append(kept, records(t, next, rng.IntN(10))...)
			next += 20
		}
		dumps, undecided := sequence(t, b.String())
		name := "several dumps"
		if count == 1 {
			name = "one dump"
		}
		if interleaved {
			name += ", other text in them"
		}
		r := results[name]
		if r == nil {
			r = &tally{}
			results[name] = r
		}
		r.total++
		switch {
		case len(dumps) == count:
			r.right++
		case undecided != "":
			r.undecided++
		default:
			r.wrong++
		}
	}
	for name, r := range results {
		t.Logf("%s: %d logs, %d right, %d wrong, %d undecided", name, r.total, r.right, r.wrong, r.undecided)
		if r.total < 10 || r.right*10 < r.total*9 {
			t.Errorf("%s: of %d logs only %d right", name, r.total, r.right)
		}
	}
}

// The captures are one dump each, of real programs; so is each of lws's own.
func TestHeuristicOnCaptures(t *testing.T) {
	for _, name := range []string{"captures/perl.log.gz", "captures/cc1.log.gz", "captures/git00.log.gz", "captures/i386sql.log.gz",
		"captures/lws-dump-nopie.log", "captures/lws-dump-pie.log"} {
		log := corpusLog(t, name)
		if dumps, undecided := sequence(t, log); len(dumps) != 1 || undecided != "" {
			t.Errorf("%s: %d dumps; %s", name, len(dumps), undecided)
		}
		// The same dump four times, with text between, is four.
		four := strings.Repeat(log+"idle\nidle\n", 4)
		if dumps, undecided := sequence(t, four); len(dumps) != 4 && undecided == "" {
			t.Errorf("%s, four times: %d dumps", name, len(dumps))
		}
	}
	// Two boots and a crash, as its README says.
	if dumps, _ := sequence(t, corpusLog(t, "serial.log")); len(dumps) != 2 || dumps[1].Boot != 2 {
		t.Errorf("serial.log: %d dumps, want two boots", len(dumps))
	}
}

// corpusLog returns the text of a log of the corpus.
func corpusLog(t testing.TB, name string) string {
	t.Helper()
	r, err := heaplog.Open(t.Context(), heaplog.Files("../../corpus/"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := texts(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

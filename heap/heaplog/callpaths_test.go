package heaplog_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// The example of spec/callpaths.md: 3 blocks of 96 bytes, 1 of 512.
const (
	pathBoot   = "~h#boot w=32 build=5ca1ab1e dev=kitchen fw=1.2 code=8000000+60000 shift=1\n"
	pathWhole  = "~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA\n" // dump 1, line 5
	pathByName = "~p#ABGACpT2LvCEgDC4FhykDCgQ61F\n"    // dump 1, line 6, the same by name
)

// dumpText returns the values and call paths of a dump, sorted.
func dumpText(d *profile.Dump) string {
	var lines []string
	for a := range d.Allocations() {
		line := fmt.Sprintf("%d in %d:", a.Bytes, a.Count)
		for f := range a.Frames() {
			line += " " + f.Name
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// dumpsOf reads all dumps of a log.
func pathDumps(t *testing.T, log string, options ...heaplog.Option) ([]*profile.Dump, *heaplog.Reader) {
	t.Helper()
	r := open(t, strings.NewReader(log), options...)
	var list []*profile.Dump
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list, r
}

const exampleDump = "512 in 1: 0x8010222 0x8005b62 0x8001a3c 0x8000284\n96 in 3: 0x8005b10 0x8001a3c 0x8000284"

func TestCallPathExample(t *testing.T) {
	first := pathLine(t, callpath.Head{Dump: 1}, wholePath(3, 96, 322, 3358, 11656), wholePath(1, 512, 322, 3358, 11697, 33041))
	for name, log := range map[string]string{
		"with marks":            pathBoot + "~h#heap t=5 size=65536 free=2000 largest=1024 min=900\n~h#begin 1 t=7 k=paths l=5\n" + pathWhole + "~h#end 1 n=4 b=608 l=6\n",
		"no marks":              pathBoot + first,
		"among text":            pathBoot + "I (12) heap: " + strings.TrimSpace(first) + "  \r\nI (13) done\n",
		"names after their use": pathBoot + "~h#begin 1 k=paths l=4\n" + pathByName + "~h#end 1 n=4 b=608 l=5\n" + definitions(t, 9),
		"names before":          pathBoot + definitions(t, 9) + "~h#begin 1 k=paths l=6\n" + pathByName + "~h#end 1 n=4 b=608 l=7\n",
		"two lines in one":      pathBoot + "~h#begin 1 k=paths l=6\n" + strings.TrimSpace(definitions(t, 1)) + pathByName + "~h#end 1 l=8",
	} {
		t.Run(name, func(t *testing.T) {
			dumps, r := pathDumps(t, log)
			if len(dumps) != 1 {
				t.Fatalf("%d dumps, want 1: %s", len(dumps), notes(r))
			}
			d := dumps[0]
			if got := dumpText(d); got != exampleDump {
				t.Errorf("got\n%s\nwant\n%s", got, exampleDump)
			}
			if d.Build != "5ca1ab1e" || d.Device != "kitchen" || d.Firmware != "1.2" || !d.Complete() || d.Loss != (profile.Loss{}) {
				t.Errorf("%q %q %q, complete %v, loss %+v", d.Build, d.Device, d.Firmware, d.Complete(), d.Loss)
			}
			if d.Written != (profile.Value{Bytes: 608, Count: 4}) || d.Total != d.Written || d.Records != 4 {
				t.Errorf("written %v, total %v, %d records", d.Written, d.Total, d.Records)
			}
			want := profile.Heap{Size: known(65536), Free: known(2000), Largest: known(1024), Min: known(900)}
			if name == "with marks" && !slices.Equal(d.Heaps, []profile.Heap{want}) {
				t.Errorf("heaps %+v", d.Heaps)
			}
			if n := notes(r); n != "" {
				t.Errorf("notes %s", n)
			}
		})
	}
}

func known(n uint64) profile.Amount { return profile.Amount{Bytes: n, Known: true} }

// frames returns frames with these code offsets.
func pathFrames(offsets ...uint64) (list []callpath.Frame) {
	for _, x := range offsets {
		list = append(list, callpath.Frame{Value: x})
	}
	return list
}

// pathLine returns a line of call paths.
func pathLine(t testing.TB, h callpath.Head, entries ...callpath.Entry) string {
	t.Helper()
	line, err := callpath.AppendLine(nil, h, entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

func wholePath(live, bytes uint64, offsets ...uint64) callpath.Entry {
	return callpath.Entry{Path: callpath.Path{Frames: pathFrames(offsets...)}, Live: live, Bytes: bytes}
}

// definitions returns a line that defines the call paths of the example.
func definitions(t testing.TB, dump uint8) string {
	a, b := wholePath(0, 0, 322, 3358, 11656), wholePath(0, 0, 322, 3358, 11697, 33041)
	a.Definition, b.Definition = true, true
	return pathLine(t, callpath.Head{Dump: dump, Seq: 5}, a, b)
}

// named returns an entry of a path by the name of its outer part.
func namedPath(live, bytes uint64, outer callpath.Path, offsets ...uint64) callpath.Entry {
	return callpath.Entry{Path: callpath.Path{Base: callpath.Named, Outer: outer.Name(), Frames: pathFrames(offsets...)}, Live: live, Bytes: bytes}
}

func TestCallPathDiff(t *testing.T) {
	line := func(seq uint16, dump uint8, e ...callpath.Entry) string {
		return pathLine(t, callpath.Head{Seq: seq, Dump: dump}, e...)
	}
	log := pathBoot + "~h#begin 1 k=paths l=0\n" + line(0, 1, wholePath(2, 20, 1, 2), wholePath(3, 30, 1, 3)) + line(1, 1, wholePath(1, 12, 1, 2)) + "~h#end 1 n=6 b=62 l=2\n" +
		"~h#begin 2 k=diff base=1 l=2\n" + line(2, 2, wholePath(0, 0, 1, 3), wholePath(1, 8, 1, 4)) + "~h#end 2 n=1 b=8 l=3\n" +
		"~h#begin 3 k=diff base=1 l=3\n" + line(3, 3, namedPath(5, 50, callpath.Path{Frames: pathFrames(1, 2)})) + "~h#end 3 n=5 b=50 l=4\n" +
		"~h#begin 4 k=diff base=9 l=4\n" + line(4, 4, wholePath(7, 70, 1, 2)) + "~h#end 4 n=7 b=70 l=5\n"
	dumps, r := pathDumps(t, log)
	want := []string{
		"30 in 3: 0x8000006 0x8000002\n32 in 3: 0x8000004 0x8000002",
		"32 in 3: 0x8000004 0x8000002\n8 in 1: 0x8000008 0x8000002",
		"30 in 3: 0x8000006 0x8000002\n50 in 5: 0x8000004 0x8000002",
		"70 in 7: 0x8000004 0x8000002",
	}
	for i, d := range dumps {
		if got := dumpText(d); got != want[i] {
			t.Errorf("dump %d\n%s\nwant\n%s", i+1, got, want[i])
		}
		if d.Loss.NoBase != (i == 3) || d.Complete() != (i != 3) {
			t.Errorf("dump %d: no base %v, complete %v", i+1, d.Loss.NoBase, d.Complete())
		}
	}
	if n := notes(r); len(dumps) != 4 || n != "dump 4: has only what changed since dump number 9, which is missing or incomplete" {
		t.Errorf("%d dumps, notes %s", len(dumps), n)
	}
}

// What is lost is said, with its amount.
func TestCallPathLosses(t *testing.T) {
	line := func(seq uint16, dump uint8, e ...callpath.Entry) string {
		return pathLine(t, callpath.Head{Seq: seq, Dump: dump}, e...)
	}
	unknown := callpath.Path{Frames: pathFrames(9, 9)}
	cut := wholePath(1, 5, 7)
	cut.Base = callpath.Cut
	others := callpath.Entry{Path: callpath.Path{Base: callpath.Cut}, Live: 2, Bytes: 6}
	for _, c := range []struct {
		name, log, dump, notes string
		loss                   profile.Loss
		missing                float64
	}{
		{"a line in the middle", "~h#begin 1 k=paths l=0\n" + line(0, 1, wholePath(1, 10, 1)) + line(2, 1, wholePath(2, 30, 2)) + "~h#end 1 n=4 b=60 l=3\n",
			"10 in 1: 0x8000002\n30 in 2: 0x8000004", "log (line 2): 3 of 4 blocks and 40 of 60 bytes: 1 line lost", profile.Loss{Lines: 1}, 0.25},
		{"the last lines", "~h#begin 1 k=paths l=0\n" + line(0, 1, wholePath(1, 10, 1)) + "~h#end 1 n=4 b=60 l=3\n",
			"10 in 1: 0x8000002", "log (line 2): 1 of 4 blocks and 10 of 60 bytes: 2 lines lost", profile.Loss{Lines: 2}, 0.75},
		{"a damaged line", "~h#begin 1 k=paths l=0\n" + line(0, 1, wholePath(1, 10, 1)) + strings.Replace(line(1, 1, wholePath(1, 10, 1)), "~p#AB", "~p#AC", 1) + "~h#end 1 n=2 b=20 l=2\n",
			"10 in 1: 0x8000002", "1 record unreadable (crc), the first at", profile.Loss{Lines: 1, Unreadable: 1}, 0.5},
		{"unknown name", "~h#begin 1 k=paths l=0\n" + line(0, 1, namedPath(1, 10, unknown, 3), namedPath(1, 11, callpath.Path{Frames: pathFrames(8)}, 3), wholePath(1, 1, 1)) + "~h#end 1 n=3 b=22 l=1\n",
			"1 in 1: 0x8000002\n10 in 1: 0x8000006 (outer frames not known)\n11 in 1: 0x8000006 (outer frames not known)", "log: 2 call paths without outer frames", profile.Loss{NoOuter: 2}, 0},
		{"not captured", "~h#begin 1 k=paths l=0\n" + line(0, 1, cut, others) + "~h#end 1 n=3 b=11 l=1 cut=4\n",
			"5 in 1: 0x800000e (cut at 1 frame)\n6 in 2: (all other call paths)", "log: 4 blocks counted under an outer frame of the call path: the table of the device was full", profile.Loss{NoOuter: 1, Folded: 4}, 0},
		{"the end", "~h#begin 1 k=paths l=0 n=2 b=20\n" + line(0, 1, wholePath(1, 10, 1)), "10 in 1: 0x8000002",
			"log (line 2): 1 of 2 blocks and 10 of 20 bytes, no ~h#end: it was cut", profile.Loss{}, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			dumps, r := pathDumps(t, pathBoot+c.log)
			if len(dumps) != 1 {
				t.Fatalf("%d dumps: %s", len(dumps), notes(r))
			}
			d := dumps[0]
			if got := dumpText(d); got != c.dump {
				t.Errorf("got\n%s\nwant\n%s", got, c.dump)
			}
			if n := notes(r); !strings.Contains(n, c.notes) {
				t.Errorf("notes %q, want %q", n, c.notes)
			}
			if d.Loss != c.loss {
				t.Errorf("loss %+v, want %+v", d.Loss, c.loss)
			}
			if m, known := d.Missing(); m != c.missing || !known {
				t.Errorf("missing %v, %v, want %v", m, known, c.missing)
			}
		})
	}
}

// Offsets of code that the log does not tell are counted in the notes, in the last boot, too.
func TestCallPathNoCode(t *testing.T) {
	dumps, r := pathDumps(t, "~h#boot w=32\n"+pathWhole)
	if n := notes(r); len(dumps) != 1 || !strings.Contains(n, "5 code offsets in no known code") {
		t.Errorf("%d dumps, notes %s", len(dumps), n)
	}
}

// A dump whose begin mark was lost is a dump of its own, and not complete.
func TestCallPathBeginLost(t *testing.T) {
	line := func(seq uint16, dump uint8, e ...callpath.Entry) string {
		return pathLine(t, callpath.Head{Seq: seq, Dump: dump}, e...)
	}
	log := pathBoot + "~h#begin 63 k=paths l=0\n" + line(0, 63, wholePath(1, 10, 1)) + line(1, 0, wholePath(1, 20, 1)) + "~h#end 64 n=1 b=20 l=2\n"
	dumps, r := pathDumps(t, log)
	if len(dumps) != 2 || dumps[0].Total.Bytes != 10 || dumps[1].Total.Bytes != 20 || dumps[1].Number != 64 || dumps[1].Complete() {
		t.Errorf("%d dumps, notes %s", len(dumps), notes(r))
	}
	if n := notes(r); !strings.Contains(n, "dump 2: its ~h#begin was lost") {
		t.Errorf("notes %s", n)
	}
}

// Names live on over a boot of the same build and code, and over no other.
func TestCallPathNamesOverBoots(t *testing.T) {
	for boot, known := range map[string]bool{
		pathBoot: true,
		"~h#boot build=5ca1ab1e code=8000000+60000 shift=2\n": false,
		"~h#boot build=5ca1ab1e code=8000000+70000 shift=1\n": false,
		"~h#boot build=5ca1ab1f code=8000000+60000 shift=1\n": false,
		"~h#boot code=8000000+60000 shift=1\n":                false,
	} {
		log := pathBoot + definitions(t, 9) + boot + "~h#begin 1 k=paths\n" + pathByName + "~h#end 1 n=4 b=608\n"
		dumps, _ := pathDumps(t, log)
		if len(dumps) != 1 || (dumpText(dumps[0]) == exampleDump) != known {
			t.Errorf("%sgot %s, want known %v", boot, dumpText(dumps[0]), known)
		}
	}
}

// A dump that waits for a name does not hold the order of dumps up, and definitions that come
// some dumps later resolve it.
func TestCallPathNamesLater(t *testing.T) {
	line := func(seq uint16, dump uint8, e ...callpath.Entry) string {
		return pathLine(t, callpath.Head{Seq: seq, Dump: dump}, e...)
	}
	p := callpath.Path{Frames: pathFrames(1, 2)}
	def := wholePath(0, 0, 1, 2)
	def.Definition = true
	log := pathBoot + "~h#begin 1 k=paths\n" + line(0, 1, namedPath(1, 10, p)) + "~h#end 1\n" +
		"~h#begin 2 k=paths\n~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n" + line(1, 2, wholePath(1, 20, 3)) + "~h#end 2\n" +
		"~h#begin 3 k=diff base=1\n" + line(2, 3, namedPath(2, 30, p, 5)) + "~h#end 3\n" + line(3, 9, def) +
		"~h#begin 4 k=paths\n" + line(4, 4, wholePath(1, 40, 4)) + "~h#end 4\n"
	dumps, r := pathDumps(t, log)
	var s codec.Stack
	if blob, err := (codec.Decoder{}).ParseLine(nil, []byte("~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV")); err != nil || (codec.Decoder{}).Decode(&s, nil, blob) != nil {
		t.Fatal(err)
	}
	m := ""
	for _, pc := range s.PCs {
		m += fmt.Sprintf(" %#x", pc)
	}
	want := []string{"10 in 1: 0x8000004 0x8000002", "20 in 1: 0x8000006\n7520 in 1:" + m, "10 in 1: 0x8000004 0x8000002\n30 in 2: 0x800000a 0x8000004 0x8000002", "40 in 1: 0x8000008"}
	for i, d := range dumps {
		if got := dumpText(d); got != want[i] || d.Number != int64(i+1) || d.Index != i {
			t.Errorf("dump %d (number %d)\n%s\nwant\n%s", i, d.Number, got, want[i])
		}
	}
	if len(dumps) != 4 {
		t.Errorf("%d dumps, notes %s", len(dumps), notes(r))
	}
}

// A device repeats each definition within 16 dumps: the first of 17 dumps has the names that the last defines. (BT-NAME-4)
func TestCallPathNames16DumpsLater(t *testing.T) {
	p, def := callpath.Path{Frames: pathFrames(1, 2)}, wholePath(0, 0, 1, 2)
	def.Definition = true
	log := pathBoot
	for n := range uint8(17) {
		log += fmt.Sprintf("~h#begin %d k=paths\n", n) + pathLine(t, callpath.Head{Seq: uint16(n), Dump: n}, namedPath(1, 10, p))
		if n == 16 {
			log += pathLine(t, callpath.Head{Seq: 17, Dump: n}, def)
		}
		log += fmt.Sprintf("~h#end %d\n", n)
	}
	dumps, _ := pathDumps(t, log)
	for i, d := range dumps {
		if got, want := dumpText(d), "10 in 1: 0x8000004 0x8000002"; got != want {
			t.Errorf("dump %d: %s, want %s", i, got, want)
		}
	}
	if len(dumps) != 17 {
		t.Errorf("%d dumps, want 17", len(dumps))
	}
}

// Offsets count in the executable mappings in the order of the log; a module that is gone
// keeps its place, one that is told again gets none.
func TestCallPathModules(t *testing.T) {
	mmap := func(id int, addr uint64, name string) string {
		return fmt.Sprintf("{{{module:%d:%s:elf:%02x}}}\n{{{mmap:%#x:0x1000:load:%d:rx:0x0}}}\n{{{mmap:%#x:0x1000:load:%d:rw:0x1000}}}\n", id, name, id, addr, id, addr+0x1000, id)
	}
	line := func(seq uint16, e ...callpath.Entry) string { return pathLine(t, callpath.Head{Seq: seq}, e...) }
	a, b, c := mmap(0, 0x400000, "/a"), mmap(1, 0x7f0000000000, "/b"), mmap(2, 0x7f0000100000, "/c")
	log := "~h#boot w=64\n~h#map\n{{{reset}}}\n" + a + b + line(0, wholePath(1, 1, 0x10, 0x1020)) +
		"~h#map\n{{{reset}}}\n" + a + c + line(1, wholePath(1, 2, 0x1030, 0x2040)) + "~h#map\n{{{reset}}}\n" + a + b + c + line(2, wholePath(1, 4, 0x1050, 0x2fff, 0x3000))
	dumps, _ := pathDumps(t, log)
	want := "1 in 1: b+0x20 a+0x10\n2 in 1: c+0x40 b+0x30\n4 in 1: code+0x3000 c+0xfff b+0x50"
	if len(dumps) != 1 || dumpText(dumps[0]) != want {
		t.Errorf("got\n%s\nwant\n%s", dumpText(dumps[0]), want)
	}
}

// A module that takes the place of another one in memory gets offsets of its own, and names of the
// one that is gone stay.
func TestCallPathModuleReplaced(t *testing.T) {
	mmap := func(id int, name string) string {
		return fmt.Sprintf("{{{module:%d:%s:elf:%02x}}}\n{{{mmap:0x400000:0x1000:load:%d:rx:0x0}}}\n", id, name, id, id)
	}
	line := func(seq uint16, e ...callpath.Entry) string { return pathLine(t, callpath.Head{Seq: seq}, e...) }
	log := "~h#boot w=64\n~h#load\n" + mmap(0, "/a") + "~h#load\n" + mmap(1, "/b") + line(0, wholePath(1, 1, 0x10), wholePath(1, 2, 0x1010))
	dumps, _ := pathDumps(t, log)
	if want := "1 in 1: a+0x10\n2 in 1: b+0x10"; len(dumps) != 1 || dumpText(dumps[0]) != want {
		t.Errorf("got\n%s\nwant\n%s", dumpText(dumps[0]), want)
	}
}

// A whole dump of no call paths is a dump: the program freed everything.
func TestCallPathsEmpty(t *testing.T) {
	dumps, r := pathDumps(t, pathBoot+"~h#begin 0 k=paths l=0\n~h#end 0 n=0 b=0 l=0\n")
	if len(dumps) != 1 || dumps[0].Total.Count != 0 || !dumps[0].Complete() || notes(r) != "" {
		t.Errorf("%d dumps, notes %s", len(dumps), notes(r))
	}
	r = open(t, strings.NewReader(pathBoot+"~h#begin 0 k=paths l=0\n~h#end 0 n=1 b=8 l=1\n"))
	var last error
	for _, err := range r.Dumps() {
		last = err
	}
	if !errors.Is(last, heaplog.ErrNoRecord) {
		t.Errorf("a dump that lost its only line: %v", last)
	}
}

// A sampled dump is scaled entry by entry; its error covers the truth about as often as it
// says.
func TestCallPathSampling(t *testing.T) {
	const mean = 4096
	rng := rand.New(rand.NewPCG(1, 2))
	within, runs := 0, 200
	sum := 0.0
	var truth profile.Value
	for range runs {
		truth = profile.Value{}
		var kept []callpath.Entry
		for path := uint64(1); path <= 30; path++ {
			for _, size := range []uint64{16, 200, 3000, 100_000} {
				e := wholePath(0, 0, path)
				for range 20 {
					truth.Add(profile.Value{Bytes: size, Count: 1})
					if rng.Float64() < 1-math.Exp(-float64(size)/mean) {
						e.Live++
						e.Bytes += size
					}
				}
				if e.Live > 0 {
					kept = append(kept, e)
				}
			}
		}
		log := pathBoot + fmt.Sprintf("~h#begin 1 k=paths sample=%d\n", mean)
		for i, e := range kept {
			log += pathLine(t, callpath.Head{Dump: 1, Seq: uint16(i)}, e)
		}
		dumps, _ := pathDumps(t, log+"~h#end 1\n")
		d := dumps[0]
		err, _ := d.TotalStdErr()
		diff := float64(d.Total.Bytes) - float64(truth.Bytes)
		if sum += diff; math.Abs(diff) <= err {
			within++
		}
		if d.Sample != mean || err == 0 || err > float64(truth.Bytes)/20 {
			t.Fatalf("sample %d, %d ± %f bytes of %d", d.Sample, d.Total.Bytes, err, truth.Bytes)
		}
	}
	if share := float64(within) / float64(runs); share < 0.58 || share > 0.78 { // 68 %
		t.Errorf("%.0f %% of the totals are within one standard error", 100*share)
	}
	if bias := sum / float64(runs) / float64(truth.Bytes); math.Abs(bias) > 0.002 {
		t.Errorf("bias %f", bias)
	}
}

// Estimates of many call paths add up to the estimate of the total.
func TestCallPathSamplingTotal(t *testing.T) {
	log, count, bytes := pathBoot+"~h#begin 1 k=paths sample=4096\n", 0.0, 0.0
	for i := range uint16(1000) {
		size := uint64(1000 + i)
		log += pathLine(t, callpath.Head{Dump: 1, Seq: i}, wholePath(1, size, uint64(i)))
		p := 1 - math.Exp(-float64(size)/4096)
		count, bytes = count+1/p, bytes+float64(size)/p
	}
	dumps, _ := pathDumps(t, log+"~h#end 1\n")
	if d := dumps[0]; math.Abs(float64(d.Total.Count)-count) > 0.51 || math.Abs(float64(d.Total.Bytes)-bytes) > 0.51 || d.Records != 1000 {
		t.Errorf("%+v of %d, want %f bytes in %f", d.Total, d.Records, bytes, count)
	}
}

func TestCallPathEverPeakBlocks(t *testing.T) {
	e := wholePath(2, 0, 1, 2)
	e.Blocks = []callpath.Block{{Address: 0x20000010, Size: 8}, {Address: 0x20000100, Size: 24}}
	e.Allocs, e.AllocBytes, e.Peak = 9, 90, 64
	gone := wholePath(0, 0, 3)
	gone.Allocs, gone.AllocBytes = 5, 50
	log := pathBoot + pathLine(t, callpath.Head{Flags: 7, Unit: 3}, e, gone)
	dumps, r := pathDumps(t, log)
	if len(dumps) != 1 || dumpText(dumps[0]) != "32 in 2: 0x8000004 0x8000002" {
		t.Fatalf("%v", dumps)
	}
	for a := range dumps[0].Allocations() {
		if a.Ever != (profile.Value{Bytes: 90, Count: 9}) || a.Peak != 64 {
			t.Errorf("ever %v, peak %d", a.Ever, a.Peak)
		}
	}
	for a := range dumps[0].Freed() {
		if a.Ever != (profile.Value{Bytes: 50, Count: 5}) {
			t.Errorf("ever %v", a.Ever)
		}
	}
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Kind == recording.KindPaths && (len(it.Allocs) != 2 || !slices.Equal(it.Allocs[0].Blocks, e.Blocks) || it.Allocs[0].Name != e.Name()) {
			t.Errorf("%+v", it.Allocs)
		}
	}
	// two blocks at one address
	_, r = pathDumps(t, log+pathLine(t, callpath.Head{Flags: 7, Unit: 3, Seq: 1}, e))
	if n := notes(r); !strings.Contains(n, "2 blocks in a dump at the address of another one") || !strings.Contains(n, "peaks of 1 call path were recorded in parts") {
		t.Errorf("notes %q", n)
	}
}

// Events of call paths mean the same as ~e# records in their place.
func TestPathEvents(t *testing.T) {
	paths := []callpath.Path{{Frames: pathFrames(1, 2)}, {Frames: pathFrames(1, 3)}}
	var w callpath.EventsWriter
	var lines []byte
	for _, e := range []callpath.Event{
		{Kind: callpath.Allocated, Time: 1000, Path: paths[0].Name(), Size: 100},
		{Kind: callpath.Allocated, Time: 2000, Path: paths[1].Name(), Size: 200},
		{Kind: callpath.Freed, Time: 3000, Old: 1},
		{Kind: callpath.Moved, Time: 4000, Path: paths[1].Name(), Old: 0, Size: 150},
		{Kind: callpath.FreedUnknown, Time: 5000},
		{Kind: callpath.Lost, Time: 5000, Count: 3},
	} {
		var err error
		if lines, err = w.Append(lines, e); err != nil {
			t.Fatal(err)
		}
	}
	lines = w.Flush(lines)
	defs := []callpath.Entry{wholePath(0, 0, 1, 2), wholePath(0, 0, 1, 3)}
	defs[0].Definition, defs[1].Definition = true, true
	def := pathLine(t, callpath.Head{}, defs...)
	for name, log := range map[string]string{"definitions first": pathBoot + def + string(lines), "events first": pathBoot + string(lines) + def} {
		dumps, r := pathDumps(t, log)
		if len(dumps) != 1 || dumpText(dumps[0]) != "150 in 1: 0x8000006 0x8000002" {
			t.Fatalf("%s: %d dumps, %s", name, len(dumps), notes(r))
		}
		e := r.Replay().Totals()
		if e.Events != 5 || e.UnknownFrees != 1 || e.Peak != (profile.Value{Bytes: 300, Count: 2}) || e.PeakTime.Microseconds() != 2000 {
			t.Errorf("%s: %+v", name, e)
		}
		if n := r.Summary().LostEvents; n != 3 {
			t.Errorf("%s: %d lost events", name, n)
		}
		kinds := ""
		for e, err := range r.Events() {
			if err != nil {
				t.Fatal(err)
			}
			kinds += fmt.Sprint(e.Kind, e.Addr, e.Bytes, " ")
		}
		if kinds != "0 0 100 0 1 200 1 1 0 2 2 150 1 0 0 " {
			t.Errorf("%s: events %s", name, kinds)
		}
	}
}

// Garbage in lines of call paths never panics, and unreadable lines are counted.
func FuzzCallPaths(f *testing.F) {
	f.Add(pathBoot + "~h#begin 1 k=diff base=1\n" + pathWhole + pathByName + "~h#end 1 n=4 b=608\n")
	f.Add("~p#AAAAAAA~v#AAAAAAAAAAAAA\n" + pathWhole[:20] + "\n" + pathByName)
	f.Fuzz(func(t *testing.T, log string) {
		r, err := heaplog.Open(t.Context(), heaplog.Stream(strings.NewReader(log), "log"))
		if err != nil {
			t.Skip()
		}
		defer r.Close()
		for d := range r.Dumps() {
			if d != nil && d.Loss.Lines < 0 {
				t.Error("negative loss")
			}
		}
		text := ""
		for it, err := range r.Items() {
			if err == nil {
				text += string(it.Text)
			}
		}
		if text != log && !strings.HasPrefix(log, "\xff\xfe") && !strings.HasPrefix(log, "\xfe\xff") && len(text) > 0 && text[0] == log[0] && len(text) != len(log) {
			t.Errorf("items are %q, want %q", text, log)
		}
	})
}

// Below a header, {{{reset}}} begins no boot: the modules before it keep their places among the
// code offsets. (BT-CODE-3, BT-REC-4)
func TestResetBelowHeader(t *testing.T) {
	first := "{{{module:0:a:elf:aa}}}{{{mmap:0x10000:0x1000:load:0:rx:0x0}}}\n"
	second := "{{{module:0:b:elf:bb}}}{{{mmap:0x20000:0x1000:load:0:rx:0x0}}}\n"
	dump := "~h#begin 0 k=paths l=0\n" + pathLine(t, callpath.Head{}, wholePath(1, 8, 0x396), wholePath(1, 9, 0x1396)) + "~h#end 0\n"
	for log, want := range map[string]string{
		"~h#boot w=32\n" + first + "{{{reset}}}\n" + second + dump:         "8 in 1: a+0x396\n9 in 1: b+0x396",
		"~h#boot w=32\n~h#map\n" + first + "{{{reset}}}\n" + second + dump: "8 in 1: a+0x396\n9 in 1: b+0x396",
		first + "{{{reset}}}\n" + second + dump:                            "8 in 1: b+0x396\n9 in 1: code+0x1396",
		"~h#boot w=32\n" + first + "~h#boot w=32\n" + second + dump:        "8 in 1: b+0x396\n9 in 1: code+0x1396",
	} {
		dumps, r := pathDumps(t, log)
		if len(dumps) != 1 {
			t.Fatalf("%d dumps, want 1: %s", len(dumps), notes(r))
		}
		if got := dumpText(dumps[0]); got != want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", log, got, want)
		}
	}
}

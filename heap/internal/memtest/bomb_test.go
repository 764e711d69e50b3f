//go:build linux

package memtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// differences returns a dump, and dumps that are differences of so many paths, each from the one that is back
// dumps before it.
func differences(t *testing.T, dumps, paths, changed, back int, flags callpath.Flags) []byte {
	text := []byte("~h#boot dev=d1 code=8000000+8000000 shift=0\n")
	w := callpath.Writer{Flags: flags}
	dump := func(d int, keys string, changed int, path func(i int) int, bytes uint64) {
		text = fmt.Appendf(text, "~h#begin %d%s t=%d\n", d, keys, (d+1)*1_000_000)
		w.Dump = uint32(d)
		for i := range changed {
			e := callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: uint64(1000 + path(i))}}}, Live: 1, Bytes: bytes, Allocs: 1, AllocBytes: bytes, Peak: bytes}
			var err error
			if text, err = w.Append(text, &e); err != nil {
				t.Fatal(err)
			}
		}
		text = fmt.Appendf(w.Flush(text), "~h#end %d\n", d)
	}
	dump(0, "", paths, func(i int) int { return i }, 8)
	for d := 1; d <= dumps; d++ {
		dump(d, fmt.Sprintf(" k=diff base=%d", max(0, d-back)), changed, func(i int) int { return (d*7919 + i*31) % paths }, uint64(8+d))
	}
	return text
}

// growing is a log in which all call paths grow, each further dump of a boot having those that changed.
type growing struct{ boots, firmware, dumps, paths, changed int }

func (g growing) log(t *testing.T) (text []byte) {
	live, next := make([]uint64, g.paths), 0
	for boot := range g.boots {
		text = fmt.Appendf(text, "~h#boot dev=d1 code=8000000+8000000 shift=0 fw=%d\n", boot%g.firmware)
		var w callpath.Writer
		for d := range g.dumps {
			keys, n := fmt.Sprintf(" k=diff base=%d", d-1), g.changed
			if d == 0 {
				keys, n = "", g.paths
			}
			text = fmt.Appendf(text, "~h#begin %d%s t=%d\n", d, keys, (d+1)*1_000_000)
			w.Dump = uint32(d)
			for range n {
				live[next]++
				e := callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: uint64(1000 + next)}}}, Live: live[next], Bytes: 8 * live[next]}
				next = (next + 1) % g.paths
				var err error
				if text, err = w.Append(text, &e); err != nil {
					t.Fatal(err)
				}
			}
			text = fmt.Appendf(w.Flush(text), "~h#end %d\n", d)
		}
	}
	return text
}

// turns returns two series of dumps by turns, each of which changes one of the call paths that only its series
// has.
func turns(t *testing.T, dumps, paths int) []byte {
	text := []byte("~h#boot dev=d1 code=8000000+8000000 shift=0\n")
	var w callpath.Writer
	for d := range dumps {
		keys, n := fmt.Sprintf(" k=diff base=%d", d-2), 1
		if d < 2 {
			keys, n = " k=paths", paths
		}
		text = fmt.Appendf(text, "~h#begin %d%s t=%d\n", d, keys, (d+1)*1_000_000)
		w.Dump = uint32(d)
		for i := range n {
			x := uint64(1000 + d%2*paths + (d/2*7919+i)%paths)
			e := callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: x}}}, Live: 1, Bytes: uint64(8 + d)}
			var err error
			if text, err = w.Append(text, &e); err != nil {
				t.Fatal(err)
			}
		}
		text = fmt.Appendf(w.Flush(text), "~h#end %d\n", d)
	}
	return text
}

// boots returns boots that have a dump of one call path each.
func boots(t *testing.T, n int) []byte {
	var text []byte
	for i := range n {
		var w callpath.Writer
		text = fmt.Appendf(text, "~h#boot dev=d1 code=8000000+8000000 shift=0\n~h#begin 0 t=1\n")
		e := callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: uint64(1000 + i)}}}, Live: 1, Bytes: 8}
		var err error
		if text, err = w.Append(text, &e); err != nil {
			t.Fatal(err)
		}
		text = fmt.Appendf(w.Flush(text), "~h#end 0\n")
	}
	return text
}

// emptyDumps returns dumps of no block.
func emptyDumps(n int) (text []byte) {
	text = fmt.Append(nil, "~h#boot dev=d1 code=8000000+8000000 shift=0\n")
	for i := range n {
		text = fmt.Appendf(text, "~h#begin %d k=full t=%d\n~h#end %d n=0\n", i, i+1, i)
	}
	return text
}

// heaps returns reports of 1,000 heaps of an allocator, by turns.
func heaps(n int) (text []byte) {
	text = fmt.Append(nil, "~h#boot dev=d1 code=8000000+8000000 shift=0\n")
	for i := range n {
		text = fmt.Appendf(text, "~h#heap name=h%d free=%d t=%d\n", i%1000, 1_000_000-i, i+1)
	}
	return text
}

// events returns allocations of one block each, of as many call paths.
func events(t *testing.T, n int) (text []byte) {
	var user codec.User
	var blob []byte
	for i := range n {
		user.Reset()
		user.Set(codec.TagEvent, codec.EventAllocated)
		user.Set(codec.TagAddress, 0x10000000+16*uint64(i))
		var err error
		s := codec.Stack{PCs: []uint64{0x8000000 + 2*uint64(i)}, Size: 8}
		if blob, err = (codec.Encoder{}).AppendBlob(blob[:0], &s, &user); err != nil {
			t.Fatal(err)
		}
		text = append(codec.AppendEventLine(text, blob), '\n')
	}
	return text
}

// mostPerByte is in bytes of memory per further byte of a log. Most commands take 20 to 50, and those on several
// dumps up to 120, as garbage is collected sooner or later. A frame of its own for each frame of a path
// would take 600 at least, and a value of its own for each path of a difference 700.
const mostPerByte = 150

// always is the memory in bytes that a command may take for any log: the collector begins at a heap of 48 MB.
const always = 64e6

// mostTime is in processor time per further byte of a log. Most commands take 0.2 to 2 µs. leaks and html take
// up to 15 where many call paths change in three or more of thousands of dumps, as the rule of leaks reads
// their values in each dump; to read all call paths of the base for each difference would take 60 at least.
const mostTime = 25 * time.Microsecond

// mostGrown is mostTime for logs whose values are as many as their lines say: leaks takes 0.3 to 0.7 µs. To
// compare each firmware with each other takes 14.
const mostGrown = 4 * time.Microsecond

// The memory and the time of a command are in proportion to the log, whatever the log says.
func TestBombs(t *testing.T) {
	cmdtest.Long(t)
	dir := t.TempDir()
	buildCommands(t, dir)
	file := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	most := 1600
	if cmdtest.All() {
		most = 3200
	}
	type pair struct{ few, many string }
	one := pair{file("one-few", cmdtest.DeepLog(t, 1, 25_000, 1000)), file("one-many", cmdtest.DeepLog(t, 1, 100_000, 1000))}
	three := pair{file("three-few", cmdtest.DeepLog(t, 3, 10_000, 1000)), file("three-many", cmdtest.DeepLog(t, 3, 50_000, 1000))}
	diffs := pair{file("diffs-few", differences(t, 100, 5000, 20, 1, 0)), file("diffs-many", differences(t, most, 5000, 20, 1, 0))}
	deep := pair{file("chain-few", differences(t, 500, 2500, 1, 1, 0)), file("chain-many", differences(t, 4000, 20_000, 1, 1, 0))}
	ever := pair{file("ever-few", differences(t, 500, 2500, 1, 1, callpath.Ever|callpath.Peak)), file("ever-many", differences(t, 4000, 20_000, 1, 1, callpath.Ever|callpath.Peak))}
	back := pair{file("back-few", differences(t, 500, 2500, 1, 40, 0)), file("back-many", differences(t, 4000, 20_000, 1, 40, 0))}
	byTurns := pair{file("turns-few", turns(t, 100, 2500)), file("turns-many", turns(t, 1000, 10_000))}
	reboots := pair{file("boots-few", boots(t, 2000)), file("boots-many", boots(t, 20_000))}
	empty := pair{file("empty-few", emptyDumps(2000)), file("empty-many", emptyDumps(40_000))}
	reports := pair{file("heaps-few", heaps(5000)), file("heaps-many", heaps(40_000))}
	evs := pair{file("events-few", events(t, 10_000)), file("events-many", events(t, 100_000))}
	grown := func(few, many growing) pair {
		name := fmt.Sprintf("grown-%d-boots-%d-dumps-%d-paths", many.boots, many.dumps, many.paths)
		return pair{file(name+"-few", few.log(t)), file(name, many.log(t))}
	}
	dumps := grown(growing{1, 1, 2000, 20, 2}, growing{1, 1, 20_000, 20, 2})
	paths := grown(growing{1, 1, 10, 5000, 5000}, growing{1, 1, 10, 50_000, 50_000})
	firmware := grown(growing{1000, 1000, 3, 10, 4}, growing{10_000, 10_000, 3, 10, 4})
	full := pair{file("full-few", cmdtest.DeepLog(t, 8, 5000, 1000)), file("full-many", cmdtest.DeepLog(t, 8, 25_000, 1000))}
	for _, c := range []struct {
		args string
		log  pair
	}{
		{"btdecode -F jsonl", one}, {"btheap dumps", one}, {"btheap top --json --stacks -n 0", one},
		{"btheap html", one}, {"btheap export -F pprof", one},
		{"btheap leaks --json", three}, {"btheap diff -n 0", three}, {"btheap html", three},
		{"btheap dumps", diffs}, {"btheap leaks --json", diffs}, {"btheap html", diffs},
		{"btheap dumps", deep}, {"btheap leaks --json", deep}, {"btheap html", deep}, {"btheap diff -n 0", deep}, {"btheap leaks --json", ever}, {"btheap leaks --json", back},
		{"btheap dumps", byTurns}, {"btheap leaks --json", byTurns}, {"btheap html", byTurns},
		{"btheap leaks --json", full}, {"btheap html", reboots}, {"btheap dumps", reboots}, {"btheap dumps", empty},
		{"btheap leaks --json", reports}, {"btheap top", evs},
		{"btheap leaks --json", dumps}, {"btheap leaks --json", paths}, {"btheap leaks --json", firmware},
	} {
		t.Run(c.args+" "+filepath.Base(c.log.many), func(t *testing.T) {
			run := func(name string) (peak, size float64, cpu time.Duration) {
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				peak, cpu = measure(t, strings.Fields(dir+"/"+c.args+" "+name))
				return peak, float64(info.Size()), cpu
			}
			a, n, before := run(c.log.few)
			b, m, cpu := run(c.log.many)
			// The collector runs later on a busy machine: of three runs, the one that needs least counts.
			for range 2 {
				if b > always && (b-a)/(m-n) > mostPerByte {
					again, _, _ := run(c.log.many)
					b = min(b, again)
				}
			}
			perByte, took := (b-a)/(m-n), time.Duration(float64(cpu-before)/(m-n))
			t.Logf("%.0f and %.0f bytes of log: %.1f and %.1f MB, %.1f bytes and %v per further byte", n, m, a/1e6, b/1e6, perByte, took)
			most := mostTime
			if c.log == firmware || c.log == paths || c.log == dumps {
				most = mostGrown
			}
			if took > most {
				t.Errorf("%v of processor time per further byte of log, want at most %v", took, most)
			}
			if b > always && perByte > mostPerByte {
				t.Errorf("%.1f bytes of memory per further byte of log, want at most %d", perByte, mostPerByte)
			}
		})
	}
}

package forms

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// Each heap of a device has its name, and lines of other tasks do not end a report.
func TestHeapNames(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"ESP-IDF, two capabilities": {`Heap summary for capabilities 0x0000080C:
  At 0x3ffb0000 len 200000 free 118000 allocated 70000 min_free 110000
    largest_free_block 90000 alloc_blocks 46 free_blocks 5 total_blocks 51
  Totals:
W (65250911) wifi:alloc eb len=76 type=2 fail, heap:2872652
    free 118000 allocated 172000 min_free 117000 largest_free_block 90000
Heap summary for capabilities 0x00000400:
  Totals:
    free 4122000 allocated 72304 min_free 4092260 largest_free_block 4121984
Heap summary for capabilities 0x80000400:
  Totals:
    free 1 allocated 2 min_free 0 largest_free_block 1
`, "name=internal+DMA+8bit size=290000 free=118000 largest=90000 min=117000\nname=PSRAM size=4194304 free=4122000 largest=4121984 min=4092260\n" +
			"name=PSRAM+0x80000000 size=3 free=1 largest=1 min=0\n"},
		"NuttX": {`nsh> free
      total       used       free    maxused    maxfree  nused  nfree name
    5583024    5022456     560568    5222880      60568     53      9 Kmem
    1583024      22456    1560568      22880    1560568     53      1 Umem
wlan0: 3 of
[    3.1] 1 2 3 done
`, "name=Kmem size=5583024 free=560568 largest=60568 min=360144\nname=Umem size=1583024 free=1560568 largest=1560568 min=1560144\n"},
		"NuttX, a log with times": {`[    3.100000] nsh> free
[    3.110000]       total       used       free    maxused    maxfree  nused  nfree name
[    3.120000]     5583024    5022456     560568    5222880      60568     53      9 Umem
`, "name=Umem size=5583024 free=560568 largest=60568 min=360144\n"},
		"Zephyr, two heaps": {`Heap at 0x20001000 contains 8192 units in 13 buckets
        3            8            2           12           96
64096 free bytes, 1000 allocated bytes, overhead = 440 bytes (0.7%)
Heap at 0x20008000 contains 8192 units in 13 buckets
300 free bytes, 1000 allocated bytes, overhead = 40 bytes (0.7%)
`, "name=0x20001000 size=65536 free=64096 largest=96\nname=0x20008000 size=1340 free=300\n"},
	} {
		r, err := NewReader(strings.NewReader(c.log), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for line := range strings.Lines(string(out)) {
			if _, heap, ok := strings.Cut(line, "~h#heap "); ok {
				got.WriteString(strings.Replace(heap, " "+ForeignKey+"=1\n", "\n", 1))
			}
		}
		if got.String() != c.want || r.Skipped() != 0 {
			t.Errorf("%s: %d lines skipped, got\n%swant\n%s", name, r.Skipped(), got.String(), c.want)
		}
	}
}

// A record is at the end of the line that shows its allocation, also if only later lines tell that it
// is not freed, and if the log ends before.
func TestRecordsOfESPAreOnTheirLines(t *testing.T) {
	const kept = "  6 bytes (@ 0x3fc9f620, Internal) allocated CPU 0 ccount 0x1 caller 0x40376321:0x40376379"
	const freed = "  7 bytes (@ 0x3fc9f630, Internal) allocated CPU 0 ccount 0x2 caller 0x40376321:0x40376380"
	for _, end := range []string{"", "other text\n", "0x40376321: f at a.c:1\n\n", "\n" + strings.Repeat("x", 2*maxHeld), "\n" + strings.Repeat("\n", 2*maxHeld)} {
		for _, reads := range []error{nil, errors.New("the cable is gone")} {
			log := "== Heap Trace: 2 records\n" + freed + "\n0x40376380: g at a.c:2\nfreed by 0x3\n" + kept + "\n" + end
			var src io.Reader = strings.NewReader(log)
			if reads != nil {
				src = io.MultiReader(src, iotest.ErrReader(reads))
			}
			r, err := NewReader(iotest.OneByteReader(src), "esp-idf", nil)
			if err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(r)
			lines := strings.Split(string(out), "\n")
			if err != reads || len(lines) < 5 || lines[1] != freed || !strings.HasPrefix(lines[4], kept+" ~m#") || strings.Count(string(out), "~m#") != 1 {
				t.Errorf("%.20q, %v: %v, %.500q", end, reads, err, out)
			}
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := NewReader(strings.NewReader(""), "vxworks", nil); err == nil || !strings.Contains(err.Error(), "nuttx") {
		t.Errorf("error %v, expected one that lists the formats", err)
	}
}

// Lines with sums cannot make a log arbitrarily long.
func TestSumsAreInProportion(t *testing.T) {
	log := strings.Repeat("pid: 1, used: 99999, nused: 60000\n", 1000)
	r, err := NewReader(strings.NewReader(log), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if n := bytes.Count(out, []byte("~m#")); err != nil || n < 1000 || n > len(log)+minSums+1000 || r.Skipped() == 0 {
		t.Errorf("%d records for %d bytes, %d lines skipped, %v", n, len(log), r.Skipped(), err)
	}
}

// Each form of a trace is in a row of the document, with the file that prints it and its versions,
// and each system has a log, as have the versions that were run. (TestHeapLines has those of heapForms.)
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/systems.md")
	if err != nil {
		t.Fatal(err)
	}
	logs, _ := filepath.Glob("../../testdata/systems/*.log")
	var systems []string
	for _, path := range logs {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(f, "", nil)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		systems = append(systems, r.Systems()...)
	}
	rows := strings.Split(string(text), "\n")
	for _, run := range regexp.MustCompile(`\| run: ([^;|]+)`).FindAllStringSubmatch(string(text), -1) {
		for _, version := range strings.Split(strings.ToLower(strings.ReplaceAll(run[1], " ", "")), ",") {
			if !slices.ContainsFunc(logs, func(path string) bool { return strings.Contains(filepath.Base(path), version) }) {
				t.Errorf("docs/systems.md: %s: no log of %s", run[0], version)
			}
		}
	}
	for _, f := range forms {
		if f.expr == nil || slices.ContainsFunc(heapForms, func(h form) bool { return h.source == f.source }) {
			continue
		}
		if !slices.ContainsFunc(rows, func(row string) bool {
			return strings.HasPrefix(row, "| ") && strings.Contains(row, "`"+f.source+"`") && strings.Contains(row, f.since) && strings.Contains(row, f.until)
		}) {
			t.Errorf("no row of docs/systems.md has %s, %s to %s", f.source, f.since, f.until)
		}
		if !slices.Contains(systems, f.system) {
			t.Errorf("no log of %s", f.system)
		}
	}
}

// FuzzReader checks that a log keeps its text, whatever the system: each line is the beginning of a
// line of what is read. It also checks that the result does not depend on how the log arrives.
func FuzzReader(f *testing.F) {
	logs, err := filepath.Glob("../../testdata/systems/*.log")
	if err != nil || len(logs) < len(Names()) {
		f.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, path := range logs {
		log, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(log[:min(len(log), 2000)], "")
	}
	for _, system := range append(Names(), "") {
		f.Add([]byte("Showing data for heap: 0x1\nBlock 0x1 data, size: 99999999999999999999 bytes, Free: No\r#f:0x0;0x1-0x2\x1b[~m#AAAA\n  bt \n"), system)
	}
	f.Fuzz(func(t *testing.T, log []byte, system string) {
		r, err := NewReader(bytes.NewReader(log), system, nil)
		if err != nil {
			if slices.Contains(Names(), system) || system == "" {
				t.Fatal(err)
			}
			return
		}
		out, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		lines := func(log []byte) [][]byte {
			return bytes.Split(bytes.ReplaceAll(log, []byte("\r"), []byte("\n")), []byte("\n"))
		}
		before, after := lines(log), lines(out)
		if len(before) != len(after) {
			t.Fatalf("%d lines became %d", len(before), len(after))
		}
		for i := range before {
			if !bytes.HasPrefix(after[i], before[i]) {
				t.Fatalf("line %d: %q became %q", i+1, before[i], after[i])
			}
		}
		slow, _ := NewReader(iotest.OneByteReader(bytes.NewReader(log)), system, nil)
		again, err := io.ReadAll(slow)
		if err != nil {
			t.Fatal(err)
		}
		if len(log) < maxHeld && !bytes.Equal(out, again) {
			t.Fatalf("%q\nbyte by byte: %q", out, again)
		}
	})
}

// Memory does not grow with a log in which there is always a record that is held.
func TestHeldRecordsTakeNoMemory(t *testing.T) {
	log := "== Heap Trace: 2 records\n" + strings.Repeat("  7 bytes (@ 0x3fc9f630, Internal) allocated CPU 0 ccount 0x2 caller 0x40376321:0x40376380\n", 20_000)
	r, err := NewReader(strings.NewReader(log), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for buf := make([]byte, 4096); ; {
		k, err := r.Read(buf)
		n += bytes.Count(buf[:k], []byte("~m#"))
		if cap(r.out) > 1<<20 {
			t.Fatalf("%d bytes are held", cap(r.out))
		}
		if err == io.EOF {
			break
		}
	}
	if n < 19_900 || n > 20_000 { // a lead-in may be in two pieces
		t.Errorf("%d records", n)
	}
}

// A program's own line about the heap between the rows of a table ends nothing, nor does that of a pool.
func TestOwnLinesInATable(t *testing.T) {
	const log = "Memdump task ALL\n   PID        Size Overhead    Address Backtrace\n    35         128        8 0x3c55d618\nFree heap: 41232\n          64        8 0x3c55d600 skip block dump\n" +
		"    35          32        8 0x3c55d718\n  Total Blks  Total Size\n           2         160\n"
	r, err := NewReader(strings.NewReader(log), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil || strings.Count(string(out), "~m#") != 2 || !strings.Contains(string(out), "~h#heap free=41232") || !strings.Contains(string(out), "~h#end 0 n=2 b=160") {
		t.Errorf("%v, got\n%s", err, out)
	}
}

// memdump dumps each heap of NuttX: they are one dump, and the next one is another.
func TestHeapsOfNuttX(t *testing.T) {
	heap := func(start, blocks int) string {
		var b strings.Builder
		b.WriteString("Memdump task ALL\n   PID        Size Overhead    Address Backtrace\n")
		for i := range blocks {
			fmt.Fprintf(&b, "    35         128        8 %#x\n", start+256*i)
		}
		fmt.Fprintf(&b, "  Total Blks  Total Size\n%12d%12d\n", blocks, 128*blocks)
		return b.String()
	}
	both := heap(0x3c000000, 3) + heap(0x20000000, 5)
	for _, log := range []string{
		both + both, "nsh> memdump\n" + both + "nsh> memdump\n" + both,
		both + strings.Replace(both, "    35         128        8 0x3c000000\n", "x\n", 1), // the first row is lost
	} {
		r, err := NewReader(strings.NewReader(log), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(r)
		if err != nil || strings.Count(string(out), "~h#begin") != 2 || strings.Count(string(out), "n=8 b=1024") != 2 {
			t.Errorf("%v, got\n%s", err, out)
		}
	}
}

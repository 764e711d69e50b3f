package foreign

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestHeap checks the headers that are made of statistics. The texts are by hand from the
// format strings of the systems.
func TestHeap(t *testing.T) {
	for _, test := range []struct{ name, log, want string }{
		{"esp-idf", `Heap summary for capabilities 0x00000004:
  At 0x3ffae6e0 len 6432 free 4 allocated 6212 min_free 4
    largest_free_block 0 alloc_blocks 20 free_blocks 0 total_blocks 20
  Totals:
    free 277788 allocated 20736 min_free 277000 largest_free_block 113792 alloc_blocks 62 free_blocks 3 total_blocks 65
`, "~h#heap name=8bit size=298524 free=277788 largest=113792 min=277000"},
		{"nuttx", `nsh> free
      total       used       free    maxused    maxfree  nused  nfree name
 2149562732      12700 2149550032      13200 2147483616     30      2 Umem
`, "~h#heap name=Umem size=2149562732 free=2149550032 largest=2147483616 min=2149549532"},
		{"zephyr", `Heap at 0x20001000 contains 8192 units in 13 buckets

  bucket#    min units        total      largest      largest
             threshold       chunks      (units)      (bytes)
  -----------------------------------------------------------
        3            8            2           12           96
       12         4096            1         8000        64000

64096 free bytes, 1000 allocated bytes, overhead = 440 bytes (0.7%)
`, "~h#heap name=0x20001000 size=65536 free=64096 largest=64000"},
		{"freertos", "heap: xAvailableHeapSpaceInBytes = 8192, xSizeOfLargestFreeBlockInBytes = 4096\nxMinimumEverFreeBytesRemaining: 2000\nok\n",
			"~h#heap free=8192 largest=4096 min=2000"},
	} {
		r, err := NewReader(strings.NewReader(test.log), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(string(out), " ~")
		got, _, _ = strings.Cut("~"+got, "\n")
		if got != test.want || !slices.Equal(r.Systems(), []string{test.name}) {
			t.Errorf("%s: got %q as %s, expected %q", test.name, got, r.Systems(), test.want)
		}
	}
}

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
				got.WriteString(heap)
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

// FuzzReader checks that a log keeps its text: each line is the beginning of a line of what
// is read. It also checks that the result does not depend on how the log arrives.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"== Heap Trace: 1 records\n 3 bytes (@ 0x3f, Internal) allocated CPU 0 ccount 0x1 caller 0x4:0x5\nfreed by 0x3\n",
		"Dump all used memory node info\n PID Size Address\n 1 2 0x3 0x4\n Total Blks Total Size\r\n 1 2\r\n",
		"[heaptrace] ptr=0x1 size=2 heap=x alloc_tid=0x3 alloc_thread=x alloc_cpu=0 alloc_ms=4\n[heaptrace]   backtrace: 0x4",
		"xAvailableHeapSpaceInBytes 3\n~m#AAAA\n", "Showing data for heap: 0x1\nBlock 0x1 data, size: 99999999999999999999 bytes, Free: No\n",
	} {
		for _, format := range append(Names(), "") {
			f.Add([]byte(seed), format)
		}
	}
	f.Fuzz(func(t *testing.T, log []byte, format string) {
		r, err := NewReader(bytes.NewReader(log), format, nil)
		if err != nil {
			if slices.Contains(Names(), format) || format == "" {
				t.Fatal(err)
			}
			return
		}
		out, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		before, after := bytes.Split(log, []byte("\n")), bytes.Split(out, []byte("\n"))
		if len(before) != len(after) {
			t.Fatalf("%d lines became %d", len(before), len(after))
		}
		for i := range before {
			if text := bytes.TrimRight(before[i], "\r"); !bytes.HasPrefix(after[i], text) {
				t.Fatalf("line %d: %q became %q", i+1, before[i], after[i])
			}
		}
		slow, _ := NewReader(iotest.OneByteReader(bytes.NewReader(log)), format, nil)
		again, err := io.ReadAll(slow)
		if err != nil {
			t.Fatal(err)
		}
		// '\r' that arrives before its '\n' stays where it was
		if strip := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r"), nil) }; !bytes.Equal(strip(out), strip(again)) {
			t.Fatalf("%q\nbyte by byte: %q", out, again)
		}
	})
}

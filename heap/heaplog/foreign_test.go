package heaplog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
)

// foreignLogs are heap traces as the sources of other systems print them, by hand from
// their format strings, and what is in them.
var foreignLogs = []struct {
	name, log string
	want      []string // of each dump: complete, records, bytes, and the allocations
	notes     []string // texts in notes
}{
	{"ESP-IDF, leaks", `rst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)
====== Heap Trace: 3 records (100 capacity) ======
    84 bytes (@ 0x3fca94d8, Internal) allocated CPU 0 ccount 0x042ac374 caller 0x40376183:0x4037da9c
--- 0x40376183: heap_caps_malloc at heap_caps.c:84
0x4037da9c: pvPortMalloc at heap_idf.c:58

    84 bytes (@ 0x3fca9530,    PSRAM) allocated CPU 1 ccount 0x042ae93c caller 0x40376183:0x4037da9c
    12 bytes (@ 0x3fcaa114, Internal) allocated CPU 0 ccount 0x04371de8 caller 0x40376183:0x403761b8:0x0:0x0
====== Heap Trace Summary ======
Mode: Heap Trace Leaks
180 bytes 'leaked' in trace (3 allocations)
total allocations: 5
`, []string{"complete 3 180: 2*168 40376183,4037da9c; 1*12 40376183,403761b8"}, []string{"esp-idf"}},

	{"ESP-IDF, all", `====== Heap Trace: 4 records (8 capacity) ======
     6 bytes (@ 0x3fc9f620, Internal) allocated CPU 0 ccount 0x1a31ac84 caller 0x40376321:0x40376379
0x40376321: heap_caps_malloc at heap_caps.c:84

freed by 0x403839e4:0x42008096
0x403839e4: free at heap.c:40
     9 bytes (@ 0x3fc9f630, Internal) allocated CPU 0 ccount 0x1a31b618 caller 0x40376321:0x40376379
    15 bytes (@ 0x3fcb5010, Internal) allocated CPU 0 ccount 0x1e7b0d18 freed
    24 bytes (@ 0x3fcb5068, Internal) allocated CPU 0 ccount 0x1e7b1dfc caller 0x42008000
====== Heap Trace Summary ======
Mode: Heap Trace All
33 bytes alive in trace (2/4 allocations)
`, []string{"complete 2 33: 1*24 42008000; 1*9 40376321,40376379"}, nil},

	{"ESP-IDF v3, with times, CRLF, a lost line", strings.ReplaceAll(`[10:22:01] 3 allocations trace (100 entry buffer)
[10:22:01] 16 bytes (@ 0x3ffd1914) allocated CPU 1 ccount 0x419d1cf8 caller 0x4010a09b:0x4010a0c6
[10:22:01] 16 bytes (@ 0x3ffd18cc) allocated CPU 1 ccount 0x41W (300) wifi: no beacon
[10:22:01] 20 bytes (@ 0x3ffd18d0) alloW (301) wifi: no beacon
[10:22:02] 52 bytes 'leaked' in trace (3 allocations)
`, "\n", "\r\n"), []string{"cut 2 32: 1*16 -; 1*16 4010a09b,4010a0c6"}, []string{"2 of 3 records: lines were lost", "1 line of the heap traces could not be read"}},

	{"ESP-IDF, heap_caps_dump", `Showing data for heap: 0x3ffb0000 
Block 0x3ffb0340 data, size: 340 bytes, Free: No 
Block 0x3ffb0498 data, size: 100 bytes, Free: Yes 
Block 0x3ffb0500 data, size: 60 bytes, Free: No 
Showing data for heap: 0x3ffc0000 
Block 0x3ffc0340 data, size: 7 bytes, Free: No 
I (900) app: alive
Showing data for heap: 0x3ffb0000 
Block 0x3ffb0340 data, size: 340 bytes, Free: No 
`, []string{"complete 3 407: 3*407 -", "complete 1 340: 1*340 -"}, nil},

	{"NuttX 12", `[ 5286.767232] [ 9] [  INFO] [ap] Dump all used memory node info:
[ 5286.767884] [ 9] [  INFO] [ap]    PID        Size    Sequence    Address Backtrace
[ 5286.769569] [ 9] [  INFO] [ap]     35          64          17 0x3c55d4d8 0x2c5b0ef6 0x2c5a9bee 0x2c767c40
[ 5286.771200] [ 9] [  INFO] [ap]     -1         128          18 0x3c55d518
[ 5286.771300] [ 9] [  INFO] [ap]     35          64          19 0x3c55d598 0x2c5b0ef6 0x2c5a9bee 0x2c767c40
[ 5286.772000] [ 9] [  INFO] [ap]   Total Blks  Total Size
[ 5286.772100] [ 9] [  INFO] [ap]            3         256
`, []string{"complete 3 256: 1*128 -; 2*128 2c5b0ef6,2c5a9bee,2c767c40"}, nil},

	{"NuttX 10, and free blocks, which are none", `Dump all used memory node info:
   PID        Size    Address Backtrace
    35          64 0x3c55d4d8 0x2c5b0ef6 0x2c5a9bee
  Total Blks  Total Size
           1          64
Dump all free memory node info:
        Size    Address
         512 0x3c560000
  Total Blks  Total Size
           1         512
`, []string{"complete 1 64: 1*64 2c5b0ef6,2c5a9bee"}, nil},

	{"NuttX 64 bits, with overhead", `Dump all used memory node info:
   PID        Size    Overhead    Sequence            Address Callstack
     0         100          16           5 0x0000000040012340 0x0000000040001000
  Total Blks  Total Size
           1         100
`, []string{"complete 1 100: 1*100 40001000"}, nil},

	{"Zephyr", `uart:~$ heaptrace dump all
=============== heaptrace dump begin ===============
[heaptrace] ptr=0x20001000 size=48 heap=k_malloc alloc_tid=0x20000400 alloc_thread=shell_uart alloc_cpu=0 alloc_ms=1234
[heaptrace]   backtrace: 0x8001234 0x8005678
[heaptrace] ptr=0x20001040 size=32 heap=? alloc_tid=0x20000500 alloc_thread=my thread alloc_cpu=0 alloc_ms=99
[heaptrace] outstanding_blocks=2 outstanding_bytes=80
=============== heaptrace dump end =================
`, []string{"complete 2 80: 1*48 8001234,8005678; 1*32 0"}, nil},

	{"records of one's own first", "~b#size: 8, 0x1000\n====== Heap Trace: 1 records (8 capacity) ======\n" +
		"     6 bytes (@ 0x3fc9f620, Internal) allocated CPU 0 ccount 0x1a31ac84 caller 0x40376321\n",
		[]string{"complete 1 8: 1*8 1000", "cut 1 6: 1*6 40376321"}, nil},
}

func TestForeign(t *testing.T) {
	for _, test := range foreignLogs {
		t.Run(test.name, func(t *testing.T) {
			got, notes := foreignDumps(t, heaplog.Stream(strings.NewReader(test.log), "x.log"))
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			for _, want := range test.notes {
				if !strings.Contains(notes, want) {
					t.Errorf("notes %q, expected %q", notes, want)
				}
			}
			bytewise, _ := foreignDumps(t, heaplog.Stream(iotest.OneByteReader(strings.NewReader(test.log)), "x.log"))
			if !slices.Equal(bytewise, test.want) {
				t.Errorf("byte by byte: got  %q\nwant %q", bytewise, test.want)
			}
		})
	}
}

// foreignDumps returns the dumps of a log as texts, and its notes.
func foreignDumps(t *testing.T, options ...heaplog.Option) (dumps []string, notes string) {
	t.Helper()
	r, err := heaplog.Open(context.Background(), options...)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for a := range d.Allocations() {
			pcs := "-"
			if addrs := a.Append(nil); len(addrs) > 0 {
				pcs = ""
				for i, addr := range addrs {
					if i > 0 {
						pcs += ","
					}
					pcs += fmt.Sprintf("%x", addr.PC)
				}
			}
			list = append(list, fmt.Sprintf("%d*%d %s", a.Count, a.Bytes, pcs))
		}
		slices.SortFunc(list, func(a, b string) int {
			var x, y, n int
			fmt.Sscanf(a, "%d*%d", &n, &x)
			fmt.Sscanf(b, "%d*%d", &n, &y)
			if x != y {
				return y - x
			}
			return strings.Compare(a, b)
		})
		state := "cut"
		if d.Complete() {
			state = "complete"
		}
		dumps = append(dumps, fmt.Sprintf("%s %d %d: %s", state, d.Records, d.Total.Bytes, strings.Join(list, "; ")))
	}
	for _, n := range r.Summary().Notes {
		notes += n.Text + "\n"
	}
	return dumps, notes
}

// Notes about a heap trace of another system do not speak of headers that it does not have.
func TestCutTraces(t *testing.T) {
	cut := 0
	for _, name := range []string{"05d-idf-heapinfo-two-caps-and-trace", "nuttx-12.13", "lsan-gcc12", "memcheck-3.19"} {
		text, err := os.ReadFile(filepath.Join("testdata", "systems", name+".log"))
		if err != nil {
			t.Fatal(err)
		}
		for k := 1; k < 4; k++ {
			n := len(text) * k / 4
			dumps, r := pathDumps(t, string(text[:n]))
			for _, d := range dumps {
				if strings.Contains(d.Incomplete(), "~h#") {
					t.Errorf("%s, %d bytes: %s: %s", name, n, d.Name, d.Incomplete())
				}
			}
			for _, note := range r.Summary().Notes {
				if strings.Contains(note.Text, "was cut") {
					cut++
				}
				if strings.Contains(note.Text, "~h#") {
					t.Errorf("%s, %d bytes: %s", name, n, note.Text)
				}
			}
		}
	}
	if cut < 4 {
		t.Errorf("%d notes of cut traces", cut)
	}
}

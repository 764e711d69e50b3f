package heaplog_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// systemLog is a log, and what a reader finds in it.
type systemLog struct {
	file    string
	systems string   // of which it has traces
	dumps   []string // the blocks and bytes of each dump that is complete, and the reason why it is not whole
	heaps   []string // of each heap: its reports, what the first and the last say is free, and the largest blocks
	names   []string // functions of the last dump
	threads []string // blocks and bytes of the threads of the last dump
	notes   string   // a text of the notes
}

// systemLogs are the logs of testdata/systems, and what a reader of these logs finds in them. Those whose names begin with
// a number are rebuilt from public reports, which the comments name. These were written by the system's own code, run on Linux by
// a small program that allocates and frees known blocks:
//
//	idf-4.4.8, 5.1.6, 6.0.2       ESP-IDF at these tags, components/heap and TLSF: 32-bit x86, two internal heaps and one PSRAM
//	                              at the ESP32's addresses, stubs for FreeRTOS; CONFIG_HEAP_TRACING_STACK_DEPTH 4
//	idf-6.0.2-alloc-fail          with CONFIG_HEAP_ABORT_WHEN_ALLOCATION_FAILS
//	idf-6.0.2-riscv               as for RISC-V without frame pointers
//	idf-5.5.1-tasks               with CONFIG_HEAP_TASK_TRACKING and five tasks: all tasks, their overview, one task
//	idf-5.2.5-task-info           its example heap_task_tracking
//	nuttx-10.3, 12.4, 12.13       NuttX and its apps, branches releases/…, the simulator (sim:nsh) with CONFIG_MM_BACKTRACE=8;
//	                              from 12.4 with sequence numbers
//	nuttx-12.13-syslog            with times and names of processes in the syslog
//	zephyr-2.7.0                  lib/os/heap.c and heap-validate.c: 32-bit x86, two heaps, stubs for the kernel
//	mbed-5.12                     platform/mbed_mem_trace.cpp of April 2019 (6dbc00dd): ARM with newlib, in QEMU
//	freertos-11.1.0               heap_4.c, the fields of HeapStats_t by their names: ARM with newlib, in QEMU
//	micropython-1.24.1            the Unix port, 32-bit x86: a script that keeps 2,000 bytes between calls of mem_info
//	mtrace-glibc-2.36, lsan-gcc12, memcheck-3.19   one program that leaks
//	lsan-clang14                  another one, in C++
//
// The others are written by hand from the print statements of the system.
var systemLogs = []systemLog{
	{file: "01-idf53-leaks-monitor", systems: "esp-idf", dumps: []string{"6 440"}, names: []string{"heap_caps_malloc", "pvPortMalloc"}}, // espressif/esp-idf#8446
	{file: "03-idf-fragment-no-header", systems: "esp-idf", dumps: []string{"2 32"}},                                                    // jomjol/AI-on-the-edge-device#1861
	{file: "04-idf51-all", systems: "esp-idf", dumps: []string{"2 68"}},                                                                 // espressif/esp-idf#11512
	{file: "04b-idf60-riscv-nocaller", systems: "esp-idf", dumps: []string{"2 1280"}},
	{file: "05-idf-heapinfo-two-caps", // espressif/esp-idf#5783
		heaps: []string{"PSRAM 8: 4122000 to 4122000, 4121984 to 4121984", "internal 8: 120000 to 106000, 90000 to 27000"}},
	{file: "05c-idf-heapinfo-interleaved", heaps: []string{"internal 4: 120000 to 114000, 90000 to 90000"}},
	{file: "05d-idf-heapinfo-two-caps-and-trace", systems: "esp-idf", dumps: grows(8, 2, 3, 4096, 48),
		heaps: []string{"PSRAM 8: 4122000 to 4122000, 4121984 to 4121984", "internal 8: 120000 to 119664, 60000 to 60000"}},
	{file: "07b-idf55-task-stat", systems: "esp-idf", dumps: []string{"6 11700"}, // espressif/esp-idf#17232
		threads: []string{"thread 1 leaking_task, deleted: 3 11392", "thread 2 main: 3 308"}},
	{file: "09b-nuttx1210-memdump-leak", systems: "nuttx", dumps: []string{"2 4224 leak"}}, // apache/nuttx#9970
	{file: "09d-nuttx1210-free-then-used", systems: "nuttx", dumps: []string{"4 4332"}, heaps: []string{" 1: 131264 to 131264, 131136 to 131136"}},
	{file: "09f-nuttx127-memdump", systems: "nuttx", dumps: []string{"2 160"}, threads: []string{"thread 3: 1 32", "thread 35: 1 128"}},
	{file: "09g-nuttx-free-two-heaps", systems: "nuttx", dumps: []string{"1 32"},
		heaps: []string{"Kmem 1: 560568 to 560568, 60568 to 60568", "Umem 1: 1560568 to 1560568, 1560568 to 1560568"}},
	{file: "09i-nuttx-free-only", heaps: []string{"Umem 1: 1560568 to 1560568, 1560568 to 1560568"}},
	{file: "10-nuttx-alloc-failed", systems: "nuttx", dumps: []string{"721 221440"}, heaps: []string{" 1: 15872 to 15872, 3008 to 3008"}, // apache/nuttx#6685
		threads: []string{"thread 0: 4 512", "thread 3: 17 20480", "thread 35: 700 200448"}, notes: "an allocation of 4112 bytes failed"},
	{file: "12b-zephyr-two-heaps-and-trace", systems: "zephyr", dumps: grows(8, 3, 1, 192, 64),
		heaps:   []string{"0x20001000 8: 2000 to 1552, 960 to 960", "0x20008000 8: 300000 to 300000, 296000 to 296000"},
		threads: []string{"thread main: 3 192", "thread net_mgmt: 7 448"}},
	{file: "15b-freertos-names", heaps: []string{" 6: 30000 to 25000, 20000 to 5000"}},
	{file: "20-idf-dump-all", systems: "esp-idf", dumps: []string{"6 1200", "6 1260"},
		heaps: []string{"0x3ffae6e0 2: 200 to 210, 200 to 210", "0x3ffc0000 2: 200 to 210, 200 to 210"}},
	{file: "23-idf-leaks-per-interval", systems: "esp-idf", dumps: slices.Repeat([]string{"3 112"}, 10)}, // espressif/esp-idf#13803
	{file: "24-idf-alloc-fail", systems: "esp-idf", notes: "an allocation of 1568 bytes of internal+DMA+8bit failed"},
	{file: "31c-idf-monitor-timestamps-names", systems: "esp-idf", dumps: grows(6, 2, 3, 4096, 48),
		names: []string{"_lws_change_pollfd", "_realloc", "heap_caps_malloc", "lws_realloc"}},
	{file: "33b-lws-records-first", dumps: []string{"55 413600"}, heaps: []string{"internal 8: 120000 to 106000, 60000 to 53000"}},
	{file: "40b-pio-min", systems: "esp-idf", dumps: []string{"0 0"}},
	{file: "42-idf-dump-two-regions-min", systems: "esp-idf", dumps: []string{"3 300"},
		heaps: []string{"0x3ffae6e0 1: 900 to 900, 900 to 900", "0x3ffb8000 1: 5000 to 5000, 5000 to 5000"}},
	{file: "45-min-two-caps", systems: "esp-idf", dumps: []string{"1 1024"}, heaps: []string{"PSRAM 1: 4122000 to 4122000, 4121984 to 4121984", "internal 1: 900 to 900, 300 to 300"}},
	{file: "46-min-totals-interleaved", systems: "esp-idf", dumps: []string{"2 1280"}, heaps: []string{"internal 1: 118000 to 118000, 90000 to 90000"}},

	{file: "13b-mbed-heapstats", heaps: []string{" 2: 6129 to 4828, 0 to 0"}}, // ARMmbed/mbed-os#4573
	{file: "43-arduino3-meminfo", heaps: []string{"internal 1: 329080 to 329080, 294900 to 294900"}},
	{file: "44-idf-own-line", heaps: []string{"internal 8: 41480 to 40080, 21504 to 14336"}}, // espressif/esp-matter#436
	// What people print themselves: the numbers are those that the reports' programs would print.
	{file: "50-meshtastic", heaps: []string{" 24: 119664 to 112212, 0 to 0"}},                                                         // meshtastic/firmware#2358
	{file: "51-idf-two-points", heaps: []string{"publishing 24: 317804 to 304648, 0 to 0", "recieving 24: 322340 to 309184, 0 to 0"}}, // espressif/esp-idf#3480
	{file: "52-wled-memory-info", heaps: []string{"DRAM 24: 23776 to 22304, 11764 to 11764", "IRAM 24: 50420 to 50420, 11764 to 11764", "PSRAM 24: 4100000 to 4100000, 4000000 to 4000000", "RTC 24: 0 to 0, 0 to 0", "internal 24: 55848 to 54376, 11764 to 11764"}}, // wled/WLED#4785
	{file: "53-ems-esp-kib", heaps: []string{" 24: 162816 to 139264, 109568 to 86016"}},                        // emsesp/EMS-ESP32#2889
	{file: "54-espresense-json", heaps: []string{" 24: 123456 to 121616, 0 to 0"}},                             // ESPresense/ESPresense#2455
	{file: "55-riot-of-free", heaps: []string{"0 24: 15512 to 14040, 0 to 0", "1 24: 16384 to 16384, 0 to 0"}}, // RIOT-OS/RIOT#299
	{file: "56-json-nested", heaps: []string{" 24: 41232 to 40956, 31744 to 31744"}},
	{file: "57-esphome-docker", heaps: []string{" 24: 118944 to 116552, 16400 to 16400"}}, // esphome/issues#3320

	{file: "59-nuttx-used-then-free", systems: "nuttx", dumps: []string{"2 160", "3 288"}, heaps: []string{" 2: 131264 to 131136, 131136 to 131136"}},
	{file: "58-idf-overflow", systems: "esp-idf", dumps: slices.Repeat([]string{"2 96 cut"}, 4), notes: "overflowed"},

	{file: "mbed-mem-trace", systems: "mbed", dumps: []string{"2 180"}},

	// One program under three tools of Linux: it leaks 3 blocks of 100 bytes, 2 of 64, of which one
	// holds the other, and one of 300.
	{file: "mtrace-glibc-2.36", systems: "mtrace", dumps: []string{"6 728"}},
	{file: "lsan-gcc12", systems: "sanitizer", dumps: []string{"6 728 leak"}, names: []string{"__interceptor_malloc", "__interceptor_realloc", "main", "make"}},
	// 300 bytes, and 3 objects of 24 that hold 100 each
	{file: "lsan-clang14", systems: "sanitizer", dumps: []string{"7 672 leak"}, names: []string{"__libc_start_call_main", "main", "make(int)", "malloc", "operator new(unsigned long)",
		"std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long)", "std::__new_allocator<int>::allocate(unsigned long, void const*)",
		"std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)", "std::vector<int, std::allocator<int> >::_M_default_append(unsigned long)"}},
	{file: "memcheck-3.19", systems: "memcheck", dumps: []string{"5 664 leak"}, names: []string{"leak", "main", "make", "malloc", "realloc"}},

	// Logs of the systems' own code, of which the programs that ran it tell what is right.
	espOwn("idf-4.4.8", "12 6688", "145548 to 144036", "0x3ffb0000 1: 127548 to 127548, 127400 to 127400", "0x3ffe0000 1: 15960 to 15960, 15960 to 15960"),
	espOwn("idf-5.1.6", "12 6736", "145548 to 144000", "0x3ffb0000 1: 127500 to 127500, 127352 to 127352", "0x3ffe0000 1: 15960 to 15960, 15960 to 15960"),
	espOwn("idf-6.0.2", "12 6752", "145532 to 143984", "0x3ffb0000 1: 130092 to 130092, 130092 to 130092", "0x3ffe0000 1: 13352 to 13352, 13200 to 13200"),
	espOwn("idf-6.0.2-riscv", "12 6752", "145532 to 143984", "0x3ffb0000 1: 130092 to 130092, 130092 to 130092", "0x3ffe0000 1: 13352 to 13352, 13200 to 13200"),
	{file: "idf-6.0.2-alloc-fail", systems: "esp-idf", notes: "an allocation of 300000 bytes of DMA+8bit failed"},
	{file: "idf-5.5.1-tasks", systems: "esp-idf", dumps: []string{"10 13916", "5 13916", "3 9216 task leaking_task"},
		threads: []string{"thread 2 leaking_task: 3 9216"}, notes: "each task counts as one"},
	// used, biggest, orphan, used, leak, a process, a window of used: a program has 9 blocks
	{file: "nuttx-12.13", systems: "nuttx", dumps: []string{"77 1865848", "4 1708384 biggest", "4 1952 orphan", "77 1865848", "9 5112 leak", "9 5112 task hello", "44 1717256 sequence 10 60"},
		heaps: []string{" 1: 65241096 to 65241096, 65238576 to 65238576", "Umem 1: 65239984 to 65239984, 65238576 to 65238576"}},
	// used, mempool, leak, a failed allocation: its total says that 99 blocks are used
	{file: "nuttx-12.13-syslog", systems: "nuttx", dumps: []string{"77 1865848", "0 0 mempool", "9 5112 leak", "99 1945088"},
		heaps: []string{" 1: 65241080 to 65241080, 65238560 to 65238560", "Umem 1: 65239968 to 65239968, 65238560 to 65238560", "free 1: 65161840 to 65161840, 65158488 to 65158488"},
		notes: "an allocation of 1099511627864 bytes failed"},
	// used, leak, a failed allocation with the sums of the processes, a process, a window of used
	{file: "nuttx-12.4", systems: "nuttx", dumps: []string{"99 1873184", "9 5216 leak", "126 1953520", "9 5248 task 4", "45 1264496 sequence 10 60"},
		heaps: []string{" 1: 65229168 to 65229168, 65226144 to 65226144", "Umem 1: 65228048 to 65228048, 65226144 to 65226144", "free 1: 65148832 to 65148832, 65145408 to 65145408"}, notes: "an allocation of 1099511627872 bytes failed"},
	// used, used after a failed allocation, a process: ps says that it has 5,888 bytes
	{file: "nuttx-10.3", systems: "nuttx", dumps: []string{"86 1870672", "110 1951824", "9 5888 task 4"}, threads: []string{"thread 4 hello stay: 9 5888"},
		heaps: []string{" 1: 65236448 to 65236448, 65233120 to 65233120", "Umem 1: 65235296 to 65235296, 65233120 to 65233120"}},
	// 4 times 100 bytes more of one heap, and 5,000 of another
	{file: "zephyr-2.7.0", heaps: []string{"0x80f02e0 4: 27684 to 27684, 27684 to 27684", "0x80f82e0 4: 8020 to 7708, 8020 to 7708"}},
	{file: "idf-5.2.5-task-info", systems: "esp-idf", dumps: []string{"5 13904", "5 16976", "5 20048"}, notes: "each task counts as one",
		threads: []string{"thread 1 wifi: 1 4328", "thread 2 Pre-Scheduler allocs: 1 100", "thread 3 main: 1 208", "thread 4 leaking_task: 1 15360", "thread 5 sensor poll: 1 52"}},
	{file: "mbed-5.12", systems: "mbed", dumps: []string{"6 300592"}}, // 4 blocks of 100, 192 and 300,000
	{file: "freertos-11.1.0", heaps: []string{" 4: 64520 to 61496, 64520 to 61496"}},
	{file: "micropython-1.24.1", heaps: []string{" 4: 63264 to 57216, 62864 to 56864"}},

	{file: "several-systems", systems: "esp-idf, nuttx, zephyr", dumps: []string{"1 84", "1 128", "1 48"},
		heaps: []string{" 1: 8192 to 8192, 4096 to 4096"}},
}

// espOwn is a log of ESP-IDF's own code: a trace of 9 blocks, of which 2 were freed, a report on each
// of two memories before and after each of 3 allocations, all blocks, and an allocation that failed.
func espOwn(file, blocks, internal string, heaps ...string) systemLog {
	return systemLog{file: file, systems: "esp-idf", dumps: []string{"7 4592", blocks}, notes: "an allocation of 300000 bytes of DMA+8bit failed",
		heaps: append([]string{"0x3f800000 1: 4188028 to 4188028, 4188028 to 4188028"}, append(heaps,
			"PSRAM 4: 4188036 to 4188036, 4128768 to 4128768", "internal 4: "+internal+", 126976 to 126976")...)}
}

// grows returns the dumps of a log, each with more blocks and bytes than the one before.
func grows(dumps, blocks, moreBlocks, bytes, moreBytes int) (list []string) {
	for i := range dumps {
		list = append(list, fmt.Sprint(blocks+i*moreBlocks, bytes+i*moreBytes))
	}
	return list
}

// found is what a log says, in the form of systemLogs.
type found struct {
	systems               string
	dumps, heaps, threads []string
	names                 []string
	notes                 string
	most                  uint64 // bytes of the line with the most
	total                 uint64 // bytes of all dumps
}

func find(t *testing.T, log []byte) (f found) {
	t.Helper()
	open := func(options ...heaplog.Option) *heaplog.Reader {
		r, err := heaplog.Open(context.Background(), append(options, heaplog.Stream(bytes.NewReader(log), "x.log"))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	check := func(err error) {
		if none := heaplog.ErrNoRecord; err != nil && !errors.Is(err, none) {
			t.Fatal(err)
		}
	}
	r := open()
	var last *profile.Dump
	for d, err := range r.Dumps() {
		check(err)
		if err != nil {
			continue
		}
		last = d
		text := fmt.Sprint(d.Total.Count, d.Total.Bytes)
		if !d.Complete() {
			text += " cut"
		}
		f.dumps = append(f.dumps, strings.TrimSpace(text+" "+d.Why))
		f.total += d.Total.Bytes
	}
	for _, n := range r.Summary().Notes {
		f.notes += n.Text + "\n"
		if m := regexp.MustCompile(`read as heap traces of (.*)`).FindStringSubmatch(n.Text); m != nil {
			f.systems = m[1]
		}
	}
	if last != nil {
		names := map[string]bool{}
		for a := range last.Allocations() {
			for frame := range a.Frames() {
				if frame.Name != "" && !strings.HasPrefix(frame.Name, "thread ") && !strings.HasPrefix(frame.Name, "0x") {
					names[frame.Name] = true
				}
			}
		}
		f.names = slices.Sorted(maps.Keys(names))
	}

	for _, h := range r.Heaps() {
		a, b := h.Reports[0], h.Reports[len(h.Reports)-1]
		if a.Free.Known {
			f.heaps = append(f.heaps, fmt.Sprintf("%s %d: %d to %d, %d to %d", h.Name, h.Total, a.Free.Bytes, b.Free.Bytes, a.Largest.Bytes, b.Largest.Bytes))
		} else {
			f.heaps = append(f.heaps, fmt.Sprintf("%s %d: %d to %d used", h.Name, h.Total, a.Used.Bytes, b.Used.Bytes))
		}
	}
	slices.Sort(f.heaps)
	lines := map[int64]uint64{}
	for it, err := range open().Items() {
		if check(err); err != nil {
			continue
		}
		for _, a := range it.Allocs {
			lines[it.Line] += a.Bytes
			f.most = max(f.most, lines[it.Line])
		}
	}

	for d, err := range open(heaplog.GroupBy(heaplog.ByThread)).Dumps() {
		if check(err); err != nil {
			continue
		}
		f.threads = nil
		for a := range d.Allocations() {
			for frame := range a.Frames() {
				f.threads = append(f.threads, fmt.Sprintf("%s: %d %d", frame.Name, a.Count, a.Bytes))
			}
		}
		slices.SortFunc(f.threads, cmp.Compare)
	}
	return f
}

func readSystemLog(t *testing.T, name string) []byte {
	t.Helper()
	log, err := os.ReadFile(filepath.Join("testdata", "systems", name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// Each log is read as what it is, also as loggers, terminals and other tasks change it.
func TestSystems(t *testing.T) {
	onLines := func(change func(string) string) func([]byte) []byte {
		return func(log []byte) []byte {
			lines := strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
			for i := range lines {
				lines[i] = change(lines[i])
			}
			return []byte(strings.Join(lines, "\n") + "\n")
		}
	}
	ends := func(end string) func([]byte) []byte {
		return func(log []byte) []byte { return bytes.ReplaceAll(log, []byte("\n"), []byte(end)) }
	}
	for _, form := range []struct {
		name   string
		change func([]byte) []byte
	}{
		{"as it is", func(log []byte) []byte { return log }},
		{"a clock in front", onLines(func(l string) string { return "12:34:56.789 -> " + l })},
		{"a date in front", onLines(func(l string) string { return "2026-07-01T12:34:56.789Z [esp-01] " + l })},
		{"colors", onLines(func(l string) string { return "\x1b[0;32m" + l + "\x1b[0m" })},
		{"CRCRLF", ends("\r\r\n")},
		{"CR", ends("\r")},
		{"UTF-16", func(log []byte) []byte {
			utf := []byte{0xff, 0xfe}
			for _, u := range utf16.Encode([]rune(string(log))) {
				utf = append(utf, byte(u), byte(u>>8))
			}
			return utf
		}},
		{"another task between the lines", onLines(func(l string) string { return l + "\nW (65250911) wifi:alloc eb len=76 type=2 fail, heap:2872652" })},
	} {
		t.Run(form.name, func(t *testing.T) {
			for _, want := range systemLogs {
				if want.file == "33b-lws-records-first" && form.name == "another task between the lines" {
					continue // its records have no header, and text between them tells them apart
				}
				got := find(t, form.change(readSystemLog(t, want.file)))
				slices.Sort(want.threads)
				if got.systems != want.systems || !slices.Equal(got.dumps, want.dumps) || !slices.Equal(got.heaps, want.heaps) ||
					want.names != nil && !slices.Equal(got.names, want.names) ||
					want.threads != nil && !slices.Equal(got.threads, want.threads) || !strings.Contains(got.notes, want.notes) || strings.Contains(got.notes, "could not be read") {
					t.Errorf("%s:\ngot  %+v\nwant %+v", want.file, got, want)
				}
			}
		})
	}
}

// Where a trace names the memory of each block, blocks are grouped by it.
func TestByHeap(t *testing.T) {
	for name, want := range map[string]string{
		"04-idf51-all":                   "heap PSRAM: 64, heap internal: 4",
		"07b-idf55-task-stat":            "heap RAM: 11700",
		"12b-zephyr-two-heaps-and-trace": "heap _system_heap: 640",
		"09f-nuttx127-memdump":           "(heap not recorded): 160",
	} {
		r, err := heaplog.Open(context.Background(), heaplog.GroupBy(heaplog.ByHeap), heaplog.Stream(bytes.NewReader(readSystemLog(t, name)), "x.log"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var got []string
		for d, err := range r.Dumps() {
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			for a := range d.Allocations() {
				for frame := range a.Frames() {
					got = append(got, fmt.Sprintf("%s: %d", frame.Name, a.Bytes))
				}
			}
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}

// One line that is cut changes a log by what is on one line.
func TestSystemsCutLine(t *testing.T) {
	for _, want := range systemLogs {
		log := readSystemLog(t, want.file)
		whole := find(t, log)
		lines := bytes.SplitAfter(log, []byte("\n"))
		step := max(1, len(lines)/8)
		for i := 0; i < len(lines); i += step {
			line := bytes.TrimRight(lines[i], "\n")
			for _, keep := range []int{0, len(line) / 2} {
				cut := slices.Clone(lines)
				cut[i] = append(bytes.Clone(line[:keep]), '\n')
				var total uint64
				r, err := heaplog.Open(context.Background(), heaplog.Stream(bytes.NewReader(bytes.Join(cut, nil)), "x.log"))
				if err != nil {
					t.Fatal(err)
				}
				for d, err := range r.Dumps() {
					if err == nil {
						total += d.Total.Bytes
					}
				}
				r.Close()
				if max(total, whole.total)-min(total, whole.total) > max(whole.most, 1024) { // of a block whose "freed by" is cut
					t.Errorf("%s: line %d cut to %q: %d bytes, %d with the line", want.file, i+1, line[:keep], total, whole.total)
				}
			}
		}
	}
}

// Two logs, one after the other, are read as each alone: a dump ends where one of another kind begins.
func TestSystemsInARow(t *testing.T) {
	var list []systemLog
	for _, l := range systemLogs {
		if len(l.dumps)+len(l.heaps) > 0 && l.systems != "mtrace" && l.systems != "mbed" && l.file != "33b-lws-records-first" { // sums of events go on
			list = append(list, l)
		}
	}
	for i, first := range list {
		for _, distance := range []int{1, 11} {
			second := list[(i+distance)%len(list)]
			got := find(t, slices.Concat(readSystemLog(t, first.file), readSystemLog(t, second.file)))
			if want := slices.Concat(first.dumps, second.dumps); !slices.Equal(got.dumps, want) {
				t.Errorf("%s, %s: dumps %q, want %q", first.file, second.file, got.dumps, want)
			}
		}
	}
}

// Without frame pointers, RISC-V prints the one that it has in place of a caller.
func TestFramePointerIsNoCaller(t *testing.T) {
	r, err := heaplog.Open(context.Background(), heaplog.Stream(bytes.NewReader(readSystemLog(t, "idf-6.0.2-riscv")), "x.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dumps := 0
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		dumps++
		for a := range d.Allocations() {
			for frame := range a.Frames() {
				t.Errorf("dump %d has a frame %v", dumps, frame)
			}
		}
	}
	if dumps != 2 {
		t.Errorf("%d dumps", dumps)
	}
}

package forms

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// heapForms are the lines in which systems say how much of a heap is free. Their groups are size, free, largest, least, used, peak (the most that was ever
// used), heap (which of several) and
// time (s since the boot); a group with a number behind "_" has that many bytes as its unit. A line that has all values is read by heapLine. Lines that have one
// each are read by heapPart.
var heapForms = []form{
	{"mbed", "malloc(s) (", re(`total (?P<size>` + n + `, alloced (?P<used>` + n + ` \(high watermark (?P<peak>` + n + `\), left (?P<free>` + n), "5", "", "heap statistics of a user, ARMmbed/mbed-os#4573", (*state).heapLine},
	{"mbed", "eap size: ", re(`Heap size: (?P<used>` + n + ` / (?P<size>` + n + ` bytes`), "5.5", "6", "the example of mbed_stats_heap_get", (*state).heapLine},
	{"mbed", "eap stats: ", re(`Heap stats: (?P<used>` + n + ` / (?P<size>` + n + ` \(max=(?P<peak>` + n + `\)`), "5.5", "6", "programs that call mbed_stats_heap_get", (*state).heapLine},
	{"riot", "(used ", re(`heap: (?P<size>` + n + ` \(used (?P<used>` + n + `, free (?P<free>` + n + `\) \[bytes\]`), "2016.07", "", "sys/newlib_syscalls_default/syscalls.c", (*state).heapLine},
	{"riot", "eap region", re(`Heap (?P<heap>region \d+) @\S+: (?P<size>` + n + ` \(used (?P<used>` + n + `, free (?P<free>` + n + `\)`), "2018.10", "", "cpu/esp_common", (*state).heapLine},
	{"tasmota", `"Heap":`, re(`(?:"UptimeSec":(?P<time>` + n + `,.*?)?"Heap":(?P<free_1024>` + n), "5", "", "tasmota/support_tasmota.ino", (*state).heapLine},
	{"linux", "Mem:", re(`Mem: +(?P<size_1024>` + n + ` +(?P<used_1024>` + n + `(?: +\d+){3} +(?P<free_1024>` + n), "3.3.10", "", "free of procps and BusyBox: what is available, in KiB", (*state).heapLine},
	{"linux", "Mem:", re(`Mem: +(?P<size_1024>` + n + ` +(?P<used_1024>` + n + ` +(?P<free_1024>` + n), "", "", "free of older BusyBox, in KiB", (*state).heapLine},
	{"linux", "MemTotal:", re(`MemTotal: +(?P<size_1024>` + n + ` kB`), "3.14", "", "/proc/meminfo", (*state).heapPart},
	{"linux", "MemAvailable:", re(`MemAvailable: +(?P<free_1024>` + n + ` kB`), "3.14", "", "/proc/meminfo", (*state).heapPart},
	{"micropython", "GC: total: ", re(`GC: total: (?P<size>` + n + `, used: (?P<used>` + n + `, free: (?P<free>` + n), "1.3", "", "py/gc.c, gc_dump_info", (*state).heapPart},
	{"micropython", "max free sz: ", re(`max free sz: (?P<largest_16>` + n), "1.6", "", "py/gc.c: blocks of 16 bytes on machines of 32 bits", (*state).heapPart},
	{"micropython", "gc.mem_free()", re(`^>>> (?:.*; ?)?gc\.mem_free\(\)$`), "1.3", "", "the prompt of MicroPython and CircuitPython", (*state).pythonFree},
	{"arduino", " Memory Info:", re(`(?P<heap>INTERNAL|SPIRAM) Memory Info:`), "3.0", "", "cores/esp32/chip-debug-report.cpp", (*state).heapPart},
	{"arduino", "Total Size   ", re(`Total Size +: +(?P<size>` + n + ` B \(`), "3.0", "", "cores/esp32/chip-debug-report.cpp", (*state).heapPart},
	{"arduino", "Free Bytes   ", re(`Free Bytes +: +(?P<free>` + n + ` B \(`), "3.0", "", "cores/esp32/chip-debug-report.cpp", (*state).heapPart},
	{"arduino", "Minimum Free By", re(`Minimum Free Bytes: +(?P<least>` + n + ` B \(`), "3.0", "", "cores/esp32/chip-debug-report.cpp", (*state).heapPart},
	{"arduino", "Largest Free Bl", re(`Largest Free Block: +(?P<largest>` + n + ` B \(`), "3.0", "", "cores/esp32/chip-debug-report.cpp", (*state).heapPart},
	{"rt-thread", "total    : ", re(`total    : (?P<size>` + n + `$`), "4.1", "", "components/finsh/msh.c, free", (*state).heapPart},
	{"rt-thread", "used     : ", re(`used     : (?P<used>` + n + `$`), "4.1", "", "components/finsh/msh.c, free", (*state).heapPart},
	{"rt-thread", "maximum ", re(`maximum {1,2}: (?P<peak>` + n + `$`), "4.1", "", "components/finsh/msh.c, free", (*state).heapPart},
	{"rt-thread", "available: ", re(`available: (?P<free>` + n + `$`), "4.1", "", "components/finsh/msh.c, free", (*state).heapPart},
	{"rt-thread", "total memory: ", re(`total memory: (?P<size>` + n + `$`), "1.0", "4.0", "src/mem.c, list_mem", (*state).heapPart},
	{"rt-thread", "used memory : ", re(`used memory : (?P<used>` + n + `$`), "1.0", "4.0", "src/mem.c, list_mem", (*state).heapPart},
	{"rt-thread", "imum allocated ", re(`maximum allocated memory: (?P<peak>` + n + `$`), "1.0", "4.0", "src/mem.c, list_mem", (*state).heapPart},
	{"zephyr", "free:           ", re(`free:           (?P<free>` + n + `$`), "3.1", "", "subsys/shell, kernel heap", (*state).heapPart},
	{"zephyr", "allocated:      ", re(`allocated:      (?P<used>` + n + `$`), "3.1", "", "subsys/shell, kernel heap", (*state).heapPart},
	{"zephyr", "max. allocated: ", re(`max\. allocated: (?P<peak>` + n + `$`), "3.1", "", "subsys/shell, kernel heap", (*state).heapPart},
	{"freertos", "xAvailableHeap", re(`xAvailableHeapSpaceInBytes\W+(?P<free>` + n), "10.3", "", "HeapStats_t, by the names of its fields", (*state).heapPart},
	{"freertos", "xSizeOfLargest", re(`xSizeOfLargestFreeBlockInBytes\W+(?P<largest>` + n), "10.3", "", "HeapStats_t, by the names of its fields", (*state).heapPart},
	{"freertos", "xMinimumEverFree", re(`xMinimumEverFreeBytesRemaining\W+(?P<least>` + n), "10.3", "", "HeapStats_t, by the names of its fields", (*state).heapPart},
	{"freertos", "xPortGetFreeHeap", re(`xPortGetFreeHeapSize(?:\(\))?\W{1,24}(?P<free>` + n), "7", "", "programs that print it by its name", (*state).heapPart},
	{"freertos", "xPortGetMinimum", re(`xPortGetMinimumEverFreeHeapSize(?:\(\))?\W{1,24}(?P<least>` + n), "8", "", "programs that print it by its name", (*state).heapPart},
	{"freertos", "Heap: current ", re(`Heap: current (?P<free>` + n + ` lowest (?P<least>` + n), "10.2", "", "FreeRTOS-Plus-TCP, vPrintResourceStats", (*state).heapLine},
	{"linux", "MemFree:", re(`MemFree: +\d+ kB`), "2.6", "", "/proc/meminfo: less than what is available", (*state).heapPart},
	{"linux", "K used, ", re(`Mem: (?P<used_1024>` + n + `K used, (?P<free_1024>` + n + `K free`), "1.0", "", "top of BusyBox, in KiB", (*state).heapLine},
	{"riot", " free)", re(`heap (?P<heap>\d+): 0x.* \((?P<free>` + n + ` of (?P<size>` + n + ` free\)`), "2013", "2015", "cpu/lpc2387", (*state).heapLine},
	{"mbed", "Bytes allocated ", re(`Bytes allocated currently +: (?P<used>` + n), "5.5", "6", "programs that call mbed_stats_heap_get, ARMmbed/mbed-os#13324", (*state).heapPart},
	{"mbed", "Max bytes alloca", re(`Max bytes allocated at a given time +: (?P<peak>` + n), "5.5", "6", "programs that call mbed_stats_heap_get, ARMmbed/mbed-os#13324", (*state).heapPart},
	{"mbed", "llocated for the", re(`Current number of bytes allocated for the heap +: (?P<size>` + n), "5.5", "6", "programs that call mbed_stats_heap_get, ARMmbed/mbed-os#13324", (*state).heapPart},
	{"mbed", "current", re(`(?:^|heap[ _.]+|stats\.)current[_ ]size *[:=] *(?P<used>` + n), "5.2", "6", "fields of mbed_stats_heap_t by name, ARMmbed/mbed-os#3141", (*state).heapPart},
	{"mbed", "reserved", re(`(?:^|heap[ _.]+|stats\.)reserved[_ ]size *[:=] *(?P<size>` + n), "5.2", "6", "fields of mbed_stats_heap_t by name, ARMmbed/mbed-os#3141", (*state).heapPart},
	{"nuttx", "llocated from sy", re(`Total space allocated from system += (?P<size>` + n), "6", "", "mallinfo, as apps/testing/mm prints it", (*state).heapPart},
	{"nuttx", "Largest non-inus", re(`Largest non-inuse chunk += (?P<largest>` + n), "6", "", "mallinfo, as apps/testing/mm prints it", (*state).heapPart},
	{"nuttx", "Total non-inuse ", re(`Total non-inuse space += (?P<free>` + n), "6", "", "mallinfo, as apps/testing/mm prints it", (*state).heapPart},
	{"tizenrt", "largest free siz", re(`largest free size : (?P<largest>` + n), "2", "", "mm_manage_alloc_fail", (*state).heapPart},
	{"tizenrt", "total free size ", re(`total free size   : (?P<free>` + n), "2", "", "mm_manage_alloc_fail", (*state).heapPart},
	{"esp-adf", " Bytes, Inter:", re(`MEM Total:\d+ Bytes, (?P<heap>Inter):(?P<free>` + n + ` Bytes`), "2.0", "", "AUDIO_MEM_SHOW", (*state).heapLine},
	{"esp-hal", ", free: ", re(`(?P<heap>\w+) +\| .*\| Used: .*\(Used (?P<used>` + n + ` of (?P<size>` + n + `, free: (?P<free>` + n + `\)`), "0.4", "", "HeapStats of esp-alloc", (*state).heapLine},
	{"ems-esp", `"freeMem":`, re(`"uptimeSec":(?P<time>` + n + `,.*?"freeMem":(?P<free_1024>` + n + `,"maxAlloc":(?P<largest_1024>` + n), "3.4", "", "api/system, in KiB", (*state).heapLine},
	{"jemalloc", "llocated:", re(`(?P<heap>(?:stats\.a|A)llocated): ?(?P<used>` + n + `,? (?:stats\.)?active: ?\d`), "4.0", "", "malloc_stats_print, and programs that print mallctl's names, jemalloc/jemalloc#757, #1870", (*state).heapLine},
	{"tcmalloc", "MALLOC: ", re(`MALLOC: [ =] +(?P<used>` + n + ` \( *[\d.]+ MiB\) (?P<heap>Bytes in use by application|Actual memory used)`), "2.0", "", "MallocExtension::GetStats of gperftools, #990", (*state).heapLine},
	{"mimalloc", "committed: ", re(`(?P<heap>committed): +(?:[\d.]+ [KMGkmg]?i?[Bb]? +){3}(?P<used>\d[\d.]* [KMGkmg]?i?[Bb]?) +(?:1 [Bb] +)?(?:not all freed!|ok)$`), "1.6", "2", "mi_stats_print, microsoft/mimalloc#440, #770", (*state).heapLine},
	{"mimalloc", "process: user: ", re(`process: user: .*, rss: `), "1.6", "", "mi_stats_print: the peak", nil},
	{"glibc", "Arena ", re(`^(?P<heap>Arena \d+):$`), "2.0", "", "malloc_stats, giampaolo/psutil#1275", (*state).heapPart},
	{"glibc", "Total (incl.", re(`^(?P<heap>Total) \(incl\. mmap\):$`), "2.0", "", "malloc_stats, giampaolo/psutil#1275", (*state).heapPart},
	{"glibc", "in use bytes", re(`^in use bytes +=\s+(?P<used>` + n + `$`), "2.0", "", "malloc_stats, giampaolo/psutil#1275", (*state).heapPart},
	{"go", "# Heap", re(`^# (?P<heap>HeapAlloc|HeapInuse) = (?P<used>` + n + `$`), "1.4", "", "/debug/pprof/heap?debug=1", (*state).heapLine},
	{"psutil", "mem(rss=", re(`\bp(?:full)?mem\((?P<heap>rss)=(?P<used>` + n + `, vms=`), "0.1", "", "Process.memory_info(), giampaolo/psutil#1275", (*state).heapLine},
	{"node", "rss: ", re(`^(?P<heap>rss): (?P<used>` + n + `,$`), "0.1", "", "process.memoryUsage(), as console.log prints it", (*state).heapLine},
	{"esphome", "Sending state", re(`'[^']*\b(?i:free|available)\b[^']*': Sending state (?P<free>` + n + `\.\d+ B `), "1.15", "", "sensors of the component debug", (*state).heapPart},
	{"esphome", "Sending state", re(`'[^']*\b(?i:block|largest)\b[^']*': Sending state (?P<largest>` + n + `\.\d+ B `), "1.15", "", "sensors of the component debug", (*state).heapPart},
}

const psram = "PSRAM"

// Indexes of the values of a heap line.
const (
	valueSize = iota
	valueFree
	valueLargest
	valueLeast
	valueUsed
	valuePeak
	valueTime // µs
	values
)

var valueNames = [values]string{"size", "free", "largest", "least", "used", "peak", "time"}

// stats is what lines have said of a heap so far.
type stats struct {
	name  string
	v     [values]int64 // -1 if not known
	named bool          // the line has a place for a name
	heap  bool          // the line says "heap": it is not one of PSRAM
	own   bool          // a program's own print statement
	any   bool
	point string // where a program's own line is printed, as its words say

	label  string // the words of what is used, if a program's own line says it surely
	unsure bool   // it does not
	alone  bool   // what is used is not of the heap of another line
}

// take takes what a program's own line says of a value.
func (x *stats) take(o *stats, value int) {
	switch value {
	case valueFree:
		x.point = o.point
	case valueUsed:
		x.label, x.unsure, x.alone = o.label, o.unsure, o.alone
	}
}

// counts is the state of lines that have a value of a heap each.
type counts struct {
	stats
	before     stats       // what the lines before the current one said, if it was not written
	others     int         // lines without a value since
	reported   bool        // this line has all values of a heap
	points     []string    // of reports so far
	candidates []candidate // of lines that may say what is free
	considered int         // lines
}

// newStats returns stats without a value.
func newStats() stats { return stats{v: [values]int64{-1, -1, -1, -1, -1, -1, -1}} }

// stats returns what a line says.
func (m match) stats() stats {
	x := newStats()
	x.own = m.system == Own
	for i, group := range m.expr.SubexpNames() {
		name, unit, _ := strings.Cut(group, "_")
		if name == "min" {
			name = "least"
		}
		x.named = x.named || name == "heap"
		at := m.groups[2*i : 2*i+2]
		if group == "" || at[0] < 0 {
			continue
		}
		text := m.line[at[0]:at[1]]
		if name == "heap" {
			x.name = heapName(string(text))
			continue
		}
		k := slices.Index(valueNames[:], name)
		if k < 0 {
			continue
		}
		factor, _ := strconv.ParseFloat(unit, 64)
		if k == valueTime {
			factor = max(factor, 1) * 1e6
		}
		if x.v[k] = parseAmount(text, max(factor, 1), m.line[at[1]:]); x.v[k] >= 0 {
			x.any = true
		}
	}
	return x
}

// parseAmount reads a number with a unit: -1 if it is none, a percentage, or the beginning of something else.
func parseAmount(text []byte, factor float64, rest []byte) int64 {
	if len(rest) > 0 && (rest[0] == '%' || rest[0] == 'x' || rest[0] == 'X' || rest[0] >= '0' && rest[0] <= '9') || bytes.HasPrefix(rest, []byte(" %")) {
		return -1
	}
	if hex, ok := bytes.CutPrefix(bytes.ToLower(text), []byte("0x")); ok {
		if v, err := strconv.ParseUint(string(hex), 16, 52); err == nil {
			return int64(v)
		}
	}
	s := strings.ReplaceAll(string(text), ",", "")
	digits := strings.TrimRight(s, " KMGkmgiBb")
	switch unit := strings.TrimSpace(s[len(digits):]); {
	case unit == "":
	case unit[0] == 'K' || unit[0] == 'k':
		factor *= 1 << 10
	case unit[0] == 'M' || unit[0] == 'm':
		factor *= 1 << 20
	case unit[0] == 'G' || unit[0] == 'g':
		factor *= 1 << 30
	}
	v, err := strconv.ParseFloat(digits, 64)
	if v *= factor; err != nil || !(v >= 0 && v < 1<<53) {
		return -1
	}
	return int64(math.Round(v))
}

// heapLine reads a line with all values of a heap.
func (s *state) heapLine(m match) {
	x := m.stats()
	if s.reported || !x.any {
		return
	}
	s.stats = s.before // without what parts of this line said
	s.flushStats()
	s.stats, s.reported, s.lastPart = x, true, len(s.out)
	s.flushStats()
}

// pythonFree takes a command, of which the answer is the next line.
func (s *state) pythonFree(match) {
	s.flush()
	s.inside = func(text []byte) {
		s.inside = nil
		x := newStats()
		if x.v[valueFree] = parseAmount(text, 1, nil); x.v[valueFree] >= 0 {
			x.any = true
			s.add(x)
			s.flushStats()
		}
	}
}

// maxOthers is the number of lines of other tasks between the values of a heap.
const maxOthers = 4

// heapPart reads a line with one value of a heap, of several lines.
func (s *state) heapPart(m match) {
	if x := m.stats(); !s.reported && (x.any || x.name != "") {
		s.add(x)
	}
}

// add adds values to those of the lines before, if they may be of the same report.
func (s *state) add(x stats) {
	if x.own && x.v[valueFree] < 0 && s.stats.any && !s.stats.own { // in the report of a system
		return
	}
	again := s.stats.alone || x.alone || (x.named || x.heap && s.stats.name == psram) && s.stats.any && x.name != s.stats.name || !x.any || s.stats.any && x.own != s.stats.own
	for i, v := range x.v {
		again = again || v >= 0 && s.stats.any && s.stats.v[i] >= 0
	}
	if again || !s.stats.any && s.stats.name == "" {
		s.flushStats()
		s.stats = x
	} else {
		for i, v := range x.v {
			if v >= 0 {
				s.stats.v[i], s.stats.any = v, true
				s.stats.take(&x, i)
			}
		}
	}
	s.lastPart, s.parts = len(s.out), true
	if v := &s.stats.v; v[valueFree] >= 0 && v[valueLargest] >= 0 && v[valueLeast] >= 0 {
		s.flushStats()
	}
	s.others = 0
}

// other takes a line that has no value.
func (s *state) other() {
	if s.others++; s.others == maxOthers+1 {
		s.flushStats()
		s.closeEnded()
	}
}

// flushStats writes what is known of a heap, behind the last line that said it: the times of lines
// are those of reports, too.
func (s *state) flushStats() {
	x := &s.stats
	v := &x.v
	if x.any {
		x.complete()
		used := int64(-1) // if nothing is known of what is free
		if v[valueFree] < 0 && !x.unsure {
			used, x.name = v[valueUsed], cmp.Or(x.label, x.name)
		}
		if x.own && (v[valueFree] >= 0 || used >= 0) && !slices.Contains(s.systems, Own) {
			s.systems = append(s.systems, Own)
		}
		end := len(s.out)
		if used >= 0 {
			s.header(codec.Header{Verb: codec.VerbHeap}, []key{{"t", v[valueTime]}, {"used", used}, {ForeignKey, 1}}, "name", x.name)
		}
		s.heapAt(heap{x.name, v[valueSize], v[valueFree], v[valueLargest], v[valueLeast], nil, false}, v[valueTime], s.pointOf(x.point))
		s.moveBack(end)
	}
	*x, s.before, s.parts = stats{}, stats{}, false
}

// complete computes the values that follow from others, and drops those that contradict them.
func (x *stats) complete() {
	v := &x.v
	if v[valueSize] < 0 && v[valueFree] >= 0 && v[valueUsed] >= 0 {
		v[valueSize] = v[valueFree] + v[valueUsed]
	}
	if v[valueFree] < 0 && v[valueUsed] >= 0 && v[valueUsed] <= v[valueSize] {
		v[valueFree] = v[valueSize] - v[valueUsed]
	}
	if v[valueLeast] < 0 && v[valuePeak] >= 0 && v[valuePeak] <= v[valueSize] {
		v[valueLeast] = v[valueSize] - v[valuePeak]
	}
	if !x.own || v[valueFree] < 0 {
		return
	}
	if v[valueSize] <= v[valueFree] {
		v[valueSize] = -1
	}
	for _, i := range []int{valueLargest, valueLeast} {
		if v[i] > v[valueFree] {
			v[i] = -1
		}
	}
}

// CheckHeapLine returns an error if an expression for heap lines lacks what it needs.
func CheckHeapLine(expr *regexp.Regexp) error {
	has := func(name string) bool { return expr.SubexpIndex(name) >= 0 }
	if !has("free") && !has("used") {
		return errors.New("no group free: write (?P<free>\\d+) where the number of free bytes is, or (?P<used>\\d+)")
	}
	for _, name := range expr.SubexpNames() {
		base, _, _ := strings.Cut(name, "_")
		if name != "" && !strings.Contains(" free largest min size used heap time ", " "+base+" ") {
			return fmt.Errorf("group %q, expected free, largest, min, size, used, heap or time", name)
		}
	}
	return nil
}

package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// heapForms are the lines in which systems, and people's own print statements, say how much of a
// heap is free. Their groups are size, free, largest, least, used, peak (the most that was ever
// used), heap (which of several; of, if it is that of the lines before where there is no name) and
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
	{"esphome", "Sending state", re(`'[^']*\b(?i:free|available)\b[^']*': Sending state (?P<free>` + n + `\.\d+ B `), "1.15", "", "sensors of the component debug", (*state).heapPart},
	{"esphome", "Sending state", re(`'[^']*\b(?i:block|largest)\b[^']*': Sending state (?P<largest>` + n + `\.\d+ B `), "1.15", "", "sensors of the component debug", (*state).heapPart},

	// The words that people use. "Free heap: 41232", "free=41232 largestBlock=31744"
	{Own, "argest|iggest|ax alloc|ax Alloc|axAlloc|ax block|ax Block|axBlock|ax_block", re(`(?i)\b(?:(?P<heap_>` + heapNames + `)(?:[ _]|: ?))?(?:free|heap)\b[ _]?(?P<heap>` + heapNames + `)?\D{0,12}(?P<free>` + amount + `\D{1,24}(?:biggest|largest|max[ _]?(?:alloc|block))\D{1,20}(?P<largest>` + amount), "", "", "programs for ESP32, espressif/esp-matter#436", (*state).heapLine},
	{Own, "frag|Frag|FRAG", re(`(?i)\b(?:free|heap)\W{1,4}(?P<free>` + amount + `(?: ?b(?:ytes)?\b)?\W{1,4}(?:heap )?frag\w*\W{1,4}\d{1,3}(?:\.\d{1,2})? ?%(?:\W{1,4}(?:max|largest|biggest)(?:[ _]?(?:free|alloc|block))*\W{1,4}(?P<largest>` + amount + `)?`), "", "", "programs for ESP8266", (*state).heapLine},
	{Own, "frag|Frag|FRAG", re(`(?i)\b(?:free|heap)\W{1,4}(?P<free>` + amount + `\W{1,4}max(?:[ _]?(?:free|alloc|block))*\W{1,4}(?P<largest>` + amount + `\W{1,4}frag`), "", "", "ESP.getHeapStats in the documentation of ESP8266", (*state).heapLine},
	{Own, " min|,min|(min| Min|(Min", re(`(?i)\bheap\b\W{1,3}(?P<free>` + amount + `(?: ?b(?:ytes)?\b)?\W{1,3}min(?:imum)?(?: ever)?\W{1,4}(?P<least>` + amount + `(?:(?: ?b(?:ytes)?\b)?\W{1,4}(?:largest|max)\D{1,12}(?P<largest>` + amount + `)?`), "", "", "programs for ESP32", (*state).heapLine},
	{Own, " Bytes, Inter:", re(`MEM Total:\d+ Bytes, (?P<heap>Inter):(?P<free>` + n + ` Bytes`), "", "", "AUDIO_MEM_SHOW of ESP-ADF", (*state).heapLine},
	{Own, "in free|in Free|in_free|inFree|mum_free|mum free|mum Free|ver free|in heap|in Heap", re(`(?i)(?:\b|_|get)min(?:imum)?[ _]?(?:ever[ _]?)?(?:free|(?P<of>heap))(?:[ _]?(?:(?P<of_>heap|` + heapNames + `)|mem(?:ory)?|ever|size|space|bytes))*\W{1,16}(?P<least>` + amount), "", "", "ESP.getMinFreeHeap, hello_world of ESP-IDF", (*state).heapPart},
	{Own, "ree heap|ree Heap|reeHeap|ree_heap|REE HEAP|ree mem|ree Mem|ree psram|ree PSRAM|reePsram|ree SPIRAM|ree internal|ree RAM|ree ram|ree SRAM|ree sram|ree DRAM|ree DMA|otal free bytes|otal_free_bytes|vailable heap|vailable Heap|vailable mem|vailable Mem|emaining heap|emaining Heap", re(`(?i)(?:\b|_|get)(?:(?P<heap_>` + heapNames + `) |total[ _])?(?:free|available|remaining)[ _]?(?:heap|bytes|s?ram|mem(?:ory)?|(?P<heap>` + heapNames + `))(?:[ _]?(?:size|space|ram|heap|mem(?:ory)?))?(?: is)?\W{1,16}(?P<free>` + amount), "", "", "ESP.getFreeHeap, examples of ESP-IDF, debug of ESPHome", (*state).heapPart},
	{Own, "l free|m free|a free|L free|M free|A free|l: free|m: free|a: free|L: free|M: free|A: free|l: Free|m: Free|a: Free|L: Free|M: Free|A: Free|l_free|m_free|a_free|L_free|M_free|A_free|l Free|m Free|a Free|L Free|M Free|A Free|l_Free|m_Free|a_Free|L_Free|M_Free|A_Free", re(`(?i)(?:\b|_)(?P<heap>` + heapNames + `)(?:[ _]|: )free\W{1,16}(?P<free>` + amount), "", "", "heap_caps_get_free_size", (*state).heapPart},
	{Own, "get_free_size(", re(`heap_caps_get_free_size\((?:MALLOC_CAP_(?P<heap>\w+))?\)\W{1,16}(?P<free>` + amount), "", "", "programs that print it by its name", (*state).heapPart},
	{Own, "rgest_free_block(", re(`heap_caps_get_largest_free_block\((?:MALLOC_CAP_(?P<heap>\w+))?\)\W{1,16}(?P<largest>` + amount), "", "", "programs that print it by its name", (*state).heapPart},
	{Own, "tes free|tes avail|tes left|tes rem|B free|B avail|B left|0 free|1 free|2 free|3 free|4 free|5 free|6 free|7 free|8 free|9 free", re(`(?i)\b(?:heap|mem(?:ory)?|s?ram|(?P<heap>` + heapNames + `))\b\W{1,5}(?:(?:has|is|now|still)\W)?(?P<free>` + amount + `(?: ?b(?:ytes)?)? (?:free|available|left|remaining)(?:\s*$|[,;.|)/\]])`), "", "", "programs that print the number first", (*state).heapPart},
	{Own, "tes of |tes free |tes heap |tes mem|tes RAM |B of |B free |B heap |B RAM ", re(`(?i)(?:^|[^\w.,])(?P<free>` + amount + `(?: ?b(?:ytes)?)? (?:of )?(?:free (?:heap|mem(?:ory)?|ram)|(?:heap|mem(?:ory)?|ram) (?:is |are )?(?:free|available|left|remaining))(?:\s*$|[,;.|)/\]])`), "", "", "programs that print the number first", (*state).heapPart},
	{Own, "eap free|eap Free|eap_free|em_free|em free|em Free|eap: free|eap: Free|em: free|em: Free|ory free|ory Free|ory: free|ory: Free", re(`(?i)\b(?:heap|mem(?:ory)?)(?:[ _]|: )free(?:\(\))?\W{1,16}(?P<free>` + amount), "", "", "ESP.getFreeHeap", (*state).heapPart},
	{Own, "argest|iggest|ax alloc|ax Alloc|axAlloc|ax block|ax Block|axBlock|ax_block|ax Free B|ax free b|axFreeB|ax_free_b|imum heap bl", re(`(?i)(?:largest|biggest|max(?:imum)?)[ _]?(?:(?:free|alloc(?:atable)?|heap|contiguous)[ _]?)*(?:block|heap|chunk|alloc)?(?:[ _]?size)?\W{1,16}(?P<largest>` + amount), "", "", "ESP.getMaxAllocHeap", (*state).heapPart},
	{Own, "otal heap|otal Heap|otal PSRAM|otal psram|otal mem", re(`(?i)\b(?:(?P<heap_>` + heapNames + `) )?total (?:heap|mem(?:ory)?|(?P<heap>psram))(?: size)?\W{1,16}(?P<size>` + amount), "", "", "ESP.getHeapSize, ESP.getPsramSize", (*state).heapPart},
}

// Own is the system of lines that programs print themselves. They count only where no other form does.
const Own = "print"

const (
	amount    = `(?:\d{1,3}(?:,\d{3})+|\d{1,15}(?:\.\d{1,9})?)(?: ?[KMkm](?:i?[Bb])?\b)?)` // bytes or a larger unit, and the end of its group
	heapNames = `internal|psram|spiram|dram|iram|dma|default`
	psram     = "PSRAM"
)

var (
	anyName = re(`(?i)\b(?:` + heapNames + `)\b`)
	// nameBefore is the name of a heap before its values. "PSRAM: ", "internal_", "[internal] total 320000, "
	nameBefore = re(`(?i)\b(` + heapNames + `)(?:[ _]|(?: (?:heap|ram|mem(?:ory)?))?(?: ?[:=-]|[\])]:?) *(?:[a-z]+[ :=]{1,3}\d+(?: ?[kmib]+)?[,;]? *){0,2})$`)
)

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
}

// counts is the state of lines that have a value of a heap each.
type counts struct {
	stats
	before   stats // what the lines before the current one said, if it was not written
	others   int   // lines without a value since
	reported bool  // this line has all values of a heap
	found    []part
}

// part is what an expression for programs' own lines found in the current line.
type part struct {
	stats
	match
	whole bool // the expression has all values of a heap
}

// newStats returns what a line says.
func newStats(m match) stats {
	x := stats{v: [values]int64{-1, -1, -1, -1, -1, -1, -1}, own: m.system == Own}
	for i, group := range m.expr.SubexpNames() {
		name, unit, _ := strings.Cut(group, "_")
		if name == "min" {
			name = "least"
		}
		if group == "" {
			continue
		}
		x.named = x.named || name == "heap"
		at := m.groups[2*i : 2*i+2]
		if at[0] < 0 {
			continue
		}
		text := m.line[at[0]:at[1]]
		if name == "of" && strings.EqualFold(string(text), "heap") {
			x.heap = x.name == ""
			continue
		}
		if name == "heap" || name == "of" {
			x.name, x.named, x.heap = heapName(string(text)), true, false
			continue
		}
		for k, known := range valueNames {
			if name != known {
				continue
			}
			factor, _ := strconv.ParseFloat(unit, 64)
			if k == valueTime {
				factor = 1e6
			}
			if x.v[k] = parseAmount(text, max(factor, 1), m.line[at[1]:]); x.v[k] >= 0 {
				x.any = true
			}
		}
	}
	return x
}

// heapName returns the name of a heap of ESP-IDF as capabilities have it, and other names as they are.
func heapName(text string) string {
	switch name := strings.ToLower(strings.TrimSpace(text)); name {
	case "psram", "spiram":
		return psram
	case "internal", "inter":
		return "internal"
	case "dma":
		return "DMA"
	}
	return strings.TrimSpace(text)
}

// parseAmount reads a number with a unit: -1 if it is none, a percentage, or the beginning of something else.
func parseAmount(text []byte, factor float64, rest []byte) int64 {
	if len(rest) > 0 && (rest[0] == '%' || rest[0] == 'x' || rest[0] == 'X' || rest[0] >= '0' && rest[0] <= '9') || bytes.HasPrefix(rest, []byte(" %")) {
		return -1
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
	x := newStats(m)
	switch {
	case s.reported || !x.any || after(m, least...) || otherHeap(m):
	case m.system == Own:
		s.found = append(s.found, part{x, m, true})
	default:
		s.stats = s.before // without what parts of this line said
		s.flushStats()
		s.stats, s.reported, s.lastPart = x, true, len(s.out)
		s.flushStats()
	}
}

// otherHeap reports whether the free memory and the largest block of a program's own line are those
// of different heaps: a name stands between them.
func otherHeap(m match) bool {
	free, largest := 2*m.expr.SubexpIndex("free"), 2*m.expr.SubexpIndex("largest")
	return m.system == Own && m.key != "" && free >= 0 && largest >= 0 && m.groups[largest] > m.groups[free] &&
		anyName.Match(m.line[m.groups[free+1]:m.groups[largest]])
}

// least are the words after which free memory is the least that there ever was.
var least = []string{"min", "minimum", "ever", "lowest"}

// notHeaps are memories that are no heap, and may have free bytes.
var notHeaps = []string{"stack", "flash", "rtc", "video", "card", "disk", "swap"}

// after reports whether the words before a match of a program's own line end with one of some words.
func after(m match, words ...string) bool {
	before := strings.ToLower(string(bytes.TrimRight(m.line[:m.groups[0]], " _")))
	return m.system == Own && slices.ContainsFunc(words, func(word string) bool { return strings.HasSuffix(before, word) })
}

// maxOthers is the number of lines of other tasks between the values of a heap.
const maxOthers = 4

// heapPart reads a line with one value of a heap, of several lines.
func (s *state) heapPart(m match) {
	x := newStats(m)
	if s.reported || !x.any && x.name == "" || x.v[valueFree] >= 0 && after(m, least...) || after(m, notHeaps...) {
		return
	}
	if m.system == Own {
		s.found = append(s.found, part{x, m, false})
		return
	}
	s.add(x)
}

// add adds values to those of the lines before, if they may be of the same report.
func (s *state) add(x stats) {
	again := (x.named || x.heap && s.stats.name == psram) && s.stats.any && x.name != s.stats.name || !x.any
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
		if v[valueSize] < 0 && v[valueFree] >= 0 && v[valueUsed] >= 0 {
			v[valueSize] = v[valueFree] + v[valueUsed]
		}
		if v[valueFree] < 0 && v[valueUsed] >= 0 && v[valueUsed] <= v[valueSize] {
			v[valueFree] = v[valueSize] - v[valueUsed]
		}
		if v[valueLeast] < 0 && v[valuePeak] >= 0 && v[valuePeak] <= v[valueSize] {
			v[valueLeast] = v[valueSize] - v[valuePeak]
		}
		if x.own && v[valueFree] >= 0 && !slices.Contains(s.systems, Own) {
			s.systems = append(s.systems, Own)
		}
		end := len(s.out)
		s.heapAt(heap{x.name, v[valueSize], v[valueFree], v[valueLargest], v[valueLeast], nil, false}, v[valueTime])
		s.moveBack(end)
	}
	*x, s.before, s.parts = stats{}, stats{}, false
}

// CheckHeapLine returns an error if an expression for heap lines lacks what it needs.
func CheckHeapLine(expr *regexp.Regexp) error {
	has := func(name string) bool { return expr.SubexpIndex(name) >= 0 }
	if !has("free") && !(has("used") && has("size")) {
		return errors.New("no group free: write (?P<free>\\d+) where the number of free bytes is")
	}
	for _, name := range expr.SubexpNames() {
		base, _, _ := strings.Cut(name, "_")
		if name != "" && !strings.Contains(" free largest min size used heap time ", " "+base+" ") {
			return fmt.Errorf("group %q, expected free, largest, min, size, used, heap or time", name)
		}
	}
	return nil
}

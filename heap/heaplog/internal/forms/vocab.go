package forms

import (
	"slices"
	"strings"
	"unicode"
)

// What is known of words, units and columns, as data. Only the tables of this package name systems.

// Quantity is what a number counts.
type Quantity string

// Quantities. A number of bytes that has none of them is no sample.
const (
	Free    Quantity = "free"
	Used    Quantity = "used"
	Largest Quantity = "largest" // free block
	Least   Quantity = "least"   // that was free so far
	Peak    Quantity = "peak"    // that was used so far
	Total   Quantity = "total"
	Limit   Quantity = "limit" // of what may be used

	uptime  Quantity = "uptime" // a clock inside the line
	ident   Quantity = "ident"  // the number is a name
	unknown Quantity = "?"      // memory, but which quantity is not said
	none    Quantity = ""       // class.why says why
)

// level reports whether the quantity is one of a heap.
func (q Quantity) level() bool { return q != none && q != ident && q != uptime }

// word is a row of the vocabulary.
type word struct {
	need, also, not string
	q               Quantity
	why             string
}

// vocabulary has the quantity of a label: that of the first row of which a word of need, one of also
// if there are any, and none of not are in the label.
var vocabulary = []word{
	{need: "pid tid tgid id uid", q: ident},
	{need: "% pct percent percentage", q: none, why: "percent, not bytes"},
	{need: "uptime runtime up_time", q: uptime},
	{need: "ts time timestamp epoch millis localtime unixtime", not: "free used heap", q: uptime},
	{need: "ms us", not: "bytes", q: none, why: "a time"},
	{need: "uordblks", q: Used},
	{need: "fordblks", q: Free},
	{need: "fastbins usmblks keepcost", q: none, why: "a part of what is free, or of the past"},
	{need: "len length", q: none, why: "a length"},
	{need: "gc", also: "size", q: Used},
	{need: "file line", also: "line", q: none, why: "a line number"},
	{need: "addr address ptr pointer lfree pc sp", q: none, why: "an address"},
	{need: "active inactive mapped dirty writeback vmalloc commit committed slab reclaimable", not: "heap", q: none, why: "not what is free or used"},
	{need: "swap swapfree swaptotal swpd swp", q: none, why: "swap"},
	{need: "virtual vsz virt vmsize", not: "max", q: none, why: "address space, not memory"},
	{need: "gain loss delta diff difference change changed leaked growth", q: none, why: "a difference, not a level"},
	{need: "frag fragmentation fragmented", q: none, why: "fragmentation"},
	{need: "below threshold above need needs needed required requested request requires minimum_required allocating failed fail fails reserve warn", q: none, why: "a threshold or a request"},
	{need: "rate sec persec", q: none, why: "a rate"},
	{need: "context", also: "memory", q: unknown, why: "memory, but free or used is not said"}, // of PostgreSQL
	{need: "gpu vram uart fifo socket sndbuf rcvbuf outbox mailbox card sd flash eeprom disk hdd fs filesystem littlefs spiffs sketch nvs partition stack queue rssi cpu icache shared buff cache buffers slab", q: none, why: "not the heap"},
	{need: "quota database db backup journal journals download upload uploaded received transferred copied sent traffic storage drive volume archive thread threads session sessions connection connections", not: "heap mem memory ram rss psram sram dram", q: none, why: "not the heap"},
	{need: "data", also: "used plan", not: "heap mem memory ram rss segment", q: none, why: "not the heap"},
	{need: "total", also: "allocations frees allocs", q: none, why: "a count"},
	{need: "human", q: none, why: "the same, rounded"},
	{need: "overhead", q: none, why: "overhead"},
	{need: "init initial initially", q: none, why: "the size at the beginning"},
	{need: "average", also: "resident", q: none, why: "an average"},
	{need: "sz", also: "blk free", q: none, why: "in blocks, whose size is not said"},
	{need: "largest biggest maxblock maxfree maxfreeblock maxalloc lfb maxblk", q: Largest},
	{need: "max maximum", also: "block free alloc contiguous chunk allocatable", not: "used ever", q: Largest},
	{need: "count counts cnt num number nused nfree nr blocks chunks buckets allocs frees mallocs malloc entries objects records holes threads allocations times requests successful", not: "bytes", q: none, why: "a count"},
	{need: "chunk", q: none, why: "not the heap"},
	{need: "smallest", also: "block", q: none, why: "the smallest block"},
	{need: "min minimum lowest least minfree smallest minheap", q: Least},
	{need: "ever", also: "free", q: Least},
	{need: "never", also: "used allocated", q: Least},
	{need: "peak hwm high maxused maximum maxrss maximum_used", not: "free", q: Peak},
	{need: "max", also: "used usage rss allocated alloced", q: Peak},
	{need: "total", also: "alloc allocated freed", not: "free", q: none, why: "a counter that only rises"},
	{need: "cumulative lifetime", q: none, why: "a counter that only rises"},
	{need: "free avail available kbmemfree kbavail left remaining unused freemem freeheap freeram memfree memavailable freebytes", q: Free},
	{need: "used use inuse kbmemused usage alloc allocated alloced allocatd current rss resident res pss anon live outstanding occupied consumed vmrss", q: Used},
	{need: "working", also: "set", q: Used},
	{need: "limit", q: Limit},
	{need: "max", also: "memory mem heap ram", q: Limit},
	{need: "sys arena", also: "heap mem bytes total", q: none, why: taken},
	{need: "total size capacity len totalheap memtotal", also: "heap mem memory ram bytes total", q: Total},
	{need: "caps capabilities region", q: ident},
	{need: "heap mem memory ram sram dram iram psram", q: unknown, why: "memory, but free or used is not said"},
}

// taken is why a total is no limit.
const taken = "what was taken from the system so far: it grows"

// weakWords say what is free or used only where a word of memory is in the line, and not just a unit: 90000 bytes left may
// be a download.
var weakWords = set("left remaining available avail outstanding current live occupied consumed unused")

// saysMemory reports whether a word of memory is in a line that is no unit.
func saysMemory(line []byte) bool {
	return slices.ContainsFunc(labelWords(string(line)), func(w string) bool { return w != "byte" && w != "bytes" && w != "kb" && isMemory([]byte(w)) })
}

// units are the words behind a number, in its label or in the name of its column, with their bytes. 0:
// a size that the word does not say.
var units = map[string]float64{
	"b": 1, "byte": 1, "bytes": 1, "octets": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "ki": 1 << 10, "kbyte": 1 << 10, "kbytes": 1 << 10,
	"kilobytes": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20, "mi": 1 << 20, "mbytes": 1 << 20, "megabytes": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30, "gi": 1 << 30,
	"word": 0, "words": 0, "page": 0, "pages": 0, "block": 0, "blocks": 0, "unit": 0, "units": 0, "%": 0, "percent": 0, "pct": 0,
	"16":    16, // in the groups of lineForms
	"cells": 0, "clusters": 0, "lines": 0, "sectors": 0, "jsvars": 0, "vars": 0,
}

// noLabelUnits are units only behind a number.
var noLabelUnits = set("block blocks lines vars cells")

// memoryWords: one of them, or a unit, must be in a line for its free and used to be memory.
var memoryWords = strings.Fields("heap mem ram psram sram dram iram spiram rss arena byte kb resident umem kmem mm_ internal uordblks fordblks freeheap freeram freemem usedheap working gc")

// memoryStart marks the first letters of memoryWords.
var memoryStart = func() (t [256]bool) {
	for _, w := range memoryWords {
		t[w[0]] = true
	}
	return t
}()

// processWords say that a number is of a process, and not of a heap.
var processWords = set("rss resident vmrss anon pss working")

// wholeWords are the memoryWords that begin other words.
var wholeWords = set("rss kb ram gc")

// nouns: a number behind one of them is a name.
var nouns = set("node sensor device dev board station client esp host pod shard worker instance core channel")

// nameColumns have names.
var nameColumns = set("pid name command cmd cmdline image container pod namespace device host node id topic comm sensor mac entity_id")

// timeColumns have times with a date.
var timeColumns = set("time date timestamp datetime _time")

// kibColumns: a header with both words counts in KiB where nothing else is said.
var kibColumns = [][2]string{{"RSS", "VSZ"}, {"RES", "VIRT"}, {"VSZ", "STAT"}, {"RSS", "PID"}, {"RES", "PID"}, {"RSS", "COMMAND"}, {"RSS", "CMD"}, {"buff/cache", "available"}, {"swpd", "buff"}, {"kbmemfree", "kbmemused"}, {"buffers", "cached"}, {"Pss", "Dirty"}}

// kibLines have numbers in KiB without saying so.
var kibLines = []string{"Mem total:"} // of toybox top

// lineForms are lines whose words do not say what they are. A group is a quantity, with a unit behind _
// if its text has none, epoch or time. One whose hint is empty counts only below a heading with an address.
var lineForms = []struct{ system, hint, expr string }{
	{"MicroPython", "max free sz: ", `max free sz: (?P<largest_16>\d+)`}, // blocks of 16 bytes
	{"Zephyr", "", `^\d+ +\d+ +\d+ +\d+ +(?P<largest>\d+)$`},             // buckets
	{"EMS-ESP", `"freeMem":`, `"uptimeSec":(?P<time>\d+),.*?"freeMem":(?P<free_KiB>\d+),"maxAlloc":(?P<largest_KiB>\d+)`},
	{"Tasmota", `"Heap":`, `"UptimeSec":(?P<time>\d+),"Heap":(?P<free_KiB>\d+),"Sleep`},
	{"Tasmota", `"Heap":`, `"Heap":(?P<free_KiB>\d+),"ProgramFlashSize"`},
	{"FreeRTOS-Plus-TCP", "Heap: current ", `Heap: current (?P<free>\d+) lowest (?P<min>\d+)`},
	{"ESP-ADF", " Bytes, Inter:", `MEM Total:\d+ Bytes, Inter:(?P<free>\d+) Bytes`},
	{"gperftools", "MALLOC: ", `MALLOC: +(?P<used>\d+) \( *[\d.]+ MiB\) Bytes in use by application`},
	{"mimalloc", "committed: ", `committed: +(?:[\d.]+ [KMGkmg]?i?[Bb]? +){3}(?P<used>\d[\d.]* [KMGkmg]?i?[Bb]?) +(?:1 [Bb] +)?(?:not all freed!|ok)$`},
	{"TizenRT", "largest free siz", `largest free size : (?P<largest>\d+)`},
	{"TizenRT", "total free size ", `total free size   : (?P<free>\d+)`},
	{"RT-Thread", "total    : ", `^total    : (?P<size>\d+)$`},
	{"RT-Thread", "used     : ", `^used     : (?P<used>\d+)$`},
	{"RT-Thread", "available: ", `^available: (?P<free>\d+)$`},
	{"NuttX", "llocated from sy", `Total space allocated from system += (?P<size>\d+)`},
	{"NuttX", "Largest non-inus", `Largest non-inuse chunk += (?P<largest>\d+)`},
	{"NuttX", "Total non-inuse ", `Total non-inuse space += (?P<free>\d+)`},
	{"Zephyr", "free:           ", `^free:           (?P<free>\d+)$`},
	{"Zephyr", "allocated:      ", `^allocated:      (?P<used>\d+)$`},
	{"mprof", "MEM ", `^MEM (?P<used_MiB>[\d.]+) (?P<epoch>\d{9,}\.?\d*)$`},
	{"systemctl", "Memory: ", `^Memory: (?P<used>[\d.]+[BKMGT])(?: \(|$)`},
	{"Espruino", `"blocksize": `, `"free": (?P<free_blocks>\d+), "usage": (?P<used_blocks>\d+)`},
	{"Android", "% free, ", `% free, (?P<used>\d+[KMG]?B)/\d+[KMG]?B, paused`},
	{"Mbed", "allocated for th", `bytes allocated for the heap *: (?P<size>\d+)`},
	{"Xen", "free_memory ", `^free_memory +: (?P<free_MiB>\d+)$`},
	{"Cisco IOS", "Pool Total:", `(?P<heap>\S+) Pool Total: +(?P<size>\d+) Used: +(?P<used>\d+) Free: +(?P<free>\d+)`},
	{"Klipper", "sysload=", `memavail=(?P<free_KiB>\d+)`},
	{"the JVM", "->", `(?:Pause|GC)\b.* \d+[KMG]->(?P<used>\d+[KMG])\((?P<limit>\d+[KMG])\)`},
}

// banners are texts that devices print when they boot.
var banners = []string{
	"*** Booting ",              // Zephyr, Zephyr's MCUboot
	"Booting Zephyr",            //
	"rst:0x",                    // ESP32's boot ROM
	"ets Ju",                    //
	"ets Jan",                   // ESP8266's
	"rst cause:",                //
	"MPY: soft reboot",          // MicroPython
	"Linux version ",            //
	"Booting Linux on physical", //
	"NuttShell (NSH)",           // NuttX
	"U-Boot 2",                  // U-Boot 2024.01
	"OpenWrt SDK boot",          //
}

// bannerStart marks the first bytes of all banners.
var bannerStart = func() (t [256]bool) {
	for _, b := range banners {
		t[b[0]] = true
	}
	return t
}()

// IsBanner reports whether a line is a boot banner.
func IsBanner(line []byte) bool {
	for i, c := range line {
		if !bannerStart[c] {
			continue
		}
		for _, b := range banners {
			if len(line)-i >= len(b) && string(line[i:i+len(b)]) == b {
				return true
			}
		}
	}
	return false
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// rows has, for each row of the vocabulary, its words as a set of bits: need, also, not.
var rows = func() (list []map[string]uint8) {
	for _, v := range vocabulary {
		m := map[string]uint8{}
		for k, words := range []string{v.need, v.also, v.not} {
			for _, w := range strings.Fields(words) {
				m[w] |= 1 << k
			}
		}
		list = append(list, m)
	}
	return list
}()

// class is what the words of a label say of its number.
type class struct {
	q    Quantity
	why  string // no sample
	unit string
	hit  bool // the words are known
	weak bool // they are weakWords only
}

// maxLabelWords is the number of words next to a number that are its label.
const maxLabelWords = 8

func classOf(label string) *class {
	w := labelWords(label)
	w = w[max(0, len(w)-maxLabelWords):]
	c := &class{}
	for _, x := range w {
		if _, ok := units[x]; ok && len(x) > 1 && !noLabelUnits[x] {
			c.unit = x
		}
	}
	if strings.Contains(label, "(B)") {
		c.unit = "b"
	}
	n := len(w)
	switch {
	case isSourceFile(label):
		c.hit, c.why = true, "a line number"
		return c
	case strings.Contains(label, "heapTotal"), strings.Contains(label, "totalJSHeap"):
		c.hit, c.why = true, taken
		return c
	case n > 0 && nouns[w[n-1]]:
		c.hit, c.q = true, ident
		return c
	case n > 2 && w[n-1] == "total" && (w[n-2] == "bytes" || w[n-2] == "seconds"): // as Prometheus names counters
		c.hit, c.why = true, "a counter that only rises"
		return c
	}
	for k, row := range rows {
		var got uint8
		for _, x := range w {
			got |= row[x]
		}
		if v := &vocabulary[k]; got&1 != 0 && (v.also == "" || got&2 != 0) && got&4 == 0 {
			c.hit, c.q, c.why = true, v.q, v.why
			c.weak = v.q.level() && !slices.ContainsFunc(w, func(x string) bool { return row[x]&1 != 0 && !weakWords[x] })
			return c
		}
	}
	return c
}

// isSourceFile reports whether a label ends with the name of a source file and a colon: x.c:259.
func isSourceFile(label string) bool {
	i := strings.LastIndexByte(label, '.')
	return i > 0 && strings.HasSuffix(label, ":") && i+5 > len(strings.TrimRight(label, ": (")) && isLetter(label[i+1])
}

// labelWords returns the words of a label in small letters: freeHeapSize has three, ESPFree two.
func labelWords(label string) (words []string) {
	rs, from := []rune(label), -1
	end := func(i int) {
		if from >= 0 {
			words = append(words, strings.ToLower(string(rs[from:i])))
		}
		from = -1
	}
	for i, c := range rs {
		switch {
		case c == '%':
			end(i)
			words = append(words, "%")
		case !unicode.IsLetter(c):
			end(i)
		case from < 0:
			from = i
		case unicode.IsUpper(c) && (unicode.IsLower(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1]) && i-from > 1):
			end(i)
			from = i
		}
	}
	end(len(rs))
	return words
}

// isMemory reports whether a word of memory is in a text.
func isMemory(text []byte) bool {
	for i := range text {
		if !memoryStart[text[i]|0x20] || i > 0 && isLetter(text[i-1]) && !isUpper(text[i]) && text[i-1] != '_' {
			continue
		}
		for _, w := range memoryWords {
			if len(text)-i >= len(w) && foldEqual(text[i:i+len(w)], w) && !(wholeWords[w] && continues(text[i+len(w):])) {
				return true
			}
		}
	}
	return false
}

func continues(text []byte) bool { return len(text) > 0 && text[0] >= 'a' && text[0] <= 'z' }

// foldEqual reports whether a text of the length of a word of small letters is that word.
func foldEqual(text []byte, word string) bool {
	for i := range word {
		if text[i] != word[i] && (text[i]|0x20 != word[i] || text[i] >= 'a') {
			return false
		}
	}
	return true
}

func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func hasLetter(text []byte) bool {
	for _, c := range text {
		if isLetter(c) {
			return true
		}
	}
	return false
}

func allDigits(text []byte) bool {
	for _, c := range text {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

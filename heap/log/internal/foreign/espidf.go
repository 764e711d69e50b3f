package foreign

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// The texts of ESP-IDF, from its sources: heap_trace_dump and heap_trace_dump_caps of
// components/heap/heap_trace_standalone.c (v3.0 to v5.5), heap_caps_dump of multi_heap.c
// (v4.4 to v5.5), heap_caps_print_heap_info of heap_caps.c (v3.0 to v5.5), and the first
// line of the bootloader in ROM.
var espSigns = []string{"== Heap Trace:", "allocations trace (", "Showing data for heap:", "Heap summary for capabilities"}

var (
	espRecord = regexp.MustCompile(`(\d+) bytes \(@ (0x[0-9a-fA-F]+)[^)]*\) allocated CPU (\d+)(?: ccount (0x[0-9a-fA-F]+))?(.*)`)
	espSum    = regexp.MustCompile(`(\d+) bytes (?:'leaked'|alive) in trace \((\d+)(?:/\d+)? allocations\)`)
	espBlock  = regexp.MustCompile(`Block (0x[0-9a-fA-F]+) data, size: (\d+) bytes, Free: (Yes|No)`)
	espCaps   = regexp.MustCompile(`capabilities 0x([0-9a-fA-F]+)`)
	espTotals = regexp.MustCompile(`free (\d+) allocated (\d+) min_free (\d+) largest_free_block (\d+)`)
	espName   = regexp.MustCompile(`^\s*$|0x[0-9a-fA-F]+: |\(inlined by\)`)
	espBoot   = regexp.MustCompile(`\brst:0x[0-9a-fA-F]+ \(`)
)

// esp reads the traces of ESP-IDF.
//
// A record of an allocation may be followed by "freed by" on a line of its own, with lines
// of names by idf_monitor and of other tasks between them: it counts only when something else comes.
type esp struct {
	*trace
	others int      // lines of other tasks behind the held record
	caps   string   // names the heap of the summary so far
	totals int      // lines that may follow "Totals:" before the values
	heaps  []string // that the open dump of heap_caps_dump shows
}

func newESP(t *trace) lineReader { return &esp{trace: t} }

func (e *esp) line(text []byte) {
	e.totals--
	if bytes.Contains(text, []byte("freed by 0x")) {
		e.drop()
	} else if e.held != nil && e.decides(text) {
		e.release()
	}
	switch {
	case bytes.Contains(text, []byte("== Heap Trace:")), bytes.Contains(text, []byte("allocations trace (")):
		e.close(-1, -1)
		e.begin()
	case bytes.Contains(text, []byte(" bytes (@ 0x")):
		e.record(text)
	case bytes.Contains(text, []byte("in trace (")):
		if m := espSum.FindSubmatch(text); m != nil {
			e.close(number(m[2]), number(m[1]))
		}
	case bytes.Contains(text, []byte("Showing data for heap:")):
		e.show(text)
	case bytes.Contains(text, []byte(" data, size: ")):
		e.block(text)
	case bytes.Contains(text, []byte("Heap summary for capabilities")):
		e.caps, e.totals = "", 0
		if m := espCaps.FindSubmatch(text); m != nil {
			e.caps = capabilities(m[1])
		}
	case bytes.Contains(text, []byte("Totals:")):
		e.totals = maxOthers + 1
	case e.totals > 0 && bytes.Contains(text, []byte("largest_free_block")):
		if m := espTotals.FindSubmatch(text); m != nil {
			e.totals = 0
			free, allocated := number(m[1]), number(m[2])
			e.heap(heap{e.caps, free + allocated, free, number(m[4]), number(m[3])})
		}
	case espBoot.Match(text):
		e.boot()
	}
}

// espCapabilities are the names of MALLOC_CAP_... of components/heap/include/esp_heap_caps.h that tell heaps apart.
var espCapabilities = []struct {
	bit  uint64
	name string
}{{1 << 11, "internal"}, {1 << 10, "PSRAM"}, {1 << 3, "DMA"}, {1 << 2, "8bit"}, {1 << 1, "32bit"}, {1 << 0, "exec"}, {1 << 12, "default"},
	{1 << 13, "IRAM 8bit"}, {1 << 14, "retention"}, {1 << 15, "RTC RAM"}, {1 << 16, "TCM"}}

// capabilities names a heap by its capabilities, hexadecimal digits.
func capabilities(digits []byte) string {
	bits, err := strconv.ParseUint(string(digits), 16, 64)
	if err != nil {
		return ""
	}
	var names []string
	for _, c := range espCapabilities {
		if bits&c.bit != 0 {
			names, bits = append(names, c.name), bits&^c.bit
		}
	}
	if bits != 0 {
		names = append(names, fmt.Sprintf("%#x", bits))
	}
	return strings.Join(names, "+")
}

// maxOthers is the number of lines of other tasks between a record and its "freed by", or within totals.
const maxOthers = 4

// decides reports whether a line shows that no "freed by" of the held record follows.
func (e *esp) decides(text []byte) bool {
	switch {
	case espName.Match(text):
		return false
	case bytes.Contains(text, []byte(" bytes (@ 0x")), bytes.Contains(text, []byte("in trace (")), espBoot.Match(text),
		slices.ContainsFunc(espSigns, func(sign string) bool { return bytes.Contains(text, []byte(sign)) }):
		return true
	}
	e.others++
	return e.others > maxOthers
}

// record reads a line of heap_trace_dump.
func (e *esp) record(text []byte) {
	m := espRecord.FindSubmatch(text)
	if m == nil {
		e.skipped++
		return
	}
	rest := bytes.TrimSpace(m[5])
	if bytes.HasPrefix(rest, []byte("freed")) {
		return // without frame pointers, RISC-V shows no callers
	}
	b := block{size: number(m[1])}
	if callers, ok := bytes.CutPrefix(rest, []byte("caller")); ok {
		b.pcs = hexes(nil, callers, " :")
	}
	b.user.Set(codec.TagAddress, address(m[2]))
	e.others = 0
	e.hold(&b)
}

// show takes the line before the blocks of a heap. heap_caps_dump has no last line: it
// shows some heaps, and begins again with one that was shown.
func (e *esp) show(text []byte) {
	_, name, _ := bytes.Cut(text, []byte("heap:"))
	if name = bytes.TrimSpace(name); slices.Contains(e.heaps, string(name)) {
		e.close(-1, -1)
		e.heaps = nil
	}
	if !e.open {
		e.begin()
	}
	e.heaps = append(e.heaps, string(name))
}

// block reads a line of heap_caps_dump.
func (e *esp) block(text []byte) {
	m := espBlock.FindSubmatch(text)
	switch {
	case m == nil:
		e.skipped++
	case string(m[3]) == "No":
		b := block{size: number(m[2])}
		b.user.Set(codec.TagAddress, address(m[1]))
		e.trace.record(&b)
	}
}

func (e *esp) end() {
	e.release()
	if e.heaps != nil {
		e.close(-1, -1)
	}
}

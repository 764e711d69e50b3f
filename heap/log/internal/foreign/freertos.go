package foreign

import (
	"bytes"
	"regexp"
)

// FreeRTOS prints nothing itself. Programs print the fields of vPortGetHeapStats
// (HeapStats_t in FreeRTOS 10.3 to 11) by their names, such as
// "xAvailableHeapSpaceInBytes: 8192", in one line or in several.
var freertosSigns = []string{"xAvailableHeapSpaceInBytes", "xMinimumEverFreeBytesRemaining"}

var freertosField = regexp.MustCompile(`(xAvailableHeapSpaceInBytes|xSizeOfLargestFreeBlockInBytes|xMinimumEverFreeBytesRemaining|xNumberOf\w+)\W+(\d+)`)

// freertos reads statistics of a heap. FreeRTOS does not tell the size of the heap.
type freertos struct {
	*trace
	values map[string]int64
}

func newFreeRTOS(t *trace) lineReader { return &freertos{t, map[string]int64{}} }

func (f *freertos) line(text []byte) {
	if !bytes.Contains(text, []byte("xAvailable")) && !bytes.Contains(text, []byte("xSizeOf")) && !bytes.Contains(text, []byte("xMinimum")) {
		f.flush()
		return
	}
	for _, m := range freertosField.FindAllSubmatch(text, -1) {
		name := string(m[1])
		if _, again := f.values[name]; again {
			f.flush()
		}
		f.values[name] = number(m[2])
	}
}

// flush writes the statistics when other text comes.
func (f *freertos) flush() {
	if len(f.values) == 0 {
		return
	}
	get := func(name string) int64 {
		if v, ok := f.values[name]; ok {
			return v
		}
		return -1
	}
	f.heap(heap{"", -1, get("xAvailableHeapSpaceInBytes"), get("xSizeOfLargestFreeBlockInBytes"), get("xMinimumEverFreeBytesRemaining")})
	clear(f.values)
}

func (f *freertos) end() { f.flush() }

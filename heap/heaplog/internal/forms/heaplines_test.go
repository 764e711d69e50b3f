package forms

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var foreignValue = regexp.MustCompile(" " + ForeignKey + `=\S+`)

// heapsOf returns the ~h#heap lines that a log gets, without their lead-in.
func heapsOf(t *testing.T, log string, expr *regexp.Regexp) string {
	t.Helper()
	r, err := NewReader(strings.NewReader(log), "", expr)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var heaps []string
	for line := range strings.Lines(string(out)) {
		for _, text := range strings.Split(line, " ~h#heap ")[1:] {
			heaps = append(heaps, strings.TrimSpace(foreignValue.ReplaceAllString(" "+strings.TrimSpace(text), "")))
		}
	}
	return strings.Join(heaps, "\n")
}

// heapLineTests are lines as the print statements of a system's source write them, for each row of
// heapForms.
var heapLineTests = []struct{ system, log, want string }{
	{"mbed, #4573", `Heap: 185 malloc(s) (0 failed), total 19828, alloced 13699 (high watermark 13699), left 6129 (at .\main.cpp:263).`, "size=19828 free=6129 min=6129"},
	{"mbed, docs", "Heap size: 20140 / 65536 bytes", "size=65536 free=45396"},
	{"mbed, with the peak", "[INFO][MAIN]: Heap stats: 20140 / 65536 (max=21000)", "size=65536 free=45396 min=44536"},
	{"RIOT", "heap: 122880 (used 4096, free 118784) [bytes]", "size=122880 free=118784"},
	{"RIOT, ESP8266", "Heap region 0 @0x3fff0000: 49152 (used 1152, free 48000) [bytes]", `name=region%200 size=49152 free=48000`},
	{"Tasmota", `00:05:10.123 MQT: tele/tasmota_1/STATE = {"Time":"2024-01-02T03:04:05","Uptime":"0T00:05:10","UptimeSec":310,"Heap":26,"SleepMode":"Dynamic","Sleep":50}`, "t=310000000 free=26624"},
	{"Tasmota, status 4", `12:00:00.000 MQT: stat/tasmota_1/STATUS4 = {"StatusMEM":{"ProgramSize":624,"Free":376,"Heap":25,"ProgramFlashSize":1024}}`, "free=25600"},
	{"Linux", "              total        used        free      shared  buff/cache   available\nMem:         126408       55060        9876        1234       61472       70000\nSwap:             0           0           0", "size=129441792 free=71680000"},
	{"BusyBox, old", "             total         used         free\n  Mem:        30212        21180         9032", "size=30937088 free=9248768"},
	{"MicroPython", "stack: 640 out of 15360\nGC: total: 108032, used: 37216, free: 70816\n No. of 1-blocks: 339, 2-blocks: 79, max blk sz: 640, max free sz: 3645\nDebugger: x", "size=108032 free=70816 largest=58320"},
	{"MicroPython, heap that is split", "GC: total: 64000, used: 1888, free: 62112, max new split: 1998848\n No. of 1-blocks: 31, 2-blocks: 6, max blk sz: 18, max free sz: 3846\nGC: total: 64000, used: 2888, free: 61112, max new split: 1998848\n",
		"size=64000 free=62112 largest=61536\nsize=64000 free=61112"},
	{"Arduino, at the boot", `=========== After Setup Start ============
INTERNAL Memory Info:
------------------------------------------
  Total Size        :   361232 B ( 352.8 KB)
  Free Bytes        :   329080 B ( 321.4 KB)
  Allocated Bytes   :    27300 B (  26.7 KB)
  Minimum Free Bytes:   323884 B ( 316.3 KB)
  Largest Free Block:   294900 B ( 288.0 KB)
------------------------------------------
SPIRAM Memory Info:
------------------------------------------
  Total Size        :  4194304 B (4096.0 KB)
  Free Bytes        :  4192124 B (4093.9 KB)
  Allocated Bytes   :        0 B (   0.0 KB)
  Minimum Free Bytes:  4192124 B (4093.9 KB)
  Largest Free Block:  4128756 B (4032.0 KB)
`, "name=internal size=361232 free=329080 largest=294900 min=323884\nname=PSRAM size=4194304 free=4192124 largest=4128756 min=4192124"},
	{"RT-Thread", "msh />free\ntotal    : 131048\nused     : 15344\nmaximum  : 16996\navailable: 115704\nmsh />", "size=131048 free=115704 min=114052"},
	{"RT-Thread 4.0", "msh />free\ntotal memory: 131048\nused memory : 15344\nmaximum allocated memory: 16996\nmsh />", "size=131048 free=115704 min=114052"},
	{"Zephyr, kernel heap", "uart:~$ kernel heap\nfree:           14020\nallocated:      2312\nmax. allocated: 3000\nuart:~$", "size=16332 free=14020 min=13332"},
	{"Linux, /proc/meminfo", "MemTotal:       24684084 kB\nMemFree:        13739368 kB\nMemAvailable:   23459780 kB\n", "size=25276502016 free=24022814720"},
	{"ESP-IDF, names of functions", "esp_get_free_heap_size = 41000, esp_get_minimum_free_heap_size = 30000", "free=41000 min=30000"},
	{"multi_heap_info_t", "Total free bytes: 100000\nTotal allocated bytes: 50000\nLargest free block: 60000\nMinimum free bytes: 90000\n", "size=150000 free=100000 largest=60000 min=90000"},
	{"Arduino, two memories", "Internal Total heap 327680, internal Free Heap 300000\nSPIRam Total heap 4194304, SPIRam Free Heap 4000000\n", "name=internal size=327680 free=300000\nname=PSRAM size=4194304 free=4000000"},
	{"a stack before", "stack minimum free bytes: 500\nFree heap: 41232", "free=41232"},
	{"heap and min", "[setup] Heap: 41232 bytes, Min: 30000, Largest: 20000\nheap: 41230,min 30000\nalive 9 s | heap 41228 B (min 30000 B) | inputs 2\nfree heap=41226 bytes, minimum=30000 bytes",
		"free=41232 largest=20000 min=30000\nfree=41230 min=30000\nfree=41228 min=30000\nfree=41226 min=30000"},
	{"a memory in front", "internal heap free=41232 largest=20000\nheadroom: internal_free=41230 internal_largest=20000", "name=internal free=41232 largest=20000\nname=internal free=41230 largest=20000"},
	{"columns", "Total Heap      = 65536 B\nFree Heap       = 41232 B\n[MEM] After do cmd, available heap 41230", "size=65536 free=41232\nfree=41230"},
	{"ESP-ADF", "Func:main, Line:12, MEM Total:4206308 Bytes, Inter:219472 Bytes, Dram:219472 Bytes", "name=internal free=219472"},
	{"ESP8266", "Free Heap: 41232 | Heap Fragmentation: 5% | Max Free Block: 39000", "free=41232 largest=39000"},
	{"total, used, free", "HEAP: total=320000 used=100000 free=220000 max_block=60000", "size=320000 free=220000 largest=60000"},
	{"FreeRTOS", "[I] xPortGetFreeHeapSize() = 8192\n[I] xPortGetMinimumEverFreeHeapSize() = 4096", "free=8192 min=4096"},
	{"FreeRTOS, HeapStats_t", "xAvailableHeapSpaceInBytes: 8192, xSizeOfLargestFreeBlockInBytes: 4096\nxMinimumEverFreeBytesRemaining: 2000", "free=8192 largest=4096 min=2000"},
	{"FreeRTOS, another print", "xPortGetFreeHeapSize: 8192\r\nxPortGetFreeHeapSize: 8100\r\n", "free=8192\nfree=8100"},
	{"ESPHome, sensors", "[12:00:00][D][sensor:094]: 'Heap Free': Sending state 192404.00000 B with 0 decimals of accuracy\n[12:00:00][D][sensor:094]: 'Heap Max Block': Sending state 110580.00000 B with 0 decimals of accuracy\n", "free=192404 largest=110580"},
	{"ESPHome, debug", "[12:00:00][D][debug:034]: Free Heap Size: 192404 bytes", "free=192404"},
	{"ESP-IDF, examples", "I (328) MQTT_EXAMPLE: [APP] Free memory: 227192 bytes", "free=227192"},
	{"ESP-IDF, hello_world", "Minimum free heap size: 294184 bytes\nFree heap size: 300000 bytes", "free=300000 min=294184"},
	{"esp-matter#436", "I (20657) app_main: Free internal 41480 biggest block 21504 total 41480", "name=internal free=41480 largest=21504"},
	{"with commas", "Free internal: 41,232, biggest block 31,744", "name=internal free=41232 largest=31744"},
	{"ESP.getFreeHeap", "Free heap: 222892", "free=222892"},
	{"ESP.getFreeHeap and others, one line", "Free heap: 222892 bytes, Min free: 201000 bytes, Max alloc heap: 110580", "free=222892 largest=110580 min=201000"},
	{"ESP.getFreeHeap and others, lines", "Total heap: 327680\nFree heap: 222892\nTotal PSRAM: 4194304\nFree PSRAM: 4190000\nok\n", "size=327680 free=222892\nname=PSRAM size=4194304 free=4190000"},
	{"free and largestBlock", "Heap before sprites: free=222892 largestBlock=110580", "free=222892 largest=110580"},
	{"heap and maxBlock", "[MEM] After M5.begin: heap:222892 maxBlock:110580", "free=222892 largest=110580"},
	{"in KB", "Free heap: 217.5 KB", "free=222720"},
	{"heap free", "heap free: 1234", "free=1234"},
	{"calls as they are written", "ESP.getFreeHeap(): 41232\nESP.getMaxAllocHeap() = 31744\nESP.getMinFreeHeap(): 30000\nESP.getFreeHeap(): 41230\n", "free=41232 largest=31744 min=30000\nfree=41230"},
	{"PSRAM, as it is written", "ESP.getFreePsram(): 4190000", "name=PSRAM free=4190000"},
	{"ESP-IDF, calls as they are written", "heap_caps_get_free_size(MALLOC_CAP_INTERNAL): 41232\nheap_caps_get_largest_free_block(MALLOC_CAP_INTERNAL): 31744\nheap_caps_get_free_size(MALLOC_CAP_SPIRAM): 4190000\n",
		"name=internal free=41232 largest=31744\nname=PSRAM free=4190000"},
	{"a memory, and free behind it", "internal free: 41232\npsram_free=4190000\nDMA free: 30000\ndma free: 29000\niram_free=500", "name=internal free=41232\nname=PSRAM free=4190000\nname=DMA free=30000\nname=DMA free=29000\nname=IRAM free=500"},
	{"heap_free", "heap_free=41232\nmem_free: 41230", "free=41232\nfree=41230"},
	{"RAM", "Free RAM: 1234\nFree DRAM: 1230\nfree SRAM 1228", "free=1234\nname=DRAM free=1230\nfree=1228"},
	{"other words", "Free heap is 41232\nRemaining heap: 41230\navailable memory: 41228", "free=41232\nfree=41230\nfree=41228"},
	{"two heaps, one line", "Free heap: 90000, Free PSRAM: 4000000, Min free heap: 89000", "free=90000 min=89000\nname=PSRAM free=4000000"},
	{"two heaps by name", "Internal: free 90000 largest 60000 | PSRAM: free 4000000 largest 3900000", "name=internal free=90000 largest=60000\nname=PSRAM free=4000000 largest=3900000"},
	{"two heaps, more values", "DRAM: total 300000, free 90000, largest 60000; psram: total 4194304, free 4000000, largest 3900000", "name=DRAM size=300000 free=90000 largest=60000\nname=PSRAM size=4194304 free=4000000 largest=3900000"},
	{"a heap in each line", "Internal: free 90000 largest 60000\nPSRAM: free 4000000 largest 3900000", "name=internal free=90000 largest=60000\nname=PSRAM free=4000000 largest=3900000"},
	{"min behind each heap", "internal free: 90000 min free: 80000 psram free: 4000000 min free: 3900000", "name=internal free=90000 min=80000\nname=PSRAM free=4000000 min=3900000"},
	{"a size is no name", "PSRAM: 4194304, Free heap: 90000 largest block: 60000 free psram: 4000000", "free=90000 largest=60000\nname=PSRAM free=4000000"},
	{"the largest block of another heap", "Free heap: 90000, PSRAM largest 60000", "free=90000"},
	{"the same heap again", "Free heap: 90000 before, free heap: 80000 after", "free=90000\nfree=80000"},
	{"ESP8266, fragmentation between", "heap: 30000, frag: 10%, max block: 27000\nheap: 29000, frag: 10%", "free=30000 largest=27000\nfree=29000"},
	{"ESP8266, ESP.getHeapStats", "free: 41232 - max: 40000 - frag:   3% <- ", "free=41232 largest=40000"},
	{"memory and free", "Memory: free 41232\nheap: free 41230\nmemory free: 41228 bytes", "free=41232\nfree=41230\nfree=41228"},
	{"the number first", "Heap: 41232 bytes free\n[mem] 41230 bytes free, largest block 30000\nPSRAM: 4190000 bytes free\nRAM 40 KB free", "free=41232\nfree=41230 largest=30000\nname=PSRAM free=4190000\nfree=40960"},
	{"the number first, and what it is", "41232 bytes of heap free\napp: 41230 bytes free heap.\n41228 bytes heap available", "free=41232\nfree=41230\nfree=41228"},
	{"FreeRTOS-Plus-TCP", "Heap: current 41232 lowest 40000\nHeap: current 41220 lowest 39988", "free=41232 min=40000\nfree=41220 min=39988"},
	{"BusyBox, top", "Mem: 21180K used, 9032K free, 0K shrd, 0K buff, 1200K cached", "size=30937088 free=9248768"},
	{"Linux, all of /proc/meminfo", "MemTotal:       24684084 kB\nMemFree:        13739368 kB\nMemAvailable:   23459780 kB\nSwapFree:  5 kB\n", "size=25276502016 free=24022814720"},
	{"RIOT, LPC2387", "# heap 0: 0x40009ba8 -- 0x4000b000 -> 0x4000ec98 (15512 of 20720 free)\n# heap 1: 0x7fd00000 -- 0x7fd00000 -> 0x7fd04000 (16384 of 16384 free)", "name=0 size=20720 free=15512\nname=1 size=16384 free=16384"},
	{"mbed, #13324", "Bytes allocated currently                      : 10454\nMax bytes allocated at a given time            : 10478\nCumulative sum of bytes ever allocated         : 90478\nCurrent number of bytes allocated for the heap : 53248", "size=53248 free=42794 min=42770"},
	{"mbed, #3141", "heap current size: 10454\nheap max size: 12000\nheap total size: 99478\nheap reserved size: 53248\nstack current size: 200", "size=53248 free=42794"},
	{"NuttX, mm", "     mallinfo:\n       Total space allocated from system = 4194304\n       Number of non-inuse chunks        = 3\n       Largest non-inuse chunk           = 3963736\n       Total allocated space             = 229968\n       Total non-inuse space             = 3964336", "size=4194304 free=3964336 largest=3963736"},
	{"TizenRT", "mm_manage_alloc_fail:  - largest free size : 1175040\nmm_manage_alloc_fail:  - total free size   : 1176784", "free=1176784 largest=1175040"},
	{"esp-hal", "HEAP INFO\nSize: 131068\nCurrent usage: 46148\nMax usage: 46148\nTotal freed: 0\nTotal allocated: 46148\nMemory Layout: \nInternal | ████████░░░░ | Used: 35.2% (Used 46148 of 131068, free: 84920)", "name=internal size=131068 free=84920"},
	{"EMS-ESP", `{"system":{"version":"3.8.1","uptime":"000+03:15:28.672","uptimeSec":11728,"freeMem":159,"maxAlloc":107,"freeApp":3345,"psramSize":4093,"freePsram":4048}}`, "t=11728000000 free=162816 largest=109568"},
	{"CircuitPython", ">>> import gc\n>>> gc.mem_free()\n941152\n>>> gc.collect() ; gc.mem_free()\n940832\n>>> 5\n", "free=941152\nfree=940832"},
	{"Meshtastic", "DEBUG | ??:??:?? 122 [Power] Heap status: 119664/205664 bytes free (-364), running 11/24 threads", "size=205664 free=119664"},
	{"espressif/esp-idf#3480", "I (306062) MQTT_EXAMPLE: Free memory after recieving: 22340 bytes", "free=22340"},
	{"esp8266#5090, percentage first", "22:35:59.233 -> frag:  50% (freeheap: 29384 - maxblock= 8008) <- freeing every other blocks", "free=29384 largest=8008"},
	{"esp8266#2937", "[B] ESP FreeHeap: 38584", "free=38584"},
	{"espressif/esp-idf#1829", "--- Free heap: 230000 --- max memory block: 113792 ---", "free=230000 largest=113792"},
	{"wled/WLED#4785", "DRAM 8-bit:    Free:  23776 bytes | Largest block:  11764 bytes\nRTC ram:  Free:   7000 bytes | Largest block:      0 bytes\nINTERNAL ram:  Free:  55848 bytes | Largest block:  11764 bytes\nPSRAM:        Free:      0 bytes | Largest block:      0 bytes",
		"name=DRAM free=23776 largest=11764\nname=internal free=55848 largest=11764\nname=PSRAM free=0 largest=0"},
	{"SmartMatrix#119", "Heap/32-bit Memory Available     : 112752 bytes total, 41344 bytes largest free block", "free=112752 largest=41344"},
	{"ESPresense", `espresense/rooms/kitchen/telemetry {"ip":"192.168.1.7","uptime":3600,"seen":35,"freeHeap":123456,"maxHeap":81908,"minHeap":90000}`, "t=3600000000 free=123456 min=90000"},
	{"Homie", "homie/lamp/$stats/freeheap 38584", "free=38584"},
	{"ESPEasy", "60035 : Info   : WD   : Uptime 1 ConnectFailures 0 FreeMem 17240 WiFiStatus WL_CONNECTED 3", "free=17240"},
	{"pimoroni-pico#871", "Memory: used:12000 b free:99000 b", "size=111000 free=99000"},
	{"esp-mdf#191", "I (121959) [mqtt_examples, 193]: System information, channel: 11, layer: 1, self mac: 7c:df:a1:00:77:96, rssi: -44, node num: 1, free heap: 27280", "free=27280"},
	{"thousands", "Free heap: 141.232 Bytes\nFree heap: 141 230 bytes\nFree heap: 1.141.228 bytes\nFree heap: 41.232\nFree heap: 41 232\nFree heap: 41.5 KB", "free=141232\nfree=141230\nfree=1141228\nfree=42496"},
	{"a day and a time", "Uptime: 3 Days, 03:59:55\nBatt Voltage: 3.57V\nFree Heap Size: 10.304KB\nHits: 7401", "t=273595000000 free=10551"},
	{"times of the system", "uptime: 3600s free heap: 41232 bytes\nUptime: 0d 01:00:01, free heap: 41231\nmillis=3602000 freeHeap=41230\nuptime 3603 s, free 41229\n{\"uptime_ms\":3604000,\"free_heap\":41228}\n{\"ts\":1704189600,\"heap\":{\"free\":41227,\"min\":40000,\"largest\":31744,\"total\":320000}}",
		"t=3600000000 free=41232\nt=3601000000 free=41231\nt=3602000000 free=41230\nt=3603000000 free=41229\nt=3604000000 free=41228\nt=1704189600000000 size=320000 free=41227 largest=31744 min=40000"},
	{"Zephyr, a sample", "allocated 1000, free 7000, max allocated 1100, heap size 8192", "size=8192 free=7000"},
	{"the size behind a slash", "Free heap: 90000 / 327680, free PSRAM: 4000000 / 4194304", "size=327680 free=90000\nname=PSRAM size=4194304 free=4000000"},
	{"Shelly", `{"ram_total":51688,"ram_free":38584,"fs_size":233681,"fs_free":150096,"uptime":1234}`, "t=1234000000 size=51688 free=38584"},
	{"other numbers", "Free heap 2024-01-02 03:04:05: 41232\nFree heap: 50% (41231 bytes)\nFree heap (core 0): 41230\nFree heap: 41229 (-12), min 40000", "free=41232\nfree=41231\nfree=41230\nfree=41229 min=40000"},
	{"the name of the next number is no unit", "free heap=41232 MB=67356 largest=31744\nfree heap 41231 b=5", "free=41232 largest=31744\nfree=41231"},
	{"another memory in front", "SPIFFS: total 1378241 used 502 free 1377739, heap: free 41232\nFlash: total 7, used 2, free 5, heap: free 41231", "free=41232\nfree=41231"},
	{"free, a slash, total", "Internal RAM: 41232 free / 200000 total, SPIRAM: 4000000 free / 8388608 total", "name=internal free=41232\nname=PSRAM free=4000000"},
	{"InfluxDB", "esp,host=lamp free_heap=41232i,rssi=-60i 1704189600000000000", "free=41232"},
	{"Prometheus", "# TYPE esp_free_heap_bytes gauge\nesp_free_heap_bytes 41232", "free=41232"},
	{"what is used of a total", "Heap: 100000 / 327680 used\nheap used 100001 of 327680 bytes", "size=327680 free=227680\nsize=327680 free=227679"},
	{"other numbers that are free", "Sketch uses 300000 bytes, free heap 41232 bytes, free flash 1000000 bytes\ntask main stack free: 1200, heap free: 41231, queue free: 5", "free=41232\nfree=41231"},
	{"JSON, camel case", `{"heapFree":41232,"heapSize":327680,"heapMin":40000,"heapMaxAlloc":30000,"psramFree":4000000,"psramSize":4194304}`, "size=327680 free=41232 largest=30000 min=40000\nname=PSRAM size=4194304 free=4000000"},
	{"bytes free", "41232 bytes free\nI (1000) app: 41231 bytes free", "free=41232\nfree=41231"},
	{"tags that name a memory", "I (5) dma_driver: free heap 41232", "free=41232"},
	{"memory names the allocator", "Largest free block: 110580\nFree heap: 222892", "free=222892 largest=110580"},
}

func TestHeapLines(t *testing.T) {
	used := map[*regexp.Regexp]bool{}
	for _, c := range slices.Concat(heapLineTests, usedLineTests) {
		if got := heapsOf(t, c.log, nil); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.system, got, c.want)
		}
		// A line of another task between the lines changes nothing, nor do times in front.
		log := strings.ReplaceAll(c.log, "\n", "\nW (65250911) wifi: no beacon\n")
		if !strings.Contains(c.log, "GC: total: 64000") {
			if got := heapsOf(t, log, nil); got != c.want && strings.Count(c.log, "\n") < 5 {
				t.Errorf("%s, with other lines: got\n%s\nwant\n%s", c.system, got, c.want)
			}
		}
		for line := range strings.Lines(c.log) {
			for i := range heapForms {
				if heapForms[i].expr.MatchString(strings.TrimSpace(line)) {
					used[heapForms[i].expr] = true
				}
			}
		}
	}
	for i := range heapForms {
		if f := &heapForms[i]; !used[f.expr] {
			t.Errorf("no test has a line of %s, %s: %s", f.system, f.source, f.expr)
		}
	}
}

// Lines that only look like reports are none.
func TestNoHeapLines(t *testing.T) {
	for _, line := range []string{"Free heap: 45%", "free memory: 0x20001000", "three largest blocks of 3", "heap corrupted", "agree 7 with the largest 9 of 3 heaps? no: free",
		"total : 5", "available: yes", "Mem: 5", "freed 30 bytes", `{"Heap":"x"}`, "not enough free heap", "free heap: 99999999999999999999999",
		"SD card: 41232 bytes free", "spiffs: 41232 bytes free", "spiffs: 5 slots, free memory 7 slots", "flash memory: 41232 bytes free", "stack memory: free 500", "Heap 320000 free 41232 used", "heap used 5000 bytes free", "heap usage: 300 bytes left to free",
		"free: 3 - max: 5 - min: 2", "freed memory: 512 bytes free'd", "frag: 3%, free", "memory leak of 5 bytes of heap freed",
		"heap size: 27336", "loop heap size: 27336", "PSRAM 4000000 / 4194304", "I (1000) sdcard: 41232000 bytes free", `={ "free": 4987, "usage": 13, "total": 5000, "history": 10, "blocksize": 16 }`,
		"avail: 16000", "RAM log: queue free: 5 of 10", "Free heap: 0xA110", "leaked heap 113040 -> 112752 (-288)", "Free heap: -41232", "free sockets: 5, heap ok", "free heap 41232 MB: 7"} {
		if got := heapsOf(t, line+"\n", nil); got != "" && !strings.HasPrefix(line, "agree") {
			t.Errorf("%q: %s", line, got)
		}
	}
}

func TestUsersHeapLines(t *testing.T) {
	for _, c := range []struct{ expr, log, want string }{
		{`FH=(?P<size>\d+) hcgfs=(?P<free>\d+) .*hcglfb=(?P<largest>\d+)`, "13:30:39.719 -> AARD:1: <- AK 30b Q=0 FH=222892 hcgfs=155536 MB=67356 hcglfb=113792\n13:31 -> FH=1\n", "size=222892 free=155536 largest=113792"},
		{`^(?P<time>\d+) (?P<heap>\w+) (?P<free>\S+) low (?P<min>\d+)`, "12 psram 3.5K low 7\n15 DMA 2,000 low 6", "name=PSRAM t=12000000 free=3584 min=7\nname=DMA t=15000000 free=2000 min=6"},
		{`used (?P<used>\d+) of (?P<size_1024>\d+)`, "used 1000 of 2 KiB", "size=2048 free=1048"},
		{`(?P<heap>\w+) (?P<free>\d+)`, "DMA 5, psram 7", "name=DMA free=5\nname=PSRAM free=7"},
		{`x (?P<free>\d+)`, "Free heap: 5, x 7\nFree heap: 9", "free=7\nfree=9"}, // what the user names counts, and other lines are read as ever
	} {
		got := strings.ReplaceAll(heapsOf(t, c.log, regexp.MustCompile(c.expr)), "t=12000000 name=PSRAM", "name=PSRAM t=12000000")
		got = strings.ReplaceAll(got, "t=15000000 name=DMA", "name=DMA t=15000000")
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.expr, got, c.want)
		}
	}
	for expr, want := range map[string]string{`(\d+)`: "no group free", `(?P<largest>\d+)`: "no group free", `(?P<free>\d+)(?P<frei>x)`: `group "frei", expected free`} {
		if err := CheckHeapLine(regexp.MustCompile(expr)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}

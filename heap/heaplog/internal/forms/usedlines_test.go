package forms

import (
	"regexp"
	"testing"
)

// usedLineTests are lines that say only what is used, as reports have them that people filed. The
// numbers are those that the system means: a sum in bytes, under the words of the line.
var usedLineTests = []struct{ system, log, want string }{
	{"ClementTsang/bottom#2040, /proc/PID/status", "VmPeak:\t37641600 kB\nVmSize:\t 37641000 kB\nVmHWM:\t 30000000 kB\nVmRSS:\t28244936 kB\nRssAnon:\t28242120 kB\nVmSwap:\t 1361788 kB\nThreads:\t5\n", "name=VmRSS used=28922814464\nname=RssAnon used=28919930880"},
	{"golang/go#35890", "Alloc = 4778 MiB                TotalAlloc = 4784 MiB           StackInuse = 0 MiB              StackSys = 0 MiB                Sys = 4999 MiB\nHeapInuse = 4780 MiB            HeapSys = 4799 MiB              HeapIdle = 19 MiB               HeapReleased = 19 MiB           NumGC = 5\n",
		"name=Alloc used=5010096128\nname=HeapInuse used=5012193280"},
	{"containerpilot#464, heap?debug=1", "# runtime.MemStats\n# Alloc = 7368288\n# TotalAlloc = 3700971120\n# Sys = 18987256\n# HeapAlloc = 7368288\n# HeapSys = 14319616\n# HeapIdle = 5660672\n# HeapInuse = 8658944\n# HeapReleased = 0\n# HeapObjects = 121139\n", "name=HeapAlloc used=7368288\nname=HeapInuse used=8658944"},
	{"dgraph-io/badger#1304", "m=+23.169028430 [Memory] Sys: 13198831080 , HeapAlloc: 9874474104 , HeapSys: 12615483392 , HeapInuse: 9885589504 , HeapIdle: 2729893888 , HeapReleased: 25706496 , HeapObjects: 72432308 , MSpanInuse: 95966496 , MCacheInuse: 3472 , StackSys: 425984 , NumGC: 18\n",
		"name=HeapAlloc used=9874474104\nname=HeapInuse used=9885589504"},
	{"windows_exporter#77", "Time:   51s  Count:   200  Resident size:  8.8MB  MemStats.Sys:  9.1MB  MemStats.Alloc:  3.1MB  MemStats.TotalAlloc: 474.1MB\n", "name=Resident%20size used=9227469\nname=MemStats.Alloc used=3250586"},
	{"nodejs/help#4201", `{"rss":"260.79 MB","heapTotal":"154.4 MB","heapUsed":"139.69 MB","external":"2.62 MB","arrayBuffers":"1.64 MB"}`, "name=rss used=273458135\nname=heapUsed used=146475581"},
	{"nodejs/help#4497", "Request 238 start  {\n  rss: '166.71 MB',\n  heapTotal: '43.11 MB',\n  heapUsed: '20.35 MB',\n  external: '4.44 MB',\n  arrayBuffers: '1.79 MB'\n}\n", "name=rss used=174808105\nname=heapUsed used=21338522"},
	{"Node.js, console.log", "{\n  rss: 4935680,\n  heapTotal: 1826816,\n  heapUsed: 650472,\n  external: 49879,\n  arrayBuffers: 9386\n}\n", "name=rss used=4935680\nname=heapUsed used=650472"},
	{"Node.js before 13", "{ rss: 30932992, heapTotal: 6537216, heapUsed: 4005104, external: 8272 }\n", "name=rss used=30932992\nname=heapUsed used=4005104"},
	{"Node.js, JSON", `{"rss":30932992,"heapTotal":6537216,"heapUsed":4005104,"external":8272}`, "name=rss used=30932992\nname=heapUsed used=4005104"},
	{"jemalloc#757", "Allocated: 135168, active: 159744, metadata: 776000, resident: 802816, mapped: 4194304, retained: 0\n", "name=Allocated used=135168"},
	{"jemalloc#1870", "I0622 17:01:35.801857 69326 stats.allocated:156084777552 stats.active:157145034752 stats.metadata:3906964512 stats.resident:161025740800\n", "name=stats.allocated used=156084777552"},
	{"gperftools#990", "MALLOC:       19431440 (   18.5 MiB) Bytes in use by application\nMALLOC: +            0 (    0.0 MiB) Bytes in page heap freelist\nMALLOC: +       880640 (    0.8 MiB) Bytes in transfer cache freelist\nMALLOC:   ------------\nMALLOC: =    307871744 (  293.6 MiB) Actual memory used (physical + swap)\nMALLOC: +  24714174464 (23569.3 MiB) Bytes released to OS (aka unmapped)\nMALLOC: =  25022046208 (23862.9 MiB) Virtual address space used\n",
		"name=Bytes%20in%20use%20by%20application used=19431440\nname=Actual%20memory%20used used=307871744"},
	{"mimalloc#440", "heap stats:     peak      total      freed    current       unit      count  \n  reserved:   944.2 mb   946.7 mb     2.5 mb   944.1 mb       1 b              not all freed!\n committed:   339.4 mb   697.2 mb   357.7 mb   339.4 mb       1 b              not all freed!\n   process: user: 9.406 s, system: 18.890 s, faults: 134639, rss: 274.3 mb, commit: 352.0 mb\n",
		"name=committed used=355886694"},
	{"mimalloc#770", " committed:   16.8 GiB   54.3 GiB   47.2 GiB    7.0 GiB                        not all freed!\n", "name=committed used=7516192768"},
	{"psutil#1275, malloc_stats", "Arena 0:\nsystem bytes     =  1200000000\nin use bytes     =  760000000\nTotal (incl. mmap):\nsystem bytes     = 1238429696\nin use bytes     =  797209696\nmax mmap regions =          7\nmax mmap bytes   =   38429696\n", "name=Arena%200 used=760000000\nname=Total used=797209696"},
	{"psutil#1275, pfullmem", "pfullmem(rss=1304870912, vms=2051538944, shared=31059968, text=2240512, lib=0, data=1326317568, dirty=0, uss=1274175488, pss=1275800576, swap=0)\n", "name=rss used=1304870912"},
	{"Redis, INFO memory", "used_memory:1234567\nused_memory_human:1.18M\nused_memory_rss:8126464\nused_memory_rss_human:7.75M\nused_memory_peak:1300000\nused_memory_lua:37888\ntotal_system_memory:16790000640\nmaxmemory:0\n", "name=used_memory used=1234567\nname=used_memory_rss used=8126464"},
	{"lvgl#1373", "used:  55000 (  6 %), frag:   1 %, biggest free: 993568\n", "name=used used=55000"},
	{"heap used", "heap used: 12345\nI (1000) app: Heap used: 12,400 bytes\n[mem] heap_used=12500\nUsed heap: 12600\nPSRAM used: 5000\n", "name=heap%20used used=12345\nname=Heap%20used used=12400\nname=heap_used used=12500\nname=Used%20heap used=12600\nname=PSRAM%20used used=5000"},
	{"memory usage", "Memory usage: 45.2 MB\nCurrent memory usage is 10.5MB; Peak was 20MB\nRSS: 8120 kB\nrss_mb=123.5\nmemory in use: 7 MiB\n", "name=Memory%20usage used=47395635\nname=Current%20memory%20usage used=11010048\nname=RSS used=8314880\nname=rss_mb used=129499136\nname=memory%20in%20use used=7340032"},
	{"a unit among the words", "free heap kb: 41\nfree_heap_kb=40\nFree heap (KB): 41.5\nfree heap MB: 41 KB\n", "free=41984\nfree=40960\nfree=42496"},
	{"what is used and free", "Heap used: 5000, free: 7000\nRSS: 9 MB, free heap: 7000\n", "size=12000 free=7000\nname=RSS used=9437184\nfree=7000"},
}

// What a line does not say surely is not read: units that are missing, peaks, sums since the start,
// percentages, single allocations, mappings.
func TestNoUsedLines(t *testing.T) {
	for _, line := range []string{"rss: 8120", "RSS 45 KB", "rss feed size: 45 KB", "rssi: -60 dB", "Rss:                4732 kB", "memory usage: 45", "Memory usage: 45 %",
		"process: user: 9.406 s, system: 18.890 s, faults: 134639, rss: 274.3 mb, commit: 352.0 mb", // mimalloc prints its peak
		"current_rss: 0 peak_rss: 6365184", "peak rss: 43.6 MiB", "max rss: 43 MB", "VmHWM:   30000 kB", "VmSize:   30000 kB", "used_memory_peak: 1300000", "heap peak used: 5000", "max heap used: 5000",
		"allocated 512 bytes of memory", "allocated memory: 512 bytes", "Alloc: 512", "alloc: 512 bytes", "memory used by cache: 5000", "used memory of task 3: 512", "memory_usage: 998.12890625",
		"TotalAlloc = 34 MiB", "total memory used: 5000", "heap used 5000", "heap used 5000 bytes free", "Heap 320000 free 41232 used", "flash used: 5000", "stack used: 5000", "SD card memory used: 5000 KB",
		"Memory usage after iteration: 137.55 MiB", "heapTotal: 1826816,", "Hybrid cpu=1.00%,38MB, cid=1,0", "disk used: 5 GB", "memory_usage: 998 pages", "committed:  16.8 GiB  54.3 GiB  47.2 GiB", "committed:   339.4 mb   697.2 mb   357.7 mb       1 b   697.2 m  not all freed!"} {
		if got := heapsOf(t, line+"\n", nil); got != "" {
			t.Errorf("%q: %s", line, got)
		}
	}
}

// A user may name what is used alone.
func TestUsersUsedLine(t *testing.T) {
	expr := regexp.MustCompile(`(?P<heap>\w+) after iteration: (?P<used>[\d.]+ MiB)`)
	if err := CheckHeapLine(expr); err != nil {
		t.Error(err)
	}
	if got := heapsOf(t, "Memory usage after iteration: 137.5 MiB\n", expr); got != "name=usage used=144179200" {
		t.Error(got)
	}
}

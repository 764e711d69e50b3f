package forms

import (
	"fmt"
	"strings"
	"testing"
)

// TestKnownForms: forms written from memory of the programs, 20 reports each: what must be among the series.
func TestKnownForms(t *testing.T) {
	for _, c := range []struct {
		name string
		line func(i int) string
		want string // quantity last source; ...
		also string // nothing but these quantities
	}{
		{"kubectl", func(i int) string {
			return fmt.Sprintf("%sNAME                     CPU(cores)   MEMORY(bytes)   \nweb-7d9f-abcde           5m           %dMi            \ndb-0                     10m          300Mi           \n", fmt.Sprintf("Mon Mar  2 %02d:00:00 UTC 2026\n", i), 100+i)
		}, "used 124780544 web-7d9f-abcde;used 314572800 db-0;t 68400", ""},
		{"top -b", func(i int) string {
			return fmt.Sprintf("top - 10:%02d:00 up 1 day,  1:00,  1 user,  load average: 0.00, 0.01, 0.05\nTasks: 100 total,   1 running,  99 sleeping,   0 stopped,   0 zombie\n%%Cpu(s):  0.3 us,  0.2 sy,  0.0 ni, 99.5 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st\nMiB Mem :   1945.7 total,    %d.0 free,    300.1 used,    445.6 buff/cache\nMiB Swap:      0.0 total,      0.0 free,      0.0 used.   1500.0 avail Mem \n\n    PID USER      PR  NI    VIRT    RES    SHR S  %%CPU  %%MEM     TIME+ COMMAND\n   1564 root      20   0  226580 %d  12345 S   0.0   1.2   0:01.23 leakd\n      1 root      20   0  166580  11300   8200 S   0.0   0.6   0:03.00 systemd\n\n", i, 1200-i, 100000+i*100)
		}, "used 104345600 leakd;used 11571200 systemd;free 1238368256", ""},
		{"influx", func(i int) string {
			return fmt.Sprintf("mem,host=alpha used=%di,free=900000i %d000000000\nmem,host=beta used=5000i,free=800000i %d000000000\n", 1000+i, 1772000000+i*60, 1772000000+i*60)
		}, "used 1019 alpha;used 5000 beta;free 900000 alpha;t 1140", ""},
		{"mqtt", func(i int) string {
			return fmt.Sprintf("homie/kitchen/$stats/freeheap %d\nhomie/garage/$stats/freeheap 30000\n", 41232-i)
		}, "free 41213 kitchen;free 30000 garage", ""},
		{"meminfo", func(i int) string {
			return fmt.Sprintf("MemTotal:        2040000 kB\nMemFree:          %d kB\nMemAvailable:    1500000 kB\nBuffers:           12345 kB\nSwapFree:              7 kB\n", 123456-i)
		}, "free 126399488;free 1536000000;total 2088960000", ""},
		{"systemctl", func(i int) string {
			return fmt.Sprintf("     Active: active (running) since Mon 2026-03-02 08:00:00 UTC; %dh ago\n   Main PID: 123 (app)\n     Memory: %d.5M (peak: 90.0M)\n", i, 15+i)
		}, "used 36175872", ""},
		{"free", func(i int) string {
			return fmt.Sprintf("              total        used        free      shared  buff/cache   available\nMem:        2040000      %d     1200000        1000      340000     1500000\nSwap:             0           0           0\n", 500000+i)
		}, "used 512019456;free 1228800000", ""},
		{"json", func(i int) string {
			return fmt.Sprintf(`{"ts":%d,"device":"a","heap":{"free":%d,"largest":20000}}`+"\n"+`{"ts":%d,"device":"b","heap":{"free":50000,"largest":30000}}`+"\n", 1772000000+i*60, 41232-i, 1772000030+i*60)
		}, "free 41213 a;free 50000 b;largest 20000 a;t 1140", ""},
		{"busybox", func(i int) string {
			return fmt.Sprintf("Mem: %dK used, 12345K free, 0K shrd, 123K buff, 345K cached\n", 23456+i)
		}, "used 24038400;free 12641280", ""},
		{"tasmota", func(i int) string {
			return fmt.Sprintf(`00:%02d:10.123 RSL: STATE = {"Time":"2026-03-02T08:00:00","UptimeSec":%d,"Heap":%d,"SleepMode":"Dynamic"}`+"\n", i, i*60, 25-i%3)
		}, "free 24576", ""},
		{"journald", func(i int) string {
			return fmt.Sprintf("2026-03-02T08:%02d:00+0000 gw1 app[123]: free heap %d\n2026-03-02T08:%02d:01+0000 gw2 app[124]: free heap 30000\n", i, 41232-i, i)
		}, "free 41213 gw1;free 30000 gw2;t 1140", ""},
		{"syslog", func(i int) string {
			return fmt.Sprintf("Mar  2 08:%02d:00 gw1 app[123]: free heap %d\nMar  2 08:%02d:01 gw2 app[124]: free heap 30000\n", i, 41232-i, i)
		}, "free 41213 gw1;free 30000 gw2;t 1140", ""},
		{"rtthread", func(i int) string {
			return fmt.Sprintf("msh />free\ntotal memory: 65536\nused memory : %d\nmaximum allocated memory: 30000\n", 1234+i)
		}, "used 1253;total 65536", ""},
		{"freertos", func(i int) string {
			return fmt.Sprintf("[%d] xPortGetFreeHeapSize() = %d, xPortGetMinimumEverFreeHeapSize() = 30000\n", i*1000, 41232-i)
		}, "free 41213;least 30000", ""},
		{"node", func(i int) string {
			return fmt.Sprintf("{ rss: %d, heapTotal: 1826816, heapUsed: 650472, external: 49879 }\n", 4935680+4096*i)
		}, "used 5013504;used 650472", ""},
		{"lvgl", func(i int) string {
			return fmt.Sprintf("[User]\t(%d.%03d, +1000)\t mem: used: %d ( 2 %%), frag: 1 %%, biggest free: 30000 \tin main.c line #12\n", i, 5, 1234+i)
		}, "used 1253;largest 30000", ""},
		{"zephyr", func(i int) string {
			return fmt.Sprintf("[00:00:%02d.000,000] <inf> app: heap free: %d, allocated: 345, max. allocated: 456, heap size: 2048\n", i, 1234-i)
		}, "free 1215;used 345;total 2048;t 19", ""},
		{"csv two devices", func(i int) string {
			h := ""
			if i == 0 {
				h = "timestamp;device;free_kb\n"
			}
			return h + fmt.Sprintf("2026-03-02T08:%02d:00Z;a;%d,5\n2026-03-02T08:%02d:00Z;b;80,25\n", i, 90-i, i)
		}, "free 73216 a;free 82176 b;t 1140", ""},
		{"pidstat", func(i int) string {
			return fmt.Sprintf("12:%02d:00      UID       PID  minflt/s  majflt/s     VSZ     RSS   %%MEM  Command\n12:%02d:00        0      1564      1.00      0.00  226580   %d   0.60  leakd\n\n", i, i, 100000+i)
		}, "used 102419456 leakd;t 1140", ""},
		{"prom labels", func(i int) string {
			return fmt.Sprintf("container_memory_working_set_bytes{pod=\"a-1\"} %d\ncontainer_memory_working_set_bytes{pod=\"b-1\"} 5000\n", 1000+i)
		}, "used 1019 a-1;used 5000 b-1", ""},
		{"sys topics", func(i int) string {
			return fmt.Sprintf("$SYS/broker/uptime %d seconds\n$SYS/broker/heap/current %d\n$SYS/broker/heap/maximum 9000\n", i*600, 5000+i)
		}, "used 5019;t 11400", ""},
		{"numbered heaps", func(i int) string {
			return fmt.Sprintf("heap 0: 0x20000000 (%d of 90000 free)\nheap 1: 0x30000000 (16384 of 16384 free)\n", 20000-i)
		}, "free 19981 0;free 16384 1", ""},
		{"status", func(i int) string {
			return fmt.Sprintf("VmPeak:\t  226580 kB\nVmSize:\t  226580 kB\nVmHWM:\t  %d kB\nVmRSS:\t  %d kB\nRssAnon:\t  9000 kB\n", 12000, 10000+i)
		}, "used 10259456;used 9216000", ""},
		{"wifi noise", func(i int) string {
			return fmt.Sprintf("I (%d) wifi: station %d joined, AID=1, %d clients, rssi -60, free slots 3\n", i*1000, i, i)
		}, "refuse", ""},
		{"oom margins", func(i int) string {
			return fmt.Sprintf("W (%d) mem: warning, free heap below limit of %d bytes\n", i*1000, 8000)
		}, "refuse", ""},
	} {
		var b strings.Builder
		for i := range 20 {
			b.WriteString(c.line(i))
		}
		res := Read(strings.NewReader(b.String()))
		var miss []string
		for _, w := range strings.Split(c.want, ";") {
			p := strings.Fields(w)
			ok := false
			for _, s := range res.Series {
				n := len(s.Values)
				switch {
				case p[0] == "refuse" || p[0] == "t" && s.Quantity != Used && s.Quantity != Free:
				case p[0] == "t":
					d := (s.At[n-1].seconds() - s.At[0].seconds())
					ok = ok || fmt.Sprintf("%.0f", d) == p[1]
				default:
					ok = ok || string(s.Quantity) == p[0] && fmt.Sprintf("%.0f", s.Values[n-1]) == p[1] && n == 20 && (len(p) < 3 || strings.Contains(s.Source+" "+s.Heap, p[2]))
				}
			}
			if p[0] == "refuse" {
				ok = len(res.Series) == 0 && res.Refusal != ""
			}
			if !ok {
				miss = append(miss, w)
			}
		}
		if miss != nil {
			t.Errorf("%s: missing %v (%s)", c.name, miss, res.Refusal)
			for _, s := range res.Series {
				t.Logf("   %s %q %q n=%d %v..%v", s.Quantity, s.Source, s.Label, len(s.Values), s.Values[0], s.Values[len(s.Values)-1])
			}
		}
	}
}

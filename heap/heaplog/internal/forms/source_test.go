package forms

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// sources are lines of several devices or processes: k is the number of one, and v what is free.
var sources = map[string]func(at time.Time, k, v int) string{
	"colon": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + places[k] + fmt.Sprint(": free heap: ", v)
	},
	"bracket": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 [") + places[k] + fmt.Sprint("] free heap: ", v)
	},
	"syslog": func(at time.Time, k, v int) string {
		return at.Format("Jan _2 15:04:05 ") + places[k] + fmt.Sprint(" app[12]: free heap: ", v)
	},
	"topic": func(_ time.Time, k, v int) string { return fmt.Sprintf("home/%s/heap/free %d", places[k], v) },
	"topic, JSON": func(at time.Time, k, v int) string {
		return fmt.Sprintf(`tele/%s/STATE {"Time":"%s","freeHeap":%d}`, places[k], at.Format(time.RFC3339), v)
	},
	"JSON": func(at time.Time, k, v int) string {
		return fmt.Sprintf(`{"time":"%s","device":"%s","free_heap":%d}`, at.Format(time.RFC3339), places[k], v)
	},
	"JSON, id": func(at time.Time, k, v int) string {
		return fmt.Sprintf(`{"time":"%s","id":%d,"free_heap":%d}`, at.Format(time.RFC3339), k+1, v)
	},
	"key=value": func(at time.Time, k, v int) string {
		return fmt.Sprintf("time=%s dev=%s free=%d heap=1", at.Format(time.RFC3339), places[k], v)
	},
	"MAC":     func(_ time.Time, k, v int) string { return fmt.Sprintf("AA:BB:CC:00:11:%02X free heap %d", k, v) },
	"node-1":  func(_ time.Time, k, v int) string { return fmt.Sprintf("node-%d free heap %d", k, v) },
	"node 1:": func(_ time.Time, k, v int) string { return fmt.Sprintf("node %d: free heap %d", k, v) },
	"PID": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("app[%d]: rss %d kB", 1000+k, 400000-v)
	},
	"pid=": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("pid=%d rss=%d kB", 1000+k, 400000-v)
	},
	"Influx": func(at time.Time, k, v int) string {
		return fmt.Sprintf("esp,host=%s free_heap=%di %d", places[k], v, at.UnixNano())
	},
	"Prometheus": func(at time.Time, k, v int) string {
		return fmt.Sprintf(`esp_free_heap_bytes{device="%s"} %d %d`, places[k], v, at.UnixMilli())
	},
	"compose": func(at time.Time, k, v int) string {
		return places[k] + "-1  | " + at.Format(time.RFC3339) + fmt.Sprint(" free heap: ", v)
	},
	"address": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("192.168.1.%d:5683 free heap %d", 10+k, v)
	},
	"0x": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("device 0x%04x free heap %d", 0xa1b0+k, v)
	},
	"tty": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("/dev/ttyUSB%d: free heap %d", k, v)
	},
	"behind": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("free heap %d on %s", v, places[k])
	},
	"UUID": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("dev 3f2a9c1e-0000-4000-8000-00000000000%d free heap %d", k, v)
	},
	"hexadecimal": func(at time.Time, k, v int) string {
		return at.Format("2006-01-02 15:04:05 ") + fmt.Sprintf("24a160b3e9f%x free heap %d", k, v)
	},
}

var places = []string{"kitchen", "garage", "attic", "cellar", "porch"}

// TestSources interleaves two to five devices, of whose lines one in twenty is damaged. Each device is a series of its
// own, and its last value is true. Some lines may be damaged alike.
func TestSources(t *testing.T) {
	for name, line := range sources {
		for n := 2; n <= 5; n++ {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			var b strings.Builder
			want := map[float64]bool{}
			for i := range 60 {
				for k := range n {
					v := 50000 + 1000*k + i%7
					if k == 0 {
						v = 90000 - 100*i
					}
					text := line(time.Date(2026, 3, 2, 8, i, 0, 0, time.UTC), k, v)
					if i == 59 {
						last := float64(v)
						if strings.Contains(text, "kB") {
							last = float64(400000-v) * 1024
						}
						want[last] = true
					} else if i > 0 && r.IntN(20) == 0 {
						text = damageLine(r, text)
					}
					b.WriteString(text + "\n")
				}
			}
			list := Read(strings.NewReader(b.String())).Heaps
			strays := 0
			for _, h := range list {
				last := h.Reports[len(h.Reports)-1]
				switch v := max(last.Free, last.Used); {
				case want[v]:
					delete(want, v)
				case len(h.Reports) <= 2*few: // damaged alike
					strays++
				default:
					t.Errorf("%s, %d devices: %q %q: %+v", name, n, h.Source, h.Name, last)
				}
			}
			if len(want) > 0 || strays > 3 {
				t.Errorf("%s, %d devices: %v are missing, %d strays", name, n, want, strays)
			}
		}
	}
}

// damageLine loses some characters, changes one, or loses the rest.
func damageLine(r *rand.Rand, s string) string {
	k := r.IntN(len(s))
	switch r.IntN(5) {
	case 0:
		return s[:k]
	case 1, 2:
		return s[:k] + "~" + s[k+1:]
	}
	return s[:k] + s[min(len(s), k+1+r.IntN(5)):]
}

// A damaged name in a table is no process of its own, but one that differs in a digit is.
func TestDamagedNames(t *testing.T) {
	var b strings.Builder
	for i := range 60 {
		pod := "gateway-1"
		if i%30 == 29 {
			pod = "gat~way-1"
		}
		fmt.Fprintf(&b, "NAME        CPU(cores)   MEMORY(bytes)\n%s   5m           %dMi\ngateway-2   5m           30Mi\n", pod, 100+i)
	}
	list := Read(strings.NewReader(b.String())).Heaps
	if len(list) != 2 || list[0].Source != "gateway-1" || list[1].Source != "gateway-2" {
		t.Errorf("%d heaps", len(list))
	}
}

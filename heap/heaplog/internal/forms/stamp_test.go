package forms

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// dates are times at the beginning of lines, in the layouts of package time.
var dates = []string{
	"2006-01-02T15:04:05Z ", "2006-01-02T15:04:05.000+08:00 ", "2006-01-02 15:04:05,000 ", "2006-01-02T15:04:05.000000000Z ", "Jan 02 15:04:05 gw app[77]: ",
	"2006-01-02T15:04:05+0800 gw app[77]: ", "Jan 02 15:04:05.000000 gw app[77]: ", "Mon 2006-01-02 15:04:05 UTC gw app[77]: ", "<88>9 2006-01-02T15:04:05.000Z gw app 77 - - ",
	"<88>Jan _2 15:04:05 gw app[77]: ", "Jan 02 15:04:05 ", "15:04:05.000000 ", "15:04:05.000 APP: ", "[15:04:05] ", "01-02 15:04:05 I/app main: ", "01-02 15:04:05.000 I/app: ",
	"I (15:04:05.000) app: ", "[Mon Jan _2 15:04:05 2006] app: ", "[2006-01-02 15:04:05] ", "[Mon Jan 02 15:04:05.000 2006] ", "2006-01-02 15:04:05\t", "1/2/2006 03:04:05 PM ", "01/02/2006 15:04:05 ",
	"02.01.2006 15:04:05 ", "[02.01.2006 15:04:05] ", "01-02 15:04:05.000  7788  7788 I App     : ", "2006/01/02 15:04:05 ", "I0102 15:04:05.000000  7788 main.cc:99] ", "2006-01-02 15:04:05.000 | INFO     | app:main:99 - ",
	"[Mon Jan 02 15:04:05.000000 2006] [app:info] [pid 88] ", "[02/Jan/2006:15:04:05 +0000] ", "Jan 02, 2006 03:04:05 PM app main INFO: ", "15:04:05.000 [main] INFO app - ", "[2006-01-02T15:04:05Z INFO  app] ",
	"0|app  | 2006-01-02T15:04:05: ", "app-9  | 2006-01-02T15:04:05.000Z ", "[pod/web-9/app] 2006-01-02T15:04:05.000Z ", "[Jan _2 15:04:05.000] main.c:99 ", "[15:04:05][D][debug:077]: ", "15:04:05.000 -> ", "15:04:05.000 > ", "02-01-2006 15:04:05 ",
	`time=2006-01-02T15:04:05Z level=info `, `{"ts":"2006-01-02T15:04:05Z"} `,
}

// TestStamps reads 20 lines, one per minute, behind each form of a time.
func TestStamps(t *testing.T) {
	uptimes := map[string]float64{"[%6.0f][I][main.cpp:10] loop(): ": 1000, "[%06.0f] [MAIN] ": 1000, "I (%.0f) app: ": 1000, "[%12.6f] app: ": 1, "%.0f ms: ": 1000, "[Info]\t(%.3f, +60000)\t app: ": 1,
		"uptime %.0f s, ": 1, "uptime_ms=%.0f ": 1000, "DEBUG | ??:??:?? %.0f [Power] ": 1}
	epochs := map[string]float64{"%.0f ": 1, "%.0f: ": 1e6, "%.0f\t": 1e9, "[%.0f] ": 1, "[%.3f] ": 1, "%.3f gw app[123]: ": 1}
	lines := map[string]func(minute int) string{"[HH:MM:SS.mmm,uuu]": func(m int) string { return fmt.Sprintf("[00:%02d:05.123,000] <inf> app: ", m) }, "WLED": func(m int) string { return fmt.Sprintf("Runtime: %d\n", 60000*m+3000) }}
	for _, layout := range dates {
		lines[layout] = func(m int) string { return time.Date(2026, 3, 2, 8, m, 0, 0, time.UTC).Format(layout) }
	}
	for form, unit := range uptimes {
		lines[form] = func(m int) string { return fmt.Sprintf(form, unit*float64(60*m+300)) }
	}
	for form, unit := range epochs {
		lines[form] = func(m int) string { return fmt.Sprintf(form, unit*float64(60*m+1772438400)) }
	}
	for name, line := range lines {
		var b strings.Builder
		for m := range 20 {
			fmt.Fprintf(&b, "%sfree heap: %d bytes\n", line(m), 90000-100*m)
		}
		list := Read(strings.NewReader(b.String())).Heaps
		if len(list) != 1 || len(list[0].Reports) != 20 {
			t.Errorf("%q: %d heaps", name, len(list))
			continue
		}
		r := list[0].Reports
		_, dated := r[0].Date()
		_, since := r[0].SinceBoot()
		if d := r[19].seconds() - r[0].seconds(); d < 1139.9 || d > 1140.1 || r[19].Free != 88100 || !dated && !since || r[19].Boot != 1 {
			t.Errorf("%q: %.1f s, %v bytes, boot %d", name, d, r[19].Free, r[19].Boot)
		}
	}
}

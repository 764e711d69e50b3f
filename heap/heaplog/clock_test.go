package heaplog_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// clockForms write the time of a line: since the boot, and of a clock on the wall.
var clockForms = []struct {
	name string
	line func(up time.Duration, wall time.Time, text string) string
}{
	{"ESP-IDF", func(up time.Duration, _ time.Time, text string) string {
		return fmt.Sprintf("\x1b[0;32mI (%d) app: %s\x1b[0m", uint32(up.Milliseconds()), text)
	}},
	{"Linux", func(up time.Duration, _ time.Time, text string) string {
		return fmt.Sprintf("[%12.6f] %s", up.Seconds(), text)
	}},
	{"Zephyr", func(up time.Duration, _ time.Time, text string) string {
		return fmt.Sprintf("[%02d:%02d:%02d.%03d,000] <inf> app: %s", int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60, up.Milliseconds()%1000, text)
	}},
	{"Arduino", func(_ time.Duration, wall time.Time, text string) string {
		return wall.Format("15:04:05.000") + " -> " + text
	}},
	{"ESP-IDF, time of the system", func(_ time.Duration, wall time.Time, text string) string {
		return "\x1b[0;32mI (" + wall.Format("15:04:05.000") + ") app: " + text + "\x1b[0m"
	}},
	{"ESP-IDF, date of the system", func(_ time.Duration, wall time.Time, text string) string {
		return "I (" + wall.Format("06-01-02 15:04:05.000") + ") app: " + text
	}},
	{"day first", func(_ time.Duration, wall time.Time, text string) string {
		return "[" + wall.Format("02.01.2006 15:04:05.000") + "] " + text
	}},
	{"day first, short", func(_ time.Duration, wall time.Time, text string) string {
		return wall.Format("2.1.2006, 15:04:05") + ": " + text
	}},
	{"ESPHome", func(_ time.Duration, wall time.Time, text string) string {
		return wall.Format("[15:04:05]") + "[D][app:012]: " + text
	}},
	{"ISO 8601", func(_ time.Duration, wall time.Time, text string) string {
		return wall.Format("2006-01-02T15:04:05.000Z") + " app[7]: " + text
	}},
	{"libwebsockets", func(_ time.Duration, wall time.Time, text string) string {
		return "[" + wall.Format("2006/01/02 15:04:05") + ":0123] N: " + text
	}},
	{"syslog", func(_ time.Duration, wall time.Time, text string) string {
		return wall.Format("Jan _2 15:04:05") + " gw app[7]: " + text
	}},
}

// clockLog is a log without times in its headers: a leak of 100 bytes per dump, each half an hour.
// The device boots a second time after 20 dumps. In each form, a line of another task may stand
// between that of the time and the dump.
func clockLog(line func(up time.Duration, wall time.Time, text string) string, ahead bool) string {
	var b strings.Builder
	wall := time.Date(2025, 12, 31, 13, 7, 5, 0, time.UTC)
	for range 2 {
		up := 49*24*time.Hour + 10*time.Hour // ms of 32 bits wrap after 49.7 days
		for dump := range 20 {
			up, wall = up+30*time.Minute, wall.Add(30*time.Minute)
			text := fmt.Sprintf("~h#begin %d", dump)
			if ahead {
				fmt.Fprintf(&b, "%s\n  other text 7\n%s\n", line(up, wall, "dump"), text)
			} else {
				fmt.Fprintf(&b, "%s\n", line(up, wall, text))
			}
			for range 5 + dump {
				b.WriteString("~b#size: 100, 0x1100 0x5000\n")
			}
			fmt.Fprintf(&b, "~h#end %d n=%d\n", dump, 5+dump)
		}
		wall = wall.Add(time.Hour)
	}
	return b.String()
}

// The rate is per hour wherever lines have times.
func TestTimesOfLines(t *testing.T) {
	for _, form := range clockForms {
		for _, ahead := range []bool{false, true} {
			a := answerTo(t, []byte(clockLog(form.line, ahead)))
			if !a.timed || a.boots != 2 || a.used != 40 || math.Abs(a.rate-200) > 0.1 || len(a.verdicts) != 1 {
				t.Errorf("%s, above the dump %t: %+v, want 200 bytes per hour", form.name, ahead, a)
			}
		}
	}
}

// An uptime that begins again is a reboot, even if nothing else tells it; a time of day is none.
func TestRebootByUptime(t *testing.T) {
	for _, form := range clockForms[:3] {
		var b strings.Builder
		for dump := range 40 {
			up := time.Duration(1+dump%20) * time.Hour
			fmt.Fprintf(&b, "%s\n~h#begin %d\n", form.line(up, time.Time{}, "x"), dump)
			for range 5 + dump%20 {
				b.WriteString("~b#size: 100, 0x1100 0x5000\n")
			}
			fmt.Fprintf(&b, "~h#end %d n=%d\n", dump, 5+dump%20)
		}
		if a := answerTo(t, []byte(b.String())); a.boots != 2 || !a.timed || math.Abs(a.rate-100) > 0.1 || len(a.verdicts) != 1 {
			t.Errorf("%s: %+v, want 2 boots, 100 bytes per hour", form.name, a)
		}
	}
}

// Counters of 32 bits in t= wrap around: of microseconds after 71.6 minutes, of milliseconds after
// 49.7 days.
func TestWrappedHeaderTimes(t *testing.T) {
	for _, wrap := range []time.Duration{1 << 32 * time.Microsecond, 1 << 32 * time.Millisecond} {
		var b strings.Builder
		for dump := range 20 {
			at := (wrap/2 + time.Duration(dump)*wrap/16) % wrap
			fmt.Fprintf(&b, "~h#begin %d t=%d\n", dump, at.Microseconds())
			for range 5 + dump {
				b.WriteString("~b#size: 100, 0x1100 0x5000\n")
			}
			fmt.Fprintf(&b, "~h#end %d n=%d\n", dump, 5+dump)
		}
		want := 100 / (wrap / 16).Hours()
		if a := answerTo(t, []byte(b.String())); a.boots != 1 || !a.timed || math.Abs(a.rate/want-1) > 0.001 {
			t.Errorf("%v: %+v, want 1 boot, %.2f bytes per hour", wrap, a, want)
		}
	}
}

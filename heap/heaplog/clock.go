package heaplog

import (
	"bytes"
	"regexp"
	"strconv"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// clocks are the times that systems and terminals put into their lines. The names of the groups are
// the units; mon is the name of a month.
var clocks = []struct {
	*profile.Clock
	dayTime bool // it has hours and minutes, with a colon between them
	pattern string
}{
	// 2026-11-26 00:41:50.123, 2026-11-26T00:41:50, and 2026/11/26 of libwebsockets
	{&profile.Clock{Name: "date", Wall: true}, true, `(?P<year>\d{4})[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)[T ](?P<h>\d\d?):(?P<min>\d\d):(?P<s>\d\d)(?:[.,](?P<fraction>\d{1,9}))?`},
	// I (26-11-26 00:41:50.123) tag: of ESP-IDF with CONFIG_LOG_TIMESTAMP_SOURCE_SYSTEM_FULL
	{&profile.Clock{Name: "ESP-IDF date", Wall: true}, true, `(?:^|\W|\x1b\[[\d;]*m)[EWIDV] \((?P<yy>\d\d)-(?P<month>\d\d)-(?P<day>\d\d) (?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)(?:\.(?P<fraction>\d{1,9}))?\) `},
	// 26.11.2026 00:41:50, of terminals in Europe
	{&profile.Clock{Name: "day first", Wall: true}, true, `(?:^|\D)(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4}),? +(?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)(?:[.,](?P<fraction>\d{1,9}))?`},
	// Nov 26 00:41:50, of syslog
	{&profile.Clock{Name: "syslog", Wall: true, Wraps: []time.Duration{365 * 24 * time.Hour}}, true, `(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<day>\d{1,2}) (?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)`},
	// I (60000) tag: of ESP-IDF
	{&profile.Clock{Name: "ESP-IDF", Wraps: []time.Duration{1 << 32 * time.Millisecond}}, false, `(?:^|\W|\x1b\[[\d;]*m)[EWIDV] \((?P<ms>\d{1,10})\) `},
	// 60000 : Info : of ESPEasy, and programs that print millis() first
	{&profile.Clock{Name: "milliseconds", Wraps: []time.Duration{1 << 32 * time.Millisecond}}, false, `^(?:\x1b\[[\d;]*m)?(?P<ms>\d{3,10}) : [A-Za-z]`},
	// DEBUG | 12:00:01 122 [Power] of Meshtastic
	{&profile.Clock{Name: "Meshtastic"}, false, `\| (?:\d\d:\d\d:\d\d|\?\?:\?\?:\?\?) (?P<s>\d{1,9}) \[`},
	// [00:01:02.345,000] of Zephyr
	{&profile.Clock{Name: "Zephyr"}, true, `\[(?P<h>\d\d+):(?P<min>\d\d):(?P<s>\d\d)\.(?P<fraction>\d{3},\d{3})\]`},
	// [ 5921.4] of Linux and NuttX
	{&profile.Clock{Name: "seconds"}, false, `\[ *(?P<s>\d{1,9})\.(?P<fraction>\d{1,9})\]`},
	// 12:00:01.123 -> of Arduino's monitor, I (12:00:01.123) of ESP-IDF with CONFIG_LOG_TIMESTAMP_SOURCE_SYSTEM,
	// and [12:00:01] of others, at the beginning of the line
	{&profile.Clock{Name: "time of day", Wall: true, Wraps: []time.Duration{24 * time.Hour}}, true, `^(?:\x1b\[[\d;]*m)?(?:--- )?(?:[EWIDV] )?[\[(]?(?P<h>[012]\d):(?P<min>[0-5]\d):(?P<s>[0-5]\d)(?:[.,](?P<fraction>\d{1,9}))?(?:[\])]| |$)`},
}

// clockForms are the compiled expressions of clocks.
var clockForms = func() (list []*regexp.Regexp) {
	for _, c := range clocks {
		list = append(list, regexp.MustCompile(c.pattern))
	}
	return list
}()

// timeOfDay reports whether a line has a colon between digits.
func timeOfDay(line []byte) bool {
	for i := 1; i+1 < len(line); i++ {
		k := bytes.IndexByte(line[i:], ':')
		if k < 0 {
			return false
		}
		if i += k; i+1 < len(line) && line[i-1] >= '0' && line[i-1] <= '9' && line[i+1] >= '0' && line[i+1] <= '9' {
			return true
		}
	}
	return false
}

// stampOf returns the time of a match.
func stampOf(form *regexp.Regexp, line []byte, match []int) time.Duration {
	year, month, day, isDate := 2001, 1, 1, false
	at := time.Duration(0)
	for i, name := range form.SubexpNames() {
		if name == "" || match[2*i] < 0 {
			continue
		}
		text := line[match[2*i]:match[2*i+1]]
		n, _ := strconv.ParseInt(string(text), 10, 64) // ms of 32 bits do not fit an int
		switch name {
		case "year":
			year = int(n)
		case "yy": // 70 is that of a clock that is not set
			year = 1900 + int(n)
			if n < 70 {
				year += 100
			}
		case "month":
			month = int(n)
		case "mon":
			month = bytes.Index([]byte("JanFebMarAprMayJunJulAugSepOctNovDec"), text)/3 + 1
		case "day":
			day, isDate = int(n), true
		case "h":
			at += time.Duration(n) * time.Hour
		case "min":
			at += time.Duration(n) * time.Minute
		case "s":
			at += time.Duration(n) * time.Second
		case "ms":
			at += time.Duration(n) * time.Millisecond
		case "fraction":
			unit := time.Second
			for _, c := range text {
				if c != ',' {
					unit /= 10
					at += time.Duration(c-'0') * unit
				}
			}
		}
	}
	if isDate {
		at += time.Duration(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix()) * time.Second
	}
	return at
}

const (
	// maxTail is the number of bytes before a dump in which times are looked for.
	maxTail = 1024
	// maxStampLines is the number of lines before that of a dump.
	maxStampLines = 8
)

// tail is the end of the text that was read so far. Its text is valid as long as the item behind it.
type tail struct {
	text    []byte
	changes int // how often something but spaces was added
}

func (l *tail) add(text []byte) {
	if len(bytes.Trim(text, " ")) > 0 {
		l.changes++
	}
	text = text[max(0, len(text)-maxTail):]
	if len(l.text)+len(text) > 2*maxTail {
		l.text = l.text[:copy(l.text, l.text[len(l.text)-maxTail:])]
	}
	l.text = append(l.text, text...)
}

// stamps are the times in the text before an item.
type stamps struct {
	list []profile.Stamp
	of   int // the changes of the tail whose times they are, and 1
}

// before returns the last time of each clock: those in the line that has begun, before those of the
// lines above it. A line may have several reports.
func (s *stamps) before(l tail) []profile.Stamp {
	if s.of != l.changes+1 {
		*s = stamps{l.stamps(), l.changes + 1}
	}
	return s.list
}

func (l tail) stamps() (list []profile.Stamp) {
	rest := l.text
	seen := make([]bool, len(clocks))
	for range 1 + maxStampLines {
		at := bytes.LastIndexByte(rest, '\n')
		line := rest[at+1:]
		hasTime := timeOfDay(line)
		for i, c := range clocks {
			if seen[i] || len(line) < 8 || c.dayTime && !hasTime {
				continue
			}
			if match := clockForms[i].FindSubmatchIndex(line); match != nil {
				seen[i] = true
				list = append(list, profile.Stamp{Clock: c.Clock, At: stampOf(clockForms[i], line, match)})
			}
		}
		if at < 0 {
			break
		}
		rest = rest[:at]
	}
	return list
}

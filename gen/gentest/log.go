package gentest

import (
	"bytes"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
)

// Log is the text of a log and its records.
type Log struct {
	Text  []byte
	Blobs [][]byte // of the complete records, in order
}

// AnyLog generates a log with records among other text: after time stamps and levels,
// in colours, several per line, with both kinds of line end, truncated, and with text
// directly after them.
func AnyLog() *rapid.Generator[Log] {
	return rapid.Custom(func(t *rapid.T) Log {
		var l Log
		var b bytes.Buffer
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		for i := range rapid.IntRange(0, 20).Draw(t, "lines") {
			b.WriteString(prefix(i).Draw(t, "prefix"))
			switch rapid.IntRange(0, 9).Draw(t, "line") {
			case 0, 1:
				b.WriteString(rapid.SampledFrom(chatter).Draw(t, "text"))
			case 2:
				l.record(t, &b)
				b.WriteString(" ")
				l.record(t, &b)
			case 3:
				l.record(t, &b)
				b.WriteString("\x1b[0m")
			case 4:
				l.record(t, &b)
				b.WriteString(", heap 61440/98304")
			case 5:
				line := codec.AppendLine(nil, Blob().Draw(t, "blob"))
				b.Write(line[:rapid.IntRange(0, len(line)-5).Draw(t, "cut")])
			default:
				l.record(t, &b)
			}
			b.WriteString(end)
		}
		l.Text = b.Bytes()
		return l
	})
}

func (l *Log) record(t *rapid.T, b *bytes.Buffer) {
	blob := Blob().Draw(t, "blob")
	l.Blobs = append(l.Blobs, blob)
	b.Write(codec.AppendLine(nil, blob))
}

var chatter = []string{
	"", "wifi: connected, rssi -61", "N: lws_create_context: LWS 5.0.0", "~", "~m", "~b", "m#",
	"heap ~ 61 kB", strings.Repeat("=", 70), "\x1b[33mW: low memory\x1b[0m", "\x00\x00\xff\xfe", "ünï",
}

func prefix(line int) *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"", fmt.Sprintf("[%5d.%03d] ", line/10, line%10*100), "2026/01/31 10:15:02:1234 N: ",
		"\x1b[32mI (4711) heap:\x1b[0m ", "<6>", "\t",
	})
}

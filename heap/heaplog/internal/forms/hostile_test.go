package forms

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Logs made to take time or memory have few series, and none that is judged.
func TestHostile(t *testing.T) {
	for name, b := range map[string][]byte{
		"16 MB line":  bytes.Repeat([]byte("free heap: 1 "), 16<<20/13),
		"NUL":         bytes.Repeat([]byte("free\x00heap: 12\x00\n"), 1000),
		"10^6 commas": append(bytes.Repeat([]byte("a,"), 30000), '\n'),
		"templates": func() []byte {
			var b bytes.Buffer
			for i := range 200000 {
				fmt.Fprintf(&b, "free heap x%c%c%c: %d bytes\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, i)
			}
			return b.Bytes()
		}(),
		"braces":    bytes.Repeat(append(bytes.Repeat([]byte("a{free heap 1("), 4500), '\n'), 50),
		"digits":    bytes.Repeat([]byte("free heap: 99999999999999999999999999999999999999999999\n"), 100),
		"encodings": bytes.Repeat([]byte("free heap: \xff\xfe1234 \xc2\xe2\x80\n"), 100),
	} {
		most := map[string]int{"NUL": 1, "templates": 4096, "braces": 4096}[name] // the others have no number of a line
		start := cmdtest.ProcessorTime()
		res := Read(bytes.NewReader(b))
		if len(res.Series) > most || res.Refusal == "" {
			t.Errorf("%s: %d series, want at most %d; refusal %.60q", name, len(res.Series), most, res.Refusal)
		}
		if took := cmdtest.ProcessorTime() - start; took > 30*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func bench(b *testing.B, line func(i int) string) {
	var w bytes.Buffer
	for i := range 200000 {
		w.WriteString(line(i))
	}
	b.SetBytes(int64(w.Len()))
	for b.Loop() {
		Read(bytes.NewReader(w.Bytes()))
	}
}

func BenchmarkLevels(b *testing.B) {
	bench(b, func(i int) string {
		return fmt.Sprintf("2026-03-02 %02d:%02d:%02d kitchen: free heap: %d\n", i/3600%24, i/60%60, i%60, 90000-i%1000)
	})
}
func BenchmarkNoise(b *testing.B) {
	bench(b, func(i int) string {
		return fmt.Sprintf("I (%d) httpd: GET /api/v1/state from 192.168.1.%d took %d ms, status %d\n", i*10, i%250, i%97, 200)
	})
}
func BenchmarkPS(b *testing.B) {
	bench(b, func(i int) string {
		if i%100 == 0 {
			return "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
		}
		return fmt.Sprintf("nginx      %d 48.4  3.5 363824 %d ?       S<   Mar01   0:39 nginx: worker process\n", 24000+i%100, 82076+i/100)
	})
}

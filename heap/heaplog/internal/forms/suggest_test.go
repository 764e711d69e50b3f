package forms

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

// A log of which nothing is read gets an expression that reads the number it names.
func TestSuggestion(t *testing.T) {
	for _, c := range []struct{ line, number, free string }{
		{"loop heap size: %d", "27336", "free=27336"},
		{"I (7544) HTTP_CLIENT: Free space: %d", "234940", "free=234940"},
		{"13:30:39.719 -> AARD:1: <- AK 30b Q=0 FH=%d MB=67356", "222892", "free=222892"},
		{"Freier Heap: %d Bytes", "41232", "free=41232"},
		{"10:00:00;[HEAP];%d;(free)", "123456", "free=123456"},
		{"Free heap: 0x%X", "A110", "free=41232"},
		{"PSRAM %d / 4194304", "4000000", "free=4000000"},
		{"'Free Memory': Sending state %d.94000 kB with 2 decimals", "118", "free=121795"},
		{"it's free heap %d", "41232", ""}, // read without an expression
		{"wifi: rssi -%d", "61", ""},
		{"malloc, left free: %d", "41232", "free=41232"},
		{"mem RSS: %d kB", "8120", ""}, // grows while what is free falls
		{"Alloc = 12 MiB TotalAlloc = %d MiB", "130", ""},
		{"heap used=%d heap left=20000", "8120", ""},
		{"Memory usage after iteration: %d.5 MiB", "137", "used=144179200"},
		{"peak memory used: %d", "41232", ""},
		{"heap used: %d objects", "41232", "used=41232"},
		{"no number, free heap", "", ""},
	} {
		var log strings.Builder
		n := 0
		fmt.Sscanf(c.number, "%d", &n)
		if strings.Contains(c.line, "%X") {
			n = 0xA110
		}
		for i := range 5 {
			if strings.Contains(c.line, "%") {
				fmt.Fprintf(&log, c.line+"\n", n-i)
			}
			log.WriteString("wifi: beacon 12345\n")
		}
		r, err := NewReader(strings.NewReader(log.String()), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		x, ok := r.Suggestion()
		if ok != (c.free != "") {
			t.Errorf("%s: suggestion %+v, %t", c.line, x, ok)
			continue
		}
		if !ok {
			continue
		}
		if !strings.Contains(x.Number, c.number) || !strings.Contains(x.Line, x.Number) {
			t.Errorf("%s: number %s in %q", c.line, x.Number, x.Line)
		}
		if got, _, _ := strings.Cut(heapsOf(t, log.String(), regexp.MustCompile(x.Expr)), "\n"); got != c.free {
			t.Errorf("%s: %s reads %q, want %q", c.line, x.Expr, got, c.free)
		}
	}
}

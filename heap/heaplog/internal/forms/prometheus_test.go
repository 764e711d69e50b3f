package forms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestRangeQuery: an answer of Prometheus in one long line, or as jq prints it. Each pod is a series of its own.
func TestRangeQuery(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"status":"success","data":{"resultType":"matrix","result":[`)
	for k, pod := range []string{"web-1", "web-2"} {
		fmt.Fprintf(&b, `%s{"metric":{"__name__":"process_resident_memory_bytes","instance":"10.0.0.%d:9090","pod":"%s"},"values":[`, strings.Repeat(",", k), k, pod)
		for i := range 5000 {
			fmt.Fprintf(&b, `%s[%d,"%d"]`, strings.Repeat(",", min(i, 1)), 1640000000+15*i, 26000000+i*(1-k))
		}
		b.WriteString("]}")
	}
	b.WriteString("]}}\n")
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(b.String()), "", "  "); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{b.String(), pretty.String()} {
		list := Read(strings.NewReader(text + "free heap: 41232\n")).Heaps
		if len(list) != 3 {
			t.Fatalf("%d series, expected 3", len(list))
		}
		for k, h := range list[:2] {
			last := h.Reports[len(h.Reports)-1]
			if want := float64(26000000 + 4999*(1-k)); !strings.Contains(h.Source, fmt.Sprintf("web-%d", k+1)) || !h.Used || last.Used != want || last.seconds() != 1640074985 || h.Total != 5000 {
				t.Errorf("%q: %d, %v at %v, expected %v", h.Source, h.Total, last.Used, last.seconds(), want)
			}
		}
	}
}

// An answer that was cut costs its lines only, and so does a line that names a key of one.
func TestCutQuery(t *testing.T) {
	for _, cut := range []string{
		queryStart + `"matrix","result":[{"metric":{"__name__":"heap_free"},"values":[[1640000000,"1"],[16400`,
		"{\n  \"status\": \"success\",\n  \"data\": {\n    \"resultType\": \"matrix\",\n    \"result\": [\n      {",
		`GET /query returned {"resultType":"matrix"`,
	} {
		list := Read(strings.NewReader(cut + "\n" + strings.Repeat("[12:00:00] free heap: 41232 bytes\n", 20))).Heaps
		if len(list) != 1 || list[0].Total != 20 {
			t.Errorf("%q: %d heaps", cut, len(list))
		}
	}
}

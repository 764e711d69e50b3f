package forms

import (
	"bytes"
	"testing"
)

func FuzzRead(f *testing.F) {
	for _, s := range []string{"free heap: 1,23,456 bytes\n", "Mem: 1K used, 2K free\n", "a;free_kb\n1;2,5\n", "PID RSS COMMAND\n1 2 x y\n", "x{a=\"b\"} 2.6e+07 1772000000\n", "[00:00:01.000,000] <inf> m: heap free: 22c0\n", "heap: 5/9 free\n", "total used free\nMem: 1 2 3\n", "MEM USAGE / LIMIT   PID\n1MiB / 2MiB   3\n", `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"heap_free"},"values":[[1640000000,"1"]]}]}}` + "\n", "app-1 | 2026-01-01T00:00:00Z app[12]: free heap 5/7/9 12:00:01 AM\n", "time=2026-01-01T00:00:00Z 3f2a9c1e-0000-4000-8000-000000000001 free heap 10.0.0.1:80 7\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		res := Read(bytes.NewReader(b))
		for _, s := range res.Series {
			if len(s.Values) == 0 || len(s.Values) != len(s.At) {
				t.Fatalf("%+v", s)
			}
		}
	})
}

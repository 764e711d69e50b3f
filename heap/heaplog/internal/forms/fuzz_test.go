package forms

import (
	"bytes"
	"testing"
)

func FuzzRead(f *testing.F) {
	for _, s := range []string{"free heap: 1,23,456 bytes\n", "Mem: 1K used, 2K free\n", "a;free_kb\n1;2,5\n", "PID RSS COMMAND\n1 2 x y\n", "x{a=\"b\"} 2.6e+07 1772000000\n", "[00:00:01.000,000] <inf> m: heap free: 22c0\n", "heap: 5/9 free\n", "total used free\nMem: 1 2 3\n", "MEM USAGE / LIMIT   PID\n1MiB / 2MiB   3\n"} {
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

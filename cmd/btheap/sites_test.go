package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// top prints the same whether or not it keeps call paths, which it does with a filter, on
// one processor and on two.
func TestTopWithoutCallPaths(t *testing.T) {
	files, err := filepath.Glob("../../corpus/captures/*.log*")
	if err != nil || len(files) < 4 {
		t.Fatal(err, files)
	}
	files = append(files, "../../corpus/serial.log", logFile(t, "leak.log", leaking(t, true)), logFile(t, "leak2.log", leaking(t, false)))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, path := range files {
		for _, flags := range []string{"", "--cum -n 0", "--by function", "--by address --weight count", "--by file", "--dump all", "--dump 1", "--max-paths 20 -n 0"} {
			if os.Getenv("LWSBT_FULL") == "" && i > 0 && i < 4 && flags != "" {
				continue
			}
			args := append([]string{"top", path}, strings.Fields(flags)...)
			want, wantErrs, wantCode := command("", append(args, "--ignore", "no such")...)
			wantErrs = strings.Replace(wantErrs, "btheap: --ignore no such: matches no frame\n", "", 1)
			for n := range 2 {
				runtime.GOMAXPROCS(n + 1)
				if got, errs, code := command("", args...); got != want || errs != wantErrs || code != wantCode {
					t.Errorf("%v, %d processors: exit code %d, want %d\n%s%s\nwant\n%s%s", args, n+1, code, wantCode, got, errs, want, wantErrs)
				}
			}
		}
	}
}

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/figures"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Programs of musl have as many allocations and frees in their recordings as a preloaded library counts
// that does nothing else, and print what they print alone.
func TestMusl(t *testing.T) {
	input := os.Args[0] // of some size
	for _, c := range []struct{ source, args string }{
		{"linux/musl.c", ""},
		{"linux/threads.c", "50 100"},
		{"lifetimes.c", ""},
		{"paths.c", "8"},
		{"paths.c", "8 keep"},
		{"linux/waits.c", "0"},
		{"musl/words.c", input},
		{"musl/interpreter.c", "300"},
		{"musl/pools.c", "500"},
		{"musl/files.c", "/usr/include"},
	} {
		t.Run(strings.TrimSuffix(c.source, ".c")+" "+strings.ReplaceAll(c.args, "/", "_"), func(t *testing.T) {
			program := append([]string{compile(t, "musl-gcc", c.source, "-O1", "-fno-builtin", "-w", "-pthread", "-Wl,--build-id")}, strings.Fields(c.args)...)
			allocs, frees, want := counted(t, program)
			r := recorded(t, append([]string{"--"}, program...)...)
			if r.code != 0 || r.out != want {
				t.Errorf("exit status %d, %d bytes of output, alone %d: %s", r.code, len(r.out), len(want), r.errs)
			}
			counts := fmt.Sprintf("%s, %s, peak", printable.Count(allocs, "allocation"), printable.Count(frees, "free"))
			if !strings.Contains(r.errs, counts) {
				t.Errorf("the other library counts %s: %s", counts, r.errs)
			}
			dumps := read(t, r.file)
			last := dumps[len(dumps)-1]
			var all uint64
			for a := range last.Allocations() {
				all += a.Count
			}
			if whole := through(last, "main").Count + through(last, "run").Count + through(last, "runs").Count; whole != all {
				t.Errorf("%d of %d blocks have a whole call path", whole, all)
			}
		})
	}
}

// counted runs a program of musl alone, and returns what the counting library counts, and its output. Its environment
// has as many variables as under btrecord: programs copy them.
func counted(t *testing.T, program []string) (allocs, frees uint64, out string) {
	t.Helper()
	alone := exec.Command(program[0], program[1:]...)
	alone.Env = append(os.Environ(), "LWSBT_COUNT=/proc/12345/fd/8", "LD_PRELOAD="+compile(t, "musl-gcc", "count.c", "-O1", "-fPIC", "-shared", "-w"))
	var errs strings.Builder
	alone.Stderr = &errs
	text, err := alone.Output()
	_, numbers, _ := strings.Cut(errs.String(), "counted ")
	if _, e := fmt.Sscan(numbers, &allocs, &frees); err != nil || e != nil || allocs == 0 {
		t.Fatalf("%v: %q", err, errs.String())
	}
	return allocs, frees, string(text)
}

// muslPrograms are what programs of musl that others wrote do.
var muslPrograms = []struct {
	name string
	args []string
}{
	{"lua", []string{"lua", "-e", `local t = {} for i = 1, 20000 do t[i % 500] = {name = "x" .. i, list = {i, i + 1}} end print(#t)`}},
	{"dash", []string{"dash", "-c", `i=0; while [ $i -lt 3000 ]; do x="v$i $x"; x=${x%% *}; eval "y_$i=\$x"; i=$((i+1)); done; echo $x`}},
	{"mawk", []string{"mawk", `BEGIN { for (i = 0; i < 20000; i++) a[i % 97] = a[i % 97] i; for (k in a) n += length(a[k]); print n }`}},
	{"gawk", []string{"gawk", `BEGIN { for (i = 0; i < 20000; i++) a[i % 97] = a[i % 97] i; for (k in a) n += length(a[k]); print n }`}},
	{"m4", []string{"m4", "-DN=`define(`f',`ifelse($1,0,0,`f(decr($1))')')f(300)'", "/dev/null"}},
	{"bc", []string{"bc", "-l", "-q", "PI.bc"}},
	{"xz, two threads", []string{"xz", "-T2", "-c", "PI.bc"}},
	{"sqlite3", []string{"sqlite3", ":memory:", `create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
insert into t select i, 'row ' || i from n; select count(*), sum(a) from t where b like '%7%';`}},
	{"busybox sort", []string{"busybox", "sort", "-n", "-r", "/usr/include/stdio.h"}},
	{"busybox ash", []string{"busybox", "ash", "-c", `i=0; while [ $i -lt 2000 ]; do eval "y_$i=v$i"; i=$((i+1)); done; echo $i`}},
	{"busybox find", []string{"busybox", "find", "/usr/include/linux"}},
	{"busybox tar", []string{"busybox", "tar", "-cf", "-", "/usr/include/linux"}},
	{"nginx", []string{"nginx", "-t", "-q", "-p", ".", "-c", "nginx.conf"}},
}

// TestMuslPrograms writes a table of the programs that are in the directory LWSBT_MUSL.
func TestMuslPrograms(t *testing.T) {
	dir := os.Getenv("LWSBT_MUSL")
	if dir == "" {
		t.Skip("LWSBT_MUSL names no directory with programs of musl")
	}
	compile(t, "musl-gcc", "count.c", "-O1", "-fPIC", "-shared", "-w")
	document, err := filepath.Abs("../../FIGURES.md")
	t.Chdir(t.TempDir())
	err = errors.Join(err, os.WriteFile("PI.bc", []byte("scale=200\n4*a(1)\nfor(i=0;i<2000;i++) x=x*3%1000003\nx\nquit\n"), 0o600), os.Mkdir("logs", 0o700),
		os.WriteFile("nginx.conf", []byte("events {}\nhttp { access_log off; server { listen 127.0.0.1:18080; root /; } }\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| program | allocations | by the other library | frees | by the other library |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, p := range muslPrograms {
		program := append([]string{filepath.Join(dir, p.args[0])}, p.args[1:]...)
		if _, err := os.Stat(program[0]); err != nil {
			t.Logf("left out: %v", err)
			continue
		}
		allocs, frees, want := counted(t, program)
		r := recorded(t, append([]string{"-q", "--"}, program...)...)
		s := recordedTotals(t, r.file)
		if r.code != 0 || r.out != want || s.allocs != int64(allocs) || s.frees != int64(frees) {
			t.Errorf("%s: exit status %d, %d allocations, %d frees, want %d and %d: %s", p.name, r.code, s.allocs, s.frees, allocs, frees, r.errs)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", p.name, printable.Number(s.allocs), printable.Number(allocs), printable.Number(s.frees), printable.Number(frees))
	}
	figures.Check(t, document, "programs of musl", table.String())
}

func TestMuslStatic(t *testing.T) {
	program := compile(t, "musl-gcc", "lifetimes.c", "-O1", "-w", "-static")
	if r := recorded(t, "-q", "--", program); r.code != 125 || !strings.Contains(r.errs, "is a static program") {
		t.Errorf("exit status %d: %s", r.code, r.errs)
	}
}

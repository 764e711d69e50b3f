//go:build linux

package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// comparedProgram is a program of the system whose allocations are the same in each run.
type comparedProgram struct {
	name  string
	args  []string
	stdin string
}

func comparedPrograms(t testing.TB) []comparedProgram {
	program := compile(t, "g++", "compare.cc", "-O2")
	return []comparedProgram{
		{name: "perl", args: []string{"perl", "-e", `my %h; for my $i (1..20000) { my %r=(a=>"x$i",b=>[1,2,3]); push @{$h{$i%100}},\%r if $i%10==0; }`}},
		{name: "sqlite3", args: []string{"sqlite3", ":memory:"}, stdin: `
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t select i, 'row '||i, i*1.5 from n;
create index ti on t(b);
select count(*), sum(c) from t where b like '%7%' group by a%10 order by 2;`},
		{name: "python3", args: []string{"/usr/bin/python3", "-X", "utf8", "-"}, stdin: `
import json,collections
d=collections.defaultdict(list)
for i in range(20000):
    d[i%100].append(json.loads(json.dumps({'a':i,'b':[str(i)]*3})))`},
		{name: "a C++ program", args: []string{program}},
		{name: "bc", args: []string{"bc", "-q"}, stdin: "scale=200\nfor (i = 1; i < 2000; i++) s = s + sqrt(i)/i\ns\n"},
		{name: "objdump -dl", args: []string{"objdump", "-d", "-l", program}},
		{name: "openssl", args: []string{"openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=test", "-keyout", "/dev/null", "-out", "/dev/null"}},
		{name: "awk", args: []string{"awk", `BEGIN { for (i = 0; i < 20000; i++) { n[i % 700] = n[i % 700] " " i; if (i % 50 == 0) delete n[i % 700] } for (k in n) s += length(n[k]); print s }`}},
	}
}

// under runs the program under a tool. It returns its standard error, and the CPU seconds of
// all processes.
func (p comparedProgram) under(t testing.TB, tool ...string) (stderr string, cpu float64) {
	t.Helper()
	args := append(tool, p.args...)
	if _, err := exec.LookPath(p.args[0]); err != nil {
		t.Skipf("%v", err)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PERL_HASH_SEED=0", "PYTHONHASHSEED=0", "LC_ALL=C.UTF-8",
		"XDG_CACHE_HOME=" + shared, "LWSBT_TEST_BTRECORD=1"}
	c.Stdin = strings.NewReader(p.stdin)
	var errs strings.Builder
	c.Stderr = &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%q: %v: %s", args, err, errs.String())
	}
	s := c.ProcessState
	return errs.String(), (s.UserTime() + s.SystemTime()).Seconds()
}

// heapTotals are sums over a whole run, and the live bytes at its peak and end.
type heapTotals struct{ allocs, frees, bytes, peak, left int64 }

// recordedTotals reads the totals of a recording.
func recordedTotals(t *testing.T, file string) (s heapTotals) {
	r, err := heaplog.Open(t.Context(), heaplog.Files(file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Kind == recording.KindHeader && it.Header.Verb == "total" {
			number := func(key string) int64 { v, _ := it.Header.Uint(key); return int64(v) }
			s = heapTotals{number("allocs"), number("frees"), number("bytes"), number("peak"), number("live")}
		}
	}
	return s
}

var dhatTotal = regexp.MustCompile(`(?m)(Total|At t-gmax|At t-end): +([0-9,]+) bytes in ([0-9,]+) blocks`)

// dhatTotals reads what valgrind prints.
func dhatTotals(text string) (s heapTotals) {
	for _, m := range dhatTotal.FindAllStringSubmatch(text, -1) {
		bytes, _ := strconv.ParseInt(strings.ReplaceAll(m[2], ",", ""), 10, 64)
		blocks, _ := strconv.ParseInt(strings.ReplaceAll(m[3], ",", ""), 10, 64)
		switch m[1] {
		case "Total":
			s.bytes, s.allocs = bytes, blocks
		case "At t-gmax":
			s.peak = bytes
		case "At t-end":
			s.left, s.frees = bytes, s.allocs-blocks
		}
	}
	return s
}

// heaptrackTotals adds up a file of heaptrack: lines "a SIZE PATH" number allocations of a size
// and a call path from 0; "+ N" allocates one, "- N" frees one.
func heaptrackTotals(t *testing.T, file string) (s heapTotals) {
	text, err := exec.Command("zstd", "-dcq", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		word, _, _ := strings.Cut(rest, " ")
		n, _ := strconv.ParseInt(word, 16, 64)
		switch kind {
		case "a":
			sizes = append(sizes, n)
		case "+":
			s.allocs++
			s.bytes += sizes[n]
			s.left += sizes[n]
			s.peak = max(s.peak, s.left)
		case "-":
			s.frees++
			s.left -= sizes[n]
		}
	}
	return s
}

// emergencyPool is a block of libstdc++, which heaptrack's library loads into each program.
// heaptrack frees it at the end.
const emergencyPool = 72704

// TestComparison compares totals with DHAT and heaptrack, and logs them as
// heap/FIGURES.md has their cost; most programs only if LWSBT_FULL is all. Variables of the environment that a tool adds make
// differences of up to one in a thousand: programs copy the environment.
func TestComparison(t *testing.T) {
	cmdtest.Long(t)
	t.Parallel()
	cmdtest.Need(t, "valgrind", "heaptrack", "zstd")
	table := ""
	for _, p := range comparedPrograms(t) {
		if !cmdtest.All() && !slices.Contains([]string{"perl", "sqlite3", "a C++ program"}, p.name) {
			continue // valgrind takes long
		}
		t.Run(p.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "out")
			p.under(t, os.Args[0], "-q", "-o", file, "--")
			ours := recordedTotals(t, file)
			text, _ := p.under(t, "valgrind", "--tool=dhat", "--run-libc-freeres=no", "--run-cxx-freeres=no", "--dhat-out-file=/dev/null")
			dhat := dhatTotals(text)
			p.under(t, "heaptrack", "-o", file)
			heaptrack := heaptrackTotals(t, file+".zst")
			name := p.name
			for i, s := range []heapTotals{ours, dhat, heaptrack} {
				table += fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d |\n", name, []string{"btrecord", "DHAT", "heaptrack"}[i], s.allocs, s.frees, s.bytes, s.peak, s.left)
				name = ""
			}
			near := func(what string, got, want, more int64) {
				if d := max(got-want, want-got); want == 0 || d > want/1000+more {
					t.Errorf("%s: %d, want %d", what, got, want)
				}
			}
			near("allocations", ours.allocs, dhat.allocs, 0)
			near("frees", ours.frees, dhat.frees, 0)
			near("bytes", ours.bytes, dhat.bytes, 0)
			near("peak", ours.peak, dhat.peak, 0)
			near("left", ours.left, dhat.left, 0)
			near("allocations by heaptrack", heaptrack.allocs, ours.allocs, 1)
			near("frees by heaptrack", heaptrack.frees, ours.frees, 1)
			near("bytes by heaptrack", heaptrack.bytes, ours.bytes, emergencyPool)
			near("peak by heaptrack", heaptrack.peak, ours.peak, emergencyPool)
			near("left by heaptrack", heaptrack.left, ours.left, emergencyPool)
		})
	}
	t.Logf("| program | tool | allocations | frees | bytes | peak | left at the end |\n| --- | --- | --- | --- | --- | --- | --- |\n%s", table)
}

// costPrograms are programs of different kind.
func costPrograms(t *testing.T) []comparedProgram {
	return append(comparedPrograms(t),
		comparedProgram{name: "a server", args: []string{compile(t, "gcc", "../../../examples/server/server.c", "-O2", "-g"), "20000"}},
		comparedProgram{name: "8 threads", args: []string{compile(t, "gcc", "linux/threads.c", "-O2", "-pthread"), "2000", "8"}},
		comparedProgram{name: "4,096 call paths", args: []string{compile(t, "gcc", "paths.c", "-O0", "-g"), "12"}},
		comparedProgram{name: "an interpreter", args: []string{compile(t, "gcc", "musl/interpreter.c", "-O2", "-g"), "5000"}},
	)
}

// analyses are commands of btheap for a recording with events, by their headings in FIGURES.md.
var analyses = []struct {
	name string
	args []string
}{
	{"`top`", []string{"top", "-q", "--no-fold"}},
	{"`--at`", []string{"top", "-q", "--no-fold", "--at", "0.01s"}},
	{"`--by thread`", []string{"top", "-q", "--no-fold", "--by", "thread"}},
	{"`leaks`", []string{"leaks", "-q"}},
	{"`html`", []string{"html", "-q", "-o", os.DevNull}},
}

// TestCost writes the table of cost in FIGURES.md: one run of each program alone, under btrecord, with events,
// and under heaptrack, and the fastest of three of each analysis. What a tool adds is CPU time of all processes.
func TestCost(t *testing.T) {
	if !figures.Update() {
		t.Skip("writes a table with -update: its numbers vary with the machine")
	}
	cmdtest.Need(t, "heaptrack", "heaptrack_print")
	dir := t.TempDir()
	btheap := filepath.Join(dir, "btheap")
	if out, err := exec.Command("go", "build", "-o", btheap, "../btheap").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	comparedProgram{args: []string{"true"}}.under(t, os.Args[0], "-q", "-o", filepath.Join(dir, "first"), "--") // builds the library
	var table strings.Builder
	table.WriteString("| program | events | btrecord | `--events` | bytes per event | heaptrack |")
	for _, a := range analyses {
		fmt.Fprintf(&table, " %s |", a.name)
	}
	table.WriteString("\n|" + strings.Repeat(" --- |", 6+len(analyses)) + "\n")
	for _, p := range costPrograms(t) {
		if _, err := exec.LookPath(p.args[0]); err != nil {
			t.Logf("left out: %v", err)
			continue
		}
		sums, events, track := filepath.Join(dir, "sums"), filepath.Join(dir, "events"), filepath.Join(dir, "track")
		_, alone := p.under(t)
		_, ours := p.under(t, os.Args[0], "-q", "-o", sums, "--")
		_, each := p.under(t, os.Args[0], "-q", "--events", "-o", events, "--")
		_, theirs := p.under(t, "heaptrack", "-o", track)
		size := func(file string) float64 {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			return float64(info.Size())
		}
		totals := recordedTotals(t, sums)
		n := float64(totals.allocs + totals.frees)
		analyze := func(args ...string) float64 {
			least := math.Inf(1)
			for range 3 {
				_, cpu := comparedProgram{args: args}.under(t)
				least = min(least, cpu)
			}
			return least
		}
		print := analyze("heaptrack_print", track+".zst")
		added := func(cpu float64) float64 { return max(0, cpu-alone) / (theirs - alone) }
		fmt.Fprintf(&table, "| %s | %.0f | %.2f | %.2f | %.2f | %.2f |", p.name, n, added(ours), added(each), size(events)/n, size(track+".zst")/n)
		for _, a := range analyses {
			fmt.Fprintf(&table, " %.2f |", analyze(slices.Concat([]string{btheap}, a.args, []string{events})...)/print)
		}
		table.WriteString("\n")
	}
	figures.Check(t, "../../FIGURES.md", "recording", table.String())
}

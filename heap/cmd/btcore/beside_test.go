package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// TestBesideOthers compares the leaks of programs, whose comments have the truth, with what LeakSanitizer and memcheck
// find in the same program at the same point. They watch it while it runs; btcore has the core file.
func TestBesideOthers(t *testing.T) {
	cmdtest.Need(t, "gcc", "g++", "valgrind", "bash")
	own := func(name string) string { return filepath.Join("testdata", "programs", name) }
	table := "| | truth | btcore | uncertain | LeakSanitizer | memcheck | possibly |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
	for _, c := range []struct {
		name, args         string
		leaked, beyond, on int // beyond: encoded, or known to the kernel alone, which looks leaked; on: uncertain
	}{
		{"leaks.c", "", 120, 0, 0}, {"many.c", "3000", 100, 0, 0}, {"containers.cc", "", 12, 0, 0}, {"outside.c", "", 12, 30, 25}, {"held.c", "", 12, 6, 23},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "leaks.c" {
				cmdtest.Long(t)
			}
			compiler := "gcc"
			if strings.HasSuffix(c.name, ".cc") {
				compiler = "g++"
			}
			core, exe := dumped(t, compiler, c.name, []string{"-pthread"}, strings.Fields(c.args)...)
			_, out, errs := execute("heap", "--leaks", core, "-e", exe)
			leaked, unsure := countOf(t, `(\S+) blocks leaked`, out+errs), countOf(t, `(\S+) blocks uncertain`, out+"0 blocks uncertain")
			if leaked != c.leaked+c.beyond || unsure != c.on {
				t.Errorf("%d leaked, %d uncertain\n%s%s", leaked, unsure, out, errs)
			}

			sanitized := filepath.Join(t.TempDir(), "sanitized")
			tool(t, "gcc", "-c", "-o", sanitized+".o", own("lsan.c"))
			tool(t, compiler, "-g", "-O1", "-w", "-pthread", "-fsanitize=leak", "-Wl,--wrap=abort", "-o", sanitized, own(c.name), sanitized+".o")
			lsan, _ := exec.Command(sanitized, strings.Fields(c.args)...).CombinedOutput()
			if !bytes.Contains(lsan, []byte("leaked in")) {
				t.Skipf("LeakSanitizer does not work here: %s", lsan)
			}
			memcheck, _ := exec.Command("valgrind", append([]string{"--leak-check=full", exe}, strings.Fields(c.args)...)...).CombinedOutput() // it aborts
			count := func(kind string) int { return countOf(t, kind+`: [\d,]+ bytes in ([\d,]+) blocks`, string(memcheck)) }
			table += fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d |\n", c.name, c.leaked, leaked, unsure,
				countOf(t, `leaked in (\d+) allocation`, string(lsan)), count("definitely lost")+count("indirectly lost"), count("possibly lost"))
		})
	}
	if cmdtest.Full() && !t.Failed() {
		figures.Check(t, "../../FIGURES.md", "leaks beside others", table)
	}
}

// TestBesideChap compares the blocks and leaks in core files with those that chap finds there.
func TestBesideChap(t *testing.T) {
	chap := os.Getenv("LWSBT_CHAP")
	if chap == "" {
		t.Skip("LWSBT_CHAP, the path of chap, is not set")
	}
	cmdtest.Need(t, "gcc", "bash", "python3", "sqlite3")
	const python = `PYTHONMALLOC=malloc python3 -c 'import json, os; d = {str(i): [i] * 10 for i in range(5000)}; s = json.dumps(d); del s; os.abort()'`
	const sql = `sqlite3 :memory: "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) ` +
		`insert into t select x, hex(x * x) from c; create index i on t(b); select count(*) from t;" '.shell kill -ABRT $PPID'`
	table := "| | truth: leaked | chap: used | free | leaked | btcore: used | leaked | doubtful or uncertain |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
	for _, c := range []struct{ name, args, leaked string }{
		{"leaks.c", "", "120"}, {"many.c", "3000", "100"}, {"cached.c", "", "40"}, {"python3", python, "–"}, {"sqlite3", sql, "–"},
	} {
		var core string
		if strings.HasSuffix(c.name, ".c") {
			core, _ = dumped(t, "gcc", c.name, []string{"-pthread"}, strings.Fields(c.args)...)
		} else {
			core = crashed(t, t.TempDir(), "env "+c.args)
		}
		p := exec.Command(chap, core)
		p.Stdin = strings.NewReader("count used\ncount free\ncount leaked\n")
		said, err := p.CombinedOutput()
		counts := regexp.MustCompile(`(\d+) allocations use`).FindAllSubmatch(said, -1)
		if len(counts) != 3 {
			t.Fatalf("%s: %v: %s", c.name, err, said)
		}
		_, out, errs := execute("heap", "--leaks", core)
		out += errs
		leaked, held := countOf(t, `(\S+) blocks? leaked`, out), countOf(t, `(\S+) blocks? reachable`, out)
		unsure := countOf(t, `(\S+) blocks? uncertain`, out+"0 blocks uncertain")
		if c.leaked != "–" && c.leaked != fmt.Sprint(leaked) {
			t.Errorf("%s: %d leaked, want %s\n%s", c.name, leaked, c.leaked, out)
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %d | %d |\n", c.name, c.leaked, counts[0][1], counts[1][1], counts[2][1],
			leaked+held+unsure, leaked, unsure+countOf(t, `Of these (\S+), \S+ bytes, may be leaked`, out+"Of these 0, 0 bytes, may be leaked"))
	}
	figures.Check(t, "../../FIGURES.md", "leaks beside chap", table)
}

// countOf returns the number in the first match of an expression.
func countOf(t *testing.T, expression, text string) int {
	t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %q in %s", expression, text)
	}
	n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package main

import (
	"bytes"
	"fmt"
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

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// TestBesideOthers compares the leaks of testdata/programs/leaks.c, 120 of 1,190 blocks, with what LeakSanitizer and memcheck
// find in the same program at the same point. They watch it while it runs; btcore has the core file.
func TestBesideOthers(t *testing.T) {
	cmdtest.Need(t, "gcc", "valgrind", "bash")
	core, exe := dumped(t, "gcc", "leaks.c", nil)
	code, out, errs := execute("heap", "--leaks", core, "-e", exe)
	compareOutput(t, code, cli.OK, out+errs, []string{"120 blocks leaked", "1,070 blocks reachable"}, []string{"uncertain"})

	sanitized := filepath.Join(t.TempDir(), "sanitized")
	tool(t, "gcc", "-g", "-O1", "-DLSAN", "-fsanitize=leak", "-o", sanitized, filepath.Join("testdata", "programs", "leaks.c"))
	lsan, _ := exec.Command(sanitized).CombinedOutput()
	found := regexp.MustCompile(`leaked in (\d+) allocation`).FindSubmatch(lsan)
	if found == nil {
		t.Skipf("LeakSanitizer does not work here: %s", lsan)
	}
	memcheck, _ := exec.Command("valgrind", "--leak-check=full", exe).CombinedOutput() // it aborts
	count := func(kind string) string {
		m := regexp.MustCompile(kind + `: [\d,]+ bytes in ([\d,]+) blocks`).FindSubmatch(memcheck)
		if m == nil {
			t.Fatalf("no %q in %s", kind, memcheck)
		}
		return string(m[1])
	}
	var table strings.Builder
	table.WriteString("| | leaked | possibly, uncertain |\n| --- | ---: | ---: |\n| truth, of 1,190 blocks | 120 | – |\n| btcore, from the core file | 120 | 0 |\n")
	fmt.Fprintf(&table, "| LeakSanitizer | %s | 0 |\n", found[1])
	fmt.Fprintf(&table, "| memcheck: definitely and indirectly; possibly | %s + %s | %s |\n", count("definitely lost"), count("indirectly lost"), count("possibly lost"))
	figures.Check(t, "../../FIGURES.md", "leaks beside others", table.String())
}

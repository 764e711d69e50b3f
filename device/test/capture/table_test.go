package main

import (
	"strings"
	"testing"
)

// Rows with equal cells share a line, and equal cells of a line are one.
func TestMarkdownMergesRows(t *testing.T) {
	all, most := count{expected: 10, found: 10}, count{expected: 10, found: 9, wrong: 1}
	var rows []*row
	for _, r := range []struct {
		backend, machine, compiler string
		cell                       count
	}{
		{"fp", "x86-64", "gcc", all}, {"fp", "x86-64", "clang", all},
		{"fp", "arm", "gcc", all}, {"fp", "arm", "clang", most},
		{"fp", "i686", "gcc", all}, {"fp", "i686", "clang", all},
		{"arm", "arm", "gcc", all}, {"arm", "mips", "gcc", count{fatal: "it ended"}},
	} {
		cell, second := r.cell, r.cell
		if r.compiler == "gcc" && r.machine == "arm" {
			second = most
		}
		rows = append(rows, &row{backend: backend{name: r.backend}, machine: r.machine, compiler: r.compiler, cells: []*count{&cell, &second}})
	}
	got := (&table{rows, []string{"-O1", "-O2"}}).markdown()
	_, got, _ = strings.Cut(got, "--- |\n")
	got, sum, _ := strings.Cut(got, "\n\n")
	want := strings.Join([]string{
		"| fp | x86-64, i686 | gcc, clang | 100 / 0 |",
		"| fp, arm | arm | gcc | -O1 100 / 0, -O2 90.00 / 10.00 |",
		"| fp | arm | clang | 90.00 / 10.00 |",
		"| arm | mips | gcc | fault |",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := "0 stacks, 140 frames.\n"; sum != want {
		t.Errorf("got %q, want %q", sum, want)
	}
}

//go:build linux

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// sums holds the figures of a tool for a run, in bytes and counts; -1 if not reported.
type sums struct {
	allocs, frees, bytes, peak, left int64
	leaks                            map[string]int64 // by the function that called the allocator
}

func (b *bench) totals() error {
	fmt.Println("| program | tool | allocations | frees | bytes | peak | left at the end |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	var notes []string
	for _, p := range b.programs() {
		ours, err := b.ours(p)
		if err != nil {
			return err
		}
		dhat, err := b.dhat(p)
		if err != nil {
			return err
		}
		heaptrack, err := b.byHeaptrack(p)
		if err != nil {
			return err
		}
		show := func(name, tool string, s *sums) {
			cell := func(v int64) string {
				if v < 0 {
					return "–"
				}
				return strconv.FormatInt(v, 10)
			}
			fmt.Printf("| %s | %s | %s | %s | %s | %s | %s |\n", name, tool, cell(s.allocs), cell(s.frees), cell(s.bytes), cell(s.peak), cell(s.left))
		}
		show(p.name, "btrecord", ours)
		show("", "DHAT", dhat)
		show("", "heaptrack", heaptrack)
		notes = append(notes, siteNotes(p.name, ours, heaptrack))
	}
	fmt.Println("\nBytes left at the end, by the function that called the allocator, btrecord against heaptrack:")
	for _, n := range notes {
		fmt.Println(n)
	}
	return nil
}

// siteNotes compares leaks by site.
func siteNotes(name string, ours, theirs *sums) string {
	type site struct {
		name string
		a, b int64
	}
	var differ []site
	same, sameBytes := 0, int64(0)
	names := map[string]bool{}
	for n := range ours.leaks {
		names[n] = true
	}
	for n := range theirs.leaks {
		names[n] = true
	}
	for n := range names {
		if a, b := ours.leaks[n], theirs.leaks[n]; a == b {
			if a != 0 {
				same++
				sameBytes += a
			}
		} else {
			differ = append(differ, site{n, a, b})
		}
	}
	slices.SortFunc(differ, func(x, y site) int {
		return cmp.Or(cmp.Compare(abs(y.a-y.b), abs(x.a-x.b)), cmp.Compare(x.name, y.name))
	})
	text := fmt.Sprintf("- %s: %d sites with %d bytes are equal, %d differ", name, same, sameBytes, len(differ))
	for i, d := range differ {
		if i == 6 {
			text += ", …"
			break
		}
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		text += fmt.Sprintf("%s`%s` %d / %d", sep, d.name, d.a, d.b)
	}
	return text
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func (b *bench) ours(p program) (*sums, error) {
	rec := b.path("rec")
	os.Remove(rec)
	args := append([]string{b.path("btrecord"), "-q", "-o", rec, "--"}, p.args...)
	if _, _, _, err := b.run(args, p.drive); err != nil {
		return nil, err
	}
	text, err := exec.Command("zstd", "-dcq", rec).Output()
	if err != nil {
		return nil, err
	}
	i := strings.LastIndex(string(text), "~h#total ")
	if i < 0 {
		return nil, fmt.Errorf("%s: no total in the recording", p.name)
	}
	line, _, _ := strings.Cut(string(text[i:]), "\n")
	var h codec.Header
	if err := codec.ParseHeader(&h, []byte(line)); err != nil {
		return nil, err
	}
	get := func(key string) int64 { v, _ := h.Uint(key); return int64(v) }
	s := &sums{get("allocs"), get("frees"), get("bytes"), get("peak"), get("live"), map[string]int64{}}
	folded, err := exec.Command("go", "run", "./cmd/btheap", "export", "-q", "-F", "folded", rec).Output()
	if err != nil {
		return nil, fmt.Errorf("btheap: %w", err)
	}
	return s, s.fold(string(folded))
}

// fold adds up folded stacks by their innermost function.
func (s *sums) fold(text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			continue
		}
		n, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil {
			return err
		}
		stack := strings.TrimRight(line[:i], "; ")
		name := stack[strings.LastIndexByte(stack, ';')+1:]
		name, _, _ = strings.Cut(name, " (") // heaptrack appends the file
		name, _, _ = strings.Cut(name, "(")
		name = strings.TrimPrefix(name, "__GI_")
		if strings.HasPrefix(name, "0x") || strings.Contains(name, "+0x") || strings.HasPrefix(name, "<unresolved") {
			name = "(no name)"
		}
		s.leaks[name] += n
	}
	return nil
}

var dhatLine = regexp.MustCompile(`(?m)(Total|At t-gmax|At t-end): +([0-9,]+) bytes in ([0-9,]+) blocks`)

func (b *bench) dhat(p program) (*sums, error) {
	args := append([]string{"valgrind", "--tool=dhat", "--run-libc-freeres=no", "--run-cxx-freeres=no", "--dhat-out-file=/dev/null"}, p.args...)
	text, _, _, err := b.run(args, p.drive)
	if err != nil {
		return nil, err
	}
	s := &sums{frees: -1}
	for _, m := range dhatLine.FindAllStringSubmatch(text, -1) {
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
	return s, nil
}

// heaptrackRaw returns the file that heaptrack writes for a run.
func (b *bench) heaptrackRaw(p program) (string, error) {
	raw := b.path("heaptrack.raw")
	os.Remove(raw)
	_, _, _, err := b.run(p.args, p.drive, "LD_PRELOAD="+b.heaptrack, "DUMP_HEAPTRACK_OUTPUT="+raw)
	return raw, err
}

func (b *bench) interpreter() string {
	return filepath.Join(filepath.Dir(b.heaptrack), "libexec", "heaptrack_interpret")
}

func (b *bench) byHeaptrack(p program) (*sums, error) {
	raw, err := b.heaptrackRaw(p)
	if err != nil {
		return nil, err
	}
	out := b.path("heaptrack.out")
	if text, err := exec.Command("sh", "-c", b.interpreter()+" <"+raw+" >"+out).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("heaptrack_interpret: %w\n%s", err, text)
	}
	s := &sums{leaks: map[string]int64{}, bytes: -1}
	for _, kind := range []string{"allocations", "peak", "leaked"} {
		file := b.path("folded")
		c := exec.Command("heaptrack_print", "--disable-builtin-suppressions", "-f", out, "-p0", "-a0", "-T0", "-l0", "-F", file, "--flamegraph-cost-type", kind)
		if text, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("heaptrack_print: %w\n%s", err, text)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		one := &sums{leaks: map[string]int64{}}
		if err := one.fold(string(text)); err != nil {
			return nil, err
		}
		sum := int64(0)
		for _, n := range one.leaks {
			sum += n
		}
		switch kind {
		case "allocations":
			s.allocs = sum
		case "peak":
			s.peak = sum
		case "leaked":
			s.left, s.leaks = sum, one.leaks
		}
	}
	// Frees are the '-' lines of its raw file.
	f, err := os.Open(raw)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "- ") {
			s.frees++
		}
	}
	return s, lines.Err()
}

// Package capture measures the capture backends of device/ against programs whose call stacks are known, because
// each function notes that it is entered; see docs/notes/capture.md.
package capture

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/device/tools/functions"
)

func f(s string) []string { return strings.Fields(s) }

// A count is what was captured beside what was there.
type count struct {
	captures    int // how many stacks
	expected    int // frames that were on them
	found       int // of these, how many were captured, in order
	wrong       int // captured frames that were not there
	beyond      int // of these, beyond main
	corrupted   int // captures of corrupted stacks that ended
	differing   int // captures that differ with frames skipped, or with a cache: faults
	fatal       string
	worst       string // the program's first stack that fell short
	worstWeight int
}

func (c *count) add(o count) {
	c.captures += o.captures
	c.expected += o.expected
	c.found += o.found
	c.wrong += o.wrong
	c.corrupted += o.corrupted
	c.differing += o.differing
	if c.fatal == "" {
		c.fatal = o.fatal
	}
	if o.worstWeight > c.worstWeight {
		c.worst, c.worstWeight = o.worst, o.worstWeight
	}
}

func (c count) recall() float64 { return 100 * float64(c.found) / float64(max(c.expected, 1)) }

// falsity returns the wrong frames in percent of those captured.
func (c count) falsity() float64 { return 100 * float64(c.wrong) / float64(max(c.found+c.wrong, 1)) }

// missing returns the tool that a machine lacks here, or "".
func (m machine) missing(clang bool) string {
	need := []string{m.gcc[0]}
	if m.qemu != "" {
		need = append(need, m.qemu)
	}
	if clang {
		if m.clang == nil {
			return "clang for " + m.name
		}
		need = append(need, m.clang[0])
	}
	for _, tool := range need {
		if _, err := exec.LookPath(tool); err != nil {
			return tool
		}
	}
	return ""
}

// A job is one program, compiled and run one way.
type job struct {
	machine machine
	backend backend
	clang   bool
	level   string
	program program
	flags   []string // beyond the backend's
	dir     string   // of the sources: device/
}

func (j job) String() string {
	compiler := "gcc"
	if j.clang {
		compiler = "clang"
	}
	return fmt.Sprintf("%s %s table=%t %s %s seed=%d ids=%t %s", j.backend.name, j.machine.name, j.backend.table, compiler, j.level, j.program.seed, j.program.ids, strings.Join(j.flags, " "))
}

// run builds the program in a directory of its own, runs it and compares what it
// captured with what it noted.
func (j job) run() (count, error) {
	dir, err := os.MkdirTemp("", "capture")
	if err != nil {
		return count{}, err
	}
	defer os.RemoveAll(dir)
	// With this option, gcc 12 for Arm has __builtin_return_address read lr after the loop that
	// probes a large frame has used it.
	if j.machine.qemu == "qemu-arm" && slices.Contains(j.flags, "-fstack-clash-protection") {
		j.program.ids = true
	}
	p := j.program
	if j.machine.bare && !strings.Contains(j.machine.name, "cortex") && j.machine.name != "riscv32" {
		p.without = append(p.without, "double") // no library for it
	}
	if err := os.WriteFile(filepath.Join(dir, "program.c"), []byte(p.source()), 0o666); err != nil {
		return count{}, err
	}
	exe := filepath.Join(dir, "program")
	if err := j.build(dir, exe); err != nil {
		return count{}, err
	}
	if j.backend.table {
		if _, err := functions.Patch(exe); err != nil {
			return count{}, err
		}
	}
	out, stderr, err := j.machine.execute(exe, 5*time.Minute)
	symbols, symErr := readSymbols(exe)
	if symErr != nil {
		return count{}, symErr
	}
	c, checkErr := check(out, symbols, j.program)
	if checkErr != nil && err == nil {
		return count{}, fmt.Errorf("%v: %w", j, checkErr)
	}
	if err != nil {
		c.fatal = fmt.Sprintf("%v: %v %s", j, err, bytes.TrimSpace(stderr))
	}
	return c, nil
}

func (j job) build(dir, exe string) error {
	src := filepath.Join(j.dir, "src")
	test := filepath.Join(j.dir, "test", "capture", "program")
	sources := []string{filepath.Join(dir, "program.c"), filepath.Join(src, "capture_"+j.backend.name+".c"), filepath.Join(src, "capture_functions.c")}
	flags := append(f("-std=gnu99 -g0 -w -DLWSBT_FUNCTIONS_MAX=8000 -DBACKEND=lwsbt_capture_"+j.backend.name), j.level,
		"-I"+filepath.Join(j.dir, "include"), "-I"+test)
	flags = append(append(flags, j.backend.flags...), j.flags...)
	if j.backend.trusts {
		flags = append(flags, "-DTRUSTS")
	}
	if j.backend.table {
		flags = append(flags, "-DTABLE")
	}
	link := append(f("-static"), j.machine.link...)
	if j.machine.bare {
		sources = append(sources, filepath.Join(test, "sys.c"))
		flags = append(flags, "-DFREESTANDING", "-ffreestanding")
		link = append(link, "-nostdlib", "-nostartfiles")
	}
	compiler := j.machine.gcc
	if !j.clang {
		args := slices.Concat(compiler[1:], flags, sources, link, []string{"-o", exe})
		return j.tool(dir, compiler[0], append(args, j.libgcc()...))
	}
	args := slices.Concat(j.machine.clang[1:], flags, []string{"-ffreestanding", "-c"}, sources)
	if err := j.tool(dir, j.machine.clang[0], args); err != nil {
		return err
	}
	var objects []string
	for _, s := range sources {
		objects = append(objects, strings.TrimSuffix(filepath.Base(s), ".c")+".o")
	}
	return j.tool(dir, compiler[0], slices.Concat(compiler[1:], objects, link, []string{"-o", exe}, j.libgcc()))
}

func (j job) libgcc() []string {
	if j.machine.bare && j.machine.name != "mips64" {
		return []string{"-lgcc"}
	}
	return nil
}

func (j job) tool(dir, name string, args []string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s %s: %w\n%s", j, name, strings.Join(args, " "), err, out)
	}
	return nil
}

// A symbolTable says which function an address is in.
type symbolTable struct {
	symbols []elf.Symbol // by address
	mode    uint64       // the bits of a return address that are no part of the address
}

func readSymbols(path string) (*symbolTable, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	t := &symbolTable{}
	if file.Machine == elf.EM_ARM {
		t.mode = 1 // Thumb
	}
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			s.Value &^= t.mode
			t.symbols = append(t.symbols, s)
		}
	}
	sort.Slice(t.symbols, func(a, b int) bool { return t.symbols[a].Value < t.symbols[b].Value })
	return t, nil
}

// name returns the function that a call before pc is in; clones and parts that the
// compiler made of a function have its name.
func (t *symbolTable) name(pc uint64) string {
	i := sort.Search(len(t.symbols), func(i int) bool { return t.symbols[i].Value > pc-1 }) - 1
	if i < 0 || pc-1 >= t.symbols[i].Value+t.symbols[i].Size {
		return ""
	}
	name, _, _ := strings.Cut(t.symbols[i].Name, ".")
	return name
}

// An entered function, as the program notes it: see support.h.
type entered struct {
	name string
	ra   uint64 // where it returns to; 0: not known
	left bool   // it ended in a call
}

// A frame that must be captured: by its address, or, where the program did not
// note it, by its function.
type frame struct {
	pc   uint64
	name string
}

// check reads what the program printed.
func check(out []byte, symbols *symbolTable, p program) (count, error) {
	var c count
	var truth []frame
	ended := false
	scanner := bufio.NewScanner(bytes.NewReader(out))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		words := strings.Fields(scanner.Text())
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "t":
			stack, err := parseStack(words[1:], p.n)
			if err != nil {
				return c, err
			}
			if truth, err = present(stack, symbols); err != nil {
				return c, err
			}
		case "c":
			var got []uint64
			for _, w := range words[1:] {
				pc, err := strconv.ParseUint(w, 16, 64)
				if err != nil {
					return c, err
				}
				got = append(got, pc)
			}
			c.compare(truth, got, symbols)
		case "k":
			c.corrupted++
		case "e":
			ended = true
		default:
			if strings.HasPrefix(words[0], "!") {
				c.differing++
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return c, err
	}
	if !ended {
		return c, errors.New("the program did not end")
	}
	if c.captures == 0 {
		return c, errors.New("the program captured nothing")
	}
	return c, nil
}

func parseStack(words []string, n int) ([]entered, error) {
	var stack []entered
	for _, w := range words {
		id, ra, ok := strings.Cut(w, ":")
		var e entered
		ra, e.left = strings.CutSuffix(ra, "L")
		k, err := strconv.ParseUint(id, 16, 32)
		if err != nil || !ok {
			return nil, fmt.Errorf("%q: not a function", w)
		}
		if e.ra, err = strconv.ParseUint(ra, 16, 64); err != nil {
			return nil, err
		}
		e.name = fmt.Sprintf("f_%d", k)
		if int(k) >= n {
			e.name = []string{"start", "probe", "main", "descend", "finish"}[int(k)-n]
		}
		stack = append(stack, e)
	}
	return stack, nil
}

// present returns the frames that are there: a function that ended in a call is not,
// if the function it called returns to where it would have.
func present(stack []entered, symbols *symbolTable) ([]frame, error) {
	if len(stack) == 0 {
		return nil, errors.New("an empty stack was noted")
	}
	frames := []frame{{0, stack[0].name}} // where the backend returns to
	for i := 0; i+1 < len(stack); {
		pc := stack[i].ra &^ symbols.mode
		next := i + 1
		for next < len(stack) && stack[next].left && stack[next].ra == stack[i].ra {
			next++
		}
		if next == len(stack) || pc != 0 && symbols.name(pc) != stack[next].name {
			return nil, fmt.Errorf("%s returns to 0x%x, in %q: the program's notes contradict themselves", stack[i].name, pc, symbols.name(pc))
		}
		frames = append(frames, frame{pc, stack[next].name})
		i = next
	}
	return frames, nil
}

// compare adds a capture: the longest common subsequence of what was there and
// what was captured is found; what else was captured, up to main, is wrong.
func (c *count) compare(truth []frame, got []uint64, symbols *symbolTable) {
	same := func(t frame, pc uint64) bool {
		if t.pc != 0 {
			return t.pc == pc
		}
		return symbols.name(pc) == t.name
	}
	n, m := len(truth), len(got)
	best := make([][]int, n+1)
	for i := range best {
		best[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if same(truth[i], got[j]) {
				best[i][j] = max(best[i][j], best[i+1][j+1]+1)
			}
		}
	}
	judged := m
	for j := range got { // what lies beyond main is not the program's
		if symbols.name(got[j]) == "main" {
			judged = j + 1
			break
		}
	}
	found := best[0][0]
	c.captures++
	c.expected += n
	c.found += found
	c.wrong += max(0, judged-found)
	if w := n - found + 10*(judged-found); w > 0 && w > c.worstWeight {
		c.worstWeight = w
		var b strings.Builder
		for _, t := range truth {
			fmt.Fprintf(&b, " %s:%x", t.name, t.pc)
		}
		b.WriteString("\n\tcaptured")
		for _, pc := range got[:min(len(got), 60)] {
			fmt.Fprintf(&b, " %s:%x", symbols.name(pc), pc)
		}
		c.worst = b.String()
	}
}

// execute runs a program for the machine, for at most limit, and returns what it printed.
func (m machine) execute(exe string, limit time.Duration) (stdout, stderr []byte, err error) {
	command := []string{exe}
	if m.qemu != "" {
		command = []string{m.qemu, exe}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdout, err = cmd.Output()
	return stdout, errs.Bytes(), err
}

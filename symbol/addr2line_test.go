package symbol

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gnuFrame is a frame as addr2line prints it.
type gnuFrame struct{ fn, at string }

// addr2line asks GNU addr2line for the frames of each address.
func addr2line(t testing.TB, program, path string, pcs []uint64) [][]gnuFrame {
	t.Helper()
	cmd := exec.Command(program, "-a", "-f", "-i", "-e", path)
	var in strings.Builder
	for _, pc := range pcs {
		fmt.Fprintf(&in, "%#x\n", pc)
	}
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return parseGNU(t, string(out), len(pcs))
}

// parseGNU reads the answers to -a -f -i.
func parseGNU(t testing.TB, out string, n int) [][]gnuFrame {
	t.Helper()
	var all [][]gnuFrame
	s := bufio.NewScanner(strings.NewReader(out))
	for s.Scan() {
		line := s.Text()
		if strings.HasPrefix(line, "0x") {
			all = append(all, nil)
			continue
		}
		if !s.Scan() {
			t.Fatalf("no place follows %q", line)
		}
		all[len(all)-1] = append(all[len(all)-1], gnuFrame{line, s.Text()})
	}
	if len(all) != n {
		t.Fatalf("answers to %d of %d addresses", len(all), n)
	}
	return all
}

// asGNU writes frames as addr2line does.
func asGNU(frames []Frame) (list []gnuFrame) {
	for _, f := range frames {
		g := gnuFrame{fn: f.Func, at: f.File}
		if g.fn == "" {
			g.fn = "??"
		}
		switch {
		case f.File == "":
			g.at = "??:?"
		case f.Line == 0:
			g.at += ":?"
		default:
			g.at += ":" + strconv.Itoa(f.Line)
			if f.Discriminator != 0 {
				g.at += fmt.Sprintf(" (discriminator %d)", f.Discriminator)
			}
		}
		list = append(list, g)
	}
	if list == nil {
		list = []gnuFrame{{"??", "??:0"}}
	}
	return list
}

// textAddrs is addresses all over a file's code, step bytes apart.
func textAddrs(f *File, step uint64) (pcs []uint64) {
	for _, s := range f.text {
		for pc := s.addr; pc < s.addr+s.size; pc += step {
			pcs = append(pcs, pc)
		}
	}
	return pcs
}

// compareGNU compares every step-th address and fails on a difference that
// nothing explains.
func compareGNU(t *testing.T, path string, step uint64) {
	t.Helper()
	compareWith(t, tool(t, "addr2line"), path, step)
}

func compareWith(t *testing.T, program, path string, step uint64) {
	t.Helper()
	f := open(t, path)
	pcs := textAddrs(f, step)
	const light = 10_000 // addresses are enough of a large program
	if n := len(pcs) / light; n > 1 && !full {
		pcs = slices.DeleteFunc(pcs, func(pc uint64) bool { return (pc-pcs[0])/step%uint64(n) != 0 })
	}
	if len(pcs) < 100 {
		t.Fatalf("only %d addresses to compare", len(pcs))
	}
	theirs := addr2line(t, program, path, pcs)
	var open []int // differences that no rule explains
	all := make([][]gnuFrame, len(pcs))
	lines, explained := 0, map[string]int{}
	aliases, functions := f.aliases(), f.Functions()
	for i, pc := range pcs {
		frames, err := f.Lookup(nil, pc)
		if err != nil {
			t.Fatalf("%#x: %v", pc, err)
		}
		all[i] = asGNU(frames)
		if len(frames) > 0 && frames[0].Line > 0 {
			lines++
		}
		switch why := explain(all[i], theirs[i], aliases); why {
		case "":
		case unexplained:
			open = append(open, i)
		default:
			explained[why]++
		}
	}
	if lines < 50 {
		t.Errorf("lines for %d of %d addresses: nothing was compared", lines, len(pcs))
	}
	var ask []uint64
	for _, i := range open {
		ask = append(ask, pcs[i])
	}
	var llvm [][]gnuFrame
	if len(ask) > 0 {
		llvm = llvmSymbolizer(t, path, ask)
	}
	seen := map[string]bool{}
	for n, i := range open {
		withAliases(llvm[n], all[i], theirs[i], aliases)
		switch {
		case sameButDetail(all[i], llvm[n]):
			explained["llvm-symbolizer says what we say"]++
			continue
		case isPadding(functions, pcs[i]):
			explained["padding between functions, which is no code"]++
			continue
		}
		explained[unexplained]++
		if key := all[i][0].fn + theirs[i][0].fn; !seen[key] && len(seen) < 10 {
			seen[key] = true
			t.Errorf("%#x:\n  got  %v\n  want %v\n  llvm %v", pcs[i], all[i], theirs[i], llvm[n])
		}
	}
	if explained[unexplained] > 0 {
		t.Fail()
	}
	t.Logf("%d addresses, %d with lines; differences: %v", len(pcs), lines, explained)
}

// withAliases gives functions in what llvm-symbolizer says the names that we use, where
// they are other symbols of one address, and those that addr2line has, where it has none.
func withAliases(llvm, ours, theirs []gnuFrame, aliases map[string]uint64) {
	dropClone(ours, llvm)
	for n := range min(len(llvm), len(ours)) {
		at := aliases[llvm[n].fn]
		switch {
		case at != 0 && at == aliases[ours[n].fn]:
			llvm[n].fn = ours[n].fn
		case llvm[n].fn == "??" && n < len(theirs):
			llvm[n].fn = theirs[n].fn
		}
	}
}

// isPadding reports whether an address is in no function: behind the end of the one
// before it, whose size is known.
func isPadding(functions []Function, pc uint64) bool {
	var before Function
	for _, fn := range functions {
		if fn.Addr > pc {
			continue
		}
		if pc-fn.Addr < fn.Size {
			return false
		}
		if fn.Addr >= before.Addr {
			before = fn
		}
	}
	return before.Size > 0
}

const unexplained = "unexplained"

// explain returns why ours differs from addr2line's answer, "" if it does not. Each
// rule is a thing that addr2line is known to do, and changes its answer only in
// the place where it does that.
func explain(ours, theirs []gnuFrame, aliases map[string]uint64) string {
	if slices.Equal(ours, theirs) {
		return ""
	}
	theirs = slices.Clone(theirs)
	var why []string
	rule := func(name string, apply func() bool) {
		if apply() {
			why = append(why, name)
		}
	}
	rule("repeats the innermost discriminator", func() (did bool) {
		_, disc, _ := strings.Cut(theirs[0].at, " (")
		for i := 1; i < len(theirs); i++ {
			if at, d, ok := strings.Cut(theirs[i].at, " ("); ok && d == disc {
				theirs[i].at, did = at, true
			}
		}
		return did
	})
	rule("names a clone or cold part by its symbol", func() bool { return dropClone(ours, theirs) })
	rule("names the innermost inlined call by the symbol around it", func() bool {
		outer := ours[len(ours)-1].fn
		if len(ours) == 1 || theirs[0].fn == ours[0].fn ||
			theirs[0].fn != outer && !isClone(theirs[0].fn, outer) {
			return false
		}
		theirs[0].fn = ours[0].fn
		return true
	})
	rule("gives a function without linkage name its plain one, not its symbol", func() bool {
		last := len(ours) - 1
		if len(theirs) != len(ours) || last == 0 && ours[0].at == "??:?" {
			return false
		}
		plain, _, _ := strings.Cut(theirs[last].fn, "<")
		if plain == "" || !strings.HasPrefix(ours[last].fn, "_Z") || strings.HasPrefix(plain, "_Z") ||
			!strings.Contains(ours[last].fn, strconv.Itoa(len(plain))+plain) {
			return false
		}
		theirs[last].fn = ours[last].fn
		return true
	})
	rule("takes another of several symbols at one address", func() bool {
		a, b := aliases[ours[0].fn], aliases[theirs[0].fn]
		if len(ours) > 1 || ours[0].fn == theirs[0].fn || a == 0 || a != b {
			return false
		}
		theirs[0].fn = ours[0].fn
		return true
	})
	rule("guesses a file from the symbol table", func() bool {
		if ours[0].at != "??:?" || !bareFile.MatchString(theirs[0].at) {
			return false
		}
		theirs[0].at = ours[0].at
		return true
	})
	if slices.Equal(ours, theirs) {
		return strings.Join(why, ", ")
	}
	return unexplained
}

// dropClone takes off what compilers append to the symbol of a part of a function
// or a copy of it, where the rest is the name we have.
func dropClone(ours, theirs []gnuFrame) (did bool) {
	for i := range min(len(ours), len(theirs)) {
		if isClone(theirs[i].fn, ours[i].fn) {
			theirs[i].fn, did = ours[i].fn, true
		}
	}
	return did
}

// isClone reports whether symbol is name and a clone's suffix.
func isClone(symbol, name string) bool {
	suffix, ok := strings.CutPrefix(symbol, strings.ReplaceAll(name, "·", ".")) // as Go's linker does
	return ok && symbol != name && cloneSuffix.MatchString(suffix)
}

// bareFile matches the output of addr2line for a symbol that has a file but no line.
var bareFile = regexp.MustCompile(`^[^/]*:\?$`)

// aliases returns the address of every symbol, including all symbols of one address.
func (f *File) aliases() map[string]uint64 {
	m := map[string]uint64{}
	t := &symbolTable{budget: f.budget}
	f.readTable(t, elf.SHT_SYMTAB)
	for _, s := range t.functions {
		m[t.text(s.name)] = s.addr
	}
	return m
}

var cloneSuffix = regexp.MustCompile(`^(\.(abi0|abiinternal|cold|part|constprop|isra|lto_priv)(\.\d+)?)*$`)

// sameButDetail compares with llvm-symbolizer's answer, which has no
// discriminators and prints ??:0 and FILE:0 where lines are not known.
func sameButDetail(ours, llvm []gnuFrame) bool {
	norm := func(list []gnuFrame) (out []gnuFrame) {
		for _, g := range list {
			g.at, _, _ = strings.Cut(g.at, " (")
			g.at = strings.ReplaceAll(g.at, ":?", ":0")
			out = append(out, g)
		}
		return out
	}
	return slices.Equal(norm(ours), norm(llvm))
}

// llvmSymbolizer asks the third opinion.
func llvmSymbolizer(t testing.TB, path string, pcs []uint64) [][]gnuFrame {
	t.Helper()
	cmd := exec.Command(tool(t, "llvm-symbolizer"), "--output-style=GNU", "--no-demangle", "-a", "-f", "-i", "-e", path)
	var in strings.Builder
	for _, pc := range pcs {
		fmt.Fprintf(&in, "%#x\n", pc)
	}
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return parseGNU(t, string(out), len(pcs))
}

// variants is compilers and options; those that are not marked are tried only
// with LWSBT_FULL.
var variants = []struct {
	light bool
	cc    string // with options
	srcs  string
	step  uint64
}{
	{true, "gcc -g -O0", "prog.c other.c", 1},
	{true, "gcc -g -O2", "prog.c other.c", 1},
	{false, "gcc -g -Os", "prog.c other.c", 1},
	{false, "clang -g -O0", "prog.c other.c", 1},
	{true, "clang -g -O2", "prog.c other.c", 1},
	{false, "clang -g -Os", "prog.c other.c", 1},
	{false, "g++ -g -O0", "prog.cc", 1},
	{true, "g++ -g -O2", "prog.cc", 5},
	{false, "g++ -g -Os", "prog.cc", 1},
	{false, "clang++ -g -O0", "prog.cc", 1},
	{false, "clang++ -g -O2", "prog.cc", 1},
	{false, "clang++ -g -Os", "prog.cc", 1},
	{false, "gcc -O2 -gdwarf-2", "prog.c other.c", 1},
	{true, "gcc -O2 -gdwarf-3", "prog.c other.c", 1},
	{true, "gcc -O2 -gdwarf-4", "prog.c other.c", 1},
	{false, "gcc -O2 -gdwarf-5", "prog.c other.c", 1},
	{true, "gcc -g -O2 -gdwarf-5 -gdwarf64", "prog.c other.c", 3},
	{true, "gcc -g -O2 -flto -fno-fat-lto-objects", "prog.c other.c", 3},
	{true, "gcc -g -O2 -fdebug-types-section", "prog.c other.c", 3},
	{false, "gcc -g -O2 -ffunction-sections -Wl,--gc-sections", "prog.c other.c", 3},
	{true, "gcc -g -O2 -static", "prog.c other.c", 3}, // with the C library's code, which has symbols alone
	{false, "g++ -g -O2 -gdwarf-5 -gdwarf64", "prog.cc", 5},
	{false, "g++ -g -O2 -flto -fno-fat-lto-objects", "prog.cc", 5},
	{false, "g++ -g -O2 -fdebug-types-section", "prog.cc", 5},
	{false, "g++ -g -O2 -ffunction-sections -Wl,--gc-sections", "prog.cc", 5},
	{false, "g++ -g -O2 -static", "prog.cc", 5},
	{false, "rustc -g -Copt-level=0", "prog.rs", 61},
	{false, "rustc -g -Copt-level=2", "prog.rs", 61},
}

func TestAgainstAddr2line(t *testing.T) {
	for _, v := range variants {
		if !v.light && !full {
			continue
		}
		t.Run(v.cc, func(t *testing.T) {
			t.Parallel()
			compareGNU(t, buildC(t, strings.Fields(v.cc), strings.Fields(v.srcs)...), v.step)
		})
	}
	t.Run("dwz", testSharedByDwz)
	// addr2line 2.40 finds no lines in the DWARF 5 that Go writes; there
	// llvm-symbolizer is asked alone.
	for _, exp := range []string{"dwarf5", "nodwarf5"} {
		if exp != "dwarf5" && !full {
			continue
		}
		t.Run("go-O2-"+exp, func(t *testing.T) {
			t.Parallel()
			compareGNU(t, buildGo(t, exp), 61)
		})
		if full {
			t.Run("go-O0-"+exp, func(t *testing.T) {
				t.Parallel()
				compareGNU(t, buildGo(t, exp, "-gcflags=all=-N -l"), 61)
			})
		}
	}
}

func testSharedByDwz(t *testing.T) {
	t.Parallel()
	dwz := tool(t, "dwz")
	dir := t.TempDir()
	var progs, before []string
	for i, cc := range []string{"gcc -g -gdwarf-4 -O0", "gcc -g -gdwarf-4 -O2"} {
		p := filepath.Join(dir, "prog"+strconv.Itoa(i))
		whole := buildC(t, strings.Fields(cc), "prog.c", "other.c")
		data, err := os.ReadFile(whole)
		if err == nil {
			err = os.WriteFile(p, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		progs, before = append(progs, p), append(before, whole)
	}
	// What both have in common goes into a third file.
	run(t, dir, append([]string{dwz, "-m", filepath.Join(dir, "common.debug"), "-M", "common.debug"}, progs...)...)
	for i, p := range progs {
		// Neither addr2line nor llvm-symbolizer names inlined calls whose function
		// was moved, so what they say of the program before it was is the truth.
		compareGNU(t, before[i], 1)
		f, whole := open(t, p), open(t, before[i])
		if f.debug == nil || f.debug.Alt == nil {
			t.Fatalf("%s shares nothing: %s", p, f.Why())
		}
		for _, pc := range textAddrs(whole, 1) {
			want, err := whole.Lookup(nil, pc)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := f.Lookup(nil, pc); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%#x: %v, %v, want %v", pc, got, err, want)
			}
		}
	}
}

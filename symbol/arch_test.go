package symbol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cross is a cross compiler, and what objdump calls its calls.
type cross struct {
	target string
	flags  []string
	calls  string // mnemonics
	delay  bool   // the instruction after a call belongs to it
	exact  bool   // instructions have one size and place: nothing else may look like a call
	long   bool   // only with LWSBT_FULL: what differs from the others is small
}

var crosses = []cross{
	{target: "x86_64-linux-gnu", calls: `call|bnd call|notrack call`},
	{target: "i686-linux-gnu", calls: `call`, long: true},
	{target: "aarch64-linux-gnu", calls: `bl|blr|blraa|blraaz`, exact: true, long: true},
	{target: "arm-linux-gnueabihf", flags: []string{"-marm"}, calls: `(bl|blx)(eq|ne|cs|cc|mi|pl|hi|ls|ge|lt|gt|le)?`, long: true},
	{target: "arm-linux-gnueabihf", flags: []string{"-mthumb"}, calls: `bl|blx`},
	{target: "riscv64-linux-gnu", calls: `jal|jalr`},
	{target: "mips-linux-gnu", calls: `jal|jalr|bal`, delay: true, exact: true},
	{target: "mipsel-linux-gnu", calls: `jal|jalr|bal`, delay: true, exact: true, long: true},
	{target: "powerpc-linux-gnu", calls: `bl|bctrl|blrl`, exact: true, long: true},
	{target: "s390x-linux-gnu", calls: `brasl|basr|bras`, long: true},
}

// instruction is the address behind an instruction, and its delay slot, and what objdump
// prints of it.
type instruction struct {
	end  uint64
	text string
}

var objdumpLine = regexp.MustCompile(`^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(\S+)\s*(.*)$`)

// disassemble returns the calls in the code of a program, and the other instructions.
func (c cross) disassemble(t *testing.T, path string) (calls, others []instruction) {
	call := regexp.MustCompile(`^(` + c.calls + `)(\.n|\.w)?$`)
	function := ""
	for line := range strings.Lines(run(t, t.TempDir(), tool(t, c.target+"-objdump"), "-d", "-j", ".text", path)) {
		if strings.HasSuffix(line, ">:\n") {
			function = line
		}
		m := objdumpLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || function == "" || strings.Contains(function, "_start") {
			continue
		}
		var at uint64
		fmt.Sscanf(m[1], "%x", &at)
		end := at + uint64(len(strings.ReplaceAll(m[2], " ", "")))/2
		if c.delay {
			end += 4
		}
		if strings.HasPrefix(c.target, "arm") && len(strings.Fields(m[2])[0]) == 4 {
			end |= 1 // Thumb
		}
		if call.MatchString(m[3]) && c.links(m[3], m[4]) {
			calls = append(calls, instruction{end, function + line})
		} else {
			others = append(others, instruction{end, function + line})
		}
	}
	return calls, others
}

// links reports whether a jump keeps a return address: basr and bras do if it is in
// register 14.
func (c cross) links(opcode, operands string) bool {
	if strings.HasPrefix(c.target, "s390x") {
		return strings.HasPrefix(operands, "%r14,")
	}
	return !strings.HasPrefix(opcode, "jal") || !strings.HasPrefix(operands, "zero,") && !strings.HasPrefix(operands, "x0,")
}

// Every instruction that objdump takes for a call is one to us, and few others.
func TestCallsAgainstObjdump(t *testing.T) {
	for _, c := range crosses {
		if c.long && !full {
			continue
		}
		t.Run(c.target+strings.Join(c.flags, ""), func(t *testing.T) {
			t.Parallel()
			args := append([]string{c.target + "-gcc", "-O2", "-g"}, c.flags...)
			path := buildC(t, args, "prog.c", "other.c")
			f := open(t, path)
			calls, others := c.disassemble(t, path)
			isCall := map[uint64]bool{}
			for _, p := range calls {
				isCall[p.end] = true
				if !f.FollowsCall(p.end) {
					t.Errorf("%#x follows no call, but objdump says\n%s", p.end, p.text)
				}
			}
			others = slices.DeleteFunc(others, func(p instruction) bool { return isCall[p.end] })
			wrong := slices.DeleteFunc(slices.Clone(others), func(p instruction) bool { return !f.FollowsCall(p.end) })
			for _, p := range wrong {
				if c.exact {
					t.Errorf("%#x follows a call, but objdump says\n%s", p.end, p.text)
				}
			}
			t.Logf("%d calls, %d other instructions, %d of them taken for calls", len(calls), len(others), len(wrong))
			if len(calls) < 15 {
				t.Errorf("only %d calls to look at", len(calls))
			}
			if len(wrong) > len(others)/50 {
				t.Errorf("%d of %d instructions that are no calls are taken for ones", len(wrong), len(others))
			}
		})
	}
}

// Lines and functions of other machines' code, against their own addr2line.
func TestArchitecturesAgainstAddr2line(t *testing.T) {
	for _, c := range crosses {
		if c.long && !full {
			continue
		}
		t.Run(c.target+strings.Join(c.flags, ""), func(t *testing.T) {
			t.Parallel()
			args := append([]string{c.target + "-gcc", "-O2", "-g"}, c.flags...)
			path := buildC(t, args, "prog.c", "other.c")
			compareWith(t, tool(t, c.target+"-addr2line"), path, 2)
		})
	}
}

// Debug information that was split off is found again: by .gnu_debuglink beside
// the file and in .debug, by build-id, and not when it is of another build.
func TestSeparateDebugFile(t *testing.T) {
	objcopy := tool(t, "objcopy")
	src := []string{"prog.c", "other.c"}
	build := func(t *testing.T, opt string) (dir, whole, stripped, debug string) {
		whole = buildC(t, []string{"gcc", "-g", opt, "-Wl,--build-id"}, src...)
		dir = t.TempDir()
		stripped, debug = filepath.Join(dir, "app"), filepath.Join(dir, "app.debug")
		run(t, dir, objcopy, "--only-keep-debug", whole, debug)
		run(t, dir, objcopy, "--strip-all", "--add-gnu-debuglink="+debug, whole, stripped)
		return dir, whole, stripped, debug
	}
	same := func(t *testing.T, whole, stripped string, dirs []string, from string) {
		t.Helper()
		want := open(t, whole)
		got, err := Open(stripped, dirs)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		if got.DebugPath() != from {
			t.Errorf("debug information from %s, want %s: %s", got.DebugPath(), from, got.Why())
		}
		n := 0
		for _, pc := range textAddrs(want, 3) {
			a, _ := want.Lookup(nil, pc)
			b, err := got.Lookup(nil, pc)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%#x: %v, but %v in the whole file", pc, b, a)
			}
			if len(a) > 0 && a[0].Line > 0 {
				n++
			}
		}
		if n < 100 {
			t.Errorf("only %d addresses with lines", n)
		}
	}
	t.Run("beside", func(t *testing.T) {
		_, whole, stripped, debug := build(t, "-O2")
		same(t, whole, stripped, nil, debug)
	})
	t.Run("in .debug", func(t *testing.T) {
		dir, whole, stripped, debug := build(t, "-O2")
		moved := filepath.Join(dir, ".debug", "app.debug")
		os.Mkdir(filepath.Dir(moved), 0o755)
		if err := os.Rename(debug, moved); err != nil {
			t.Fatal(err)
		}
		same(t, whole, stripped, nil, moved)
	})
	t.Run("by build-id", func(t *testing.T) {
		_, whole, stripped, debug := build(t, "-O2")
		id := open(t, whole).BuildID
		root := t.TempDir()
		moved := filepath.Join(root, ".build-id", id[:2], id[2:]+".debug")
		os.MkdirAll(filepath.Dir(moved), 0o755)
		if err := os.Rename(debug, moved); err != nil {
			t.Fatal(err)
		}
		same(t, whole, stripped, []string{t.TempDir(), root}, moved)
	})
	t.Run("of another build", func(t *testing.T) {
		_, _, stripped, debug := build(t, "-O2")
		_, _, _, other := build(t, "-O0")
		if err := os.Rename(other, debug); err != nil {
			t.Fatal(err)
		}
		f, err := Open(stripped, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.DebugPath() != stripped || !strings.Contains(f.Why(), "another build") {
			t.Errorf("debug information from %s: %q", f.DebugPath(), f.Why())
		}
	})
}

func TestCompressedSections(t *testing.T) {
	for _, kind := range []string{"-gz=zlib", "-gz=zlib-gnu", "-gz=zstd"} {
		t.Run(kind, func(t *testing.T) {
			tool(t, "gcc")
			out := filepath.Join(t.TempDir(), "prog")
			if err := exec.Command("gcc", "-g", kind, "-o", out, source(t, "prog.c"), source(t, "other.c")).Run(); err != nil {
				t.Skipf("gcc does not know %s", kind)
			}
			compareGNU(t, out, 1)
		})
	}
}

// Functions of units that .debug_aranges lacks are found, too, and those that it has wrong.
func TestUnitsWithoutARanges(t *testing.T) {
	tool(t, "gcc")
	tool(t, "objcopy")
	whole := buildC(t, []string{"gcc", "-O1", "-g"}, "prog.c", "other.c")
	want, dir := open(t, whole), t.TempDir()
	for name, args := range map[string][]string{
		"none":      {"--remove-section", ".debug_aranges"},
		"not units": {"--update-section", ".debug_aranges=" + filepath.Join(dir, "aranges")},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := want.section(".debug_aranges")
			if err != nil || len(data) < 12 {
				t.Fatalf("%d bytes: %v", len(data), err)
			}
			wrong := slices.Clone(data)
			wrong[6]++ // offset of the first unit
			if err := os.WriteFile(filepath.Join(dir, "aranges"), wrong, 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			run(t, dir, append(append([]string{"objcopy"}, args...), whole, path)...)
			got := open(t, path)
			for _, fn := range want.Functions() {
				a, err := want.Lookup(nil, fn.Addr)
				b, also := got.Lookup(nil, fn.Addr)
				if err != nil || also != nil || !slices.Equal(a, b) {
					t.Errorf("%s: %v, %v, want %v, %v", fn.Name, b, also, a, err)
				}
			}
		})
	}
}

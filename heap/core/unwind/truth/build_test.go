package truth

import (
	"bytes"
	"debug/elf"
	_ "embed"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed testdata/prog.c
var program string

// Synthetic returns C source with n functions of many shapes, g_0 to g_<n-1>, each of
// which calls later functions, and g_entry, which calls any of them.
func Synthetic(seed int64, n int) string {
	r := rand.New(rand.NewSource(seed))
	var b strings.Builder
	b.WriteString("extern volatile unsigned t_sink, t_zero;\nextern unsigned t_leaf(unsigned);\n")
	b.WriteString("#define N __attribute__((noinline, noclone))\n")
	args := make([]int, n)
	for i := range n {
		args[i] = 1 + r.Intn(3)
		if r.Intn(5) == 0 {
			args[i] = 4 + r.Intn(7)
		}
		fmt.Fprintf(&b, "N unsigned g_%d(%s);\n", i, params(args[i], "unsigned "))
	}
	call := func(i int, x string) string {
		if i+1 >= n || r.Intn(4) == 0 {
			return "t_leaf(" + x + ")"
		}
		k := i + 1 + r.Intn(min(n-i-1, 30))
		list := make([]string, args[k])
		for a := range list {
			list[a] = fmt.Sprintf("%s + %d", x, r.Intn(9))
		}
		return fmt.Sprintf("g_%d(%s)", k, strings.Join(list, ", "))
	}
	for i := range n {
		fmt.Fprintf(&b, "N unsigned g_%d(%s)\n{\n\tunsigned s = a0;\n", i, params(args[i], "unsigned "))
		if r.Intn(3) == 0 {
			fmt.Fprintf(&b, "\tvolatile unsigned v[%d];\n\tv[s %% %d] = s;\n\ts += v[s %% 4];\n", 4+r.Intn(60), 4)
		}
		if r.Intn(4) == 0 {
			b.WriteString("\tif (s % 3 == 0)\n\t\treturn s;\n")
		}
		for range 1 + r.Intn(3) {
			last := fmt.Sprintf("a%d", r.Intn(args[i]))
			switch r.Intn(7) {
			case 0:
				fmt.Fprintf(&b, "\tfor (unsigned i = 0; i < s %% 3; i++)\n\t\ts ^= %s;\n", call(i, "i"))
			case 1:
				fmt.Fprintf(&b, "\tif (s & 8)\n\t\ts += %s;\n\telse\n\t\tt_sink = s;\n", call(i, last))
			case 2:
				b.WriteString("\tswitch (s % 6) {\n")
				for c := range 6 {
					fmt.Fprintf(&b, "\tcase %d: s ^= %s; break;\n", c, call(max(i, n-10), last))
				}
				b.WriteString("\t}\n")
			case 3:
				fmt.Fprintf(&b, "\tdouble d%d = s * 1.5;\n\ts += %s;\n\ts += (unsigned)(d%d / 3.0);\n", b.Len(), call(i, last), b.Len())
			case 4:
				fmt.Fprintf(&b, "\tif (t_zero)\n\t\t__builtin_trap();\n\ts += %s;\n", call(i, last))
			default:
				fmt.Fprintf(&b, "\ts = s * 3 + %s;\n", call(i, last))
			}
		}
		if r.Intn(4) == 0 {
			fmt.Fprintf(&b, "\treturn %s;\n}\n", call(i, "s"))
		} else {
			b.WriteString("\treturn s + t_sink;\n}\n")
		}
	}
	b.WriteString("static unsigned (*const g_one[])(unsigned) = {")
	for i := range n {
		if args[i] == 1 {
			fmt.Fprintf(&b, " g_%d,", i)
		}
	}
	b.WriteString(" };\nN unsigned g_entry(unsigned x, int depth)\n{\n\t(void)depth;\n\treturn g_one[x % (sizeof g_one / sizeof g_one[0])](x) + 1;\n}\n")
	return b.String()
}

func params(n int, kind string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%sa%d", kind, i)
	}
	return strings.Join(list, ", ")
}

// Build is a program in several forms.
type Build struct {
	Full     string // with debug information: for gdb
	Stripped string // without symbols and unwind tables
	Symbols  string // with symbols, without unwind tables and debug information
	Tables   string // without debug information, with unwind tables if it was compiled so
}

// files returns the paths of all forms of a program.
func (m *Machine) files(dir, opt string) Build {
	at := func(kind string) string { return filepath.Join(dir, m.Name+opt+"."+kind) }
	return Build{at("full"), at("stripped"), at("symbols"), at("tables")}
}

// Compile builds the program for a machine, in dir, without frame pointers. It fails if
// unwind tables change the code, because one build is used with and without tables.
func (m *Machine) Compile(dir, opt string) (b Build, err error) {
	flags := append([]string{opt, "-g", "-fomit-frame-pointer", "-w"}, m.Flags...)
	with := append(flags[:len(flags):len(flags)], "-fasynchronous-unwind-tables")
	without := append(flags[:len(flags):len(flags)], "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
	prog, gen := filepath.Join(dir, "prog.c"), filepath.Join(dir, "gen.c")
	if err = os.WriteFile(prog, []byte(program), 0o644); err != nil {
		return b, err
	}
	if err = os.WriteFile(gen, []byte(Synthetic(1, 120)), 0o644); err != nil {
		return b, err
	}
	cc := func(args []string, more ...string) error {
		if out, err := exec.Command(m.CC, append(args[:len(args):len(args)], more...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %v: %.500s", m.CC, err, out)
		}
		return nil
	}
	b = m.files(dir, opt)
	object := filepath.Join(dir, m.Name+opt+".o")
	var code [2][]byte
	for i, args := range [][]string{without, with} {
		if err := cc(args, "-c", "-o", object, gen); err != nil {
			return b, err
		}
		if code[i], err = text(object); err != nil {
			return b, err
		}
	}
	if !bytes.Equal(code[0], code[1]) {
		return b, fmt.Errorf("%s %s: unwind tables change the code", m.Name, opt)
	}
	if err := cc(with, "-static", "-o", b.Full, prog, gen); err != nil {
		return b, err
	}
	gone := []string{"--remove-section", ".eh_frame", "--remove-section", ".eh_frame_hdr", "--remove-section", ".ARM.exidx",
		"--remove-section", ".ARM.extab"}
	for _, c := range [][]string{
		append(append([]string{"--strip-all"}, gone...), b.Full, b.Stripped),
		append(append([]string{"--strip-debug"}, gone...), b.Full, b.Symbols),
		{"--strip-all", b.Full, b.Tables},
	} {
		if out, err := exec.Command(m.Strip, c...).CombinedOutput(); err != nil {
			return b, fmt.Errorf("%s %s: %v: %s", m.Strip, strings.Join(c, " "), err, out)
		}
	}
	return b, b.check()
}

// check checks that no file contains a section that its form excludes.
func (b *Build) check() error {
	for _, path := range []string{b.Stripped, b.Symbols, b.Tables} {
		f, err := elf.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		list, _ := f.Symbols()
		if (len(list) > 0) != (path == b.Symbols) {
			return fmt.Errorf("%s: %d symbols", path, len(list))
		}
		for _, s := range f.Sections {
			unwinds := s.Name == ".eh_frame" || s.Name == ".ARM.exidx" || s.Name == ".debug_frame"
			if unwinds && (path != b.Tables || s.Name == ".debug_frame") {
				return fmt.Errorf("%s: has %s", path, s.Name)
			}
		}
	}
	return nil
}

// text returns the code of an object file.
func text(path string) ([]byte, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := f.Section(".text")
	if s == nil {
		return nil, fmt.Errorf("%s: no .text", path)
	}
	return s.Data()
}

// ranges returns the address ranges of the program's own functions, and of the C library
// functions in which the program spends its time.
func ranges(path string) (list [][2]uint64, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	library := map[string]bool{"memset": true, "qsort": true, "qsort_r": true, "snprintf": true, "strlen": true,
		"raise": true, "msort_with_tmp": true, "msort_with_tmp.part.0": true, "__strchrnul": true}
	for _, s := range symbols {
		own := len(s.Name) > 2 && (s.Name[:2] == "t_" || s.Name[:2] == "g_") || s.Name == "main"
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 && (own || library[s.Name]) {
			low := s.Value
			if f.Machine == elf.EM_ARM {
				low &^= 1
			}
			list = append(list, [2]uint64{low, low + s.Size})
		}
	}
	return list, nil
}

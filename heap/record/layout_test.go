//go:build linux

package record

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write layout.go anew")

const ringHeader = "preload/ring.h"

// TestLayout makes layout.go from preload/ring.h.
func TestLayout(t *testing.T) {
	want := parseLayout(t).source(t)
	if *update {
		if err := os.WriteFile("layout.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("layout.go"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("layout.go is not what %s gives (%v): go test ./heap/record -run Layout -update", ringHeader, err)
	}
}

// TestLayoutOfCompiler holds what is read from ring.h against what a C compiler makes of it.
func TestLayoutOfCompiler(t *testing.T) {
	cmdtest.Need(t, "gcc")
	l := parseLayout(t)
	source := "#include <stddef.h>\n#include <stdio.h>\n#include \"ring.h\"\nint main(void)\n{\n\tputs(RING_MAGIC);\n"
	want := map[string]string{}
	ask := func(expression, value string) {
		want[expression] = value
		source += fmt.Sprintf("\tprintf(\"%%s\\t%%llu\\n\", %q, (unsigned long long)(%s));\n", expression, expression)
	}
	for _, c := range l.constants {
		if c.c == "RING_MAGIC" || c.c == "RING_ENV" {
			continue
		}
		ask(c.c, "")
	}
	for _, s := range l.structs {
		ask("sizeof(struct "+s.c+")", strconv.Itoa(s.size))
		for _, f := range s.fields {
			ask("offsetof(struct "+s.c+", "+f.c+")", strconv.Itoa(f.at))
		}
	}
	program := filepath.Join(t.TempDir(), "layout")
	if err := os.WriteFile(program+".c", []byte(source+"\treturn 0;\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-Ipreload", "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	magic, lines, _ := strings.Cut(string(out), "\n")
	if magic != ringMagic {
		t.Errorf("magic %q, want %q", ringMagic, magic)
	}
	values := map[string]uint64{"RING_VERSION": ringVersion, "RING_RULES": ringRules, "RING_SLACK": ringSlack, "RING_DIED": ringDied,
		"RING_LEFT": stateLeft, "RING_CYCLES": clockCycles, "RING_LOSSY": modeLossy}
	n := 0
	for line := range strings.Lines(lines) {
		expression, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if w := want[expression]; w != "" && w != value {
			t.Errorf("%s is %s here, and %s to the compiler", expression, w, value)
		}
		if w, ok := values[expression]; ok && fmt.Sprint(w) != value {
			t.Errorf("%s is %d here, and %s to the compiler", expression, w, value)
		}
		n++
	}
	if n != len(want) || n < 50 {
		t.Errorf("%d values, want %d, over 50", n, len(want))
	}
}

// cLayout is what ring.h defines.
type cLayout struct {
	constants []cConstant
	structs   []cStruct
}

type cConstant struct{ c, name, value string }

type cStruct struct {
	c, name string
	size    int
	fields  []cField
}

type cField struct {
	c, name string
	typ     string
	at      int
}

var (
	commentRE  = regexp.MustCompile(`(?s)/\*.*?\*/`)
	defineRE   = regexp.MustCompile(`(?m)^#define RING_(\w+)[ \t]+(\S.*?)[ \t]*$`)
	enumRE     = regexp.MustCompile(`enum ring_(\w+) \{([^}]*)\};`)
	structRE   = regexp.MustCompile(`struct ring_(\w+) \{([^}]*)\};`)
	fieldRE    = regexp.MustCompile(`(RING_SHARED )?(\w+) (\w+(?:\[\d+\])?(?:, \w+)*)$`)
	suffixRE   = regexp.MustCompile(`\b(0x[0-9a-f]+|\d+)u\b`)
	ringNameRE = regexp.MustCompile(`\bRING_\w+`)
	arrayRE    = regexp.MustCompile(`^(\w+)\[(\d+)\]$`)
)

// camel returns a name of C as one of Go.
func camel(first, rest string) string {
	name := strings.ToLower(first)
	for part := range strings.SplitSeq(strings.ToLower(rest), "_") {
		if part != "" {
			name += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return name
}

func parseLayout(t *testing.T) *cLayout {
	t.Helper()
	text, err := os.ReadFile(ringHeader)
	if err != nil {
		t.Fatal(err)
	}
	s := commentRE.ReplaceAllString(string(text), "")
	l := &cLayout{}
	for _, m := range defineRE.FindAllStringSubmatch(s, -1) {
		value := suffixRE.ReplaceAllString(m[2], "$1")
		value = ringNameRE.ReplaceAllStringFunc(value, func(n string) string { return camel("ring", n[5:]) })
		l.constants = append(l.constants, cConstant{"RING_" + m[1], camel("ring", m[1]), value})
	}
	for _, m := range enumRE.FindAllStringSubmatch(s, -1) {
		next := 0
		for item := range strings.SplitSeq(m[2], ",") {
			name, value, set := strings.Cut(strings.TrimSpace(item), " = ")
			if name == "" {
				continue
			}
			if set {
				if next, err = strconv.Atoi(value); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			rest := strings.TrimPrefix(strings.TrimPrefix(name, "RING_"), strings.ToUpper(m[1])+"_")
			l.constants = append(l.constants, cConstant{name, camel(m[1], rest), strconv.Itoa(next)})
			next++
		}
	}
	for _, m := range structRE.FindAllStringSubmatch(s, -1) {
		l.structs = append(l.structs, parseStruct(t, m[1], m[2]))
	}
	if len(l.structs) != 4 || len(l.constants) < 30 {
		t.Fatalf("%d structures and %d constants in %s", len(l.structs), len(l.constants), ringHeader)
	}
	return l
}

func parseStruct(t *testing.T, name, body string) cStruct {
	s := cStruct{c: "ring_" + name, name: name}
	sizes := map[string]int{"char": 1, "uint32_t": 4, "uint64_t": 8}
	types := map[string]string{"char": "byte", "uint32_t": "uint32", "uint64_t": "uint64"}
	for line := range strings.SplitSeq(body, ";") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := fieldRE.FindStringSubmatch(line)
		if m == nil || sizes[m[2]] == 0 {
			t.Fatalf("struct ring_%s: %q", name, line)
		}
		for field := range strings.SplitSeq(m[3], ", ") {
			f := cField{c: field, name: camel("", field), typ: types[m[2]], at: s.size}
			n := 1
			if a := arrayRE.FindStringSubmatch(field); a != nil {
				f.c, f.name = a[1], camel("", a[1])
				n, _ = strconv.Atoi(a[2])
				f.typ = fmt.Sprintf("[%d]%s", n, f.typ)
			}
			f.name = strings.ToLower(f.name[:1]) + f.name[1:]
			if m[1] != "" {
				f.typ = "atomic.Uint32"
			}
			if strings.HasPrefix(f.c, "pad") || f.c == "reserved" {
				f.name = "_"
			}
			if s.size%sizes[m[2]] != 0 {
				t.Fatalf("%s is not aligned", f.c)
			}
			s.size += n * sizes[m[2]]
			s.fields = append(s.fields, f)
		}
	}
	return s
}

func (l *cLayout) source(t *testing.T) []byte {
	var b strings.Builder
	b.WriteString("// Code generated from preload/ring.h by go test ./heap/record -run Layout -update. DO NOT EDIT.\n\n" +
		"//go:build linux\n\npackage record\n\nimport (\n\"sync/atomic\"\n\"unsafe\"\n)\n\nconst (\n")
	for _, c := range l.constants {
		fmt.Fprintf(&b, "%s = %s\n", c.name, c.value)
	}
	b.WriteString(")\n")
	for _, s := range l.structs {
		fmt.Fprintf(&b, "\ntype %s struct {\n", s.name)
		for _, f := range s.fields {
			fmt.Fprintf(&b, "%s %s\n", f.name, f.typ)
		}
		fmt.Fprintf(&b, "}\n\nvar _ [%d]byte = [unsafe.Sizeof(%s{})]byte{}\n", s.size, s.name)
	}
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return text
}

package capture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A function of a generated program.
type function struct {
	id    int
	sig   int // index of signatures
	feats map[string]bool
}

// signatures of functions: parameters, result, and how a call of function %d is
// written, as an int. Arguments beyond the registers go by the stack; a variable
// number of them is stored by the prologue.
var signatures = []struct{ result, params, call string }{
	{"int", "int a", "f_%d(a + %d)"},
	{"int", "int a, int b, int c, int d, int e, int f, int g, int h, int i, int j", "f_%d(a + %d, 2, 3, a, 5, r, 7, 8, 9, 10)"},
	{"int", "int a, ...", "f_%d(a + %d, 1, 2, r, 4, 5)"},
	{"double", "int a, double x", "(int)f_%d(a + %d, (double)r)"},
	{"struct three", "int a", "f_%d(a + %d).a[1]"},
	{"int", "int a, struct three s", "f_%d(a + %d, three)"},
}

// features of functions and how many in a hundred have them.
var features = []struct {
	name    string
	percent int
}{
	{"early", 25},     // returns before it needs a frame: the prologue may be put off
	{"array", 30},     // a local array, which -fstack-protector guards
	{"page", 5},       // a frame over 4 KiB
	{"large", 4},      // a frame over 64 KiB
	{"vla", 10},       // an array of variable length
	{"alloca", 8},     // alloca in a loop
	{"live", 30},      // many values that outlive a call: all registers are saved
	{"double", 15},    // floating-point ones
	{"aligned", 6},    // a local aligned to 64 bytes: sp is rounded
	{"recursive", 10}, // calls itself
	{"loop", 20},      // calls in a loop
	{"switch", 15},    // calls in the cases of a switch
	{"pointer", 20},   // calls by pointer
	{"tail", 15},      // ends in a call
	{"noreturn", 4},   // ends in a call that the compiler knows not to return
	{"branch", 30},    // calls in both branches of a condition
}

// blocks stand around the calls of functions that have the feature, the first outermost.
var blocks = []struct{ feature, begin, end string }{
	{"live", `	{
	int l0 = random_n(9), l1 = l0 + a, l2 = random_n(7), l3 = l2 * a, l4 = random_n(5), l5 = l4 ^ a, l6 = random_n(3), l7 = l6 - a, l8 = random_n(2), l9 = l8 + l7;
`, `	r += l0 + l1 * l2 - l3 + l4 * l5 - l6 + l7 * l8 - l9;
	}
`},
	{"double", `	{
	double d0 = random_n(9), d1 = d0 * a, d2 = random_n(5), d3 = d2 / 3;
`, `	r += (int)(d0 + d1 + d2 + d3);
	}
`},
	{"vla", `	{
	int n = 17 + random_n(90);
	char vla[n];

	fill(vla, n);
`, `	r += vla[n / 2];
	}
`},
	{"alloca", `	for (int i = 0; i < 1 + random_n(3); i++) {
		char *m = __builtin_alloca(20 + (size_t)random_n(60));
		fill(m, 20);
		r += m[3];
	}
`, ""},
	{"loop", `	for (int i = 0; i < 1 + (random_n(8) == 0); i++) {
`, `	}
`},
}

// A program for the truth harness.
type program struct {
	seed    uint64
	n       int      // functions
	runs    int      // descents from main
	ids     bool     // functions note that they are entered, but not from where: no code differs for it
	without []string // features that no function may have
}

// source returns the program in C, but for the parts that every program has:
// support.h.
func (p program) source() string {
	rnd := rand.New(rand.NewPCG(p.seed, 12))
	functions := make([]function, p.n)
	for i := range functions {
		functions[i] = function{id: i, sig: rnd.IntN(len(signatures)) * rnd.IntN(2), feats: map[string]bool{}}
		for _, f := range features {
			if rnd.IntN(100) < f.percent {
				functions[i].feats[f.name] = true
			}
		}
		for _, name := range p.without {
			delete(functions[i].feats, name)
			if name == "double" && functions[i].sig == 3 {
				functions[i].sig = 0
			}
		}
		if p.ids {
			delete(functions[i].feats, "tail")
		}
		if functions[i].feats["page"] || functions[i].feats["large"] {
			delete(functions[i].feats, "recursive") // 8 MiB of stack
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#define RUNS %d\n#define FUNCTIONS %d\n", p.runs, p.n)
	if p.ids {
		b.WriteString("#define IDS 1\n")
	}
	b.WriteString("#include \"support.h\"\n\n")
	for _, f := range functions {
		s := signatures[f.sig]
		fmt.Fprintf(&b, "NOINLINE %s f_%d(%s);\n", s.result, f.id, s.params)
	}
	for _, f := range functions {
		f.write(&b, functions, rnd)
	}
	fmt.Fprintf(&b, "\nNOINLINE int start(int a)\n{\n\tint r = a;\n\tstruct three three = {{1, 2, 3}};\n\n\t(void)three;\n"+
		"\tENTER(FUNCTIONS);\n\tr = %s;\n\tLEAVE();\n\treturn r + 1;\n}\n", functions[0].call(7))
	return b.String()
}

func (f function) call(k int) string { return fmt.Sprintf(signatures[f.sig].call, f.id, k) }

// result returns the statement that returns r as the function's type wants it.
func (f function) result(r string) string {
	switch f.sig {
	case 3:
		return "return (double)(" + r + ") * 0.5;"
	case 4:
		return "{ struct three t = {{" + r + ", 2, 3}}; return t; }"
	}
	return "return " + r + ";"
}

func (f function) write(b *strings.Builder, functions []function, rnd *rand.Rand) {
	pr := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	callee := func() function {
		if rest := len(functions) - 1 - f.id; rest > 0 {
			return functions[f.id+1+rnd.IntN(min(rest, 5))]
		}
		return function{id: -1}
	}
	call := func() string {
		c := callee()
		switch {
		case c.id < 0:
			return "probe(a)"
		case c.sig == 0 && f.feats["pointer"]:
			return fmt.Sprintf("opaque(f_%d)(a + %d)", c.id, rnd.IntN(9))
		}
		return c.call(rnd.IntN(100))
	}
	s := signatures[f.sig]
	pr("\nNOINLINE %s f_%d(%s)\n{\n", s.result, f.id, s.params)
	pr("\tint r = a;\n\tstruct three three = {{1, 2, 3}};\n")
	if f.feats["array"] {
		pr("\tchar array[%d];\n", []int{5, 8, 24, 100, 300, 1000}[rnd.IntN(6)])
	}
	if f.feats["page"] {
		pr("\tchar page[%d];\n", []int{4096, 5000, 9000, 33000}[rnd.IntN(4)])
	}
	if f.feats["large"] {
		pr("\tchar large[%d];\n", []int{66000, 70001, 131072}[rnd.IntN(3)])
	}
	if f.feats["aligned"] {
		pr("\tchar aligned[64] __attribute__((aligned(64)));\n")
	}
	pr("\n\t(void)three;\n")
	if f.feats["early"] {
		pr("\tif (a == -%d)\n\t\t%s\n", 5+f.id, f.result("a * 3"))
	}
	pr("\tENTER(%d);\n", f.id)
	for _, local := range []string{"array", "page", "large", "aligned"} {
		if f.feats[local] {
			pr("\tfill(%s, sizeof %s);\n", local, local)
		}
	}
	if f.sig == 2 {
		pr("\t{ va_list va; va_start(va, a); r += va_arg(va, int); va_end(va); }\n")
	}
	if f.feats["recursive"] {
		args := strings.Replace(f.call(0), "a + 0", "a", 1)
		pr("\tif (random_n(4) != 0 && top < 90) {\n\t\tr += %s;\n\t\tLEAVE();\n\t\t%s\n\t}\n", args, f.result("r + 1"))
	}
	for _, k := range blocks {
		if f.feats[k.feature] {
			b.WriteString(k.begin)
		}
	}
	switch {
	case f.feats["switch"]:
		pr("\tswitch (random_n(6)) {\n")
		for k := range 5 {
			pr("\tcase %d: r += %s; break;\n", k, call())
		}
		pr("\tdefault: r ^= %s;\n\t}\n", call())
	case f.feats["branch"]:
		pr("\tif (random_n(2))\n\t\tr += %s;\n\telse\n\t\tr -= %s;\n", call(), call())
	default:
		pr("\tr += %s;\n", call())
	}
	for _, k := range slices.Backward(blocks) {
		if f.feats[k.feature] {
			b.WriteString(k.end)
		}
	}
	for _, local := range []string{"array", "page", "large", "aligned"} {
		if f.feats[local] {
			pr("\tr += %s[3];\n", local)
		}
	}
	c := callee()
	switch {
	case f.feats["noreturn"]:
		pr("\tif (captures < LAST) {\n\t\tLEAVE();\n\t\t%s\n\t}\n\tfinish(r);\n", f.result("r + 2"))
	case f.feats["tail"] && c.id >= 0 && c.sig == 0 && f.sig == 0:
		pr("\tLEAVE_BY_TAIL_CALL();\n\treturn f_%d(r);\n", c.id)
	default:
		pr("\tLEAVE();\n\t%s\n", f.result("r + 1"))
	}
	pr("}\n")
}

package device

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
)

// Speed beside lws's C, by gcc -O2, in turns in one run:
//
//	go test ./device -run Speed -v
//
// It fails where the library is not several times as fast.
func TestSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("timing")
	}
	lws := lwsFlags(t)
	program := filepath.Join(t.TempDir(), "bench")
	args := strings.Fields("-std=gnu99 -O2 -Iinclude test/bench.c src/choose.c src/encode.c src/decode.c")
	args = append(append(args, lws...), "-o", program)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	model, ok := gen.ModelByName("x86_64-pie")
	if !ok {
		t.Fatal("no model x86_64-pie")
	}
	var table strings.Builder
	fmt.Fprintln(&table, "addresses frames │ encode lws  ours=lws ratio  ours=best ratio │ decode lws  ours ratio")
	for _, kind := range []string{"random", "program"} {
		for _, depth := range []int{4, 12, 16} {
			input := benchStacks(model, kind, depth)
			cmd := exec.Command(program)
			cmd.Stdin = strings.NewReader(input)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var e, el, eb, d, o float64
			if _, err := fmt.Sscan(string(out), &e, &el, &eb, &d, &o); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			fmt.Fprintf(&table, "%-9s %6d │ %8.1f %9.1f %6.1f %9.1f %6.1f │ %8.1f %7.1f %6.1f\n",
				kind, depth, e, el, e/el, eb, e/eb, d, o, d/o)
			if e/eb < 2 || d/o < 3 {
				t.Errorf("%s, %d frames: encode %.1f times, decode %.1f times as fast", kind, depth, e/eb, d/o)
			}
		}
	}
	t.Logf("ns per stack\n%s", table.String())
}

// benchStacks returns 1024 stacks: of random addresses in a program's code, or of a
// program that allocates at the same places over and over.
func benchStacks(model gen.Model, kind string, depth int) string {
	var out strings.Builder
	program := model.Program(1)
	var s codec.Stack
	for n := 0; n < 1024; {
		if kind == "random" {
			program.Scatter(&s, depth)
		} else if program.Next(&s); len(s.PCs) < depth {
			continue
		}
		s.PCs = s.PCs[:depth]
		fmt.Fprintf(&out, "%x", s.Size)
		for _, pc := range s.PCs {
			fmt.Fprintf(&out, " %x", pc)
		}
		fmt.Fprintln(&out)
		n++
	}
	return out.String()
}

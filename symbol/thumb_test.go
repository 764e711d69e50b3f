package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// firmwareSource is functions from to to of n that call one another, by name, by
// pointer and inlined, a call a line. Their return values are used, so that calls
// stay calls.
func firmwareSource(n, from, to int) string {
	var b strings.Builder
	b.WriteString("typedef int fn(int);\nextern int volatile v;\nextern fn *volatile p;\nvoid _start(void);\n")
	for i := range n {
		fmt.Fprintf(&b, "__attribute__((noinline)) int f%d(int);\n", i)
	}
	for i := from; i < to; i++ {
		a, c := (i*7+1)%n, (i*13+5)%n
		fmt.Fprintf(&b, "static inline int g%d(int x)\n{\n\tx += f%d(x);\n\tif (x > v)\n\t\tx ^= p(x);\n\treturn x;\n}\n", i, a)
		fmt.Fprintf(&b, "int f%d(int x)\n{\n\tint s = v;\n\ts += f%d(x + 1);\n\tif (s & %d)\n\t\ts -= p(s);\n\ts += g%d(s);\n\tv = s;\n\treturn s * f%d(x - s)\n\t\t+ 1;\n}\n",
			i, c, 1+i%7, i, a)
	}
	if from > 0 {
		return b.String()
	}
	b.WriteString("int volatile v;\nfn *volatile p;\nvoid _start(void)\n{\n\tp = f0;\n\tfor (;;)\n\t\tv = f1(v);\n}\n")
	return b.String()
}

// Return addresses of a Thumb firmware, with bit 0 set as the processor has it and
// without as gcc's unwinder gives them, against addr2line at the call.
func TestThumbFirmwareAgainstAddr2line(t *testing.T) {
	cmdtest.Long(t)
	t.Parallel()
	gcc := tool(t, "arm-none-eabi-gcc")
	objdump, gnu := tool(t, "arm-none-eabi-objdump"), tool(t, "arm-none-eabi-addr2line")
	path := onceBuilt(t, "firmware", func(dir string) (string, error) {
		out := filepath.Join(dir, "fw.elf")
		const functions, perUnit = 900, 150 // addr2line is slow where units are large
		args := []string{gcc, "-g", "-O1", "-finline-functions", "-mcpu=cortex-m3", "-mthumb", "-ffreestanding", "-nostdlib", "-o", out}
		for i := 0; i < functions; i += perUnit {
			name := fmt.Sprintf("fw%d.c", i)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(firmwareSource(functions, i, i+perUnit)), 0o644); err != nil {
				return "", err
			}
			args = append(args, name)
		}
		_, err := runIn(dir, args...)
		return out, err
	})
	call := regexp.MustCompile(`(?m)^\s*([0-9a-f]+):\t([0-9a-f]{4}(?: [0-9a-f]{4})?)\s+\t(?:bl|blx)(?:\.\w)?\s`)
	var rets, calls []uint64
	for _, m := range call.FindAllStringSubmatch(run(t, t.TempDir(), objdump, "-d", path), -1) {
		var at uint64
		fmt.Sscanf(m[1], "%x", &at)
		calls = append(calls, at)
		rets = append(rets, at+uint64(len(strings.Fields(m[2])))*2)
	}
	if len(rets) < 4000 {
		t.Fatalf("%d calls, want 4,000", len(rets))
	}
	want := addr2line(t, gnu, path, calls)
	compareReturns(t, "bit 0 set", path, rets, 1, want)
	compareReturns(t, "bit 0 cleared", path, rets, 0, want)
	// Addresses in the middle of code follow no call. Calls are recognized even in a
	// stripped file, which does not mark Thumb code.
	stripped := filepath.Join(t.TempDir(), "stripped.elf")
	run(t, t.TempDir(), tool(t, "arm-none-eabi-objcopy"), "--strip-all", path, stripped)
	for _, p := range []string{path, stripped} {
		f := open(t, p)
		yes := 0
		for _, ret := range rets {
			if f.FollowsCall(ret) && f.FollowsCall(ret|1) {
				yes++
			}
		}
		no := 0
		for _, at := range calls {
			if !slices.Contains(rets, at) && f.FollowsCall(at) {
				no++
			}
		}
		if yes != len(rets) || no > len(calls)/50 {
			t.Errorf("%s: %d of %d return addresses follow a call, and %d others", filepath.Base(p), yes, len(rets), no)
		}
	}
}

// compareReturns compares the frames of return addresses, with or without bit 0, with
// those that addr2line has at the calls.
func compareReturns(t *testing.T, name, path string, rets []uint64, bit0 uint64, want [][]gnuFrame) {
	t.Helper()
	place := func(f gnuFrame) string { return strings.Split(f.at, " (")[0] }
	p := process(t, path)
	inlined, differ := 0, 0
	for i, ret := range rets {
		got := asGNU(p.at(ret | bit0).Frames)
		if len(got) > 1 {
			inlined++
		}
		if explain(got, want[i], nil) != unexplained && slices.EqualFunc(got, want[i], func(a, b gnuFrame) bool { return place(a) == place(b) }) {
			continue
		}
		if differ++; differ < 5 {
			t.Errorf("%s: %#x: %v, want %v", name, ret, got, want[i])
		}
	}
	t.Logf("%s: %d return addresses, %d in inlined calls, %d differ", name, len(rets), inlined, differ)
	if differ > 0 || inlined < 500 {
		t.Errorf("%s: %d of %d differ, %d inlined", name, differ, len(rets), inlined)
	}
	for _, n := range allNotes(p) {
		t.Errorf("%s: %s", name, n)
	}
}

package device

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/device/tools/functions"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Who calls the functions of test/cortexm3/exceptions.c.
var callers = map[string]string{
	"leaf_plain": "branch", "leaf_frame": "moving", "leaf_early": "middle", "middle": "many", "many": "outer",
	"moving": "branch", "branch": "outer", "outer": "main", "wait": "outer", "main": "reset", "reset": "",
}

// What a Cortex-M's interrupt handler captures has the whole stack of what it interrupted, at
// any instruction: with the table of functions. Without it the walk may end early, but no
// frame is false.
func TestExceptions(t *testing.T) {
	cmdtest.Long(t)
	for _, c := range []struct{ name, cpu, board, flags string }{
		{"main stack", "cortex-m3", "mps2-an385", ""},
		{"process stack", "cortex-m3", "mps2-an385", "-DPROCESS"},
		{"Armv6-M, process stack", "cortex-m0", "mps2-an385", "-DPROCESS"},
		{"floating point, process stack", "cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", "mps2-an386", "-DPROCESS"},
	} {
		for _, level := range []string{"-O0", "-Os", "-O2"} {
			if level != "-Os" && !cmdtest.All() {
				continue
			}
			need(t, "arm-none-eabi-gcc", "qemu-system-arm")
			elf := filepath.Join(t.TempDir(), "exceptions.elf")
			args := strings.Fields("-std=gnu99 -g0 -mthumb -masm-syntax-unified -fno-optimize-sibling-calls -fno-ipa-cp -fno-partial-inlining -ffreestanding -Iinclude -nostdlib -T test/cortexm3/board.ld" +
				" -mcpu=" + c.cpu + " " + level + " " + c.flags + " -DLWSBT_FUNCTIONS_MAX=1024 test/cortexm3/exceptions.c src/capture_thumb.c src/capture_functions.c -lgcc -o " + elf)
			if out, err := exec.Command("arm-none-eabi-gcc", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, table := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s table=%t", c.name, level, table), func(t *testing.T) {
					if table {
						if _, err := functions.Patch(elf); err != nil {
							t.Fatal(err)
						}
					}
					out, err := exec.Command("qemu-system-arm", strings.Fields("-M "+c.board+" -icount shift=0 -semihosting -nographic -monitor none -serial none -kernel "+elf)...).CombinedOutput()
					if err != nil {
						t.Fatalf("qemu-system-arm: %v\n%s", err, out)
					}
					checkExceptions(t, elf, string(out), table)
				})
			}
		}
	}
}

func checkExceptions(t *testing.T, file, out string, table bool) {
	t.Helper()
	name := functionNames(t, file)
	stacks, whole, ended := 0, 0, false
	for line := range strings.Lines(out) {
		if ended = strings.HasPrefix(line, "end"); ended {
			break
		}
		var names []string
		for _, word := range strings.Fields(line) {
			pc, err := strconv.ParseUint(word, 16, 32)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			names = append(names, name(pc-1))
		}
		if len(names) < 3 || names[0] != "inner" || names[1] != "tick" {
			t.Fatalf("%v: want inner, tick, and what was interrupted", names)
		}
		var want []string
		for f := names[2]; f != ""; f = callers[f] {
			want = append(want, f)
		}
		stacks++
		switch got := names[2:]; {
		case slices.Equal(got, want):
			whole++
		case table:
			t.Errorf("%v: want %v (%s)", got, want, strings.TrimSpace(line))
		case len(got) > len(want) || !slices.Equal(got, want[:len(got)]):
			t.Errorf("%v: has frames that are not on the stack, which is %v (%s)", got, want, strings.TrimSpace(line))
		}
	}
	if !ended || stacks < 50 {
		t.Errorf("%d stacks, the program ended: %t\n%s", stacks, ended, out)
	}
	t.Logf("%d of %d stacks are whole", whole, stacks)
	if 3*whole < stacks {
		t.Errorf("%d of %d stacks are whole, want a third", whole, stacks)
	}
}

// functionNames returns a function that names the function of an address.
func functionNames(t *testing.T, file string) func(uint64) string {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(s elf.Symbol) bool { return elf.ST_TYPE(s.Info) != elf.STT_FUNC })
	sort.Slice(all, func(i, j int) bool { return all[i].Value < all[j].Value })
	return func(pc uint64) string {
		i := sort.Search(len(all), func(i int) bool { return all[i].Value&^1 > pc }) - 1
		if i < 0 {
			return ""
		}
		name, _, _ := strings.Cut(all[i].Name, ".") // of clones
		return name
	}
}

package device

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// amalgamation/ is what the command makes of the files that are there now.
func TestAmalgamation(t *testing.T) {
	for _, pattern := range []string{"*/*.h", "include/lwsbt/*.h", "*/*.c"} {
		readAll(t, pattern)
	}
	dir := t.TempDir()
	for _, sub := range []string{"include", "src", "adapters"} {
		if err := os.CopyFS(dir+"/"+sub, os.DirFS(sub)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/amalgamation", 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "run", "./tools/amalgamate", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"lwsbt.h", "lwsbt.c"} {
		if read(t, dir+"/amalgamation/"+name) != read(t, "amalgamation/"+name) {
			t.Errorf("amalgamation/%s is not made of the files of device/: go run ./device/tools/amalgamate", name)
		}
	}
}

// compilers are those of each machine that has a capture function. The first two run without LWSBT_FULL, and those
// after the fifth only if it is all.
var compilers = []string{"gcc", "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb", "clang", "arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb",
	"riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 --specs=picolibc.specs", "arm-linux-gnueabihf-gcc -marm", "aarch64-linux-gnu-gcc",
	"mips-linux-gnu-gcc", "powerpc-linux-gnu-gcc", "s390x-linux-gnu-gcc", "i686-linux-gnu-gcc"}

// The two files compile as strictly as the parts, with and without what wraps malloc, for every machine that
// has a capture function, and without the heap for words of another machine. Warnings are the compiler's front end's;
// those of its optimizer are looked for with one set of options.
func TestAmalgamationCompiles(t *testing.T) {
	for i, cc := range compilers {
		if i >= 2 && !cmdtest.Full() || i >= 5 && !cmdtest.All() {
			break
		}
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(cc)
			need(t, args[0])
			options := []string{"-fsyntax-only", "-fsyntax-only -DLWSBT_WRAP -DLWSBT_TINY -DLWSBT_WRAP_NODES=100 -DLWSBT_WRAP_ENTRIES=30",
				"-fsyntax-only -DLWSBT_WRAP -DLWSBT_QUARANTINE=4", "-fsyntax-only -DLWSBT_WORD_BITS=32",
				"-fsyntax-only -DLWSBT_WORD_BITS=64"}
			if cmdtest.Full() {
				options = append(options, "-Os -DLWSBT_WRAP -c -o "+t.TempDir()+"/x.o")
			} else {
				options = append(options, "-fsyntax-only -DLWSBT_WRAP")
			}
			if i == 1 || i == 3 || i == 4 { // machines with a handler
				options = append(options, "-fsyntax-only -DLWSBT_CRASH -DLWSBT_CRASH_TASKS=8")
			}
			for _, o := range options {
				c := append(args[1:len(args):len(args)], strings.Fields("-std=c99 -Wall -Wextra -Wconversion -pedantic -Werror amalgamation/lwsbt.c "+o)...)
				if out, err := exec.Command(args[0], c...).CombinedOutput(); err != nil {
					t.Errorf("%s %s: %v\n%s", args[0], strings.Join(c, " "), err, out)
				}
			}
		})
	}
}

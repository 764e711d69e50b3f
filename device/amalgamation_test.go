package device

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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

// The two files compile as strictly as the parts, with and without what wraps malloc, for every machine that
// has a capture function, and without the heap for words of another machine.
func TestAmalgamationCompiles(t *testing.T) {
	for _, cc := range []string{"gcc", "clang", "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb", "arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb",
		"arm-linux-gnueabihf-gcc -marm", "aarch64-linux-gnu-gcc", "riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 --specs=picolibc.specs",
		"mips-linux-gnu-gcc", "powerpc-linux-gnu-gcc", "s390x-linux-gnu-gcc", "i686-linux-gnu-gcc"} {
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(cc)
			need(t, args[0])
			for _, options := range []string{"", "-DLWSBT_WRAP", "-DLWSBT_WRAP -DLWSBT_TINY -DLWSBT_WRAP_NODES=100 -DLWSBT_WRAP_ENTRIES=30",
				"-DLWSBT_WRAP -DLWSBT_PACKED=1 -DLWSBT_QUARANTINE=4", "-DLWSBT_WORD_BITS=32", "-DLWSBT_WORD_BITS=64"} {
				c := append(args[1:len(args):len(args)], strings.Fields("-std=c99 -Os -Wall -Wextra -Wconversion -pedantic -Werror -c amalgamation/lwsbt.c -o "+t.TempDir()+"/x.o "+options)...)
				if out, err := exec.Command(args[0], c...).CombinedOutput(); err != nil {
					t.Errorf("%s %s: %v\n%s", args[0], strings.Join(c, " "), err, out)
				}
			}
		})
	}
}

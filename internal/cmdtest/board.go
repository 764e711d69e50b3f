package cmdtest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// boards are machines without an operating system that qemu has, and their C libraries.
var boards = map[string]struct {
	cc, qemu    string
	ram         uint64
	args, flags []string // of qemu and of the compiler
}{
	"cortex-m3": {"arm-none-eabi-gcc", "qemu-system-arm", 0x20000000, []string{"-M", "mps2-an385"},
		[]string{"-mcpu=cortex-m3", "-mthumb", "--specs=nosys.specs"}},
	"riscv32": {"riscv64-unknown-elf-gcc", "qemu-system-riscv32", 0x80040000, []string{"-M", "virt", "-bios", "none"},
		[]string{"-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"}},
}

// Board compiles a program for a board, with the linker script and the start code in a directory,
// runs it under qemu until it has printed "halted", and saves 64 KB of RAM. It returns the files of
// the program and of the RAM, and the address of the RAM. It skips the test if a program is missing.
func Board(t testing.TB, board, directory string, flags ...string) (exe, ram string, addr uint64) {
	t.Helper()
	b := boards[board]
	Need(t, b.cc, b.qemu)
	dir := t.TempDir()
	exe, ram = filepath.Join(dir, "fw.elf"), filepath.Join(dir, "ram.bin")
	argv := []string{"-nostartfiles", "-ffunction-sections", "-Wl,--gc-sections,--no-warnings",
		"-T", filepath.Join(directory, board+".ld"), "-o", exe, filepath.Join(directory, "start.c")}
	if out, err := exec.Command(b.cc, slices.Concat(argv, b.flags, flags)...).CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("specs")) {
			t.Skipf("no C library for %s: %s", b.cc, out)
		}
		t.Fatalf("%s: %v\n%s", b.cc, err, out)
	}
	q := exec.Command(b.qemu, append(slices.Clone(b.args), "-display", "none", "-serial", "file:uart.txt", "-monitor", "stdio", "-kernel", exe)...)
	q.Dir = dir
	in, err := q.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	q.Stdout, q.Stderr = &out, &out
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if text, _ := os.ReadFile(filepath.Join(dir, "uart.txt")); bytes.Contains(text, []byte("halted")) {
			break
		}
		if time.Now().After(end) {
			q.Process.Kill()
			q.Wait()
			t.Fatalf("the firmware does not halt: %s", out.String())
		}
	}
	io.WriteString(in, fmt.Sprintf("stop\npmemsave %#x 0x10000 ram.bin\nquit\n", b.ram))
	in.Close()
	if err := q.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return exe, ram, b.ram
}

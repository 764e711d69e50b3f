package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// firmwares are the machines that testdata/firmware is run on.
var firmwares = []struct {
	name, cc, qemu, machine, ram string
	flags                        []string
}{
	{"cortex-m3", "arm-none-eabi-gcc", "qemu-system-arm", "mps2-an385", "0x20000000",
		[]string{"-mcpu=cortex-m3", "-mthumb", "-funwind-tables", "--specs=nosys.specs"}},
	{"riscv32", "riscv64-unknown-elf-gcc", "qemu-system-riscv32", "virt", "0x80040000",
		[]string{"-march=rv32imac", "-mabi=ilp32", "-fno-omit-frame-pointer", "--specs=picolibc.specs"}},
}

// dieFirmware compiles the firmware of a machine, runs it until it halts, and saves RAM
// and registers through qemu's monitor: fw.elf, ram.bin and regs.txt in dir.
func dieFirmware(t *testing.T, i int, dir string) {
	t.Helper()
	f := firmwares[i]
	cmdtest.Need(t, f.cc, f.qemu)
	src, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(src, "heap/cmd/btcore/testdata/firmware")
	args := append([]string{"-g", "-Os", "-Wall", "-ffunction-sections", "-nostartfiles", "-ffile-prefix-map=" + own + "=/firmware",
		"-ffile-prefix-map=" + filepath.Join(src, "device") + "=/device",
		"-I", filepath.Join(src, "device/include"), "-T", filepath.Join(own, f.name+".ld"), "-Wl,--gc-sections,--no-warnings",
		"-o", filepath.Join(dir, "fw.elf"), filepath.Join(own, "firmware.c"), filepath.Join(own, "start.c")}, f.flags...)
	for _, name := range strings.Fields("choose encode decode line head event parse heap trim alloc dump") {
		args = append(args, filepath.Join(src, "device/src", name+".c"))
	}
	if out, err := exec.Command(f.cc, args...).CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("specs")) {
			t.Skipf("no C library for %s: %s", f.cc, out)
		}
		t.Fatalf("%s: %v\n%s", f.cc, err, out)
	}
	uart := filepath.Join(dir, "uart.txt")
	qemu := exec.Command(f.qemu, "-M", f.machine, "-nographic", "-serial", "file:uart.txt", "-monitor", "unix:mon,server=on,wait=on",
		"-bios", "none", "-kernel", "fw.elf")
	if i == 0 {
		qemu.Args = append(qemu.Args[:len(qemu.Args)-4], "-kernel", "fw.elf")
	}
	qemu.Dir = dir
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	defer qemu.Wait()
	defer qemu.Process.Kill()
	t.Chdir(dir) // the path of a socket must be short
	var mon net.Conn
	wait(t, "qemu's monitor", func() bool { mon, err = net.Dial("unix", "mon"); return err == nil })
	defer mon.Close()
	mon.SetDeadline(time.Now().Add(2 * time.Minute))
	ask := func(command string) string {
		if command != "" {
			fmt.Fprintf(mon, "%s\n", command)
		}
		var out []byte
		for !bytes.HasSuffix(out, []byte("\n(qemu) ")) && !bytes.HasSuffix(out, []byte("\r\n(qemu) ")) {
			var b [4096]byte
			n, err := mon.Read(b[:])
			if err != nil {
				t.Fatalf("qemu's monitor: %v after %q", err, out)
			}
			out = append(out, b[:n]...)
		}
		return string(out)
	}
	ask("")
	wait(t, "the firmware's end", func() bool { b, _ := os.ReadFile(uart); return bytes.Contains(b, []byte("halted")) })
	ask("stop")
	regs := ask("info registers")
	ask(fmt.Sprintf("pmemsave %s 0x10000 ram.bin", f.ram))
	if i == 0 {
		ask("dump-guest-memory guest.core")
	}
	if err := os.WriteFile(filepath.Join(dir, "regs.txt"), []byte(regs), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wait waits for a condition.
func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("%s: waited in vain", what)
}

// execute runs the command.
func execute(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = cli.Run(command(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// TestFirmware reads the RAM of firmware that leaked 4 headers and wrote past the end
// of a name. btcore reports both, and nothing else.
func TestFirmware(t *testing.T) {
	cmdtest.Long(t)
	for i, f := range firmwares {
		t.Run(f.name, func(t *testing.T) {
			dir := t.TempDir()
			dieFirmware(t, i, dir)
			ram := []string{"--ram", f.ram + "=ram.bin", "-e", "fw.elf"}
			for _, more := range [][]string{nil, {"--regs", "regs.txt"}, {"--carve"}} {
				args := append(append([]string{"heap", "--damage", "--leaks"}, ram...), more...)
				code, out, errs := execute(args...)
				if code != cli.Short {
					t.Fatalf("%v: exit code %d: %s", args, code, errs)
				}
				damaged := "1 damaged block of 11."
				if i == 0 { // newlib's chunks have spare bytes after 16 bytes
					damaged = "2 damaged blocks of 11.\n\nMemory behind the block at"
				}
				for _, want := range []string{
					damaged, "a write past the end of the block before it: 16 bytes at", "  set_name  /firmware/firmware.c:",
					"4 blocks leaked, 80 bytes, by 1 call stack.", "80 bytes in 4 blocks:", "  parse_header  /firmware/firmware.c:",
					"  handle_request  /firmware/firmware.c:", "  main  /firmware/firmware.c:",
				} {
					if !strings.Contains(out, want) {
						t.Errorf("%v: no %q in\n%s", args, want, out)
					}
				}
				// Contents of memory, before or after the overwrite, must not be printed.
				if strings.Contains(out+errs, "wardrobe") || strings.Contains(out+errs, "0x62646c6f") {
					t.Errorf("%v: contents of memory are printed:\n%s", args, out)
				}
			}
			if i == 0 { // registers and all memory in one file
				code, out, errs := execute("heap", "guest.core", "--carve", "--leaks", "-e", "fw.elf")
				if code != cli.Short || !strings.Contains(out, "4 blocks leaked, 80 bytes") || !strings.Contains(out, "7 blocks reachable") {
					t.Errorf("dump-guest-memory: exit code %d\n%s%s", code, out, errs)
				}
			}
			code, out, errs := execute(append([]string{"heap", "--only", "leaked"}, ram...)...)
			if n := strings.Count(out, "\n~m#"); n != 4 || code != cli.Short {
				t.Errorf("--only leaked: exit code %d, %d records\n%s%s", code, n, out, errs)
			}
		})
	}
}

// The commands of heap/docs/btcore.md. Addresses, distances and the inside of the library
// depend on the compiler: they are not compared.
func TestDocs(t *testing.T) {
	document, err := filepath.Abs("../../docs/btcore.md")
	if err != nil {
		t.Fatal(err)
	}
	dieFirmware(t, 0, t.TempDir())
	library := regexp.MustCompile(`(?m)(^.*  /device/.*\n)+`)
	numbers := regexp.MustCompile(`0x[0-9a-f]+|\d+ bytes before these|~m#\S+|length \d+`)
	cmdtest.Session{Document: document, Least: 3, Update: figures.Update(),
		Plain: func(s string) string { return numbers.ReplaceAllString(library.ReplaceAllString(s, "#\n"), "#") },
		Run: func(_ *testing.T, line string) (string, error) {
			args := strings.Fields(line)
			if args[0] != "btcore" {
				return "", fmt.Errorf("expected btcore")
			}
			code, out, errs := execute(args[1:]...)
			if code > cli.Short {
				return out, fmt.Errorf("exit code %d: %s", code, errs)
			}
			return out, nil
		},
	}.Test(t)
}

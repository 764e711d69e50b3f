package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// ramFiles writes empty RAM, registers, and an ELF file that gives the machine of the RAM.
func ramFiles(t *testing.T) (ram, exe, regs string) {
	t.Helper()
	dir := t.TempDir()
	ram, exe, regs = filepath.Join(dir, "ram.bin"), filepath.Join(dir, "fw.elf"), filepath.Join(dir, "regs.txt")
	var b bytes.Buffer
	le := binary.LittleEndian
	binary.Write(&b, le, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64),
		Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1})
	binary.Write(&b, le, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Vaddr: 0x400000, Filesz: 128, Memsz: 128})
	b.Write(make([]byte, 128))
	write(t, ram, make([]byte, 1<<16))
	write(t, exe, b.Bytes())
	write(t, regs, []byte("rip 0x400010\nrsp 0x20000100\n"))
	return ram, exe, regs
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The output does not replace an input file.
func TestOutputIsNoInput(t *testing.T) {
	for _, name := range []string{"ram.bin", "fw.elf", "regs.txt", "link"} {
		ram, exe, regs := ramFiles(t)
		out := filepath.Join(filepath.Dir(ram), name)
		if name == "link" {
			if err := os.Symlink("fw.elf", out); err != nil {
				t.Skip(err)
			}
		}
		before, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		code, _, errs := execute("stacks", "--ram", "0x20000000="+ram, "-e", exe, "--regs", regs, "-o", out)
		after, err := os.ReadFile(out)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s was replaced: %v", name, err)
		}
		if code != 2 || !strings.Contains(errs, "same file") {
			t.Errorf("-o %s: exit %d, %s", name, code, errs)
		}
	}
}

// A FIFO without a writer is rejected at once.
func TestImageIsAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no FIFO here")
	}
	_, exe, _ := ramFiles(t)
	fifo := filepath.Join(filepath.Dir(exe), "fifo")
	tool(t, "mkfifo", fifo)
	for _, args := range [][]string{{"heap", fifo}, {"heap", "--ram", "0x20000000=" + fifo}, {"stacks", fifo}, {"heap", "--ram", fifo},
		{"heap", "--ram", "0x20000000=" + exe, "-e", fifo}, {"heap", filepath.Dir(exe)}} {
		done := make(chan string)
		go func() {
			code, _, errs := execute(args...)
			if code != 2 {
				errs = "exit code " + string(rune('0'+code)) + ": " + errs
			}
			done <- errs
		}()
		select {
		case errs := <-done:
			if !strings.HasPrefix(errs, "btcore: ") || !strings.Contains(errs, "not a regular file") {
				t.Errorf("%v: %s", args, errs)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%v: waits for the FIFO", args)
		}
	}
}

// An image that becomes shorter while it is read is an error. The command runs in a
// separate process, since a failure would end the process.
func TestImageBecomesShorter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("tested on Linux")
	}
	cmdtest.Need(t, "go")
	_, exe, _ := ramFiles(t)
	bin := filepath.Join(filepath.Dir(exe), "btcore")
	tool(t, "go", "build", "-o", bin, ".")
	for _, size := range []int64{1 << 19, 1 << 22} { // holes of large files are not read
		ram := filepath.Join(t.TempDir(), "ram.bin")
		write(t, ram, make([]byte, size))
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		// The registers are in a pipe, which is read after the RAM was mapped. The RAM
		// is truncated in between.
		command := "stacks"
		if size > 1<<20 {
			command = "heap"
		}
		c := exec.CommandContext(ctx, bin, command, "--ram", "0x20000000="+ram, "-e", exe, "--regs", "/dev/fd/3")
		c.ExtraFiles = []*os.File{r}
		var errs bytes.Buffer
		c.Stderr = &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		wait(t, "the RAM's mapping", func() bool {
			maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.Process.Pid))
			return bytes.Contains(maps, []byte(ram))
		})
		if err := os.Truncate(ram, 0); err != nil {
			t.Fatal(err)
		}
		w.WriteString("rip 0x400010\nrsp 0x20000100\n")
		w.Close()
		c.Wait()
		if c.ProcessState.ExitCode() != 2 || !strings.Contains(errs.String(), "ram.bin: became shorter while it was in use") {
			t.Errorf("%d bytes: exit %d\n%.500s", size, c.ProcessState.ExitCode(), errs.String())
		}
	}
}

// Neither ".." in the names of a core file nor symbolic links lead out of --sysroot.
func TestSysroot(t *testing.T) {
	core, exe, _ := deadProgram(t, "-Wl,--build-id")
	root := filepath.Join(t.TempDir(), "root")
	inside := filepath.Join(root, filepath.Dir(exe))
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	named := func() bool {
		_, out, _ := execute("stacks", "--sysroot", root, core)
		return strings.Contains(out, "stop")
	}
	if named() {
		t.Fatal("named without the file")
	}
	// A link in the sysroot, as a program there reads it: to itself, not to the program
	// of this machine.
	if err := os.Symlink(exe, filepath.Join(inside, "app")); err != nil {
		t.Skip(err)
	}
	if named() {
		t.Error("a link led out of the sysroot")
	}
	if err := os.Remove(filepath.Join(inside, "app")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "real"), data)
	if err := os.Symlink("/real", filepath.Join(inside, "app")); err != nil {
		t.Fatal(err)
	}
	if !named() {
		t.Error("not named, though the file is in the sysroot")
	}
}

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// largeProgram returns a program with threads and long stacks: 200 frames of a function
// with 3,000 branches that calls itself through a pointer. Unwinding it without tables
// reads much code.
func largeProgram() string {
	var b strings.Builder
	b.WriteString(`
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
volatile unsigned zero, sink;
#define N __attribute__((noinline, noclone))
N unsigned leaf(unsigned x) { sink = x; return x * 3 + sink; }
unsigned eval(unsigned n);
unsigned (*volatile next)(unsigned) = eval;
N void stop(void) { sink++; if (!zero) abort(); }
N unsigned eval(unsigned n)
{
	unsigned s = n;
	if (n == 0)
		stop();
`)
	for i := range 3000 {
		fmt.Fprintf(&b, "\tif (sink == %d)\n\t\ts += leaf(s + %d);\n", i*7+1, i)
	}
	b.WriteString(`
	s += next(n - 1);
	return leaf(s);
}
N void *wait(void *p) { for (;;) pause(); return p; }
int main(void)
{
	pthread_t t;
	for (int i = 0; i < 4; i++)
		pthread_create(&t, NULL, wait, NULL);
	sleep(1);
	return (int)eval(199);
}
`)
	return b.String()
}

// enlarge adds a segment of size zero bytes, a hole in the file, to a core file.
func enlarge(t *testing.T, path string, size uint64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var h elf.Header64
	if err := binary.Read(f, binary.LittleEndian, &h); err != nil {
		t.Fatal(err)
	}
	progs := make([]elf.Prog64, h.Phnum, h.Phnum+1)
	if err := binary.Read(io.NewSectionReader(f, int64(h.Phoff), 1<<20), binary.LittleEndian, progs); err != nil {
		t.Fatal(err)
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	hole := uint64(end+0xfff) &^ 0xfff
	progs = append(progs, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: hole,
		Vaddr: 0x100000000000, Filesz: size, Memsz: size, Align: 0x1000})
	h.Phoff, h.Phnum = hole+size, h.Phnum+1
	var head, tail bytes.Buffer
	binary.Write(&head, binary.LittleEndian, &h)
	binary.Write(&tail, binary.LittleEndian, progs)
	if _, err := f.WriteAt(tail.Bytes(), int64(h.Phoff)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(head.Bytes(), 0); err != nil {
		t.Fatal(err)
	}
}

// TestStacksOfALargeCore checks on a core file of 3.8 GB that the stacks without tables
// are those with tables, and take about as long.
func TestStacksOfALargeCore(t *testing.T) {
	cmdtest.Long(t)
	dir := t.TempDir()
	src, exe, core := filepath.Join(dir, "p.c"), filepath.Join(dir, "p"), filepath.Join(dir, "core")
	if err := os.WriteFile(src, []byte(largeProgram()), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "gcc", "-O1", "-pthread", "-fomit-frame-pointer", "-o", exe, src)
	tool(t, "gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "run", "-ex", "generate-core-file "+core, exe)
	enlarge(t, core, 3_800_000_000)
	start := time.Now()
	want, _ := ourFrames(btcore(t, 0, "stacks", core, "-e", exe))
	tables := time.Since(start)
	start = time.Now()
	got, _ := ourFrames(btcore(t, 0, "stacks", "--no-tables", core, "-e", exe))
	code := time.Since(start)
	t.Logf("with tables %v, without %v", tables, code)
	if len(want) < 200+5*4 {
		t.Fatalf("%d frames, expected at least 220", len(want))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("without tables:\n%x\nwith them:\n%x", got, want)
	}
	if limit := 4*tables + time.Second; code > limit {
		t.Errorf("without tables %v, with them %v: expected at most %v", code, tables, limit)
	}
}

// Package devicetest runs programs with device/ on the boards of QEMU, and reads their logs by the heap tools.
package devicetest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol"
)

// A board of the example.
type board struct {
	name  string
	tools []string
	qemu  string
}

var boards = []board{
	{"mps2", []string{"arm-none-eabi-gcc", "qemu-system-arm"}, "qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel"},
	{"virt", []string{"riscv64-unknown-elf-gcc", "qemu-system-riscv32"}, "qemu-system-riscv32 -M virt -bios none -nographic -kernel"},
}

// commands is where commands are built, once for all tests.
var commands string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if commands, err = os.MkdirTemp("", "devicetest"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(commands)
	os.Exit(code)
}

// command returns a function that builds a command of heap/cmd, and returns its path.
func command(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(commands, name)
		if out, err := exec.Command("go", "build", "-o", path, "github.com/lwsbt/lwsbt/heap/cmd/"+name).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %v: %s", err, out)
		}
		return path, nil
	})
}

var btcore, btdecode, btheap = command("btcore"), command("btdecode"), command("btheap")

// build makes a target of the example, with more variables for make.
func build(t *testing.T, tools []string, target, dir string, variables ...string) string {
	t.Helper()
	cmdtest.Need(t, append(tools, "make")...)
	functable, err := btcore()
	if err != nil {
		t.Fatal(err)
	}
	variables = append(variables, "-C", "../../examples/firmware", target, "OUT="+dir, "FUNCTABLE="+functable+" functable")
	if out, err := exec.Command("make", variables...).CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("picolibc.specs")) && bytes.Contains(out, []byte("No such file")) {
			t.Skip("picolibc is not installed")
		}
		if bytes.Contains(out, []byte("nano.specs")) && bytes.Contains(out, []byte("No such file")) {
			t.Skip("newlib is not installed")
		}
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	return filepath.Join(dir, target+".elf")
}

func emulate(t *testing.T, command, elf string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args := append(strings.Fields(command), elf)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// The firmware's UART, through btdecode, shows the call path of the leak: one more
// block in each dump for every fourth of the 16 sessions before it, and no other
// path that grows.
func TestFirmwareLeak(t *testing.T) {
	cmdtest.Long(t)
	btdecode, err := btdecode()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range boards {
		t.Run(b.name, func(t *testing.T) {
			elf := build(t, b.tools, b.name, t.TempDir())
			uart := emulate(t, b.qemu, elf)
			cmd := exec.Command(btdecode, "--passthrough", "-e", elf)
			cmd.Stdin = bytes.NewReader(uart)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(out, []byte("firmware: ends")) {
				t.Fatalf("the firmware did not end:\n%s", out)
			}
			want := ""
			for dump := range 8 {
				want += fmt.Sprintf("%d leaked, 1 sensor, 0 others; ", 4*(dump+1))
			}
			if got := paths(string(out)); got != want {
				t.Errorf("dumps: %s\nwant:  %s\n%s", got, want, out)
			}
		})
	}
}

// The same firmware with a profile: a reader with the ELF file, which says where the code is, finds the
// same leak in dumps by call path.
func TestFirmwareProfile(t *testing.T) {
	cmdtest.Long(t)
	path := build(t, boards[0].tools, "mps2-paths", t.TempDir())
	uart := emulate(t, boards[0].qemu, path)
	file, err := symbol.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	layout, err := file.Layout()
	if err != nil || layout.Firmware != "1.0" || layout.Shift != 1 || len(layout.Code) != 1 || len(layout.Heap) != 1 || layout.Heap[0].Start < 0x20000000 {
		t.Errorf("the note is %+v: %v", layout, err)
	}
	r, err := heaplog.Open(t.Context(), heaplog.Stream(bytes.NewReader(uart), "uart"), heaplog.Exe(path))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, want := "", ""
	dumps := 0
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.New(d)
		if err != nil {
			t.Fatal(err)
		}
		var leaked, sensor, others int64
		for _, row := range p.Top(profile.Bytes, 10) {
			switch stack := fmt.Sprint(row.Stack()); {
			case strings.HasPrefix(stack, "[buffer_new") && strings.Contains(stack, " main"):
				leaked += int64(row.Value().Count)
			case strings.HasPrefix(stack, "[sensor_poll") && strings.Contains(stack, " main"):
				sensor += int64(row.Value().Count)
			default:
				others += int64(row.Value().Count)
			}
		}
		got += fmt.Sprintf("%d leaked, %d sensor, %d others; ", leaked, sensor, others)
		dumps++
		want += fmt.Sprintf("%d leaked, 1 sensor, 0 others; ", 4*dumps)
	}
	if got != want || dumps != 8 {
		t.Errorf("%d dumps: %s\nwant:  %s\n%s", dumps, got, want, uart)
	}
}

// paths counts the records of each dump by their call path.
func paths(out string) string {
	var b strings.Builder
	for _, dump := range strings.Split(out, "~h#begin ")[1:] {
		dump, _, _ = strings.Cut(dump, "~h#end")
		var leaked, sensor, others int
		for _, record := range strings.Split(dump, "~b#")[1:] {
			var names []string
			for line := range strings.Lines(record) {
				// "   1  0x800001d8 session_open at app.c:47"
				if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[1], "0x") && f[0] != "size:" {
					names = append(names, f[2])
				}
			}
			switch path := strings.Join(names, " "); {
			case strings.HasPrefix(path, "buffer_new session_open net_poll main"):
				leaked++
			case strings.HasPrefix(path, "sensor_poll main"):
				sensor++
			default:
				others++
			}
		}
		fmt.Fprintf(&b, "%d leaked, %d sensor, %d others; ", leaked, sensor, others)
	}
	return b.String()
}

// An allocation of 12 frames on the Cortex-M3, counted by -icount, as docs/notes/capture.md has it:
//
//	LWSBT_FULL=1 go test ./heap/devicetest -run Instructions -v
//
// The cache hashes addresses of code: with it, captures differ by 10 % from one program to another.
func TestInstructions(t *testing.T) {
	cmdtest.Long(t)
	const lws = 20830 // instructions of an allocation by lws: see TestInstructions of package device
	for _, c := range []struct {
		name, row         string // of the document
		variables         []string
		capture, allocate int // instructions at most; 0: not tested
	}{
		{"cache, table", "cache and table", nil, 800, lws / 5},
		{"cache", "cache, no table", []string{"NO_TABLE=1"}, 800, lws / 5},
		{"table", "table, no cache", []string{"MEASURE=-ULWSBT_WRAP_RULES"}, 800 * 12, 0}, // 800 per frame: as libgcc's unwinder
		{"profile, cache, table", "", []string{"MEASURE=-DLWSBT_WRAP_NODES=640 -DLWSBT_WRAP_ENTRIES=180"}, 800, lws / 13},
		{"neither", "neither", []string{"MEASURE=-ULWSBT_WRAP_RULES", "NO_TABLE=1"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			elf := build(t, boards[0].tools, "mps2-measure", t.TempDir(), c.variables...)
			out := string(emulate(t, "qemu-system-arm -M mps2-an385 -nographic -semihosting -icount shift=0 -kernel", elf))
			t.Logf("\n%s", out)
			var frames, plain, traced, n, capture, free int
			if _, err := fmt.Sscanf(out, "frames %d\nmalloc %d\nwith metadata %d\ninstructions per allocation %d\nof these, capture %d\ninstructions per free %d\n", &frames, &plain, &traced, &n, &capture, &free); err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			if frames != 12 || capture < 100 {
				t.Errorf("%d frames in %d instructions, want 12 in more than 100", frames, capture)
			}
			if c.allocate != 0 && n > c.allocate {
				t.Errorf("an allocation takes %d instructions, want at most %d", n, c.allocate)
			}
			if c.capture != 0 && capture > c.capture {
				t.Errorf("capture takes %d instructions, want at most %d", capture, c.capture)
			}
			if c.row != "" {
				written(t, c.row, capture, n)
			}
		})
	}
}

// written tests that a row of the table of docs/notes/capture.md has numbers near n. Another compiler than that
// of the document may make others.
func written(t *testing.T, row string, n ...int) {
	t.Helper()
	version, err := exec.Command("arm-none-eabi-gcc", "-dumpversion").Output()
	if err != nil || !strings.HasPrefix(string(version), "12.2.") {
		return
	}
	doc, err := os.ReadFile("../../docs/notes/capture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "\n| "+row+" | ")
	if !ok {
		t.Fatalf("docs/notes/capture.md has no row %q", row)
	}
	line, _, _ := strings.Cut(rest, "\n")
	cells := strings.Split(strings.ReplaceAll(strings.TrimSuffix(line, " |"), ",", ""), " | ")
	for i, want := range n {
		if was, err := strconv.Atoi(cells[i]); err != nil || max(was-want, want-was) > want/10 {
			t.Errorf("docs/notes/capture.md has %s of %q, want %d: %v", cells[i], row, want, err)
		}
	}
}

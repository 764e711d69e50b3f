package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/decompress"
	"github.com/lwsbt/lwsbt/internal/figures"
)

const (
	dumpDir = "../../core/crash/testdata"
	taskDir = "../../core/tasks/testdata"
)

// dumpSamples are the crash dumps in testdata of heap/core/crash. The ELF files have symbols and unwind tables, but no code.
var dumpSamples = []struct {
	name, file, elf string
	about           string   // for the table
	truth           string   // what the stacks are compared with
	code            int      // exit code of btcore stacks
	notes           []string // on standard error
}{
	{"stacks", "stacks.log.xz", "stacks", "Zephyr's lines, stacks only; FreeRTOS, Cortex-M3", "source", cli.OK,
		[]string{"Zephyr dump version 2, EM_ARM, reason 0 (CPU exception)"}},
	{"all", "all.log.xz", "all", "Zephyr's lines, all RAM; FreeRTOS, Cortex-M3", "source", cli.OK, []string{"Zephyr dump version 2"}},
	{"all4f", "all4f.log.xz", "all4f", "Zephyr's lines, all RAM; FreeRTOS, Cortex-M4F", "source", cli.OK, []string{"Zephyr dump version 2"}},
	{"rv", "rv.log.xz", "rv", "Zephyr's lines, all RAM; FreeRTOS, RV32", "source", cli.OK, []string{"EM_RISCV"}},
	{"tx", "tx.log.xz", "tx", "Zephyr's lines, all RAM; ThreadX, Cortex-M3", "source", cli.OK, []string{"Zephyr dump version 2"}},
	{"catcher", "catcher.log.xz", "catcher", "CrashCatcher 3.0, all RAM; FreeRTOS, Cortex-M3", "source", cli.OK, []string{"CrashCatcher dump version 3.0"}},
	{"nuttx", "nuttx.log.xz", "nuttx", "NuttX, LZF in hexadecimal, stacks; Cortex-M7", "gdb, source", cli.Short,
		[]string{"NuttX dump, a core file of 10460 bytes", "11 bytes are in the image more than once, with different values"}},
	{"esp32", "esp32.b64", "esp32", "ESP-IDF 1.2, ESP32", "gdb", cli.OK, []string{"ESP-IDF dump version 1.2 of an ESP32",
		"SHA-256 of the application's ELF file begins 1b43c5e74", "panic: abort() was called at PC 0x400d66b9 on core 0"}},
	{"esp32_bin", "esp32_bin.b64", "esp32_bin", "ESP-IDF 0.3, ESP32", "gdb", cli.OK, []string{"version 0.3 of an ESP32"}},
	{"esp32s3_bin", "esp32s3_bin.b64", "esp32s3_bin", "ESP-IDF 0.2, ESP32-S3", "gdb", cli.OK, []string{"version 0.2 of an ESP32-S3"}},
	{"esp32c3", "esp32c3.b64", "esp32c3", "ESP-IDF 1.2, ESP32-C3", "gdb with the ROM's ELF file", cli.Short, []string{"version 1.2 of an ESP32-C3"}},
	{"esp32c6", "esp32c6.b64", "esp32c6", "ESP-IDF 1.4, ESP32-C6", "gdb", cli.Short, []string{"version 1.4 of an ESP32-C6"}},
	{"md", "md.dmp.xz", "md", "minidump of Crashpad, x86-64, without libc's file", "source", cli.Short,
		[]string{"minidump of 4 threads", "signal 0xb at address 0x3041"}},
}

// TestStacksOfDumps compares the stacks of crash dumps with those of the programs' sources, or of gdb.
func TestStacksOfDumps(t *testing.T) {
	expected := expectedStacks(t)
	table := "| dump | stacks | frames | of | compared with |\n| --- | ---: | ---: | ---: | --- |\n"
	for _, s := range dumpSamples {
		t.Run(s.name, func(t *testing.T) {
			args := []string{"stacks", filepath.Join(dumpDir, s.file), "-e", unpacked(t, s.elf)}
			code, out, errs := execute(args...)
			compareOutput(t, code, s.code, out+errs, s.notes, nil)
			stacks := parseStacks(out)
			if len(expected[s.name]) == 0 {
				t.Fatal("no expected stacks")
			}
			right, frames := 0, 0
			for thread, want := range expected[s.name] {
				right += compareStack(t, thread, want, stacks[thread], errs)
				frames += len(slices.DeleteFunc(want, func(w string) bool { return w == "|" }))
			}
			table += fmt.Sprintf("| %s | %d | %d | %d | %s |\n", s.about, len(expected[s.name]), right, frames, s.truth)
			if !strings.Contains(strings.SplitN(out, "\n", 2)[0], ", crashed") && !strings.Contains(out, ", signal 11") {
				t.Errorf("the first thread did not crash: %s", out)
			}
			if t.Failed() {
				t.Log(out, errs)
			}
		})
	}
	figures.Check(t, "../../FIGURES.md", "crash dumps", table)
}

// TestStacksByDebugFile reads the stacks of NuttX by a separate debug file, which has tables and symbols but no code.
func TestStacksByDebugFile(t *testing.T) {
	cmdtest.Need(t, "arm-none-eabi-objcopy")
	elf := unpacked(t, "nuttx")
	tool(t, "arm-none-eabi-objcopy", "--only-keep-debug", elf, elf+".debug")
	_, out, errs := execute("stacks", filepath.Join(dumpDir, "nuttx.log.xz"), "-e", elf+".debug")
	for thread, want := range expectedStacks(t)["nuttx"] {
		compareStack(t, thread, want, parseStacks(out)[thread], errs)
	}
}

// expectedStacks returns the expected frames by sample and thread.
func expectedStacks(t *testing.T) map[string]map[string][]string {
	text, err := os.ReadFile(filepath.Join(dumpDir, "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]map[string][]string{}
	for line := range strings.Lines(string(text)) {
		head, frames, ok := strings.Cut(line, ": ")
		sample, thread, two := strings.Cut(head, " ")
		if !ok || !two || line[0] == '#' {
			continue
		}
		if list[sample] == nil {
			list[sample] = map[string][]string{}
		}
		list[sample][thread] = strings.Fields(frames)
	}
	return list
}

type printedFrame struct{ pc, text string }

// parseStacks returns the frames of each thread, by its number and by its name. A frame has the
// outermost of the functions that were inlined into each other.
func parseStacks(out string) map[string][]printedFrame {
	threads := map[string][]printedFrame{}
	head := regexp.MustCompile(`^thread (\S+?)(?: (\S+?))?(?:, .*)?$`)
	frame := regexp.MustCompile(`^  (0x[0-9a-f]+)  \S+ +(.*)`)
	inlined := regexp.MustCompile(`^ +inlined +(.*)`)
	var names []string
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if m := head.FindStringSubmatch(line); m != nil {
			names = m[1:]
		} else if m := frame.FindStringSubmatch(line); m != nil {
			for _, n := range names {
				threads[n] = append(threads[n], printedFrame{m[1], m[2]})
			}
		} else if m := inlined.FindStringSubmatch(line); m != nil {
			for _, n := range names {
				threads[n][len(threads[n])-1].text = m[1]
			}
		}
	}
	return threads
}

// compareStack compares a stack with what is expected, and returns the number of frames that are right. Beyond "|" it must
// end, and say where it goes on.
func compareStack(t *testing.T, thread string, want []string, got []printedFrame, errs string) (right int) {
	t.Helper()
	for i, w := range want {
		if w == "|" {
			if len(got) != i || !strings.Contains(errs, "goes on at "+want[i+1]) {
				t.Errorf("thread %s: %d frames, expected %d, then %s", thread, len(got), i, want[i+1])
			}
			return right
		}
		if i >= len(got) {
			t.Errorf("thread %s: %d frames, expected %d", thread, len(got), len(want))
			return right
		}
		name, line, _ := strings.Cut(w, ":")
		same := strings.HasPrefix(got[i].text, name+" ") || got[i].text == name
		if strings.HasPrefix(w, "0x") {
			same = number(got[i].pc) == number(w)
		}
		if !same || !strings.HasSuffix(got[i].text, line) {
			t.Errorf("thread %s: frame %d is %v, expected %s", thread, i, got[i], w)
			continue
		}
		right++
	}
	if len(got) > len(want) {
		t.Errorf("thread %s: %d frames, expected %d", thread, len(got), len(want))
	}
	return right
}

func number(s string) (n uint64) {
	fmt.Sscanf(s, "0x%x", &n)
	return n
}

// unpacked returns the path of an ELF file of testdata, decompressed.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	from := filepath.Join(dumpDir, name+".elf.xz")
	if _, err := os.Stat(from); os.IsNotExist(err) {
		from = filepath.Join(taskDir, name+".elf.xz")
	}
	path := filepath.Join(t.TempDir(), name+".elf")
	if err := os.WriteFile(path, unpack(t, from), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// unpack reads an xz file.
func unpack(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(decompress.NewReader("xz", bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestHeapsOfDumps compares the heaps of dumps that hold all RAM with the source of the program: 6 blocks of 296 bytes are
// leaked, with their headers and what is left over of a hole.
func TestHeapsOfDumps(t *testing.T) {
	for _, name := range []string{"all", "all4f", "catcher", "rv"} {
		code, out, errs := execute("heap", "--leaks", filepath.Join(dumpDir, name+".log.xz"), "-e", unpacked(t, name))
		compareOutput(t, code, cli.OK, out+errs, []string{"6 blocks leaked"}, nil)
	}
}

// The commands of heap/docs/crash.md.
func TestCrashDocument(t *testing.T) {
	document, err := filepath.Abs("../../docs/crash.md")
	if err != nil {
		t.Fatal(err)
	}
	elf := unpacked(t, "all")
	log, err := filepath.Abs(filepath.Join(dumpDir, "all.log.xz"))
	if err != nil {
		t.Fatal(err)
	}
	cmdtest.Session{Document: document, Least: 2, Update: figures.Update(),
		Run: func(_ *testing.T, line string) (string, error) {
			args := strings.Fields(strings.NewReplacer("serial.log", log, "fw.elf", elf).Replace(line))
			code, out, errs := execute(args[1:]...)
			if code > cli.Short || args[0] != "btcore" {
				return out, fmt.Errorf("exit code %d: %s", code, errs)
			}
			return out, nil
		},
	}.Test(t)
}

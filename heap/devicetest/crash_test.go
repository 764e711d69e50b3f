package devicetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core/crash"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// crashStacks returns the functions of each thread that btcore reads in a log, by the thread's name, "" if it has none, and
// what btcore says besides. The crashed thread is at "crashed", too.
func crashStacks(t *testing.T, elf string, log []byte) (stacks map[string]string, notes string) {
	t.Helper()
	btcore, err := btcore()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "serial.log")
	if err := os.WriteFile(path, log, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.Command(btcore, "stacks", "-e", elf, path)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !strings.Contains(errs.String(), "could not save the registers") {
		t.Errorf("btcore: %v: %s", err, errs.String())
	}
	stacks = map[string]string{}
	head := regexp.MustCompile(`^thread \S+( \w+)?(, crashed|, [a-z ]+)?$`)
	frame := regexp.MustCompile(`^  0x\w+  \w+ +(\w+|\?\?)`)
	var names []string
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if m := head.FindStringSubmatch(line); m != nil {
			names = []string{strings.TrimSpace(m[1])}
			if m[2] == ", crashed" {
				names = append(names, "crashed")
			}
		} else if m := frame.FindStringSubmatch(line); m != nil {
			for _, n := range names {
				stacks[n] = strings.TrimSpace(stacks[n] + " " + m[1])
			}
		}
	}
	return stacks, errs.String()
}

// The crash lines of a program without tasks name the calls that led to the fault, and the fault.
func TestCrash(t *testing.T) {
	for _, b := range boards {
		t.Run(b.name, func(t *testing.T) {
			if b.name != "mps2" {
				cmdtest.Long(t)
			}
			elf := build(t, b.tools, b.name+"-crash", t.TempDir())
			log := emulate(t, b.qemu, elf)
			stacks, notes := crashStacks(t, elf, log)
			if want := "setting_store message_read net_poll main "; !strings.HasPrefix(stacks["crashed"], want) {
				t.Errorf("the stack is %q, want %q; %s", stacks["crashed"], want, notes)
			}
			if !regexp.MustCompile(`(data bus error|store access fault) at 0xe073\w{4}\n`).MatchString(notes) {
				t.Errorf("the notes are %q", notes)
			}
			if b.name == "mps2" {
				crashSession(t, elf, string(log))
			}
			// each line costs its own bytes alone
			whole, err := crash.Read(log)
			if err != nil || len(whole.Damage) > 0 || len(whole.Threads) != 1 {
				t.Fatalf("%v, %+v", err, whole)
			}
			lines := strings.SplitAfter(string(log), "\n")
			for i := range lines {
				head, rest, ok := strings.Cut(lines[i], "#CD:")
				if !ok || len(head) != 8 || len(rest) < 2 {
					continue
				}
				damaged := strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "")
				d, err := crash.Read([]byte(damaged))
				switch n, _ := strconv.ParseUint(head[:4], 16, 16); {
				case n == 0: // the header; the registers end in line 4 or before
				case err != nil || len(d.Damage) == 0:
					t.Errorf("line %d lost: %v, no word of it", n, err)
				case n > 5 && (len(d.Threads) != 1 || d.Threads[0].PC != whole.Threads[0].PC):
					t.Errorf("line %d lost: %+v", n, d.Threads)
				}
			}
		})
	}
}

// armCrash crashes in many ways on a Cortex-M with an FPU: CRASH is how.
const armCrash = `#include <stdint.h>
#include "board.h"
#include "lwsbt.h"
static void put(void *arg, const char *text, size_t len) { (void)arg; board_put(text, len); }
static void end(void *arg) { (void)arg; board_exit(); }
static const struct lwsbt_range ram[] = { { RAM, RAM + 0x40000 } };
const struct lwsbt_crash_port lwsbt_crash_port = { .out = { .put = put }, .ram = ram, .ram_count = 1, .end = end };
volatile float factor = 1.5f;
__attribute__((noinline)) float scale(float x)
{
	float y = x * factor;

	*(volatile int *)0xe0200000 = (int)y;
	return y * factor + x;
}
__attribute__((noinline)) float filter(float a, float b)
{
	float s = a * factor, t = b * factor;

	return scale(s) + t + s;
}
__attribute__((noinline)) int deep(int i)
{
	volatile char big[200];

	big[i % 200] = (char)i;
	return deep(i + 1) + big[3];
}
void tick(void) { factor = filter(factor, 2.0f); }
__attribute__((noinline)) float loop(float k)
{
	for (;;)
		k = k * factor + k;
	return k;
}
extern char _end[];
int main(void)
{
	*(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* the FPU */
	__asm__ volatile("dsb\n\tisb");
#if CRASH == 1
	factor = filter(factor, 3.0f);
#elif CRASH == 2
	*(volatile uint32_t *)0xe000e014 = 20000, *(volatile uint32_t *)0xe000e018 = 0, *(volatile uint32_t *)0xe000e010 = 7;
	factor = loop(factor);
#elif CRASH == 3
	__asm__ volatile("mov sp, %0\n\tpush {r0}" : : "r"(0xe0000000u) : "memory");
#else
	__asm__ volatile("msr msplim, %0" : : "r"(_end + 256));
	deep(1);
#endif
	board_exit();
}
`

// armCores are machines of QEMU, as mps2.c of the example has them but for addresses.
var armCores = []struct{ name, options, machine, flash, ram, uart string }{
	{"Cortex-M4F", "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", "mps2-an386", "0", "0x20000000", "0x40004"},
	{"Cortex-M33", "-mcpu=cortex-m33 -mfloat-abi=hard -mfpu=fpv5-sp-d16", "mps2-an505", "0x10000000", "0x38000000", "0x50200"}, // in the secure state
}

// The stacks of a crash beyond frames with floating-point registers, also of those that the processor saves late, and
// below the limit of a stack. Where the stack pointer has left the memory, no register was saved.
func TestCrashArm(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, boards[0].tools...)
	const inTask, inTick = "scale filter main reset", "scale filter tick ?? loop main reset"
	for _, c := range armCores {
		for i, want := range []struct{ stack, note string }{
			{inTask, "data bus error at 0xe0200000"}, {inTick, "data bus error at 0xe0200000"},
			{"", "the processor could not save the registers: the stack pointer was 0xdfff"}, {strings.TrimSpace(strings.Repeat("deep ", 64)), "stack overflow"},
		} {
			if i == 3 && c.name != "Cortex-M33" { // the others have no limit
				continue
			}
			t.Run(fmt.Sprint(c.name, " ", i+1), func(t *testing.T) {
				u := newUser(t)
				for name, edit := range map[string]*strings.Replacer{
					"mps2.ld": strings.NewReplacer("ORIGIN = 0,", "ORIGIN = "+c.flash+",", "ORIGIN = 0x20000000", "ORIGIN = "+c.ram),
					"mps2.c": strings.NewReplacer("0x40004", c.uart,
						"(const void *)halt,\n};", "(const void *)halt, [15] = (const void *)tick,\n};", "void HardFault_Handler", "void tick(void);\nvoid HardFault_Handler"),
				} {
					text, err := os.ReadFile(filepath.Join(u.dir, name))
					if err != nil {
						t.Fatal(err)
					}
					u.write(t, name, edit.Replace(string(text)))
				}
				u.write(t, "app.c", armCrash)
				elf := u.buildCrash(t, c.options, fmt.Sprintf("-DCRASH=%d -DRAM=%su", i+1, c.ram))
				log := emulate(t, strings.Replace(boards[0].qemu, "mps2-an385", c.machine, 1), elf)
				stacks, notes := crashStacks(t, elf, log)
				if got := stacks["crashed"]; i < 3 && got != want.stack || !strings.HasPrefix(got, want.stack) || !strings.Contains(notes, want.note) {
					t.Errorf("crashed: %q, want %q; %s", got, want.stack, notes)
				}
			})
		}
	}
}

// crashSession compares docs/device.md with what the commands print, or writes it there.
func crashSession(t *testing.T, elf, log string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "serial.log")
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(commands+"/btcore", "stacks", "-e", elf, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.SplitAfter(log, "\n")
	want := "$ cat serial.log\n" + strings.Join(lines[:5], "") + "…\n$ btcore stacks -e firmware.elf serial.log\n" + string(out)
	doc, err := os.ReadFile("../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- crash: go test ./heap/devicetest -run Crash -update -->\n```text\n"
	before, rest, ok := strings.Cut(string(doc), mark)
	shown, after, end := strings.Cut(rest, "```\n")
	switch {
	case !ok || !end:
		t.Fatal("docs/device.md has no crash")
	case *update:
		if err := os.WriteFile("../../docs/device.md", []byte(before+mark+want+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case shown != want:
		t.Errorf("docs/device.md shows\n%s\nwant\n%s", shown, want)
	}
}

// crashes are the crashes of testdata/crash/tasks.c: what the crashed stack begins and ends with, and the notes.
var crashes = []struct{ name, in, begins, ends, note string }{
	{"task", "1", "write_config apply boom", "boom", "at 0xe0200000"},
	{"interrupt", "2", "write_config apply tick_work xTaskIncrementTick ", "", "the crash was in an interrupt of task "},
	{"overflow that the kernel found", "3", "lwsbt_crash vTaskSwitchContext ", "", "reason 2 (stack overflow)"},
	{"assertion", "4", "lwsbt_crash check boom", "boom", "reason 4 (kernel panic)"},
}

// taskStacks are the stacks of the tasks of testdata/crash/tasks.c that wait or compute.
var taskStacks = map[string]string{
	"sensor": "vTaskDelay sensor_wait sensor_read sensor",
	"net":    "xQueueReceive net_receive net_packet net_packet net_packet net_packet net",
	"log":    "vTaskSuspend log_sleep log_line logger",
	"ctrl":   "ctrl_mix ctrl_step ctrl",
	"IDLE":   "prvIdleTask",
}

// TestCrashTasks crashes in a task, in an interrupt, by a stack overflow and by an assertion under the real FreeRTOS kernel,
// whose sources are at LWSBT_FREERTOS, and compares the stacks of all tasks with the source.
func TestCrashTasks(t *testing.T) {
	kernel := os.Getenv("LWSBT_FREERTOS")
	if kernel == "" {
		t.Skip("LWSBT_FREERTOS is not set to the sources of FreeRTOS-Kernel")
	}
	t.Chdir("../../device") // the paths below are relative to it
	for _, b := range freertosBoards {
		for _, c := range crashes {
			t.Run(b.name+", "+c.name, func(t *testing.T) {
				exe := b.crash(t, kernel, c.in)
				run := strings.Fields(b.run)
				log, err := exec.Command(run[0], append(run[1:], exe)...).Output()
				if err != nil {
					t.Fatalf("%v\n%s", err, log)
				}
				stacks, notes := crashStacks(t, exe, log)
				if got := stacks["crashed"]; !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) || !strings.Contains(notes, c.note) {
					t.Errorf("crashed: %q, want %q to %q; %s", got, c.begins, c.ends, notes)
				}
				arm := b.port == "ARM_CM3"
				for task, want := range taskStacks {
					got := stacks[task]
					if task == "ctrl" && arm && c.in == "2" { // its stack goes on below that of the interrupt
						if !strings.HasSuffix(got, " "+want) {
							t.Errorf("task ctrl: %q, want it to end with %q", got, want)
						}
						continue
					}
					if got != want {
						t.Errorf("task %s: %q, want %q", task, got, want)
					}
				}
				if c.in == "3" {
					want := " vTaskDelay" + strings.Repeat(" deep", 31) + " boom"
					if got := " " + stacks["boom"]; !strings.HasSuffix(got, want) {
						t.Errorf("task boom: %q, want it to end with %q", got, want)
					}
				}
			})
		}
	}
}

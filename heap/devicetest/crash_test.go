package devicetest

import (
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
	if err := cmd.Run(); err != nil {
		t.Errorf("btcore: %v: %s", err, errs.String())
	}
	stacks = map[string]string{}
	head := regexp.MustCompile(`^thread \S+( \w+)?(, crashed|, [a-z ]+)?$`)
	frame := regexp.MustCompile(`^  0x\w+  \w+ +(\w+)`)
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

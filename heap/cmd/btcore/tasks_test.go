package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// TestTasks compares the tasks of kernels with the source of the programs, whose tasks are in different states, and those of
// NuttX with what its command ps printed just before: state, size of the stack, and the most bytes used of it.
func TestTasks(t *testing.T) {
	states := map[string]string{"boom": "running", "ctrl": "ready", "sensor": "delayed", "log": "suspended", "net": "blocked", "IDLE": "ready"}
	threadx := map[string]string{"boom": "running", "ctrl": "ready", "sensor": "sleeping", "log": "suspended", "net": "blocked on a queue"}
	rtthread := map[string]string{"boom": "running", "ctrl": "ready", "sensor": "suspended", "log": "suspended", "net": "suspended",
		"unused": "not started", "tidle0": "ready"}
	nuttx := map[string]string{"Idle_Task": "running", "hpwork": "blocked on a semaphore 4,024 3,648",
		"nsh_main": "blocked on a semaphore 4,048 2,544", "sh": "waiting for a signal 4,032 3,216"}
	ram := func(base, name string) []string { return []string{"--ram", base + "=" + filepath.Join(taskDir, name)} }
	for _, c := range []struct {
		image       []string
		elf, kernel string
		tasks       int
		states      map[string]string
	}{
		{[]string{filepath.Join(dumpDir, "all.log.xz")}, "all", "FreeRTOS", 6, states},
		{[]string{filepath.Join(dumpDir, "all4f.log.xz")}, "all4f", "FreeRTOS", 6, states},
		{[]string{filepath.Join(dumpDir, "rv.log.xz")}, "rv", "FreeRTOS", 6, states},
		{[]string{filepath.Join(dumpDir, "catcher.log.xz")}, "catcher", "FreeRTOS", 6, states},
		{[]string{filepath.Join(dumpDir, "tx.log.xz")}, "tx", "ThreadX", 6, threadx},
		{ram("0x20000000", "rtthread.bin.xz"), "rtthread", "RT-Thread", 7, rtthread},
		{ram("0x60000000", "nuttx.bin.xz"), "nuttx-nsh", "NuttX", 4, nuttx},
	} {
		t.Run(c.elf, func(t *testing.T) {
			code, out, errs := execute(append([]string{"tasks", "-e", unpacked(t, c.elf)}, c.image...)...)
			compareOutput(t, code, cli.OK, out+errs, []string{fmt.Sprintf("%d tasks of %s\n", c.tasks, c.kernel)}, nil)
			found := map[string]string{}
			for line := range strings.Lines(out) {
				if name := strings.TrimSpace(line[:min(len(line), 20)]); len(line) > 56 {
					found[name] = strings.TrimSpace(line[22:44]) + " " + strings.Join(strings.Fields(line[56:]), " ")
				}
			}
			for name, want := range c.states {
				if !strings.HasPrefix(found[name]+" ", want+" ") {
					t.Errorf("task %s is %q, expected %q", name, found[name], want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// TestFaultInATask prints the stacks of RT-Thread after a fault in a task, in whose handler the processor stopped. The
// registers lack psp. They are those of the source of the program.
func TestFaultInATask(t *testing.T) {
	code, out, errs := execute("stacks", "--ram", "0x20000000="+filepath.Join(taskDir, "rtthread.bin.xz"),
		"--regs", filepath.Join(taskDir, "rtthread.regs"), "-e", unpacked(t, "rtthread"))
	compareOutput(t, code, cli.Short, out+errs, []string{"rtthread.regs, task boom", "psp is not in the registers; the handler has the address of one frame",
		"0x000099  signal        write_config  ./main.c:18"}, nil)
	stacks := parseStacks(out)
	for thread, want := range map[string]string{
		"of":     "rt_hw_hard_fault_exception _update_done ?? write_config:18 busy:19 boom:20",
		"net":    "rt_hw_interrupt_enable rt_sem_take net_receive:11 net_packet:12 net_packet:12 net_packet:12 net_packet:12 net:13",
		"sensor": "rt_hw_interrupt_enable rt_thread_sleep sensor_wait:8 sensor_read:9 sensor:10",
		"log":    "rt_hw_interrupt_enable log_sleep:14 logger:15",
		"ctrl":   "ctrl_mix:16 ctrl:17",
		"tidle0": "rt_thread_idle_entry",
	} {
		compareStack(t, thread, strings.Fields(want), stacks[thread], errs)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// zephyrStructs are the structs of Zephyr 2.7 with the options of the program that wrote zephyr-m3.log, as far as they are
// read: fields of other structs are words here.
const zephyrStructs = `
struct node { struct node *next, *prev; };
struct k_thread {
	struct {
		struct node queue;
		void *pended_on;
		unsigned char user_options, thread_state;
		unsigned short preempt;
		unsigned words[2];
		struct { struct node node; unsigned words[4]; } timeout;
	} base;
	struct { unsigned v1, v2, v3, v4, v5, v6, v7, v8, psp; } callee_saved;
	unsigned words[7];
	struct k_thread *next_thread;
	char name[32];
	int errno_var;
	struct { unsigned start, size, delta; } stack_info;
	unsigned more[3];
};
struct _cpu { unsigned nested; char *irq_stack; struct k_thread *current, *idle_thread; unsigned words[2]; };
struct z_kernel { struct _cpu cpus[1]; unsigned ready_q[3]; struct k_thread *threads; };
struct z_kernel _kernel __attribute__((section(".kernel")));
`

// TestThreadsOfZephyr compares the threads in a crash of Zephyr on a Cortex-M3 in qemu with the source of the program, and their
// unused stack with what k_thread_stack_space_get returned for the threads just before, which is in the log.
func TestThreadsOfZephyr(t *testing.T) {
	cmdtest.Need(t, "arm-none-eabi-gcc")
	src := filepath.Join(t.TempDir(), "kernel.c")
	if err := os.WriteFile(src, []byte(zephyrStructs), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "arm-none-eabi-gcc", "-g", "-mcpu=cortex-m3", "-mthumb", "-nostdlib", "-Wl,-e,0", "-Wl,--section-start=.kernel=0x20000844", "-o", src+".elf", src)
	log := filepath.Join(dumpDir, "zephyr-m3.log.xz")
	code, out, errs := execute("tasks", log, "-e", src+".elf")
	compareOutput(t, code, cli.OK, out+errs, []string{"7 tasks of Zephyr\n",
		"boom                  running                 0x20000228     1,024  ",
		"later                 not started             0x20000178     1,024         992\n",
		"ctrl                  ready                   0x200002d8     1,024         976\n",
		"log                   suspended               0x20000388     1,024         936\n",
		"net                   blocked                 0x20000438     1,536       1,128\n",
		"sensor                sleeping                0x200004e8     1,024         912\n",
		"idle 00               ready                   0x20000598       256  ",
	}, nil)
	// A thread that sleeps as version 4 marks it: bit 2 in place of bit 4.
	text := string(unpack(t, log))
	later := strings.Replace(text, "f5ffffff000000000000000000000000001005", "f5ffffff000000000000000000000000000405", 1)
	if later == text {
		t.Fatal("no thread that sleeps")
	}
	if err := os.WriteFile(src+".log", []byte(later), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs = execute("tasks", src+".log", "-e", src+".elf")
	compareOutput(t, code, cli.OK, out+errs, []string{"sensor                asleep or not started   0x200004e8", "later                 not started             0x20000178"}, nil)
	// The functions in which threads that do not run were switched out: ctrl_mix, by an interrupt, and arch_swap.
	_, out, _ = execute("stacks", log, "-e", src+".elf")
	for thread, pc := range map[string]string{"boom, crashed": "0x0003e7", "ctrl, ready": "0x0003b9", "net, blocked": "0x001519"} {
		if !strings.Contains(out, thread+"\n  "+pc) {
			t.Errorf("thread %s is not at %s:\n%s", thread, pc, out)
		}
	}
}

// TestNamesOfTasks compares the names in a dump that lacks the kernel's lists with those that ESP-IDF's tool printed.
func TestNamesOfTasks(t *testing.T) {
	code, out, errs := execute("stacks", filepath.Join(dumpDir, "esp32c3.b64"), "-e", unpacked(t, "esp32c3"))
	compareOutput(t, code, cli.Short, out+errs, []string{"thread 0x3fc8ec30 main, crashed\n", "thread 0x3fc8f38c IDLE\n", "thread 0x3fc8da94 esp_timer\n"}, nil)
}

// TestTasksWithout names what is missing where there are no tasks.
func TestTasksWithout(t *testing.T) {
	all := unpacked(t, "all")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{filepath.Join(dumpDir, "esp32.b64"), "-e", unpacked(t, "esp32")}, "whose debug information has no struct tskTaskControlBlock"},
		{[]string{filepath.Join(dumpDir, "md.dmp.xz"), "-e", unpacked(t, "md")}, "no kernel of FreeRTOS, ThreadX, NuttX, RT-Thread, Zephyr"},
		{[]string{filepath.Join(dumpDir, "stacks.log.xz"), "-e", all}, "is not in the image"},
	} {
		code, out, errs := execute(append([]string{"tasks"}, c.args...)...)
		compareOutput(t, code, cli.Usage, out+errs, []string{c.want}, nil)
	}
}

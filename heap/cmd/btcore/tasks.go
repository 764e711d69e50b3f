package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/crash"
	"github.com/lwsbt/lwsbt/heap/core/tasks"
	"github.com/lwsbt/lwsbt/heap/core/unwind"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// tasksCommand returns btcore tasks.
func tasksCommand() *cobra.Command {
	var in input
	c := &cobra.Command{
		Use:   "tasks [flags] [CORE]",
		Short: "list the tasks of a real-time kernel",
		Long: `
tasks lists the tasks of FreeRTOS, ThreadX, NuttX, RT-Thread or Zephyr in an
image: name, state, address of the control block, and how much of its stack a
task never used, if the kernel fills new stacks with a value: the high-water
mark. It needs the symbols and the debug information of the program. btcore
stacks prints the call stacks.
`,
		Example: `
btcore tasks serial.log -e fw.elf
btcore tasks --ram 0x20000000=ram.bin -e fw.elf`,
	}
	cli.ExitCodes(c, `0 as expected, 1 tasks are missing or a stack was used up,
2 usage, unreadable input or no kernel in it, 3 something outside failed.`)
	return in.command(c, "Tasks", pflag.NewFlagSet("", pflag.ContinueOnError), func(c *cobra.Command) error {
		if err := in.addRegs(); err != nil {
			return err
		}
		list, err := in.findTasks()
		if err != nil {
			return cli.Usagef("%w", err)
		}
		if list.Partial != "" {
			in.note("%s: only the threads of the dump are listed, without states and stacks", list.Partial)
		}
		if err := in.write(c, func(w io.Writer) error { return writeTasks(w, list) }); err != nil {
			return err
		}
		in.warn(c)
		if len(in.notes)+len(in.Notes()) > 0 {
			return cli.Exit(cli.Short)
		}
		return nil
	})
}

// findTasks returns the tasks of the kernel in the program, and notes what is missing.
func (in *input) findTasks() (*tasks.List, error) {
	last := tasks.ErrNone
	for f := range in.loaded {
		list, err := tasks.Find(&in.Image, f.path, f.bias)
		if err == nil {
			for _, n := range list.Notes {
				in.note("%s", n)
			}
			return list, nil
		}
		if !errors.Is(err, tasks.ErrNone) {
			last = err
		}
	}
	return nil, last
}

// writeTasks prints a line for each task.
func writeTasks(w io.Writer, list *tasks.List) error {
	if _, err := fmt.Fprintf(w, "%s of %s\n\n%-20s  %-22s  %-10s  %8s  %10s\n", cli.Count(len(list.Tasks), "task"), list.Kernel,
		"Name", "State", "Handle", "Stack", "Never used"); err != nil {
		return err
	}
	for i := range list.Tasks {
		t := &list.Tasks[i]
		size, free := "?", "?"
		if t.High > t.Low {
			size = cli.Number(t.High - t.Low)
		}
		if t.Filled {
			free = cli.Number(t.Free)
		}
		if _, err := fmt.Fprintf(w, "%-20s  %-22s  %#-10x  %8s  %10s\n", cli.Printable(t.Name), cmp.Or(t.State, "?"), t.Handle, size, free); err != nil {
			return err
		}
	}
	return nil
}

// joinTasks adds the tasks of a kernel to the threads, and the names of tasks to the threads that a dump has.
func (in *input) joinTasks() {
	list, err := in.findTasks()
	if err != nil {
		if !errors.Is(err, tasks.ErrNone) && len(in.Threads) == 0 {
			in.note("%v", err)
		}
		return
	}
	known, unnamed := map[uint64]bool{}, 0
	for i := range in.Threads {
		t := &in.Threads[i]
		task := list.Of(t.SP)
		for j := range list.Tasks {
			if x := &list.Tasks[j]; x.Handle == uint64(t.ID) {
				task = x
			}
		}
		if task == nil && len(in.Threads) == 1 {
			task = in.interrupted(t, list)
		}
		if task != nil {
			t.ID, t.Name, t.State = int(task.Handle), task.Name, task.State
			known[task.Handle] = true
		} else {
			unnamed++
		}
	}
	for i := range list.Tasks {
		task := &list.Tasks[i]
		switch {
		case known[task.Handle]:
		case task.Saved.PC != 0:
			saved := task.Saved
			saved.ID, saved.Name = task.Handle, task.Name
			t := core.ThreadOf(in.Machine, in.Word, &saved)
			t.State = task.State
			in.Threads = append(in.Threads, t)
		case task.Running && unnamed == 0:
			in.note("task %s was running: its registers are not in the image", task.Name)
		}
	}
}

// interrupted returns the running task of a Cortex-M that an exception interrupted, and adds the task's stack
// pointer (psp) to the registers: the address of the frame that the processor pushed. The handler has it in a register or
// on its own stack, or it is that of the only frame on the task's stack.
func (in *input) interrupted(t *core.Thread, list *tasks.List) *tasks.Task {
	n, _, _ := unwind.RegisterNumber(elf.EM_ARM, elf.ELFCLASS32, "psp")
	i := slices.IndexFunc(list.Tasks, func(t tasks.Task) bool { return t.Running })
	if in.Machine != elf.EM_ARM || i < 0 || t.Regs == nil {
		return nil
	}
	task := &list.Tasks[i]
	if psp, known := t.Regs[n]; known {
		if !task.Holds(psp) {
			return nil
		}
		return task
	}
	const maxWords = 64 // of the handler's stack
	var values []uint64
	add := func(v uint64) { // r4 to r11, and EXC_RETURN, may be pushed below the frame
		values = append(values, v, v+8*4, v+9*4)
	}
	for _, v := range t.Values {
		add(v)
	}
	for k := range uint64(maxWords) {
		if v, ok := in.Uint(t.SP+4*k, 4); ok {
			add(v)
		}
	}
	psp, frames := in.onlyFrame(task, values)
	where := "the handler has the address of"
	if frames == 0 {
		values = values[:0]
		for at := task.Low + task.Free; at+32 <= task.High; at += 4 {
			values = append(values, at)
		}
		psp, frames = in.onlyFrame(task, values)
		where = "the stack has"
	}
	if frames != 1 {
		return nil
	}
	t.Regs[n] = psp
	in.note("psp is not in the registers; %s one frame of an exception in task %s, at %#x: it is taken for psp", where, task.Name, psp)
	return task
}

// onlyFrame returns the address of the frame of an exception on a task's stack that is among values, and the number of such
// addresses.
func (in *input) onlyFrame(task *tasks.Task, values []uint64) (at uint64, n int) {
	for _, v := range values {
		if (n == 0 || v != at) && task.Holds(v) && in.isFrame(v) {
			at = v
			n++
		}
	}
	return at, n
}

// isFrame reports whether memory looks like the frame that a Cortex-M pushes when an exception interrupts a task: xPSR
// has Thumb, no exception number and 0 in its reserved bits, and pc is in code.
func (in *input) isFrame(at uint64) bool {
	const reserved, exception = 0xf << 20, 0x1ff
	f, ok := crash.Interrupted(crash.Thread{}, at, false, func(addr, n uint64) []byte {
		b, _ := in.Bytes(addr, n)
		return b
	})
	code := in.Find(f.PC)
	return ok && f.Status&(reserved|exception) == 0 && f.PC&1 == 0 && code != nil && code.Exec
}

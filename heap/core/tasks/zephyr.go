package tasks

import (
	"fmt"

	"github.com/lwsbt/lwsbt/heap/core/crash"
)

// Zephyr has its threads in a list if CONFIG_THREAD_MONITOR is set (include/kernel_structs.h, include/kernel/thread.h).
var zephyr = kernel{
	name:    "Zephyr",
	symbols: []string{"_kernel"},
	structs: []string{"k_thread", "z_kernel", "_cpu"},
	fill:    "\xaa\xaa\xaa\xaa",
	find:    (*finder).zephyr,
	title:   "name", low: "stack_info.start", size: "stack_info.size",
}

// zephyrStates are the states by bit, _THREAD_DEAD and so on; the first that is set counts. k_sleep suspends a thread until
// its timeout ends. Since version 4, it sets bit 2, which threads have before their start, too: with a timeout, the state is either.
var zephyrStates = []struct {
	bit   uint64
	state string
}{{1 << 3, "dead"}, {1 << 5, "aborting"}, {1 << 1, "blocked"}, {1 << 2, "not started"}, {1 << 4, "suspended"}}

func (f *finder) zephyr() error {
	const thread, kernel, cpu = "k_thread", "z_kernel", "_cpu"
	at := f.found["_kernel"].Addr
	if _, ok := f.layouts[kernel].field("threads"); !ok {
		return fmt.Errorf("struct %s has no list of threads: it needs CONFIG_THREAD_MONITOR", kernel)
	}
	next, ok := f.field(at, kernel, "threads")
	if !ok {
		return fmt.Errorf("_kernel, at %#x, is not in the image", at)
	}
	if _, ok := f.layouts[thread].field("callee_saved.psp"); !ok {
		f.note("registers of threads are read on a Cortex-M alone: threads that do not run have no stacks")
	}
	running := map[uint64]bool{}
	for n := range f.layouts[kernel].fields["cpus"].bytes / f.layouts[cpu].sizeOr(1) {
		current, _ := f.field(at+n*f.layouts[cpu].sizeOr(1), cpu, "current") // cpus is the first field
		running[current] = true
	}
	for next != 0 && !f.seen[next] {
		t := f.task(next)
		t.Running = running[next]
		state, ok := f.field(next, thread, "base.thread_state")
		if !ok {
			f.note("the thread at %#x is not in the image: threads are missing", next)
			break
		}
		timeout, _ := f.field(next, thread, "base.timeout.node.next")
		for _, s := range zephyrStates {
			if t.State == "" && state&s.bit != 0 {
				t.State = s.state
			}
		}
		switch {
		case t.Running:
			t.State = "running"
		case t.State == "":
			t.State = "ready"
		case t.State == "suspended" && timeout != 0:
			t.State = "sleeping"
		case t.State == "not started" && timeout != 0:
			t.State = "asleep or not started"
		}
		if !f.add(t) {
			break
		}
		f.zephyrRegs(&f.list.Tasks[len(f.list.Tasks)-1])
		next, _ = f.field(next, thread, "next_thread")
	}
	return nil
}

// zephyrRegs sets the registers of a thread that does not run on a Cortex-M: r4 to r11 are in its control block, the others
// in the frame that the processor pushed.
func (f *finder) zephyrRegs(t *Task) {
	const thread = "k_thread"
	psp, ok := f.field(t.Handle, thread, "callee_saved.psp")
	if t.Running || t.State == "dead" || !ok {
		return
	}
	mode, _ := f.field(t.Handle, thread, "arch.mode_exc_return") // its lowest 8 bits
	saved, ok := crash.Interrupted(crash.Thread{}, psp, mode != 0 && mode&0x10 == 0, f.read)
	if !ok {
		f.note("task %s: no registers on its stack at %#x", t.Name, psp)
		return
	}
	for i := range 8 {
		if v, ok := f.field(t.Handle, thread, fmt.Sprintf("callee_saved.v%d", i+1)); ok {
			saved.Regs[4+i] = v
		}
	}
	t.Saved, t.Top = saved, psp
}

package tasks

import (
	"fmt"

	"github.com/lwsbt/lwsbt/heap/core/crash"
)

// NuttX has a table of tasks by number, and for debuggers the places of registers (sched/sched/sched.h, struct tcbinfo_s).
var nuttx = kernel{
	name:    "NuttX",
	symbols: []string{"g_pidhash", "g_npidhash", "g_tcbinfo"},
	structs: []string{"tcb_s", "tcbinfo_s"},
	fill:    "\xef\xbe\xad\xde",
	find:    (*finder).nuttx,
	title:   "name", low: "stack_base_ptr", size: "adj_stack_size",
}

// nuttxStates are the states by their names in enum tstate_e.
var nuttxStates = map[string]string{
	"TSTATE_TASK_PENDING": "ready", "TSTATE_TASK_READYTORUN": "ready", "TSTATE_TASK_ASSIGNED": "ready", "TSTATE_TASK_RUNNING": "running",
	"TSTATE_TASK_INACTIVE": "not started", "TSTATE_WAIT_SEM": "blocked on a semaphore", "TSTATE_WAIT_SIG": "waiting for a signal",
	"TSTATE_WAIT_EVENT": "waiting for an event", "TSTATE_WAIT_MQNOTEMPTY": "blocked on an empty queue",
	"TSTATE_WAIT_MQNOTFULL": "blocked on a full queue", "TSTATE_TASK_STOPPED": "stopped",
}

func (f *finder) nuttx() error {
	table, err := f.variable("g_pidhash")
	if err != nil {
		return err
	}
	v, ok := f.found["g_npidhash"]
	n, known := f.m.Uint(v.Addr, 4)
	if !ok || !known || n > maxTasks {
		return fmt.Errorf("g_npidhash, at %#x, is not in the image, or more than %d", v.Addr, maxTasks)
	}
	offsets := f.nuttxOffsets()
	for i := range n {
		tcb, ok := f.m.Pointer(table + i*uint64(f.m.PointerSize()))
		if !ok {
			f.note("the table of tasks at %#x is not all in the image: tasks are missing", table)
			break
		}
		if tcb != 0 {
			f.nuttxTask(tcb, offsets)
		}
	}
	return nil
}

func (f *finder) nuttxTask(tcb uint64, offsets []uint16) {
	const task = "tcb_s"
	state, ok := f.field(tcb, task, "task_state")
	if !ok {
		f.note("the control block of a task, at %#x, is not in the image", tcb)
		return
	}
	t := f.task(tcb)
	t.State = fmt.Sprintf("state %d", state)
	if x, _ := f.layouts[task].field("task_state"); nuttxStates[x.names[int64(state)]] != "" {
		t.State = nuttxStates[x.names[int64(state)]]
	}
	t.Running = t.State == "running"
	if !f.add(t) || t.Running {
		return
	}
	regs, ok := f.field(tcb, task, "xcp.regs")
	if !ok || offsets == nil {
		return
	}
	f.list.Tasks[len(f.list.Tasks)-1].Saved = f.nuttxRegs(regs, offsets)
}

// nuttxOffsets returns the offsets of the registers in the saved state, in the order of gdb; 0xffff is none.
func (f *finder) nuttxOffsets() (list []uint16) {
	const info = "tcbinfo_s"
	at := f.found["g_tcbinfo"].Addr
	n, ok1 := f.field(at, info, "regs_num")
	table, ok2 := f.field(at, info, "reg_off.p")
	if !ok1 || !ok2 || n > 128 {
		f.note("g_tcbinfo is not in the image or the ELF file (CONFIG_DEBUG_TCBINFO): tasks have no stacks")
		return nil
	}
	for i := range n {
		off, ok := f.m.Uint(table+2*i, 2)
		if !ok {
			return nil
		}
		list = append(list, uint16(off))
	}
	return list
}

// nuttxRegs returns the saved registers. The order of gdb is that of DWARF: r0 to r15 of Arm, x0 to x31 and pc of RISC-V.
func (f *finder) nuttxRegs(at uint64, offsets []uint16) (t crash.Thread) {
	t.Regs = map[int]uint64{}
	pc := map[int]int{13: 15, 2: 32}[crash.StackPointer(f.m.Machine)]
	for i, off := range offsets[:min(len(offsets), pc+1)] {
		if v, ok := f.m.Pointer(at + uint64(off)); ok && off != 0xffff {
			t.Regs[i] = v
		}
	}
	t.PC = t.Regs[pc]
	delete(t.Regs, pc)
	if pc == 15 {
		t.Status = 1 << 24
	}
	return t
}

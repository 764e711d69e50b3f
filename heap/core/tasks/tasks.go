// Package tasks lists the tasks of a real-time kernel in a memory image, by the symbols and the debug information of its
// program: name, state, stack, and the registers of tasks that do not run.
//
//	ELF ─readStructs→ offsets ─┐
//	symbols, image ────────────┴→ Find → tasks
//
// Lists in memory are not trusted: each is followed at most maxTasks links, and to no task twice.
package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/crash"
)

// Task is a task or thread of a kernel.
type Task struct {
	Name   string
	State  string // in the words of the kernel, such as "blocked"
	Handle uint64 // address of its control block
	// Running reports whether the task ran on a processor: its registers are those of the processor, and what its stack
	// has of them is old.
	Running bool
	// Low and High are the bounds of its stack; 0 if not known.
	Low, High uint64
	// Free is the number of bytes at the low end of the stack that were never used: they have the value with which
	// the kernel fills new stacks. It is valid if Filled.
	Free   uint64
	Filled bool
	// Top is the address of these registers, if they are on its stack: below it, the stack is not in use. 0 if not known.
	Top uint64
	// Saved has the registers of a task that did not run; PC is 0 if there are none.
	Saved crash.Thread
}

// List is the tasks of a kernel.
type List struct {
	Kernel string
	Tasks  []Task
	Notes  []string // what is missing, and where
	// Partial is why only the threads of a dump are listed, without states; "" if all are listed.
	Partial string
}

// ErrNone is returned if no program has a kernel whose tasks are known.
var ErrNone = errors.New("no kernel of " + Kernels + " in this program")

// Kernels are the names of the kernels that [Find] knows.
const Kernels = "FreeRTOS, ThreadX, NuttX, RT-Thread, Zephyr"

// kernel is a kernel that Find knows.
type kernel struct {
	name    string
	symbols []string // of variables; the first must exist
	structs []string // of which the first is that of a task, and must be in the debug information
	fill    string   // of new stacks, 4 bytes
	find    func(*finder) error

	// Fields of the first struct: the name, an array or a pointer; the bounds of the stack.
	title, low, size string
}

var kernels = []kernel{freertos, threadx, nuttx, rtthread, zephyr}

// maxTasks limits the number of tasks, and of links that are followed in a list.
const maxTasks = 4096

// finder finds the tasks of one kernel.
type finder struct {
	kernel
	m       *core.Image
	found   map[string]core.Symbol
	layouts map[string]*structure
	list    *List
	seen    map[uint64]bool
}

// Find returns the tasks of the kernel in a program. bias is the address in memory minus the address in the ELF file at path.
func Find(m *core.Image, path string, bias uint64) (*List, error) {
	for _, k := range kernels {
		found, err := m.Variables(path, bias, k.symbols...)
		if err != nil || len(found) == 0 || found[0].Name != k.symbols[0] {
			continue
		}
		f := &finder{kernel: k, m: m, found: map[string]core.Symbol{}, list: &List{Kernel: k.name}, seen: map[uint64]bool{0: true}}
		for _, s := range found {
			f.found[s.Name] = s
		}
		var split string
		if f.layouts, split, err = readStructs(path, k.structs); err != nil {
			return nil, err
		}
		switch missing := f.layouts[k.structs[0]] == nil; {
		case missing && split != "":
			return nil, fmt.Errorf("%s: a program with %s, whose structs are in split debug information (-gsplit-dwarf), in files such as %q, which are not read: its tasks are not listed", path, k.name, split)
		case missing:
			return nil, fmt.Errorf("%s: a program with %s, whose debug information has no struct %s: its tasks are not listed", path, k.name, k.structs[0])
		}
		if err := k.find(f); err != nil {
			return nil, fmt.Errorf("tasks of %s: %w", k.name, err)
		}
		f.fills()
		return f.list, nil
	}
	return nil, ErrNone
}

func (f *finder) note(format string, args ...any) {
	if len(f.list.Notes) < 100 {
		f.list.Notes = append(f.list.Notes, fmt.Sprintf(format, args...))
	}
}

// variable reads a pointer in a variable.
func (f *finder) variable(name string) (uint64, error) {
	s, ok := f.found[name]
	if !ok {
		return 0, fmt.Errorf("no variable %s", name)
	}
	v, ok := f.m.Pointer(s.Addr)
	if !ok {
		return 0, fmt.Errorf("%s, at %#x, is not in the image", name, s.Addr)
	}
	return v, nil
}

// field reads a number in a struct at an address; ok is false if it has no such field, or the field is not in the image.
func (f *finder) field(at uint64, name, path string) (v uint64, ok bool) {
	x, ok := f.layouts[name].field(path)
	if !ok {
		return 0, false
	}
	return f.m.Uint(at+x.off, x.size)
}

// task returns the task whose control block is at an address: its name, and the bounds of its stack as far as the control
// block has them.
func (f *finder) task(at uint64) Task {
	t := Task{Handle: at}
	const maxName = 64
	x, ok := f.layouts[f.structs[0]].field(f.title)
	switch name := at + x.off; {
	case ok && x.size > 1: // a pointer
		x.bytes = maxName
		name, _ = f.m.Pointer(name)
		fallthrough
	case ok:
		b := make([]byte, min(x.bytes, maxName))
		s, _, _ := bytes.Cut(b[:f.m.Read(b, name)], []byte{0})
		t.Name = string(s)
	}
	t.Low, _ = f.field(at, f.structs[0], f.low)
	if size, ok := f.field(at, f.structs[0], f.size); ok && t.Low != 0 {
		t.High = t.Low + size
	}
	return t
}

// add adds a task once, and reports whether it was new.
func (f *finder) add(t Task) bool {
	if f.seen[t.Handle] || len(f.list.Tasks) == maxTasks {
		return false
	}
	f.seen[t.Handle] = true
	f.list.Tasks = append(f.list.Tasks, t)
	return true
}

// read returns n bytes of the image, nil if some are missing.
func (f *finder) read(at, n uint64) []byte {
	if b, ok := f.m.Bytes(at, n); ok {
		return b
	}
	return nil
}

// saved sets the registers that a context switch saved at an address of the task's stack.
func (f *finder) saved(t *Task, at uint64) {
	regs, ok := crash.Saved(f.m.Machine, at, f.read)
	switch {
	case t.Running:
	case ok:
		t.Saved, t.Top = regs, at
	default:
		f.note("task %s: no registers on its stack at %#x", t.Name, at)
	}
}

// fills measures the unused part of each stack. A kernel fills all stacks or none: some must have minFill bytes.
func (f *finder) fills() {
	const minFill = 16
	filled := false
	for i := range f.list.Tasks {
		t := &f.list.Tasks[i]
		if t.Low == 0 {
			continue
		}
		for high := t.High; ; t.Free++ {
			if high != 0 && t.Low+t.Free >= high || t.Free == 1<<20 {
				break
			}
			if v, ok := f.m.Uint(t.Low+t.Free, 1); !ok || byte(v) != f.fill[t.Free%4] {
				break
			}
		}
		filled = filled || t.Free >= minFill
	}
	for i := range f.list.Tasks {
		t := &f.list.Tasks[i]
		_, known := f.m.Uint(t.Low, 1)
		t.Filled = filled && known && t.Low != 0
	}
}

// Holds reports whether an address is on the task's stack, or just past its end.
func (t *Task) Holds(sp uint64) bool { return t.Low != 0 && t.Low <= sp && sp <= t.High }

// Of returns the running task of a thread: the one whose stack has sp, or the only one if the bounds of stacks are not known.
func (l *List) Of(sp uint64) *Task {
	var running []*Task
	for i := range l.Tasks {
		t := &l.Tasks[i]
		if t.Running && t.Holds(sp) {
			return t
		}
		if t.Running {
			running = append(running, t)
		}
	}
	if len(running) == 1 && running[0].High == 0 && running[0].Low <= sp && !slices.ContainsFunc(l.Tasks, func(t Task) bool {
		return t.Low > running[0].Low && t.Low <= sp
	}) {
		return running[0]
	}
	return nil
}

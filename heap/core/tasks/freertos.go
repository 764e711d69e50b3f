package tasks

import "fmt"

// FreeRTOS has its tasks in lists, by state (tasks.c, list.c).
var freertos = kernel{
	name: "FreeRTOS",
	symbols: []string{"pxReadyTasksLists", "pxCurrentTCB", "pxCurrentTCBs", "xDelayedTaskList1", "xDelayedTaskList2", "xPendingReadyList",
		"xSuspendedTaskList", "xTasksWaitingTermination", "uxCurrentNumberOfTasks"},
	structs: []string{"tskTaskControlBlock", "xLIST", "xLIST_ITEM"},
	fill:    "\xa5\xa5\xa5\xa5",
	find:    (*finder).freertos,
	title:   "pcTaskName", low: "pxStack",
}

const (
	freeTCB  = "tskTaskControlBlock"
	freeList = "xLIST"
	freeItem = "xLIST_ITEM"
)

// freeStates are the states by list. A delayed or suspended task that waits for an object is blocked on it.
var freeStates = []struct{ list, state string }{
	{"pxReadyTasksLists", "ready"}, {"xPendingReadyList", "ready"}, {"xDelayedTaskList1", "delayed"}, {"xDelayedTaskList2", "delayed"},
	{"xSuspendedTaskList", "suspended"}, {"xTasksWaitingTermination", "deleted"},
}

func (f *finder) freertos() error {
	running, err := f.freeRunning()
	if err != nil {
		return f.freeNames(err)
	}
	for _, tcb := range running {
		f.freeTask(tcb, "running", true)
	}
	for _, s := range freeStates {
		v, ok := f.found[s.list]
		size := f.layouts[freeList].sizeOr(20)
		for at := v.Addr; ok && at+size <= v.Addr+max(v.Size, size); at += size {
			f.freeList(at, s.list, s.state)
		}
	}
	if v, ok := f.found["uxCurrentNumberOfTasks"]; ok {
		n, known := f.m.Uint(v.Addr, 4)
		if known && n != uint64(len(f.list.Tasks)) {
			f.note("FreeRTOS counts %d tasks, %d were found", n, len(f.list.Tasks))
		}
	}
	return nil
}

// freeNames adds the threads of a dump that has control blocks of tasks, but not the kernel's lists.
func (f *finder) freeNames(missing error) error {
	for i := range f.m.Threads {
		tcb := uint64(f.m.Threads[i].ID)
		if t := f.task(tcb); t.Name != "" {
			f.add(Task{Name: t.Name, Handle: tcb})
		}
	}
	if len(f.list.Tasks) == 0 {
		return missing
	}
	f.list.Partial = missing.Error()
	return nil
}

func (s *structure) sizeOr(n uint64) uint64 {
	if s == nil || s.size == 0 {
		return n
	}
	return s.size
}

// freeRunning returns the current task of each processor.
func (f *finder) freeRunning() (list []uint64, err error) {
	if _, ok := f.found["pxCurrentTCB"]; ok {
		tcb, err := f.variable("pxCurrentTCB")
		return []uint64{tcb}, err
	}
	v, ok := f.found["pxCurrentTCBs"]
	if !ok {
		return nil, fmt.Errorf("no variable pxCurrentTCB")
	}
	for at := v.Addr; at < v.Addr+min(v.Size, 256); at += uint64(f.m.PointerSize()) {
		tcb, ok := f.m.Pointer(at)
		if !ok {
			return nil, fmt.Errorf("pxCurrentTCBs, at %#x, is not in the image", v.Addr)
		}
		list = append(list, tcb)
	}
	return list, nil
}

// freeList adds the tasks of a list.
func (f *finder) freeList(at uint64, name, state string) {
	end, ok := f.layouts[freeList].offset("xListEnd")
	if !ok {
		return
	}
	item, ok := f.field(at+end, freeItem, "pxNext")
	for n := 0; ok && item != at+end && item != 0; n++ {
		tcb, known := f.field(item, freeItem, "pvOwner")
		if !known || n == maxTasks {
			ok = false
			break
		}
		f.freeTask(tcb, state, false)
		item, ok = f.field(item, freeItem, "pxNext")
	}
	if !ok {
		f.note("the list %s at %#x leads out of the image: tasks are missing", name, at)
	}
}

func (f *finder) freeTask(tcb uint64, state string, running bool) {
	if f.seen[tcb] {
		return
	}
	top, ok := f.field(tcb, freeTCB, "pxTopOfStack")
	if !ok {
		f.note("the control block at %#x of a task is not in the image", tcb)
		return
	}
	t := f.task(tcb)
	t.State, t.Running = state, running
	object, _ := f.field(tcb, freeTCB, "xEventListItem.pvContainer")
	older, _ := f.field(tcb, freeTCB, "xEventListItem.pxContainer")
	if object|older != 0 && (state == "delayed" || state == "suspended") {
		t.State = "blocked"
	}
	if end, ok := f.field(tcb, freeTCB, "pxEndOfStack"); ok && end >= t.Low { // its last word
		t.High = end + uint64(f.m.PointerSize())
	}
	if f.add(t) {
		f.saved(&f.list.Tasks[len(f.list.Tasks)-1], top)
	}
}

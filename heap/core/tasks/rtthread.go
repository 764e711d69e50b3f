package tasks

import "fmt"

// RT-Thread has a list of all threads in the first of its object containers (src/object.c).
var rtthread = kernel{
	name:    "RT-Thread",
	symbols: []string{"rt_current_thread", "_object_container", "rt_object_container"},
	structs: []string{"rt_thread", "rt_object_information", "rt_list_node"},
	fill:    "####",
	find:    (*finder).rtthread,
	title:   "name", low: "stack_addr", size: "stack_size",
}

// rtStates are the states by number, RT_THREAD_INIT and so on in rtdef.h of version 4.
var rtStates = []string{"not started", "ready", "suspended", "running", "closed"}

func (f *finder) rtthread() error {
	const thread, info = "rt_thread", "rt_object_information"
	current, err := f.variable("rt_current_thread")
	if err != nil {
		return err
	}
	container, ok := f.found["_object_container"]
	if !ok {
		if container, ok = f.found["rt_object_container"]; !ok {
			return fmt.Errorf("no variable _object_container")
		}
	}
	list, ok1 := f.layouts[info].offset("object_list")
	node, ok2 := f.layouts[thread].offset("list")
	if !ok1 || !ok2 {
		return fmt.Errorf("struct %s has no list: this version is not known", thread)
	}
	head := container.Addr + list
	at, ok := f.m.Pointer(head) // next is the first member of a node
	for n := 0; ok && at != head && n < maxTasks; n++ {
		if !f.rtThread(at-node, current) {
			break
		}
		at, ok = f.m.Pointer(at)
	}
	if !ok {
		f.note("the list of threads leads out of the image: threads are missing")
	}
	return nil
}

// rtThread adds a thread, and reports whether it was new.
func (f *finder) rtThread(at, current uint64) bool {
	const thread = "rt_thread"
	sp, ok := f.field(at, thread, "sp")
	if !ok {
		f.note("the thread at %#x is not in the image: threads are missing", at)
		return false
	}
	t := f.task(at)
	t.Running = at == current
	stat, _ := f.field(at, thread, "stat")
	t.State = fmt.Sprintf("state %d", stat&7)
	if n := stat & 7; n < uint64(len(rtStates)) {
		t.State = rtStates[n]
	}
	if !f.add(t) {
		return false
	}
	f.saved(&f.list.Tasks[len(f.list.Tasks)-1], sp)
	return true
}

package tasks

import "fmt"

// ThreadX has its threads in a ring (tx_thread.h, tx_api.h).
var threadx = kernel{
	name:    "ThreadX",
	symbols: []string{"_tx_thread_created_ptr", "_tx_thread_current_ptr", "_tx_thread_created_count"},
	structs: []string{"TX_THREAD_STRUCT"},
	fill:    "\xef\xef\xef\xef",
	find:    (*finder).threadx,
	title:   "tx_thread_name", low: "tx_thread_stack_start", size: "tx_thread_stack_size",
}

// threadxStates are the states by number, TX_READY and so on in tx_api.h.
var threadxStates = []string{"ready", "completed", "terminated", "suspended", "sleeping", "blocked on a queue", "blocked on a semaphore",
	"blocked on event flags", "blocked on a block pool", "blocked on a byte pool", "blocked on a driver", "blocked on a file",
	"blocked on TCP/IP", "blocked on a mutex", "changing priority"}

func (f *finder) threadx() error {
	const thread = "TX_THREAD_STRUCT"
	first, err := f.variable("_tx_thread_created_ptr")
	if err != nil {
		return err
	}
	current, err := f.variable("_tx_thread_current_ptr")
	if err != nil {
		return err
	}
	for at := first; at != 0 && !f.seen[at]; {
		sp, ok1 := f.field(at, thread, "tx_thread_stack_ptr")
		next, ok2 := f.field(at, thread, "tx_thread_created_next")
		if !ok1 || !ok2 {
			f.note("the thread at %#x is not in the image: threads are missing", at)
			break
		}
		t := f.task(at)
		t.Running = at == current
		n, _ := f.field(at, thread, "tx_thread_state")
		switch {
		case t.Running:
			t.State = "running"
		case n < uint64(len(threadxStates)):
			t.State = threadxStates[n]
		default:
			t.State = fmt.Sprintf("state %d", n)
		}
		if !f.add(t) {
			break
		}
		f.saved(&f.list.Tasks[len(f.list.Tasks)-1], sp)
		at = next
	}
	if v, ok := f.found["_tx_thread_created_count"]; ok {
		if n, known := f.m.Uint(v.Addr, 4); known && n != uint64(len(f.list.Tasks)) {
			f.note("ThreadX counts %d threads, %d were found", n, len(f.list.Tasks))
		}
	}
	return nil
}

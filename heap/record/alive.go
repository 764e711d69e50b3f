//go:build linux

package record

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// robust is the robust list of a thread, with one futex, as the kernel reads it.
type robust struct {
	first   uintptr // of the head: the address of entry
	offset  uintptr // from an entry to its futex
	pending uintptr
	entry   uintptr // the address of first
}

// guard has the kernel set ringDied in the header as btrecord ends, however it ends, so that
// programs do not wait for it. It returns a function that ends this. Without such a kernel, programs
// wait for some time.
func (m *memory) guard() (end func()) {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return func() {}
	}
	list := (*robust)(unsafe.Pointer(&page[0]))
	list.first = uintptr(unsafe.Pointer(&list.entry))
	list.entry = uintptr(unsafe.Pointer(&list.first))
	list.offset = uintptr(unsafe.Pointer(&m.alive)) - list.first
	set := func(at *robust) unix.Errno {
		_, _, e := unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(at)), unsafe.Offsetof(list.entry), 0)
		return e
	}
	stop, done := make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread() // and ends with it: the list is the thread's
		if set(list) == 0 {
			m.alive.Store(uint32(unix.Gettid()))
		}
		done <- true
		<-stop
		list.first = uintptr(unsafe.Pointer(&list.first)) // empty
		done <- true
	}()
	<-done
	return func() {
		close(stop)
		<-done
	}
}

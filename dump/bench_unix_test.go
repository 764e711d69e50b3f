//go:build unix

package dump_test

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that this process has taken, or its children.
func cpuTime(children bool) time.Duration {
	who := syscall.RUSAGE_SELF
	if children {
		who = syscall.RUSAGE_CHILDREN
	}
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

//go:build unix

package cmdtest

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time that this process has taken, for tests of cost: on a busy
// machine, the time on the wall says nothing.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

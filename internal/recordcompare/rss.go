//go:build linux

package main

import (
	"os/exec"
	"syscall"
)

// maxRSS returns the largest resident set of a command that has ended, or of its
// children, in KB.
func maxRSS(c *exec.Cmd) int64 {
	return int64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
}

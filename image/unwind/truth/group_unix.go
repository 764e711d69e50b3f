//go:build unix

package truth

import (
	"os/exec"
	"syscall"
)

// endWithChildren has the end of the command's context end what the command started,
// too: gdb leaves the program that it stopped.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
